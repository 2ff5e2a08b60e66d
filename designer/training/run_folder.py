"""The folder of a training run, `runs/NAME` in an exported project: what `train.py` writes there and reads from there."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from designer.files.atomic import write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.training.process_mark import process_mark, runs_script

SCRIPT = "train.py"
RUNS = "runs"
REMOTE = "remote.json"  # in the local copy of a run that trains on another machine
CONNECTION = "connection.txt"  # in such a copy: why the other machine cannot be reached
MAX_BYTES = 1 << 20  # of a status, a configuration or notes
_OF_A_RUN = ("process.json", "status.json", "config.json")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
T = TypeVar("T")
Written = Literal["running", "paused", "stopped", "finished", "failed"]
Command = Literal["pause", "resume", "stop"]


class Status(Struct, frozen=True):
    """`status.json`: the state that the trainer reports. `time` is in seconds since 1970."""

    state: Written
    pid: int = 0
    step: int = 0
    total_steps: int = 0
    message: str = ""
    time: float = 0.0


class Notes(Struct, frozen=True):
    """`notes.json`: what the user wrote about a run. An empty title is the name of the folder."""

    title: str = ""
    text: str = ""


class ProcessRecord(Struct, frozen=True):
    """`process.json`: the process that was started for a run, and its `process_mark`."""

    pid: int
    mark: str


class RemoteRun(Struct, frozen=True):
    """`remote.json` in the local copy of a run: where it trains, and what was copied."""

    host: str
    python: str
    run: str  # its folder on the host, relative to that of the program
    seen: dict[str, list[int]] = {}
    paths: dict[str, str] = {}  # options that name files and folders here


class _Project(Struct, frozen=True):
    """What is read of `project.json`."""

    weights: dict[str, str] = {}


@dataclass(frozen=True)
class RunFolder:
    """Paths and small files of a run. Reading never raises: a file that is missing or broken counts as absent."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def project(self) -> Path:
        """The folder of the project that the run belongs to."""
        return self.path.parent.parent

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def health(self) -> Path:
        return self.path / "health.jsonl"

    @property
    def trail(self) -> Path:
        return self.path / "trail"

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self.path / "output.log"

    def remote(self) -> RemoteRun | None:
        """Where the run trains, if this is the copy of one that was started on another machine."""
        return _read(self.path / REMOTE, RemoteRun)

    def connection_problem(self) -> str:
        """Why the other machine cannot be reached; empty if it can."""
        with contextlib.suppress(OSError):
            return (self.path / CONNECTION).read_text("utf-8", "replace")[:1000]
        return ""

    @property
    def checkpoint(self) -> Path | None:
        """The checkpoint from which a run is resumed, if it was written."""
        path = self.path / "checkpoints" / "last.pt"
        return path if path.is_file() else None

    @property
    def weights(self) -> Path | None:
        """The folder with the weights of the best validation, one .npy file per tensor, if they were written."""
        path = self.path / "checkpoints" / "best"
        return path if path.is_dir() else None

    def config(self) -> dict[str, Any]:
        """What `config.json` records: the settings that the run was started with, versions, and the task."""
        found = _read(self.path / "config.json", dict[str, Any])
        return found if found is not None else {}

    def settings(self) -> dict[str, Any]:
        """The settings by name, without what else the configuration records."""
        found = self.config().get("settings")
        return found if isinstance(found, dict) else {}

    def weight_names(self) -> dict[str, str]:
        """The names of the files of weights in the project, by the names of the tensors in its state dict."""
        found = _read(self.project / "project.json", _Project)
        return found.weights if found is not None else {}

    def status(self) -> Status | None:
        return _read(self.path / "status.json", Status)

    def notes(self) -> Notes:
        return _read(self.path / "notes.json", Notes) or Notes()

    def write_notes(self, notes: Notes) -> None:
        """Raises DiagnosticError ("cannot-save")."""
        write_atomic(self.path / "notes.json", msgspec.json.encode(notes))

    def record_process(self, pid: int) -> None:
        """Remember the process that was started for this run. Raises DiagnosticError ("cannot-save")."""
        record = ProcessRecord(pid, process_mark(pid) or "")
        write_atomic(self.path / "process.json", msgspec.json.encode(record))

    def process(self) -> int:
        """The id of the process that trains; 0 if none does.

        A run that was started from a terminal has no record: then the id in the status counts if it runs `train.py`.
        """
        record = _read(self.path / "process.json", ProcessRecord)
        if record is not None and record.mark and process_mark(record.pid) == record.mark:
            return record.pid
        status = self.status()
        if status is None or (record is not None and record.pid == status.pid):
            return 0
        return status.pid if runs_script(status.pid, SCRIPT) else 0

    def trains(self) -> bool:
        """Whether a process trains; one that has reported its end, and is about to end, does not."""
        pid, status = self.process(), self.status()
        ended = status is not None and status.pid == pid and status.state not in ("running", "paused")
        return bool(pid) and not ended

    def send(self, command: Command) -> None:
        """Ask the trainer to pause, resume or stop. Raises DiagnosticError ("cannot-save")."""
        write_atomic(self.path / "control", command.encode())

    def validation_steps(self) -> list[int]:
        """The steps at which validation images were written."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.path / "validation") as entries:
            for entry in entries:
                kind, _, number = entry.name.partition("_")
                if kind == "step" and number.isdecimal():
                    found.append(int(number))
        return sorted(found)

    def validation_images(self, step: int) -> list[str]:
        """The names of the validation images of a step."""
        with contextlib.suppress(OSError):
            names = os.listdir(self.path / "validation" / f"step_{step:06d}")
            return sorted(name for name in names if name.lower().endswith(IMAGE_SUFFIXES))
        return []

    def validation_image(self, step: int, name: str) -> Path:
        return self.path / "validation" / f"step_{step:06d}" / name

    def validation_pair(self, name: str) -> tuple[Path, Path]:
        """The input and the target of a validation image."""
        return self.path / "validation" / "inputs" / name, self.path / "validation" / "targets" / name

    def refuse_while_training(self) -> None:
        """Raise DiagnosticError while the run trains."""
        if self.trains():
            raise DiagnosticError.of(
                "run-trains",
                tr("the run {name} is training", name=self.name),
                file=str(self.path),
                remedy=tr("stop it first"),
            )

    def delete(self) -> None:
        """Delete the folder. Raises DiagnosticError while the run trains, and if the folder cannot be deleted."""
        self.refuse_while_training()
        try:
            shutil.rmtree(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise DiagnosticError.of(
                "cannot-delete",
                tr("{path} cannot be deleted: {strerror}", path=self.path, strerror=error.strerror or error),
                file=str(self.path),
                remedy=tr("check the permissions of the folder"),
            ) from error


def runs_of(project: Path) -> list[Path]:
    """The folders of the runs in a project."""
    try:
        with os.scandir(project / RUNS) as entries:
            found = [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []
    return sorted(path for path in found if any((path / name).exists() for name in _OF_A_RUN))


def new_name(project: Path) -> str:
    """A free name for a run: the date and the time."""
    base = time.strftime("%Y-%m-%d_%H-%M-%S")
    names = (base, *(f"{base}_{number}" for number in range(2, 1000)))
    return next(name for name in names if not (project / RUNS / name).exists())


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        with path.open("rb") as stream:
            return msgspec.json.decode(stream.read(MAX_BYTES), type=kind)
    except (OSError, ValueError, RecursionError):
        return None
