"""Scrolling while something is dragged at the edge of the canvas."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint, QTimer
from PySide6.QtWidgets import QAbstractScrollArea

EDGE = 28  # pixels from the border at which scrolling begins
FASTEST = 22.0  # pixels per step, at the border and beyond
STEP_MS = 16


class EdgeScroll(QObject):
    """Calls `pan` with a distance in pixels at every step while the point last passed to `follow` is at the border."""

    def __init__(
        self, area: QAbstractScrollArea, pan: Callable[[QPoint], None], moved: Callable[[QPoint], None]
    ) -> None:
        super().__init__(area)
        self._area = area
        self._pan = pan
        self._moved = moved  # called after each step: the pointer is over another part of the canvas
        self._point = QPoint()
        self._timer = QTimer(self, interval=STEP_MS, timeout=self._step)

    @property
    def active(self) -> bool:
        return self._timer.isActive()

    def follow(self, point: QPoint) -> None:
        """Update the pointer position, in viewport pixels."""
        self._point = point
        if self._run() == QPoint():
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _run(self) -> QPoint:
        size = self._area.viewport().size()
        return QPoint(_speed(self._point.x(), size.width()), _speed(self._point.y(), size.height()))

    def _step(self) -> None:
        self._pan(-self._run())
        self._moved(self._point)


def _speed(at: int, length: int) -> int:
    """Pixels per step along one axis; faster near the border."""
    if at < EDGE:
        return -max(1, round(FASTEST * min(1.0, (EDGE - at) / EDGE)))
    if at > length - 1 - EDGE:
        return max(1, round(FASTEST * min(1.0, (at - (length - 1 - EDGE)) / EDGE)))
    return 0
