"""Collects cyclic garbage between events of the window's thread, instead of wherever Python allocates memory.

The collector deletes widgets in reference cycles. In another thread that ends in a deadlock with Qt, and inside of a paint event
in a crash if a deleted widget waits to be painted. A full collection visits every object, 300,000 of them in 0.15 seconds, so what
large documents consist of is exempt.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QCoreApplication, QObject, QTimerEvent

INTERVAL = 200  # ms
LARGE = 2000  # layers of documents that are exempt
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


def exempt() -> None:
    """Let collections ignore all present objects until `restore`. References still free them."""
    gc.freeze()


def restore() -> None:
    """Let collections visit all objects again: some of them became garbage."""
    gc.unfreeze()
