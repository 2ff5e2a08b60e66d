"""`layerwright sweep`: train a network with many settings, and list the results, best first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out
from app.cli.options import FileArgument, TrustOption

if TYPE_CHECKING:
    from designer.training.sweep import Sweep, Trial
    from designer.training.watched_run import RunState

sweep = typer.Typer(add_completion=False)


@sweep.command("sweep", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def sweep_network(
    context: typer.Context,
    file: FileArgument,
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid", metavar="NAME=VALUES", help="A setting of train.py or width.LAYER, and its values: noise=15,25."
        ),
    ],
    drawn: Annotated[
        int,
        typer.Option("--random", min=0, help="Draw this many trials; then NAME=LOW..HIGH is a range on a log scale."),
    ] = 0,
    parallel: Annotated[int, typer.Option("--parallel", min=1, help="Trials at once.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the sweep; by default FILE_sweep next to FILE, or for samples in your data folder.",
        ),
    ] = None,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="ADDRESS", help="Run the trials on this Ray cluster.")
    ] = "",
    trust_custom: TrustOption = None,
) -> None:
    """Train a network with every combination of settings, noise levels or widths of layers.

    Further options are those of the project's train.py: --data FOLDER --steps 2000. Ctrl+C stops the trials; the same command
    continues them and does not repeat finished ones. Exit status 1 if a trial failed.
    """
    from app.cli.trust import with_trust
    from app.engine.sweep_job import prepare
    from app.engine.sweep_process import Place, conduct
    from app.opened_network import open_network
    from app.training_folders import default_sweep
    from designer.files.settings import Settings, find_settings, read_settings
    from designer.runtime.api import RunOptions
    from designer.training import trainer
    from designer.training.sweep import Axis, Sweep, trials
    from designer.training.watched_run import RunState
    from exporters.pytorch import Training

    options = trainer.with_absolute_paths(trainer.parse_options(context.args))
    planned = trials([Axis.parse(text) for text in grid], drawn)
    network = open_network(file)
    with_trust(network, RunOptions(), trust_custom or ())
    document = file.absolute()
    folder = (output or default_sweep(document)).absolute()
    made = Sweep(folder, tuple(planned), options)
    stored = find_settings(file)
    settings = read_settings(stored).settings if stored is not None else Settings()
    waiting = prepare(made, network.graph, network.registry, Training.of(settings), document)
    out.print(f"{len(planned)} trials, {len(planned) - len(waiting)} finished before: {folder}", highlight=False)
    failed: list[Trial] = []

    def ended(trial: Trial, state: RunState, message: str) -> None:
        if state not in (RunState.FINISHED, RunState.STOPPED):
            failed.append(trial)
        parts = f"{trial.name} ({trial.title}) {state.text}", message if trial in failed else ""
        (err if trial in failed else out).print(": ".join(part for part in parts if part), highlight=False)

    try:
        conduct(made, waiting, Place(parallel, cluster), ended)
    finally:
        _print(made)
    raise typer.Exit(1 if failed else 0)


def _print(made: Sweep) -> None:
    from rich.table import Table

    table = Table()
    rows = [result.row() for result in made.write()]
    shown = [name for name in rows[0] if name not in ("run", "message")]
    for name in shown:
        table.add_column(name)
    for row in rows:
        table.add_row(
            *("" if row[name] is None else f"{row[name]:.4g}" if name == "value" else str(row[name]) for name in shown)
        )
    out.print(table)
    out.print(f"results are in {made.folder / 'results.csv'}", highlight=False)
