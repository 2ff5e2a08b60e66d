"""`layerwright sizes`: the input sizes that a network accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import out, show
from app.cli.options import FileArgument, JsonOption
from designer.files.document import DOCUMENTS, save_document
from designer.graph.diagnostics import Diagnostic
from designer.operators.size_contract import AXES, InputSizes, SizeContract, size_contract
from designer.operators.size_fix import accept_every_size

FixOption = Annotated[
    bool,
    typer.Option("--fix", help="Pad the inputs and crop the outputs so that every size works, and write the network."),
]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where --fix writes the network, instead of FILE.")
]


def sizes(file: FileArgument, fix: FixOption = False, output: OutputOption = None, as_json: JsonOption = False) -> None:
    """Print the valid heights and widths of each input, and the layers that cause the rules. Exit status 1 if no size works.

    With --fix, the network is changed so that every size works, and written to FILE or --output.
    """
    from app.opened_network import open_network

    if output is not None and not fix:
        raise typer.BadParameter("--output needs --fix")
    target = output or file
    DOCUMENTS.writer(target)  # refuses unknown formats before anything is computed
    network = open_network(file, strict=False)
    contract = size_contract(network.graph, network.registry)
    if fix:
        edit = accept_every_size(network.graph, network.registry, contract)
        network.graph.apply(edit)
        if edit or target != file:
            save_document(network.graph, target)
        contract = size_contract(network.graph, network.registry)
    if as_json:
        out.print_json(json.dumps(contract.as_dict()))
    else:
        if fix:
            out.print(f"wrote {target}" if edit or target != file else "every size works already", markup=False)
        _print(contract)
    if contract.problem is not None:
        raise typer.Exit(1)


def _print(contract: SizeContract) -> None:
    if contract.problem is not None:
        show((Diagnostic("no-size", contract.problem.message, layer=contract.problem.layer),))
    for item in contract.inputs:
        _print_input(item)
    if contract.exceptions:
        out.print("except " + ", ".join(f"{w} x {h}" for h, w in contract.exceptions), markup=False)
    for layer, message in contract.coupled:
        out.print(f"{message}, because of {layer}. The rules hold while the other size keeps its value.", markup=False)


def _print_input(item: InputSizes) -> None:
    out.print(item.layer, markup=False)
    for name in AXES:
        rule = item.height if name == "height" else item.width
        out.print(f"  {name}: {rule}" + ("" if rule.proven else " (tried up to 512)"), markup=False)
        for cause in rule.causes:
            out.print(f"    {cause.size} fails at {cause.layer}: {cause.message}", markup=False)
    if item.with_inputs:
        out.print(f"  the same size as {', '.join(item.with_inputs)}", markup=False)
