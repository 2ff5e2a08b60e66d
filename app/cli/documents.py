"""`layerwright convert` and `layerwright diff`: commands for documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import out, print_json, show
from app.cli.options import FileArgument, JsonOption
from designer.files.document import DOCUMENTS, read_document, save_document
from designer.graph.diagnostics import DiagnosticError


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help=f"A model file: {DOCUMENTS.read_choices}.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help=f"Where to write: {DOCUMENTS.write_choices}.")],
) -> None:
    """Open a model file and save it under another name or format, like Save As."""
    DOCUMENTS.writer(target)  # refuses unknown formats before anything is read
    reading = read_document(source)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    show(reading.diagnostics)
    save_document(reading.graph, target)
    out.print(f"wrote {target}")


def diff(
    before: FileArgument,
    after: FileArgument,
    moves: Annotated[bool, typer.Option(help="Include layers that only moved.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Print what was added, removed, renamed and changed between two networks. Exit status 1 if they differ."""
    from dataclasses import asdict

    from designer.graph.compare import compare as compare_graphs

    readings = [read_document(path) for path in (before, after)]
    one, other = (reading.graph for reading in readings)
    if one is None or other is None:
        raise DiagnosticError(d for r in readings if r.graph is None for d in r.diagnostics)
    found = compare_graphs(one, other)
    if not moves:
        found = found.without_moves()
    if as_json:
        print_json(asdict(found))
    else:
        out.print(found.text() or "no differences", highlight=False, end="" if found else "\n")
    raise typer.Exit(1 if found else 0)
