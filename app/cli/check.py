"""`layerwright check`: shapes and problems of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from app.cli.console import out, print_json, show
from app.cli.options import FileArgument, JsonOption
from designer.graph.diagnostics import DiagnosticError, Severity
from designer.units import count

if TYPE_CHECKING:
    from app.opened_network import LayerRow, OpenedNetwork


FEW = 60  # smaller networks are printed as a table by default
LayersOption = Annotated[
    bool, typer.Option("--layers", help=f"List the layers and their shapes even if there are {FEW} or more.")
]


def check(file: FileArgument, layers: LayersOption = False, as_json: JsonOption = False) -> None:
    """Check a network: print problems, totals and shapes. Exit status 1 if there are errors."""
    from app.opened_network import open_network

    try:
        network = open_network(file, strict=False)
    except DiagnosticError as error:
        if as_json:
            print_json({"layers": [], "diagnostics": [d.as_dict() for d in error.diagnostics]})
            raise typer.Exit(1) from None
        raise
    if as_json:
        print_json(network.as_dict())
    else:
        _print(network, layers)
    if network.has_errors:
        raise typer.Exit(1)


def _print(network: OpenedNetwork, layers: bool) -> None:
    rows = network.rows()
    show(network.diagnostics)
    problems = sum(d.severity is Severity.ERROR for d in network.diagnostics)
    counts = f"{count(len(rows))} layers, {count(network.parameters)} parameters, {problems} error{'s' if problems != 1 else ''}"
    out.print(f"{network.graph.name}: {counts}")
    branch = sum(row.training for row in rows)
    if branch:
        out.print(f"{branch} of the layers are the training branch, which inference, ONNX and deployment exclude")
    if layers or len(rows) < FEW:
        out.print(_table(rows))
    else:
        out.print("The layers and their shapes: layerwright check --layers")


def _table(rows: list[LayerRow]) -> Table:
    table = Table()
    for heading in ("layer", "type", "output", "parameters"):
        table.add_column(heading, justify="right" if heading == "parameters" else "left")
    for row in rows:
        kind = f"{row.type} (training)" if row.training else row.type
        table.add_row(row.layer, kind, row.shape, count(row.parameters) if row.parameters else "")
    return table
