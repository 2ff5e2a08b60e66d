"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from designer.files.document import DOCUMENTS
from designer.files.weights import WEIGHTS
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.types import Size2D

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help=f"A model file: {DOCUMENTS.read_choices}.")]
JsonOption = Annotated[bool, typer.Option("--json")]
WeightsOption = Annotated[Path | None, typer.Option("--weights", help=f"{WEIGHTS.title}: {WEIGHTS.read_choices}.")]
SeedOption = Annotated[
    int | None, typer.Option("--random-weights", metavar="SEED", help="Fill missing weights with seeded random values.")
]
EngineOption = Annotated[str, typer.Option(help="An engine listed by `layerwright engines`.")]
PrecisionOption = Annotated[str, typer.Option(help="Precision: fp32, fp16 or bf16.")]
VariantOption = Annotated[
    str, typer.Option("--variant", metavar="NAME", help="A variant of the network, from its settings.")
]
LayoutOption = Annotated[str, typer.Option(help="Memory layout: nchw or nhwc.")]
DeviceOption = Annotated[str, typer.Option(help="Device: cpu or cuda.")]
ThreadsOption = Annotated[int, typer.Option(help="Number of threads; 0 uses all cores.")]
TrustOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-custom",
        metavar="SHA256|ask",
        help="Allow custom layers to run: the SHA-256 digest of their source, or the word ask, which shows the source first.",
    ),
]


def pairs(option: str, texts: list[str] | None) -> list[tuple[str, Path]]:
    """Parse `NAME=PATH` arguments in order. Raises DiagnosticError for any other text."""
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
    """The pairs as a mapping. Raises DiagnosticError for a duplicate name."""
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


def extent(option: str, text: str) -> tuple[int, int] | None:
    """Parse `WxH` as height and width; None for an empty text. Raises DiagnosticError for any other text."""
    if not text:
        return None
    try:
        size = Size2D.parse(text)
    except ValueError as error:
        raise DiagnosticError(
            Diagnostic("bad-option", f"{option}: {error}", remedy=f"for instance {option} 640x480")
        ) from None
    return size.hw
