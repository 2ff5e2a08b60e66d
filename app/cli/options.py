"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from designer.files.document import DOCUMENTS
from designer.files.weights import WEIGHTS
from designer.graph.diagnostics import Diagnostic, DiagnosticError

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help=f"A model file: {DOCUMENTS.read_choices}.")]
JsonOption = Annotated[bool, typer.Option("--json")]
WeightsOption = Annotated[Path | None, typer.Option("--weights", help=f"{WEIGHTS.title}: {WEIGHTS.read_choices}.")]
SeedOption = Annotated[
    int | None, typer.Option("--random-weights", metavar="SEED", help="Fill missing weights, seeded.")
]
EngineOption = Annotated[str, typer.Option(help="One of those that `layerwright engines` lists.")]
PrecisionOption = Annotated[str, typer.Option(help="fp32, fp16 or bf16.")]
LayoutOption = Annotated[str, typer.Option(help="nchw or nhwc.")]
DeviceOption = Annotated[str, typer.Option(help="cpu or cuda.")]
ThreadsOption = Annotated[int, typer.Option(help="0: all cores.")]
TrustOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-custom",
        metavar="SHA256|ask",
        help="Let custom layers run: by the digest of their source, or after showing it and asking.",
    ),
]


def pairs(option: str, texts: list[str] | None) -> list[tuple[str, Path]]:
    """Names and paths of `NAME=PATH` texts, in their order. Raises DiagnosticError for any other text."""
    found: list[tuple[str, Path]] = []
    for text in texts or ():
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise DiagnosticError(
                Diagnostic(
                    "bad-option", f"{option} {text}: write NAME=PATH", remedy=f"for instance {option} input=a.png"
                )
            )
        found.append((name, Path(path)))
    return found


def one_each(option: str, given: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    """Pairs as a mapping. Raises DiagnosticError for a name that is given more than once."""
    found: dict[str, Path] = {}
    for name, path in given:
        if name in found:
            raise DiagnosticError(
                Diagnostic(
                    "bad-option",
                    f"{option} {name} is given twice: {found[name]} and {path}",
                    layer=name,
                    remedy=f"give {option} {name}=PATH once",
                )
            )
        found[name] = path
    return found
