"""The run that is shown: its progress and metrics, and the commands for it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.ui.engine.training import TrainingController
from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import sentence
from designer.texts import mark, tr, tr_data
from designer.training.watched_run import RunSnapshot, RunState
from designer.units import binary, digits


class RunProgress(QWidget):
    """Progress with the time left, the latest metrics, and Pause, Stop, Resume and Use Weights."""

    def __init__(self, training: TrainingController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._training = training
        self.title = ElidedLabel()
        self.title.setObjectName("training.run")
        self.bar = QProgressBar()
        self.bar.setObjectName("training.progress")
        self.bar.setAccessibleName(tr("Progress of the run"))
        self.state = QLabel()
        self.state.setObjectName("training.state")
        self.state.setWordWrap(True)
        self.metrics = QLabel()
        self.metrics.setObjectName("training.metrics")
        self.metrics.setAccessibleName(tr("Latest metrics"))
        self.metrics.setFont(theme.mono_font())
        self.metrics.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.message = Message("training.message")
        self.pause = self._button("pause", tr("Pause"), tr("Pause the run; its process keeps its memory"), self._pause)
        self.stop = self._button(
            "stop", tr("Stop"), tr("Save a checkpoint and stop; the run can be resumed"), self._stop
        )
        self.resume = self._button("resume", tr("Resume"), tr("Continue from the last checkpoint"), self._resume)
        self.use = self._button(
            "use", tr("Use Weights"), tr("Use the best weights of the run in the document; undo goes back"), self._use
        )
        buttons = QWidget()
        row = FlowLayout(buttons)
        for button in (self.pause, self.stop, self.resume, self.use):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for widget in (self.title, self.bar, self.state, self.metrics, self.message, buttons):
            column.addWidget(widget)
        training.updated.connect(self.refresh)
        training.chosen_changed.connect(self.refresh)
        self.refresh()

    def _button(self, name: str, text: str, tip: str, do: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName(f"training.{name}")
        button.setToolTip(tip)
        button.clicked.connect(do)
        return button

    def refresh(self) -> None:
        """Show the run as it is now."""
        run = self._training.current
        self.setVisible(run is not None)
        if run is None:
            return
        shot = run.snapshot
        self.title.setText(shot.title)
        self.bar.setRange(0, max(shot.total_steps, 1) if shot.state is not RunState.STARTING else 0)
        self.bar.setValue(shot.step)
        self.state.setText(state_text(shot))
        self.metrics.setText("\n".join(metric_lines(shot)))
        bad = shot.state in (RunState.FAILED, RunState.ENDED, RunState.MISSING) and not shot.can_follow
        role: theme.RoleName = "error" if bad else "warning" if shot.is_unreachable or shot.can_follow else "info"
        self.message.show_message(_message(shot) or _note(shot), role)
        trains, paused = shot.state.trains, shot.state is RunState.PAUSED
        self.pause.setText(tr("Continue") if paused else tr("Pause"))
        self.pause.setVisible(trains)
        self.stop.setVisible(trains)
        self.resume.setText(tr("Follow") if shot.can_follow else tr("Resume"))
        self.resume.setVisible(shot.can_follow or (shot.can_resume and shot.state is not RunState.FINISHED))
        self.resume.setEnabled(not self._training.busy)
        self.use.setEnabled(shot.folder.weights is not None and not self._training.busy)

    def _pause(self) -> None:
        run = self._training.current
        if run is not None:
            self._training.send(run, "resume" if run.snapshot.state is RunState.PAUSED else "pause")

    def _stop(self) -> None:
        if self._training.current is not None:
            self._training.send(self._training.current, "stop")

    def _resume(self) -> None:
        if self._training.current is not None:
            self._training.resume(self._training.current)

    def _use(self) -> None:
        if self._training.current is not None:
            self._training.use_weights(self._training.current)


def _message(shot: RunSnapshot) -> str:
    """What the run says, without the hints for a terminal of one that was stopped or has finished."""
    hint = shot.state is RunState.FINISHED or (shot.state is RunState.STOPPED and shot.stopped_by is None)
    return "" if hint else sentence(shot.message)


def _note(shot: RunSnapshot) -> str:
    """What the metrics do not say by themselves."""
    if not shot.curves.on_training:
        return ""
    return tr(
        "The validation images are training images: with fewer than ten images none is held out. Choose another folder for validation."
    )


def state_text(shot: RunSnapshot) -> str:
    """The state in words: `running, step 120 of 1000, 3 min left`."""
    parts = [tr("{state} on {host}", state=shot.state.text, host=shot.host) if shot.host else shot.state.text]
    if shot.total_steps:
        parts.append(tr("step {step} of {total}", step=shot.step, total=shot.total_steps))
    left = shot.seconds_left
    if left is not None:
        parts.append(tr("{time} left", time=time_text(left)))
    return ", ".join(parts)


def time_text(seconds: float) -> str:
    """A duration in its two largest units: `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return tr("{seconds} s", seconds=whole)
    minutes, seconds = divmod(whole, 60)
    if minutes < 60:
        return tr("{minutes} min {seconds} s", minutes=minutes, seconds=seconds)
    hours, minutes = divmod(minutes, 60)
    return tr("{hours} h {minutes} min", hours=hours, minutes=minutes)


def metric_lines(shot: RunSnapshot) -> list[str]:
    """The latest metrics, one per line."""
    curves = shot.curves
    found = [(tr("loss"), curves.last("loss"), digits)]
    found += [(metric_title(name), curves.last(name), digits) for name in curves.validated]
    found += [
        (tr("learning rate"), curves.last("learning_rate"), "{:.3g}".format),
        (tr("images/s"), curves.last("throughput"), digits),
        (tr("memory"), curves.last("memory"), binary),
    ]
    shown = [(title, text(value)) for title, value, text in found if value is not None]
    width = max((len(title) for title, _ in shown), default=0)
    return [f"{title:<{width}}  {text}" for title, text in shown]


_TITLES = {
    "psnr": mark("PSNR (dB)"),
    "noisy_psnr": mark("PSNR of the inputs (dB)"),
    "ssim": mark("SSIM"),
    "iou": mark("mean IoU"),
    "accuracy": mark("accuracy"),
}


def metric_title(name: str) -> str:
    """The name of a metric for users: `validation.psnr` is `PSNR (dB)`."""
    plain = name.rpartition(".")[2]
    if name.startswith("validation."):
        return tr_data(_TITLES[plain]) if plain in _TITLES else tr("validation {name}", name=plain.replace("_", " "))
    return plain.replace("_", " ")
