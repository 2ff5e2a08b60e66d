"""The window while an analysis is worked with: no frame that hangs, and no memory that is not given back.

The whole window, its engine process and the sample denoiser on a photograph of 512 x 512; smaller and once in an ordinary run.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, thread_time

import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
psutil = pytest.importorskip("psutil")
pytestmark = pytest.mark.gui

import numpy as np
from bench_kit import Report
from PySide6.QtCore import QEventLoop, QObject, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from window_kit import open_window

import samples
from app.ui.engine.analysis import analysis_of
from app.ui.engine.result import Phase
from app.ui.shell.window import MainWindow
from designer.graph.commands import set_params
from designer.runtime.images import read_image, write_image

FRAME = 50  # ms
WAIT = 120_000


class Gaps(QObject):
    """The longest times between two turns of the event loop: by the clock, and of work of the window's thread alone.

    On a machine that is busy with something else the first says how long the thread waited for a core.
    """

    def __init__(self) -> None:
        super().__init__()
        self.longest: list[tuple[float, float]] = []
        self._last = (perf_counter(), thread_time())
        self._timer = QTimer(self, interval=2, timeout=self._tick)
        self._timer.start()

    def _tick(self) -> None:
        now = (perf_counter(), thread_time())
        self.longest.append(((now[0] - self._last[0]) * 1000, (now[1] - self._last[1]) * 1000))
        self._last = now

    def take(self) -> tuple[float, float]:
        """Longest frame in ms since the last call: by the clock, and by the thread's own work."""
        found, self.longest = self.longest or [(0.0, 0.0)], []
        return max(wall for wall, _ in found), max(work for _, work in found)


@pytest.fixture
def window(benchmark, qtbot: QtBot, tmp_path: Path) -> MainWindow:
    side = 64 if benchmark.disabled else 512
    pictures = sorted(samples.PHOTOGRAPHS.glob("*.[jp][pn]g"))[:2]
    for number, path in enumerate(pictures):
        array = np.ascontiguousarray(read_image(path)[:, :, :side, :side])
        write_image(tmp_path / f"photograph_{number}.png", array)
    made = open_window(qtbot, tmp_path, size=(1600, 1000))
    made.files.open(samples.path("denoiser_analyze.xml"))
    made.start_engine_client()
    analysis = analysis_of(made.context)
    analysis.inputs.set_file("input_image", tmp_path / "photograph_0.png")
    made.run_analysis()
    qtbot.waitUntil(lambda: analysis.phase in (Phase.READY, Phase.WEIGHTS), timeout=WAIT)
    if analysis.phase is Phase.WEIGHTS:
        analysis.launch_random()
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    return made


def settle(window: MainWindow, qtbot: QtBot) -> None:
    analysis = analysis_of(window.context)
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)


def drag(window: MainWindow, layer: str, param: str, value: float) -> None:
    """One move of a slider, until its picture is there, coarse or not."""
    analysis = analysis_of(window.context)
    before = analysis.result
    text = f"{value:.5f}"
    window.context.document.do(lambda graph: set_params(graph, {layer: {param: text}}, merge_key=f"drag.{layer}"))
    deadline = perf_counter() + 60
    while analysis.result is before:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        assert perf_counter() < deadline


def test_no_frame_hangs(benchmark, report: Report, window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    analysis, context = analysis_of(window.context), window.context
    few = 2 if benchmark.disabled else 20
    hidden = next(item.name for item in context.document.graph if item.type == "convolution")

    def noise() -> None:
        for number in range(few):
            drag(window, "noise_0", "scale", 0.05 + number / 500)
        settle(window, qtbot)

    def mix() -> None:
        for number in range(few):
            drag(window, "mix_0", "amount", number / few)
        settle(window, qtbot)

    def open_photograph() -> None:
        for number in (1, 0):
            analysis.inputs.set_file("input_image", tmp_path / f"photograph_{number}.png")
            qtbot.waitUntil(lambda: analysis.phase is Phase.RUNNING, timeout=WAIT)
            settle(window, qtbot)

    def look() -> None:
        window.docks.show("channel_inspector")
        context.select((hidden,))
        qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
        for number in range(max(2, few // 4)):
            drag(window, "noise_0", "scale", 0.3 + number / 500)
        settle(window, qtbot)

    gaps = Gaps()
    worst: dict[str, tuple[float, float]] = {}
    works: tuple[Callable[[], None], ...] = (noise, mix, open_photograph, look)
    for work in works:
        work()  # once before: what is made at the first use is made
        found = []
        for _ in range(1 if benchmark.disabled else 3):
            gaps.take()
            work()
            found.append(gaps.take())
        worst[work.__name__] = tuple(round(min(times), 1) for times in zip(*found, strict=True))  # type: ignore[assignment]
    benchmark.extra_info.update(worst)
    benchmark.pedantic(mix, rounds=1)
    report.value("longest frame of the window", max(clock for clock, _ in worst.values()), "ms", target=FRAME)
    report.value("longest frame, without waiting", max(work for _, work in worst.values()), "ms", target=FRAME)


@pytest.mark.bench
def test_a_thousand_moves_leave_memory_where_it_was(
    benchmark, report: Report, window: MainWindow, qtbot: QtBot
) -> None:
    """Resident memory of window and engine, and the files in the memory folder, before and after."""
    engine = analysis_of(window.context).engine
    moves = 10 if benchmark.disabled else 1000

    def move(count: int, offset: int) -> None:
        for number in range(count):
            drag(window, "mix_0", "amount", ((offset + number) * 37 % 997) / 997)
            if number % 50 == 0:
                drag(window, "noise_0", "scale", 0.05 + ((offset + number) % 97) / 500)
                settle(window, qtbot)
        window.context.document.history.seal()
        settle(window, qtbot)

    def memory() -> dict[str, float]:
        gc.collect()
        own, worker = psutil.Process(), psutil.Process(engine.pid)
        folder = engine.folder
        assert folder is not None
        shared = sum(path.stat().st_size for path in folder.iterdir())
        return {
            "window": own.memory_info().rss / 2**20,
            "engine": worker.memory_info().rss / 2**20,
            "shared files": shared / 2**20,
        }

    move(max(10, moves // 5), 0)  # caches fill up to their caps
    before = memory()
    move(moves, 1000)
    after = memory()
    grown = {name: round(after[name] - before[name], 1) for name in before}
    benchmark.extra_info.update({f"{name} before": round(before[name], 1) for name in before}, grown=grown, moves=moves)
    benchmark.pedantic(lambda: None, rounds=1)
    assert after["shared files"] == 0.0
    for name in ("window", "engine"):
        report.value(f"memory of the {name} after {moves:,} moves", grown[name], "MiB more", target=16)
