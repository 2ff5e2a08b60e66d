"""Runs the trials of a sweep on this machine: processes one after the other, or several at once, with a low priority."""

from __future__ import annotations

import ast
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from designer.files.document import write_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from designer.texts import tr
from designer.training import run_registry, trainer
from designer.training.run_folder import Notes, RunFolder
from designer.training.sweep import Sweep, Trial
from designer.training.watched_run import RunState, WatchedRun
from exporters.pytorch import Training, class_name, export_project, project_files

LOOK = 0.3  # seconds between two looks at the runs

Ended = Callable[[Trial, RunState, str], None]  # with the message of the run


def prepare(sweep: Sweep, graph: Graph, registry: Registry, training: Training, document: Path | None) -> list[Trial]:
    """Export the projects of a sweep; returns the trials that are not finished.

    Raises DiagnosticError for networks that cannot be exported, settings that do not exist, and a folder with other content.
    """
    networks = {trial.network: trial.graph(graph) for trial in sweep.trials}
    name = class_name(graph.name)
    for changed in networks.values():
        _check_settings(project_files(changed, registry, name, training)["config.py"], sweep)
    sweep.open(hashlib.sha256(write_document(graph)).hexdigest())
    for project, changed in networks.items():
        export_project(changed, registry, sweep.folder / project, name, training)
    for trial in sweep.trials:
        run_registry.remember(sweep.run(trial).path, document)
    return unfinished(sweep)


def unfinished(sweep: Sweep) -> list[Trial]:
    return [trial for trial in sweep.trials if _state(sweep.run(trial)) is not RunState.FINISHED]


def run_here(sweep: Sweep, waiting: list[Trial], parallel: int, ended: Ended) -> None:
    """Run the trials, `parallel` at once. On KeyboardInterrupt the running trials are stopped with a checkpoint."""
    left = list(waiting)
    running: dict[str, tuple[Trial, WatchedRun]] = {}
    try:
        while left or running:
            while left and len(running) < parallel:
                trial = left.pop(0)
                running[trial.name] = trial, start_trial(sweep, trial, parallel)
            time.sleep(LOOK)
            _collect(running, ended)
    except KeyboardInterrupt:
        for _, run in running.values():
            run.folder.send("stop")
        while running:
            time.sleep(LOOK)
            _collect(running, ended)
        raise


def start_trial(sweep: Sweep, trial: Trial, parallel: int) -> WatchedRun:
    """Start a trial, or resume an interrupted one; a failed one starts again. One that trains is only watched."""
    run = sweep.run(trial)
    if run.process():  # of a command that was killed
        return WatchedRun(run)
    resume = can_resume(run)
    if not resume:
        run.delete()
    options = {"threads": str(max(1, (os.cpu_count() or 1) // parallel)), **sweep.arguments(trial)}
    trainer.start(run, options, resume=resume)
    run.write_notes(Notes(trial.title))
    return WatchedRun(run)


def can_resume(run: RunFolder) -> bool:
    """Whether a trial was interrupted after a checkpoint."""
    return _state(run) in (RunState.STOPPED, RunState.ENDED) and run.checkpoint is not None


def _collect(running: dict[str, tuple[Trial, WatchedRun]], ended: Ended) -> None:
    for name, (trial, run) in list(running.items()):
        run.read()
        trainer.reap()
        if not run.snapshot.state.trains and not run.folder.process():
            del running[name]
            ended(trial, run.snapshot.state, run.snapshot.message)


def _state(folder: RunFolder) -> RunState | None:
    if not folder.path.is_dir():
        return None
    run = WatchedRun(folder)
    run.read()
    return run.snapshot.state


def _check_settings(source: bytes, sweep: Sweep) -> None:
    """Raises DiagnosticError for an axis that is not a field of `Config` in the source of config.py, which is not run."""
    tree = ast.parse(source)
    config = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Config")
    known = {
        node.target.id for node in config.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for name in sorted({name for trial in sweep.trials for name in trial.options} | set(sweep.options)):
        if name not in known:
            raise DiagnosticError.of(
                "bad-sweep",
                tr("{name} is not a setting of the exported project", name=name),
                remedy=tr("use one of these: {names}; or width.LAYER", names=", ".join(sorted(known))),
            )
