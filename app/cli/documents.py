"""Commands about documents and the library themselves: convert, diff, samples, operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from app.cli.console import FileArgument, out, show
from designer.graph.diagnostics import DiagnosticError

documents = typer.Typer()


@documents.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN")], target: Annotated[Path, typer.Argument(metavar="OUT")]
) -> None:
    """Open a model file and save it as another (what a person does with Save As)."""
    from designer.files.document import read_document, save_document

    reading = read_document(source)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    show(reading.diagnostics)
    save_document(reading.graph, target)
    out.print(f"wrote {target}", markup=False)


@documents.command()
def operators(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """List the operators with their parameters."""
    from designer.operators.registry import default_registry, plugin_folder

    registry = default_registry()
    if as_json:
        from app.checks.operator_reference import operator_dict

        show(tuple(registry.diagnostics))
        activations = sorted(registry.activations.values(), key=lambda cls: cls.type)
        out.print_json(json.dumps([operator_dict(cls) for cls in (*registry, *activations)]))
        return
    table = Table()
    for heading in ("type", "category", "parameters"):
        table.add_column(heading)
    for cls in registry:
        table.add_row(cls.type, cls.category.value, ", ".join(p.name for p in cls.parameters))
    out.print(table)
    out.print("attached activations: " + ", ".join(sorted(registry.activations)))
    out.print(f"plugin folder: {plugin_folder()}", markup=False, highlight=False)
    show(tuple(registry.diagnostics))


@documents.command()
def diff(
    before: FileArgument,
    after: FileArgument,
    moves: Annotated[bool, typer.Option(help="Also what only stands elsewhere.")] = True,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Show what was added, removed, renamed and changed between two networks; exit status 1 when something was."""
    from dataclasses import asdict

    from designer.files.document import read_document
    from designer.graph.compare import compare as compare_graphs

    readings = [read_document(path) for path in (before, after)]
    one, other = (reading.graph for reading in readings)
    if one is None or other is None:
        raise DiagnosticError(d for r in readings if r.graph is None for d in r.diagnostics)
    found = compare_graphs(one, other)
    if not moves:
        found = found.without_moves()
    if as_json:
        out.print_json(json.dumps(asdict(found)))
    else:
        out.print(found.text() or "no difference", markup=False, highlight=False, end="" if found else "\n")
    raise typer.Exit(1 if found else 0)


@documents.command()
def samples() -> None:
    """List the samples that come with the program."""
    import samples as package

    for path in package.documents():
        out.print(str(path), markup=False, highlight=False)
