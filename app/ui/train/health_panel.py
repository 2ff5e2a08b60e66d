"""Network Health: the problems of layers in the shown run, heat on the canvas, and the slider that goes back to its steps."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.engine.context import Context
from app.ui.engine.run_health import run_health_of
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import training_of
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.message import Message
from app.ui.widgets.slider import NumberSlider
from designer.texts import tr, tr_data
from designer.training.health import METRICS, Problem

PROBLEMS = "problems"


class HealthPanel(QWidget):
    """Problems are listed with the step at which they began; a click selects the layer."""

    panel_id = "network_health"
    title = "Network Health"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("network_health")
        self.setAccessibleName(tr("Network Health"))
        self._context = context
        self._training = training_of(context)
        self._health = run_health_of(context)
        self._machine = time_machine_of(context)
        self._shown: tuple[Problem, ...] | None = None
        self.shown_metric = QComboBox()
        self.shown_metric.setObjectName("network_health.metric")
        self.shown_metric.setAccessibleName(tr("Heat on the canvas"))
        self.shown_metric.addItem(tr("Problems only"), PROBLEMS)
        for metric in METRICS.values():
            self.shown_metric.addItem(tr_data(metric.title), metric.id)
        self.shown_metric.currentIndexChanged.connect(lambda _index: self._show_metric())
        self.summary = Message("network_health.summary")
        self.list = QListWidget()
        self.list.setObjectName("network_health.problems")
        self.list.setAccessibleName(tr("Problems of layers"))
        self.list.setWordWrap(True)
        self.list.itemClicked.connect(self._reveal)
        self.list.itemActivated.connect(self._reveal)
        self.step = NumberSlider("network_health.step", tr("Step"), 0, 1, whole=True)
        self.step.setToolTip(
            tr("Show the photo, the channels, the kernels and the health as they were at a step of the run")
        )
        self.step.changed.connect(self._go)
        self.where = QLabel()
        self.where.setObjectName("network_health.where")
        self.where.setWordWrap(True)
        self.leave = QPushButton(tr("Back to the Document"))
        self.leave.setObjectName("network_health.leave")
        self.leave.setToolTip(tr("Run with the weights of the document again"))
        self.leave.clicked.connect(self._machine.leave)
        self.fork = QPushButton(tr("Train From Here"))
        self.fork.setObjectName("network_health.fork")
        self.fork.setToolTip(tr("Start a new run with the settings of this one, from the weights at this step"))
        self.fork.clicked.connect(self._fork)
        self._lay_out()
        self._health.changed.connect(self._update)
        self._machine.changed.connect(self._update)
        self._machine.failed.connect(lambda text: context.message.emit("error", text))
        self._training.updated.connect(self._update)
        self._training.chosen_changed.connect(self._update)
        theme.changes().changed.connect(self._draw_icons)
        self._update()

    def _lay_out(self) -> None:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        form = QFormLayout()
        form.addRow(tr("Canvas"), self.shown_metric)
        form.addRow(tr("Step"), self.step)
        buttons = QWidget()
        row = FlowLayout(buttons)
        row.addWidget(self.leave)
        row.addWidget(self.fork)
        column.addLayout(form)
        column.addWidget(self.where)
        column.addWidget(buttons)
        column.addWidget(self.summary)
        column.addWidget(self.list, 1)
        column.addStretch()
        empty = EmptyState("network_health", "gauge", tr("The health of each layer appears here while a run trains."))
        self._stack = EmptyStack(self, empty, page)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show_metric()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._health.show_metric("")

    def _show_metric(self) -> None:
        if self.isVisible():
            self._health.show_metric(str(self.shown_metric.currentData()))

    def _update(self) -> None:
        run, health = self._training.current, self._health.health
        frames = run.snapshot.frames if run is not None else ()
        self._stack.show_content(bool(health is not None or frames))
        if run is None:
            return
        travels = self._machine.step is not None
        self.step.setEnabled(bool(frames))
        self.step.set_range(0, max(frames[-1] if frames else 0, 1), 1)
        if self._machine.step is not None:
            self.step.set_value(self._machine.step)
        elif frames:
            self.step.set_value(frames[-1])
        self.leave.setEnabled(travels)
        self.fork.setEnabled(bool(frames) and not self._training.busy)
        if travels:
            self.where.setText(tr("The analysis shows step {step} of the run.", step=self._recorded(frames)))
        else:
            self.where.setText(tr("The analysis shows the weights of the document. Move the slider to go to a step."))
        self._list(health.problems if health is not None else ())
        if health is None:
            self.summary.show_message(tr("The health of the layers was not measured up to this step."), "info")
        else:
            self.summary.show_message("" if self.list.count() else tr("No problems at this step."), "positive")

    def _recorded(self, frames: Sequence[int]) -> int:
        """The step of the run whose weights are shown: the last recorded one that is not after the step of the slider."""
        step = round(self.step.value)
        return max((frame for frame in frames if frame <= step), default=frames[0] if frames else step)

    def _list(self, problems: tuple[Problem, ...]) -> None:
        if problems == self._shown:
            return
        self._shown = problems
        self.list.clear()
        for problem in problems:
            item = QListWidgetItem(str(problem))
            item.setData(Qt.ItemDataRole.UserRole, problem.layer)
            self.list.addItem(item)
        self._draw_icons()
        self.list.setVisible(bool(problems))

    def _draw_icons(self) -> None:
        for row in range(self.list.count()):
            self.list.item(row).setIcon(theme.icon("alert", "error"))

    def _reveal(self, item: QListWidgetItem) -> None:
        self._context.reveal(item.data(Qt.ItemDataRole.UserRole))

    def _go(self, step: float) -> None:
        run = self._training.current
        if run is not None:
            self._machine.go(run, round(step))

    def _fork(self) -> None:
        run = self._training.current
        if run is not None:
            self._training.fork(run, self._recorded(run.snapshot.frames))
