"""Custom layers on the command line: whether their sources may run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from app.cli.opened_network import Network
from designer.files.agreements import agree, agreed, is_digest, not_agreed
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.code_text import digest, visible
from designer.runtime.api import RunOptions


def with_trust(network: Network, options: RunOptions, trust: Sequence[str]) -> RunOptions:
    """`options` with the digests of sources that may run: agreed to before, given in `trust`, or answered with yes now.

    `trust` holds digests and perhaps "ask". Raises DiagnosticError for a source that nobody agreed to; its remedy says how to.
    """
    for entry in trust:
        if entry != "ask" and not is_digest(entry):
            message = f"--trust-custom {entry[:80]}: this is no SHA-256 digest"
            raise DiagnosticError(Diagnostic("bad-option", message, remedy="give 64 hexadecimal digits, or ask"))
    known = agreed() | {entry for entry in trust if entry != "ask"}
    texts = not_agreed(network.graph, network.registry, known)
    for text, name in texts.items():
        if "ask" in trust and sys.stdin.isatty() and _ask(name, text):
            agree([text])
            known |= {digest(text)}
    refused = [(name, text) for text, name in texts.items() if digest(text) not in known]
    if refused:
        raise DiagnosticError([_refusal(name, text) for name, text in refused])
    return replace(options, agreed=tuple(sorted(known)))


def _ask(layer: str, text: str) -> bool:
    """Show the source on the terminal; only a plain yes is a yes."""
    print(f"The layer '{layer}' runs this Python on your machine, with your rights:\n")
    for number, line in enumerate(visible(text).split("\n"), 1):
        print(f"{number:4} | {line}")
    print("\nRun it, now and whenever this very text comes again? [yes/No] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def _refusal(layer: str, text: str) -> Diagnostic:
    return Diagnostic(
        "not-agreed",
        f"'{layer}' holds Python of its own, which runs only after you agreed to this very text",
        layer=layer,
        parameter="source",
        remedy=f"read it, then give --trust-custom {digest(text)}, or --trust-custom ask on a terminal",
    )
