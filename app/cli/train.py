"""`layerwright train`: export a network as a PyTorch project and train it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out
from app.cli.options import FileArgument, TrustOption

if TYPE_CHECKING:
    from designer.training.watched_run import WatchedRun

LOOK = 0.5  # seconds between two looks at the files of the run

train = typer.Typer(add_completion=False)


@train.command("train", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train_network(
    context: typer.Context,
    file: FileArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the project; by default FILE_pytorch next to FILE, or for samples in your data folder.",
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return at once. The window shows the run when it opens the file.")
    ] = False,
    host: Annotated[
        str,
        typer.Option("--host", metavar="NAME", help="Train on this host of your SSH configuration; see also follow."),
    ] = "",
    host_python: Annotated[str, typer.Option("--host-python", metavar="PATH", help="Python on the host.")] = "python3",
    trust_custom: TrustOption = None,
) -> None:
    """Export a network as a PyTorch project and train it in a process of its own.

    Further options are those of the project's train.py: --data FOLDER --noise 25 --steps 2000. Ctrl+C saves a checkpoint and
    stops the run.
    """
    from app.cli.trust import with_trust
    from app.opened_network import open_network
    from app.training_folders import default_project
    from designer.files.settings import Settings, find_settings, read_settings
    from designer.runtime.api import RunOptions
    from designer.training import run_registry, ssh_host, trainer
    from designer.training.run_folder import RUNS, RunFolder, new_name
    from exporters.pytorch import Training, class_name, export_project

    options = trainer.with_absolute_paths(trainer.parse_options(context.args))
    network = open_network(file)
    with_trust(network, RunOptions(), trust_custom or ())
    document = file.absolute()
    project = (output or default_project(document, network.graph.name)).absolute()
    stored = find_settings(file)
    settings = read_settings(stored).settings if stored is not None else Settings()
    training = Training.of(settings)
    export_project(network.graph, network.registry, project, class_name(network.graph.name), training)
    run = RunFolder(project / RUNS / new_name(project))
    if host:
        ssh_host.start(ssh_host.Host(host, host_python), run, options, _say)
    else:
        trainer.start(run, options)
    run_registry.remember(run.path, document)
    out.print(f"run {run.path}", highlight=False)
    if not detach:
        raise typer.Exit(_follow(run.path, (lambda: ssh_host.follow(run, _say)) if host else _looks))


def follow(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder that `layerwright train --host` printed.")],
) -> None:
    """Follow a run on another machine again: copy its files until it ends, and pass on pause and stop.

    Ctrl+C saves a checkpoint and stops the run.
    """
    from designer.training import ssh_host
    from designer.training.run_folder import RunFolder

    run = RunFolder(folder.absolute())
    raise typer.Exit(_follow(run.path, lambda: ssh_host.follow(run, _say)))


def _say(text: str) -> None:
    err.print(text, highlight=False)


def _looks() -> Iterator[None]:
    """Looks at the files of a run on this machine."""
    while True:
        time.sleep(LOOK)
        yield


def _follow(folder: Path, looks: Callable[[], Iterator[None]]) -> int:
    """Print the progress of a run until it ends; returns the exit status. `looks` yields when its files may have changed."""
    from designer.training.run_folder import RunFolder
    from designer.training.watched_run import RunState, WatchedRun

    run = WatchedRun(RunFolder(folder))
    printed, stopping, turns = -1, False, looks()
    while True:
        try:
            next(turns, None)
            run.read()
            shot = run.snapshot
            if shot.total_steps and shot.step != printed:
                printed = shot.step
                _print(run)
            if not shot.state.trains:
                break
        except KeyboardInterrupt:
            if stopping:
                raise
            stopping = True
            with _without_interrupts():  # the program that started this one may pass the signal on at the same time
                run.folder.send("stop")
                err.print("stopping after this step")
            turns = looks()
    out.print(": ".join(part for part in (shot.state.text, shot.message) if part), highlight=False)
    return {RunState.FINISHED: 0, RunState.STOPPED: 130}.get(shot.state, 1)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _print(run: WatchedRun) -> None:
    shot = run.snapshot
    values = [
        f"{name.rpartition('.')[2]} {value:.4g}"
        for name in ("loss", *shot.curves.validated)
        if (value := shot.curves.last(name)) is not None
    ]
    left = f"{shot.seconds_left:.0f} s left" if shot.seconds_left is not None else ""
    parts = [f"step {shot.step} of {shot.total_steps}", *values, left]
    out.print(", ".join(part for part in parts if part), highlight=False)
