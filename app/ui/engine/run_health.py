"""The health of the layers in the shown run, at the latest step or at the one of the time machine."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.ui.engine.analysis import DIRECT
from app.ui.engine.context import Context
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import training_of
from designer.training.health import Health, health_at


class RunHealth(QObject):
    """`metric` is what the canvas shows: one of `designer.training.health.METRICS`, "problems", or nothing."""

    changed = Signal()

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._training = training_of(context)
        self._machine = time_machine_of(context)
        self.metric = ""
        self._training.updated.connect(self._update)
        self._training.chosen_changed.connect(self._update)
        self._machine.changed.connect(self._update)
        self.health: Health | None = None

    def show_metric(self, metric: str) -> None:
        if metric != self.metric:
            self.metric = metric
            self.changed.emit()

    def _update(self) -> None:
        run = self._training.current
        health = health_at(run.snapshot.health, self._machine.step) if run is not None else None
        if health is not self.health:
            self.health = health
            self.changed.emit()


def run_health_of(context: Context) -> RunHealth:
    """The one object of a window."""
    found: RunHealth | None = context.findChild(RunHealth, options=DIRECT)
    return found or RunHealth(context)
