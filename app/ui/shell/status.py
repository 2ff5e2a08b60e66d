"""The status bar: last message, problem count, network totals, engine state, and progress with a stop button."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QLabel, QProgressBar, QStatusBar, QToolButton, QWidget

from app.engine.protocol import ProgressEvent
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.graph.diagnostics import Diagnostic, Severity
from designer.texts import tr, trn

INFO_MS, WARNING_MS = 6_000, 20_000
BUSY_AFTER = 100  # ms


class StatusBar(QStatusBar):
    """`problems_clicked` requests the Type Checking panel, `stop_clicked` stops the current run.

    Runs shorter than `BUSY_AFTER` are not shown, so that nothing flickers while a slider is dragged.
    """

    problems_clicked = Signal()
    stop_clicked = Signal()
    busy_shown = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("status")
        self.setAccessibleName(tr("Status"))
        self.messageChanged.connect(self._on_message)
        self._progress = QProgressBar()
        self._progress.setObjectName("status.progress")
        self._progress.setAccessibleName(tr("Progress"))
        self._progress.setMaximumWidth(160)
        self._progress.setTextVisible(False)
        self._progress.hide()
        self._stop = QToolButton()
        self._stop.setObjectName("status.stop")
        self._stop.setAccessibleName(tr("Stop"))
        self._stop.setAutoRaise(True)
        theme.set_icon(self._stop, "stop")
        self._stop.setToolTip(tr("Stop (Shift+F5)"))
        self._stop.clicked.connect(self.stop_clicked)
        self._stop.hide()
        self.problems = QToolButton()
        self.problems.setObjectName("status.problems")
        self.problems.setAccessibleName(tr("Problems"))
        self.problems.setAutoRaise(True)
        self.problems.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.problems.setToolTip(tr("Show the problems in Type Checking"))
        self.problems.clicked.connect(self.problems_clicked)
        self._engine = QLabel(tr("Engine idle"))
        self._engine.setObjectName("status.engine")
        self._engine.setAccessibleName(tr("Engine"))
        self._totals = QLabel()
        self._totals.setObjectName("status.totals")
        self._totals.setAccessibleName(tr("FLOPs, parameters and memory"))
        self._totals.hide()
        for widget in (self._progress, self._stop, self._totals, self._engine, self.problems):
            self.addPermanentWidget(widget)
        for label in (self._totals, self._engine):
            label.setForegroundRole(QPalette.ColorRole.Text)  # the color of a message is the WindowText of the bar
        self._severity = "info"  # of the message
        theme.changes().changed.connect(self._color_message)
        self.busy = False  # as displayed
        self._crash = ""  # the message about the last engine that crashed
        self._working = QTimer(self, singleShot=True, interval=BUSY_AFTER, timeout=lambda: self._show_busy(True))
        self.show_problems(())

    def say(self, severity: str, text: str) -> None:
        """Show a message; warnings and errors remain longer."""
        self.showMessage(text, INFO_MS if severity == "info" else WARNING_MS)
        self._severity = severity
        self._color_message()
        self.setToolTip(plain_tip(text))

    def _on_message(self, text: str) -> None:
        """Status tips of menus arrive here too; they are not errors."""
        self._severity = "info"
        self._color_message()

    def _color_message(self) -> None:
        role: theme.RoleName = "error" if self._severity == "error" else "text"
        palette = QPalette(QApplication.palette())  # one that was set before does not follow the theme
        palette.setColor(QPalette.ColorRole.WindowText, theme.color("warning" if self._severity == "warning" else role))
        self.setPalette(palette)

    def show_problems(self, found: Sequence[Diagnostic]) -> None:
        """Show the number of errors and warnings of the document, or of notes if there is nothing else."""
        errors, warnings, notes = (sum(1 for d in found if d.severity is severity) for severity in Severity)
        parts = [trn("{count} error", "{count} errors", errors)] if errors else []
        parts += [trn("{count} warning", "{count} warnings", warnings)] if warnings else []
        parts += [trn("{count} note", "{count} notes", notes)] if notes and not parts else []
        self.problems.setText(", ".join(parts) or tr("No problems"))
        if errors:
            theme.set_icon(self.problems, "close-octagon", "error")
        elif warnings:
            theme.set_icon(self.problems, "alert", "warning")
        elif notes:
            theme.set_icon(self.problems, "information-outline", "info")
        else:
            theme.set_icon(self.problems, "check-circle-outline", "positive")

    def show_totals(self, text: str, explanation: str) -> None:
        """Show the totals of the network; an empty text hides them."""
        self._totals.setText(text)
        self._totals.setToolTip(f"<p>{escape(explanation).replace(chr(10), '</p><p>')}</p>" if explanation else "")
        self._totals.setAccessibleDescription(explanation)
        self._totals.setVisible(bool(text))

    def show_busy(self, busy: bool) -> None:
        """Show whether the engine is busy, after `BUSY_AFTER`."""
        if busy:
            if not self.busy:
                self._engine.setText(tr("Engine idle"))  # not stopped: work begins with another engine
            self._working.start()
            return
        self._working.stop()
        if self.busy:
            self._show_busy(False)

    def _show_busy(self, busy: bool) -> None:
        self.busy = busy
        if busy and self._crash and self.currentMessage() == self._crash:
            self.clearMessage()  # a new engine has started
        self._engine.setText(tr("Engine running") if busy else tr("Engine idle"))
        self._stop.setVisible(busy)
        self._progress.setVisible(busy)
        if busy:
            self._progress.setRange(0, 0)
        self.busy_shown.emit(busy)

    def show_progress(self, progress: object) -> None:
        """Show a progress event of the engine: done, total, text. One of work that is not shown changes nothing."""
        assert isinstance(progress, ProgressEvent)
        if not self.busy:
            return
        self._progress.setRange(0, progress.total)
        self._progress.setValue(progress.done)
        text = progress.text
        self._engine.setText(tr("Engine: {text}", text=text) if text else tr("Engine running"))

    def show_crash(self, what: str) -> None:
        self.show_busy(False)
        self._engine.setText(tr("Engine stopped"))
        self._crash = what
        self.say("error", what)
