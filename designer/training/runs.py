"""Records of training runs on disk: the log, whether a run can be resumed, and where its weights are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.training.progress import Done, Event, Failed, Saved, Started, Stepped, Stopped, Validated, parse_line

MAX_LOG_BYTES = 256 << 20


@dataclass(frozen=True)
class RunRecord:
    """One training run. `losses` and `validations` are by step; the last entry of a repeated step counts.

    `step` is the last known step, `saved_step` the step from which --resume continues (0: it cannot).
    """

    folder: Path
    started: Started | None = None
    losses: tuple[Stepped, ...] = ()
    validations: tuple[Validated, ...] = ()
    step: int = 0
    steps: int = 0
    saved_step: int = 0
    finished: bool = False
    message: str = ""

    @property
    def can_resume(self) -> bool:
        return not self.finished and self.saved_step > 0 and self.checkpoint.is_file()

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoints" / "last.pt"

    @property
    def weights(self) -> Path | None:
        """The folder with the last saved weights; None if none were saved."""
        folder = self.folder / "weights"
        return folder if self.saved_step and folder.is_dir() else None

    @property
    def gain(self) -> float | None:
        """The PSNR gain over the noisy images in dB, from the last validation that has it."""
        reported = ((v.psnr, v.noisy_psnr) for v in reversed(self.validations))
        return next((after - before for after, before in reported if after is not None and before is not None), None)


@dataclass
class Recorder:
    """Builds a record from events of a process or from its log."""

    folder: Path
    _started: Started | None = None
    _losses: dict[int, Stepped] = field(default_factory=dict)
    _validations: dict[int, Validated] = field(default_factory=dict)
    _step: int = 0
    _steps: int = 0
    _saved: int = 0
    _finished: bool = False
    _message: str = ""

    def add(self, event: Event) -> None:
        match event:
            case Started():
                self._started = event
                self._step, self._steps = event.step, event.steps
                self._finished, self._message = False, ""
            case Stepped():
                self._losses[event.step] = event
                self._step, self._steps = event.step, event.steps
            case Validated():
                self._validations[event.step] = event
            case Saved():
                self._saved = event.step
            case Stopped() | Failed():
                self._message = event.message
            case Done():
                self._finished, self._message = True, event.message

    def record(self) -> RunRecord:
        return RunRecord(
            self.folder,
            self._started,
            tuple(self._losses[step] for step in sorted(self._losses)),
            tuple(self._validations[step] for step in sorted(self._validations)),
            self._step,
            self._steps,
            self._saved,
            self._finished,
            self._message,
        )


def collect(folder: Path, lines: Iterable[str]) -> RunRecord:
    """The record from `lines` of the progress protocol."""
    recorder = Recorder(folder)
    for line in lines:
        event = parse_line(line)
        if event is not None:
            recorder.add(event)
    return recorder.record()


def read_run(folder: Path) -> RunRecord:
    """The record of the run in a project's folder. Raises DiagnosticError if the log cannot be read."""
    log = folder / "log.jsonl"
    try:
        if log.stat().st_size > MAX_LOG_BYTES:
            raise OSError(0, f"it is larger than {MAX_LOG_BYTES >> 20} MB")
        with log.open(encoding="utf-8", errors="replace") as file:
            return collect(folder, file)
    except OSError as error:
        raise DiagnosticError.of(
            "no-training-log",
            tr("{log} cannot be read: {strerror}", log=log, strerror=error.strerror or error),
            file=str(log),
            remedy=tr("choose the folder of an exported project that was trained"),
        ) from error


def command(python: str, record: RunRecord | None, settings: dict[str, str]) -> list[str]:
    """The command line that starts a run in a project's folder, or resumes `record` if possible."""
    if record is not None and record.can_resume:
        return [python, "train.py", "--resume", "--json-progress"]
    options = [text for name, value in settings.items() for text in (f"--{name}", value)]
    return [python, "train.py", *options, "--json-progress"]
