"""Collects cyclic garbage between events of the window's thread, instead of wherever Python allocates memory.

The collector deletes widgets in reference cycles. In another thread that ends in a deadlock with Qt, and inside of a paint event
in a crash if a deleted widget waits to be painted.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QCoreApplication, QObject, QTimerEvent

INTERVAL = 200  # ms
FULL = 50  # collections of the middle generation before a full one, which pauses the window the longest


class GarbageCollector(QObject):
    """Replaces Python's automatic collection while the application exists."""

    def __init__(self, application: QCoreApplication) -> None:
        super().__init__(application)
        self.setObjectName("garbage_collector")
        gc.disable()
        self.startTimer(INTERVAL)

    def timerEvent(self, _event: QTimerEvent) -> None:
        young, middle, old = gc.get_count()
        young_limit, middle_limit, _ = gc.get_threshold()
        if young > young_limit:
            gc.collect(0 if middle <= middle_limit else 1 if old <= FULL else 2)


def install(application: QCoreApplication) -> None:
    """Collect garbage between events from now on. Further calls do nothing."""
    if application.findChild(GarbageCollector) is None:
        GarbageCollector(application)
