"""A training run as it is now: everything that its folder says, read again as it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from designer.texts import mark, tr, tr_data
from designer.training.health import Health, HealthFile, Problem
from designer.training.metrics import Curves, MetricsFile
from designer.training.run_folder import Notes, RemoteRun, RunFolder
from designer.training.trail import Trail
from designer.training.trainer import last_output


class RunState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    ENDED = "ended"  # the process ended without a last word: killed, or the machine was switched off
    MISSING = "missing"  # the folder was deleted

    @property
    def text(self) -> str:
        return tr_data(_TITLES[self])

    @property
    def trains(self) -> bool:
        """Whether a process of the run exists."""
        return self in (RunState.STARTING, RunState.RUNNING, RunState.PAUSED)


_TITLES = {
    RunState.STARTING: mark("starting"),
    RunState.RUNNING: mark("running"),
    RunState.PAUSED: mark("paused"),
    RunState.STOPPED: mark("stopped"),
    RunState.FINISHED: mark("finished"),
    RunState.FAILED: mark("failed"),
    RunState.ENDED: mark("interrupted"),
    RunState.MISSING: mark("deleted"),
}


@dataclass(frozen=True)
class RunSnapshot:
    """A run at one moment."""

    folder: RunFolder
    state: RunState = RunState.STARTING
    step: int = 0
    total_steps: int = 0
    message: str = ""
    notes: Notes = field(default_factory=Notes)
    settings: Mapping[str, Any] = field(default_factory=dict)
    curves: Curves = field(default_factory=Curves)
    health: tuple[Health, ...] = ()
    frames: tuple[int, ...] = ()  # steps of the weight trail
    validations: tuple[int, ...] = ()  # steps with validation images, without later ones of an interrupted attempt
    host: str = ""  # the other machine that it trains on
    changed: Mapping[str, str] = field(default_factory=dict)  # what a trial of a sweep changes in the network
    is_unreachable: bool = False  # the connection to the host is lost; `message` says why

    @property
    def title(self) -> str:
        return self.notes.title or self.folder.name

    @property
    def stopped_by(self) -> Problem | None:
        """The problem for which a rule stopped the run."""
        return self.health[-1].stopped_by if self.health else None

    @property
    def seconds_left(self) -> float | None:
        """Time until the last step at the current speed; None if it is unknown, or the run does not train or cannot be reached."""
        each = self.curves.seconds_per_step()
        if each is None or self.state is not RunState.RUNNING or self.is_unreachable:
            return None
        return max(self.total_steps - self.step, 0) * each

    @property
    def compared(self) -> Mapping[str, Any]:
        """What can differ between runs: settings, and widths of layers in a sweep."""
        return {**self.settings, **self.changed}

    @property
    def can_follow(self) -> bool:
        """Whether it may train on another machine without being followed here."""
        return bool(self.host) and self.state is RunState.ENDED

    @property
    def can_resume(self) -> bool:
        return not self.state.trains and not self.can_follow and self.folder.checkpoint is not None


class WatchedRun:
    """Reads the folder of a run. `snapshot` is replaced, never changed, so other threads can use it."""

    def __init__(
        self, folder: RunFolder, changed: Mapping[str, str] | None = None, paths: Mapping[str, str] | None = None
    ) -> None:
        """`changed` is what a trial changes in the network, `paths` the options that name files here if it trains elsewhere."""
        self.folder = folder
        self._changed, self._paths = changed or {}, paths or {}
        self.snapshot = RunSnapshot(folder)
        self._metrics = MetricsFile(folder.metrics)
        self._health = HealthFile(folder.health)
        self._trail = Trail(folder.trail)

    def read(self) -> bool:
        """Read what changed. Returns whether the snapshot is another one."""
        before, folder = self.snapshot, self.folder
        pid = folder.process()  # before the status, which a process writes before it ends
        status = folder.status()
        if not folder.path.is_dir():
            self.snapshot = RunSnapshot(folder, RunState.MISSING, message=tr("the folder was deleted"))
            return before.state is not RunState.MISSING
        remote = folder.remote()
        current = status is not None and (not pid or status.pid == pid)
        if pid:
            state = RunState(status.state) if status is not None and current else RunState.STARTING
        elif status is None:
            state = RunState.ENDED if remote is not None else RunState.FAILED
        else:
            state = RunState(status.state) if status.state not in ("running", "paused") else RunState.ENDED
        self._read_files()
        curves, settings = self._metrics.curves, folder.settings()
        lost = folder.connection_problem() if remote is not None else ""
        last = int(curves.steps[-1]) if len(curves.steps) else 0
        self.snapshot = RunSnapshot(
            folder,
            state,
            max(status.step, last) if status is not None and current else last,
            (status.total_steps if status is not None else 0) or curves.total_steps,
            lost or self._message(state, status.message if status is not None else "", remote),
            folder.notes(),
            {**settings, **self._paths, **(remote.paths if remote is not None else {})} if settings else {},
            curves,
            self._health.measured,
            tuple(frame.step for frame in self._trail.frames),
            tuple(each for each in folder.validation_steps() if not last or each <= last),
            remote.host if remote is not None else "",
            self._changed,
            bool(lost),
        )
        return self.snapshot != before

    def _read_files(self) -> None:
        try:
            self._metrics.read()
        except OSError:
            self._metrics.curves = Curves()  # not written yet, or deleted
        self._health.read()
        self._trail.read()

    def _message(self, state: RunState, said: str, remote: RemoteRun | None) -> str:
        if state is RunState.ENDED and remote is not None:
            return tr(
                "Nothing follows the run here, but it may train on {host}. Follow it in the window, or with: layerwright follow {run}",
                host=remote.host,
                run=self.folder.path,
            )
        if state is RunState.ENDED:
            return tr("The process ended unexpectedly. Resume continues from the last checkpoint.")
        if state is RunState.FAILED and not said:
            lines = last_output(self.folder).splitlines()
            return lines[-1] if lines else tr("The process ended before it began to train.")
        if state is RunState.STOPPED and self._health.measured and self._health.measured[-1].stopped_by is not None:
            return tr("Stopped by a rule: {problem}", problem=self._health.measured[-1].stopped_by)
        return said
