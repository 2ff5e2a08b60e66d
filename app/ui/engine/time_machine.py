"""Takes the analysis back to a step of a training run: the network runs with the weights of that step, without an edit."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTemporaryDir, Signal

from app.ui.engine.analysis import DIRECT, analysis_of
from app.ui.engine.context import Context
from app.ui.engine.training import training_of
from app.ui.widgets.background import Background
from app.ui.widgets.sentences import placed_text
from designer.files.safetensors_file import write_safetensors
from designer.graph.diagnostics import Diagnostic
from designer.training.trail import Frame, Trail, float_tensors
from designer.training.watched_run import WatchedRun

KEPT = 16  # files of weights, of which the engine may not have read the latest


class TimeMachine(QObject):
    """`step` is the step that is shown; None: the document's own weights and the latest health."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._analysis = analysis_of(context)
        self._training = training_of(context)
        self._folder = QTemporaryDir()
        self._job = Background(self)
        self._job.done.connect(self._on_written)
        self._job.failed.connect(self._on_failed)
        self._wanted: tuple[WatchedRun, int] | None = None
        self._trail: Path | None = None  # of the run that was requested last
        self._frame: tuple[Path, Frame] | None = None  # whose weights are written
        self._files: list[Path] = []  # the latest ones last
        self.step: int | None = None
        context.root_changed.connect(self.leave)
        self._training.chosen_changed.connect(self.leave)

    def go(self, run: WatchedRun, step: int) -> None:
        """Show the network after `step` steps of a run. While weights are read, only the latest request is kept."""
        self.step = step
        self._wanted, self._trail = (run, step), run.folder.trail
        self._next()
        self.changed.emit()

    def leave(self, *_: object) -> None:
        """Go back to the weights of the document."""
        self._wanted = self._frame = None
        if self.step is not None:
            self.step = None
            self._analysis.show_weights(None)
            self.changed.emit()

    def _next(self) -> None:
        if self._wanted is None or self._job.running:
            return
        run, step = self._wanted
        self._wanted = None
        known, folder = self._frame, Path(self._folder.path())

        def work() -> tuple[Path, Frame] | None:
            trail = Trail(run.folder.trail)
            trail.read()
            frame = trail.at(step)
            if frame is None or (trail.folder, frame) == known:
                return None
            tensors = float_tensors(trail.weights(frame))
            write_safetensors(folder / f"{frame.step}.safetensors", tensors, durable=False)
            return trail.folder, frame

        self._job.start(work)

    def _on_written(self, written: object) -> None:
        if isinstance(written, tuple) and self.step is not None and written[0] == self._trail:
            self._frame = written
            path = Path(self._folder.path()) / f"{written[1].step}.safetensors"
            self._analysis.show_weights(path)
            self._files = [*(file for file in self._files if file != path), path]
            while len(self._files) > KEPT:
                self._files.pop(0).unlink(missing_ok=True)
        self._next()

    def _on_failed(self, found: object) -> None:
        assert isinstance(found, tuple)
        first: Diagnostic = found[0]
        if self._wanted is None and self.step is not None:  # what was shown before is still shown
            self.step = self._frame[1].step if self._frame is not None else None
            self.changed.emit()
        self.failed.emit(placed_text(first))
        self._next()


def time_machine_of(context: Context) -> TimeMachine:
    """The one time machine of a window."""
    found: TimeMachine | None = context.findChild(TimeMachine, options=DIRECT)
    return found or TimeMachine(context)
