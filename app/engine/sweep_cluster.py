"""Runs the trials of a sweep as trials of Ray Tune, for `layerwright sweep --cluster`.

Project and data travel as bytes, so the nodes need no common disk, only this program in the same version. While a trial runs, the files
of its run are copied to its folder here. Tune starts the trials of a lost node again, and they continue from the copied checkpoint.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.engine.cluster import Cluster
from app.engine.sweep_job import Ended, can_resume
from designer.files.atomic import make_folder
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.training import mirror, remote_agent, trainer
from designer.training.run_folder import SCRIPT, Command, Notes, RunFolder
from designer.training.sweep import Sweep, Trial
from designer.training.watched_run import RunState, WatchedRun

LOOK = 0.5  # seconds between two looks at the files of a run
LOST_NODES = 5  # how often a trial is started again


@dataclass(frozen=True)
class Work:
    """What a node needs for one trial."""

    name: str
    project: Any  # references to archives in Ray's store
    data: Mapping[str, Any]
    options: Mapping[str, str | bool]


class Collector:
    """Keeps the local copies of the runs, in a process of the machine that the command runs on."""

    def __init__(self, runs: Mapping[int, Path], pid: int) -> None:
        self._runs = {number: RunFolder(path) for number, path in runs.items()}
        self._pid = pid

    def held(self, number: int) -> list[tuple[str, int, bytes]]:
        """The files of a run that can be continued; none for one that starts."""
        run = self._runs[number]
        return remote_agent.changes(run.path, {}) if run.checkpoint is not None else []

    def exchange(self, number: int, parts: Sequence[tuple[str, int, bytes]]) -> Command | None:
        """Store what a node wrote; returns the command of the user."""
        mirror.store(self._runs[number], parts, self._pid)
        return mirror.command(self._runs[number])


def run_on_cluster(address: str, sweep: Sweep, waiting: Sequence[Trial], ended: Ended) -> None:
    """Run the trials on the Ray cluster at `address`, as many at once as it has processors. Raises DiagnosticError."""
    if not waiting:
        return
    with Cluster(address), tempfile.TemporaryDirectory(prefix="layerwright-") as scratch:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for trial in waiting:
            run = sweep.run(trial)
            if not can_resume(run):
                run.delete()
            make_folder(run.path)
            run.record_process(os.getpid())
            run.write_notes(Notes(trial.title))
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        runs = {trial.number: sweep.run(trial).path for trial in waiting}
        collector = ray.remote(Collector).options(num_cpus=0, scheduling_strategy=here).remote(runs, os.getpid())
        _tune(_work(sweep, waiting), collector, Path(scratch), _Report(sweep, waiting, ended))


def _tune(work: Mapping[int, Work], collector: Any, scratch: Path, report: _Report) -> None:
    import ray
    from ray import tune

    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_DISABLE_SIGINT_HANDLER"] = "1"

    class Callback(tune.Callback):  # type: ignore[misc]
        def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            report.ended(trial.config["trial"])

        def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
            report.failed(trial.config["trial"], trial.get_error())

    def trainable(config: dict[str, Any]) -> None:
        train_on_node(config["trial"], work[config["trial"]], collector)

    tuner = tune.Tuner(
        tune.with_resources(trainable, {"cpu": 1}),
        param_space={"trial": tune.grid_search(list(work))},
        run_config=tune.RunConfig(
            storage_path=str(scratch),
            verbose=0,
            callbacks=[Callback()],
            failure_config=tune.FailureConfig(max_failures=LOST_NODES),
        ),
    )
    try:
        tuner.fit()
    except ray.exceptions.RayError as error:
        raise DiagnosticError.of(
            "cluster-failed",
            tr("the cluster failed: {reason}", reason=_reason(error)),
            remedy=tr("install the same version of Layerwright on every node, and repeat the command"),
        ) from error


def _reason(error: BaseException | None) -> str:
    lines = str(error or "").strip().splitlines()
    return lines[-1][:300] if lines else tr("no reason was given")


@dataclass(frozen=True)
class _Report:
    """Passes the ends of trials on."""

    sweep: Sweep
    trials: Sequence[Trial]
    to: Ended

    def ended(self, number: int) -> None:
        """Report a trial whose `train.py` has ended."""
        trial = self._release(number)
        run = WatchedRun(self.sweep.run(trial))
        run.read()
        self.to(trial, run.snapshot.state, run.snapshot.message)

    def failed(self, number: int, error: BaseException | None) -> None:
        """Report a trial that the cluster did not run to its end."""
        self.to(self._release(number), RunState.FAILED, _reason(error))

    def _release(self, number: int) -> Trial:
        """The trial; this process no longer follows its run."""
        trial = next(trial for trial in self.trials if trial.number == number)
        (self.sweep.run(trial).path / "process.json").unlink(missing_ok=True)
        return trial


def _work(sweep: Sweep, waiting: Sequence[Trial]) -> dict[int, Work]:
    """The work by number of the trial. Each project and each folder with data is stored once."""
    import ray

    stored: dict[Path, Any] = {}

    def reference(path: Path) -> Any:
        if path not in stored:
            stored[path] = ray.put(_pack(path))
        return stored[path]

    made = {}
    for trial in waiting:
        options = {"threads": "1", **sweep.arguments(trial)}
        paths = {name: Path(str(options.pop(name))) for name in trainer.PATHS if name in options}
        data = {name: reference(path) for name, path in paths.items()}
        made[trial.number] = Work(trial.name, reference(sweep.project(trial)), data, options)
    return made


def train_on_node(number: int, work: Work, collector: Any) -> None:
    """Train in a folder of the node until `train.py` ends; and copy its files to the collector while it trains."""
    import ray

    with tempfile.TemporaryDirectory(prefix="layerwright-") as scratch:
        folder = Path(scratch)
        project = _unpack(ray.get(work.project), folder / "project")
        paths = {name: str(_unpack(ray.get(data), folder / name)) for name, data in work.data.items()}
        run = RunFolder(project / "runs" / work.name)
        make_folder(run.path)
        held = ray.get(collector.held.remote(number))
        mirror.store(run, held, 0)
        seen: dict[str, list[int]] = {}
        remote_agent.changes(run.path, seen)
        words = [*(["--resume"] if held else []), *trainer.arguments({**work.options, **paths}), "--run", str(run.path)]
        with run.log.open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, SCRIPT, *words], cwd=project, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        last: Command | None = None
        while child.poll() is None:
            time.sleep(LOOK)
            last = _obey(run, ray.get(collector.exchange.remote(number, remote_agent.changes(run.path, seen))), last)
        ray.get(collector.exchange.remote(number, remote_agent.changes(run.path, seen)))


def _obey(run: RunFolder, said: Command | None, last: Command | None) -> Command | None:
    if said is not None and said != last:
        run.send(said)
    return said


def _pack(path: Path) -> bytes:
    """A file or a folder without runs as an archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.add(
            path, "content", filter=lambda member: None if member.name in ("content/runs", "content/cache") else member
        )
    return stream.getvalue()


def _unpack(data: bytes, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "content"
