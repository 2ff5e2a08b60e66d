"""`layerwright import`: make a document from a model of another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out
from designer.files.weights import WEIGHTS
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from importers.formats import IMPORTS, ImportOptions

if TYPE_CHECKING:
    from importers.imported import Imported


def import_model(
    file: Annotated[str, typer.Argument(metavar="FILE", help=f"The model: {IMPORTS.read_choices}.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The document to write.")],
    weights: Annotated[
        Path | None, typer.Option("--weights", help=f"Where to write the weights: {WEIGHTS.write_choices}.")
    ] = None,
    output_weights: Annotated[Path | None, typer.Option("--output-weights", help="The same as --weights.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write the report as JSON to this file.")] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=1x3x64x64", help="Shape of an input whose size the file leaves open."),
    ] = None,
    verify: Annotated[bool, typer.Option(help="Compare the document with the original on seeded inputs.")] = True,
) -> None:
    """Import a model as a document with its weights. Exit status 1 if it computes something else than the original."""
    from designer.files.document import DOCUMENTS
    from designer.operators.registry import default_registry

    DOCUMENTS.writer(output)  # refuses unknown formats before anything is read
    target = output_weights or weights
    if target is not None and target.suffix and not target.is_dir():
        WEIGHTS.writer(target)
    registry = default_registry()
    read = IMPORTS.reader(file)
    found = read(Path(file), registry, ImportOptions(sizes=dict(map(_shape, inputs or ()))))
    write_import(found.verified(registry) if verify else found, output, target, report)


def write_import(found: Imported, output: Path, weights: Path | None, report: Path | None) -> None:
    """Write the document, the weights and the report, and print a summary. Raises Exit(1) if the outputs disagree."""
    from designer.files.atomic import write_atomic
    from designer.files.document import save_document
    from designer.files.json_text import encode
    from designer.files.weights import save_weights

    if weights is not None:
        save_weights(weights, found.weights.tensors)
    save_document(found.graph, output)
    if report is not None:
        write_atomic(report, encode(found.report))
    out.print(f"wrote {output}", markup=False)
    out.print(found.report.summary(), markup=False, highlight=False)
    if weights is None and found.weights.tensors:
        err.print("the weights were not written: give --weights DIR", markup=False)
    if not found.report.agrees:
        raise typer.Exit(1)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, dims = text.rpartition("=")
    parts = dims.split("x")
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 2**31 for part in parts):
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                f"--input {text[:80]}: '{dims[:40]}' is not a shape",
                remedy="write NAME=1x3x64x64, outermost dimension first",
            )
        )
    return name, tuple(map(int, parts))
