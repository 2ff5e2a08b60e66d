"""A sweep as it is now: its plan, and the process that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.training.run_folder import RunFolder
from designer.training.sweep import PLAN, WIDTH, Sweep, rate
from designer.training.trainer import PATHS, last_output
from designer.training.watched_run import RunSnapshot, RunState, WatchedRun


@dataclass(frozen=True)
class SweepSnapshot:
    """A sweep at one moment. `state` is that of the process that starts the trials."""

    sweep: Sweep
    state: RunState
    message: str = ""

    @property
    def folder(self) -> Path:
        return self.sweep.folder

    @property
    def title(self) -> str:
        names = ", ".join(self.sweep.trials[0].values) if self.sweep.trials else ""
        return tr("Sweep of {names}", names=names) if names else self.folder.name

    def watch(self, run: RunFolder) -> WatchedRun:
        """A trial, with what it changes in the network, and with the folders of data here, wherever it trains."""
        trial = next((trial for trial in self.sweep.trials if self.sweep.run(trial).path == run.path), None)
        values = trial.values if trial is not None else {}
        widths = {name: value for name, value in values.items() if name.startswith(WIDTH)}
        options = self.sweep.options
        return WatchedRun(run, widths, {name: str(options[name]) for name in PATHS if name in options})


def sweep_of(run: Path) -> Path | None:
    """The folder of the sweep that has a run as a trial; None for other runs."""
    folder = run.parent.parent.parent
    return folder if (folder / PLAN).is_file() else None


def read_sweep(folder: Path, known: SweepSnapshot | None = None) -> SweepSnapshot | None:
    """The sweep in a folder now; `known` is the previous reading. None without a valid plan."""
    try:
        sweep = known.sweep if known is not None else Sweep.read(folder)
    except DiagnosticError:
        return None
    job = sweep.job
    pid = job.process()  # before the status, which a process writes before it ends
    status = job.status()
    current = status is not None and (not pid or status.pid == pid)
    if pid:
        state = RunState(status.state) if status is not None and current else RunState.STARTING
    elif status is None:
        state = RunState.ENDED if not job.log.exists() else RunState.FAILED
    else:
        state = RunState.ENDED if status.state == "running" else RunState(status.state)
    message = status.message if status is not None and current else ""
    if state is RunState.FAILED and not message:
        message = last_output(job, 1)
    return SweepSnapshot(sweep, state, message)


def best_trial(shots: Sequence[RunSnapshot]) -> RunSnapshot | None:
    """The trial with the best validation so far; None before the first one."""
    rated = [(rating, shot) for shot in shots if (rating := rate(shot.curves)) is not None]
    return max(rated, key=lambda entry: entry[0])[1] if rated else None
