"""Approval of custom layers on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from app.cli.console import out
from app.opened_network import OpenedNetwork
from designer.files.agreements import agree, agreed, not_agreed
from designer.files.digest_list import is_digest
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.code_text import digest
from designer.runtime.api import RunOptions
from designer.texts import visible


def with_trust(network: OpenedNetwork, options: RunOptions, trust: Sequence[str]) -> RunOptions:
    """Add the digests of approved sources to `options`: approved before, given in `trust`, or confirmed now.

    `trust` contains digests, or "ask". Raises DiagnosticError for a source that is not approved.
    """
    for entry in trust:
        if entry != "ask" and not is_digest(entry):
            message = f"--trust-custom {entry[:80]}: this is not a SHA-256 digest"
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
    """Show the source on the terminal and ask. Only "yes" approves it."""
    out.print(f"The layer '{layer}' runs this Python code on your machine, with your permissions:\n", highlight=False)
    for number, line in enumerate(visible(text).split("\n"), 1):
        out.print(f"{number:4} | {line}", highlight=False)
    out.print("\nRun it now and whenever this exact source is used again? [yes/No] ", end="", highlight=False)
    return sys.stdin.readline().strip().lower() == "yes"


def _refusal(layer: str, text: str) -> Diagnostic:
    return Diagnostic(
        "not-agreed",
        f"'{layer}' contains Python code, which runs only after you approve exactly this source",
        layer=layer,
        parameter="source",
        remedy=f"review it, then give --trust-custom {digest(text)}, or --trust-custom ask on a terminal",
    )
