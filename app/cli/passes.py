"""`layerwright passes`: apply graph passes, compare the outputs before and after, and print what each pass saves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from app.cli.console import out, print_json
from app.cli.options import (
    FileArgument,
    JsonOption,
    SeedOption,
    ThreadsOption,
    TrustOption,
    WeightsOption,
    one_each,
    pairs,
)
from designer.runtime.sources import INPUTS
from designer.units import binary

if TYPE_CHECKING:
    from designer.passes.passes import PassResult


def passes(
    file: FileArgument,
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    only: Annotated[
        list[str] | None, typer.Option("--pass", metavar="NAME", help="Only this pass. Repeatable; default: all.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="NAME", help="All passes but this one. Repeatable.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=PATH",
            help=f"What the outputs are compared on: {INPUTS.read_choices}; default: noise.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Write the network after the passes as .onnx.")
    ] = None,
    as_json: JsonOption = False,
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
) -> None:
    """Apply graph passes to a network, such as folding batch normalizations, and print what each saves.

    Exit status 1 if the outputs differ afterwards.
    """
    from app.cli.trust import with_trust
    from app.opened_network import load_weights_for, open_network
    from designer.operators.deploy import deploy
    from designer.passes.effect import pass_effect
    from designer.passes.passes import chosen, optimize
    from designer.runtime.api import RunOptions
    from exporters.onnx import ONNX_MODELS, export_onnx

    if output is not None:
        ONNX_MODELS.writer(output)  # rejects unknown formats before anything is read
    names = chosen(only or (), without or ())
    network = open_network(file)
    tensors = load_weights_for(network, weights, random_weights)
    options = with_trust(network, RunOptions(threads=threads), trust_custom or ())
    graph = deploy(network.graph, network.registry)
    found = optimize(graph, network.registry, tensors, names)
    files = one_each("--input", pairs("--input", inputs))
    effect = pass_effect(graph, found, network.registry, tensors, options, files)
    if as_json:
        results = [asdict(result) for result in found.results]
        print_json({"passes": results, "max_abs": effect.difference, "equal": effect.kept})
    else:
        out.print(_table(found.results))
        out.print(str(effect), highlight=False)
    if output is not None:
        export_onnx(found.graph, network.registry, found.weights, output)
        out.print(f"wrote {output}", highlight=False)
    if not effect.kept:
        raise typer.Exit(1)


def _table(results: tuple[PassResult, ...]) -> Table:
    table = Table()
    for index, title in enumerate(("pass", "rewritings", "tensor accesses", "memory traffic (modelled)")):
        table.add_column(title, justify="right" if index else "left")
    for result in results:
        before, after = result.before, result.after
        table.add_row(
            result.name,
            str(result.count),
            f"{before.accesses} -> {after.accesses}",
            f"{binary(before.bytes)} -> {binary(after.bytes)}",
        )
    return table
