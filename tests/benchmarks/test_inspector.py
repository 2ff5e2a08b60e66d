"""How long a page of channels takes to be seen, and how smoothly many channels scroll.

Reported is the processor time of the window's thread, which is the wall-clock time on a machine that has nothing else to
do. An ordinary test run goes through the same code once, with small channels.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter, thread_time

import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import numpy as np
from PySide6.QtCore import QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from app.ui.inspector.channel_grid import ChannelGrid

PAGE = (1400, 1480)  # 64 tiles of 144 pixels and their captions


class Frames(QObject):
    """How long each turn of painting took."""

    def __init__(self, grid: ChannelGrid) -> None:
        super().__init__(grid)
        self.milliseconds: list[float] = []
        self._began = 0.0
        paint = grid.paintEvent

        def timed(event: object) -> None:
            began = thread_time()
            paint(event)
            self.milliseconds.append((thread_time() - began) * 1000)

        grid.paintEvent = timed  # type: ignore[method-assign]


def made(qtbot, channels: int, side: int) -> tuple[ChannelGrid, np.ndarray]:
    grid = ChannelGrid("grid", "Channels")
    qtbot.addWidget(grid)
    grid.resize(*PAGE)
    data = np.random.default_rng(0).standard_normal((channels, side, side), dtype=np.float32)
    with qtbot.waitExposed(grid):
        grid.show()
    return grid, data


def whole(grid: ChannelGrid) -> None:
    """Until every channel in sight is drawn with the present values."""
    grid.viewport().repaint()
    while not grid.complete:
        QApplication.processEvents()


def test_a_page_of_64_channels(benchmark, report, qtbot) -> None:
    """New values arrive, as they do while a slider moves: until the last of 64 tiles is on the screen."""
    grid, data = made(qtbot, 64, 64 if benchmark.disabled else 512)
    grid.show_data(data)
    whole(grid)
    assert len(grid.visible()) == 64
    frames = Frames(grid)
    times, spent = [], []

    def page() -> None:
        began, worked = perf_counter(), thread_time()
        grid.show_data(data.view())
        whole(grid)
        times.append((perf_counter() - began) * 1000)
        spent.append((thread_time() - worked) * 1000)

    benchmark.pedantic(page, rounds=1 if benchmark.disabled else 60)
    figures = {
        "processor_milliseconds": round(median(spent), 1),
        "best_milliseconds": round(min(times), 1),
        "milliseconds": round(median(times), 1),
        "longest_frame": round(max(frames.milliseconds), 1),
        "median_frame": round(median(frames.milliseconds), 1),
    }
    benchmark.extra_info.update(figures)
    report.value("page of 64 channels", median(spent), "ms", target=50)
    report.value("page of 64 channels, a frame", median(frames.milliseconds), "ms", target=25)


def test_scrolling_through_1024_channels(benchmark, report, qtbot) -> None:
    """Turns of the wheel over channels that were not seen before; every frame is painted before the next turn."""
    grid, data = made(qtbot, 1024, 32 if benchmark.disabled else 256)
    grid.show_data(data)
    whole(grid)
    frames = Frames(grid)
    viewport = grid.viewport()
    middle = QPointF(viewport.rect().center())

    def turn() -> None:
        event = QWheelEvent(
            middle,
            QPointF(viewport.mapToGlobal(middle.toPoint())),
            QPoint(),
            QPoint(0, -120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(viewport, event)
        QApplication.processEvents()

    benchmark.pedantic(turn, rounds=2 if benchmark.disabled else 120)
    assert grid.verticalScrollBar().value() > 0
    assert frames.milliseconds
    found = frames.milliseconds
    figures = {
        "median_frame": round(median(found), 2),
        "95_percent": round(float(np.percentile(found, 95)), 2),
        "longest_frame": round(max(found), 2),
    }
    benchmark.extra_info.update(figures)
    report.value("scroll 1,024 channels, a frame", median(found), "ms", target=16)
