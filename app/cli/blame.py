"""`layerwright blame`: the operators that cause the difference between two computations of a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from app.cli.console import err, out, print_json
from app.cli.options import FileArgument, JsonOption, SeedOption, ThreadsOption, TrustOption, WeightsOption
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.images import ARRAYS

if TYPE_CHECKING:
    from designer.runtime.session import Session

COMPUTATION = "A precision, number format, engine or variant, an .onnx file, or another document."


def blame(
    file: FileArgument,
    a: Annotated[str, typer.Option("--a", metavar="A", help=COMPUTATION)],
    b: Annotated[str, typer.Option("--b", metavar="B", help=COMPUTATION)],
    inputs: Annotated[
        list[str],
        typer.Option("--input", metavar="[NAME=]PATH", help=f"{ARRAYS.read_choices}; NAME with several inputs."),
    ],
    weights: WeightsOption = None,
    random_weights: SeedOption = None,
    other_weights: Annotated[
        Path | None,
        typer.Option("--other-weights", help="Weights of the other document; default: those in its settings."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Number of operators to print.")] = 10,
    threads: ThreadsOption = 0,
    trust_custom: TrustOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the operators that cause the difference between two computations of a network, and the first that deviates."""
    from rich.progress import Progress

    from app.cli.run_request import layers_with
    from app.cli.trust import with_trust
    from app.computations import Compared, blame_between
    from app.opened_network import load_weights_for, open_network
    from designer.files.settings import find_settings, read_settings
    from designer.operators.api import Role
    from designer.runtime.api import RunOptions

    network = open_network(file)
    files = _files(inputs, layers_with(network, Role.INPUT))

    def feed(session: Session) -> None:
        for layer, path in files.items():
            session.set_input_file(layer, path)

    settings = find_settings(file)
    compared = Compared(
        network.graph,
        network.registry,
        load_weights_for(network, weights, random_weights),
        with_trust(network, RunOptions(threads=threads), trust_custom or ()),
        feed,
        read_settings(settings).settings.variants if settings is not None else (),
        other_weights,
    )
    with Progress(console=err, transient=True) as bar:
        task = bar.add_task("", total=None)
        found = blame_between(
            compared, a, b,
            lambda done, total, text: bar.update(task, completed=done, total=total, description=text),
        )  # fmt: skip
    if as_json:
        print_json(
            {
                "a": a,
                "b": b,
                "inputs": {name: str(path) for name, path in files.items()},
                "rms": found.rms,
                "first": found.first,
                "operators": [
                    {"layer": item.layer, "share": item.share, "deviation": item.deviation} for item in found.ranked()
                ],
            }
        )
        return
    table = Table()
    table.add_column("operator")
    table.add_column("share of the error", justify="right")
    table.add_column("own deviation", justify="right")
    for item in found.ranked()[:rows]:
        table.add_row(item.layer, f"{item.share:.1%}", f"{item.deviation:.2g}")
    out.print(table)
    out.print(f"error of the result: {found.rms:.3g} RMS", highlight=False)
    out.print(f"first operator that deviates: {found.first or 'none'}", highlight=False)


def _files(texts: list[str], names: list[str]) -> dict[str, Path]:
    """The files of the inputs by layer. Raises DiagnosticError unless each has one."""
    found = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if len(names) == 1 and (not equals or (name not in names and Path(text).exists())):
            name, path = names[0], text  # also a path that contains "="
        found[name] = Path(path)
    if sorted(found) != sorted(names) or len(found) < len(texts):
        raise DiagnosticError.of(
            "bad-option",
            f"--input: the network has the inputs {', '.join(names)}",
            remedy="give --input NAME=PATH once for each",
        )
    return found
