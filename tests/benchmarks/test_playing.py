"""A video that plays through the sample denoiser: no frame of the window hangs, and no memory grows with the frames.

The whole window and its engine process; fewer and smaller frames in an ordinary run.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter, thread_time

import pytest

pytest.importorskip("pytest_benchmark")
pytest.importorskip("PySide6")
pytest.importorskip("cv2")
psutil = pytest.importorskip("psutil")
pytestmark = pytest.mark.gui

from bench_kit import Report
from PySide6.QtCore import QObject, QTimer
from pytestqt.qtbot import QtBot
from video_files import make_video
from window_kit import open_window

import samples
from app.ui.engine.analysis import analysis_of
from app.ui.engine.playback import Track
from app.ui.shell.panels import ANALYSIS

FRAME = 50  # ms
MEBI = 1 << 20
WAIT = 300_000
LAYER = "input_image"


class Turns(QObject):
    """What the window does between two turns of its event loop, in ms: by the clock, and of the processor.

    The engine is given every core, so the clock also shows what else needed one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[float] = []
        self.work: list[float] = []
        self._last = (perf_counter(), thread_time())
        self._timer = QTimer(self, interval=2, timeout=self._tick)
        self._timer.start()

    def _tick(self) -> None:
        now = (perf_counter(), thread_time())
        self.gaps.append((now[0] - self._last[0]) * 1000)
        self.work.append((now[1] - self._last[1]) * 1000)
        self._last = now


def test_playing(benchmark, report: Report, qtbot: QtBot, tmp_path: Path) -> None:
    frames, side = (12, 32) if benchmark.disabled else (500, 128)
    clip = make_video(tmp_path / "clip.mp4", frames, "mp4v", 30, (side, side))
    window = open_window(qtbot, tmp_path, size=(1600, 1000))
    window.files.open(samples.path("denoiser_analyze.xml"))
    window.docks.set_workspace(ANALYSIS)
    window.start_engine_client()
    analysis = analysis_of(window.context)
    analysis.inputs.set_file(LAYER, clip)
    qtbot.waitUntil(lambda: analysis.playback.tracks[LAYER].frames > 0, timeout=WAIT)
    track: Track = analysis.playback.tracks[LAYER]
    analysis.playback.set_way(LAYER, every=True, loop=False, speed=4.0)
    worker = psutil.Process(analysis.engine.pid)
    shown: list[int] = []
    memory: list[tuple[int, int]] = []

    def note() -> None:
        shown.append(track.shown)
        if track.shown in (frames // 5, frames - 1):
            memory.append((psutil.Process().memory_info().rss, worker.memory_info().rss))

    analysis.result_changed.connect(note)

    def play() -> None:
        analysis.playback.play(LAYER)
        qtbot.waitUntil(lambda: track.shown >= 1, timeout=WAIT)
        turns = Turns()
        qtbot.waitUntil(lambda: not track.playing and track.shown == frames - 1, timeout=WAIT)
        info = benchmark.extra_info
        info["longest_turn_ms"], info["longest_work_ms"] = max(turns.gaps, default=0.0), max(turns.work, default=0.0)
        info["work_per_frame_ms"] = sum(turns.work) / frames

    benchmark.pedantic(play, rounds=1)
    assert shown == sorted(shown)
    assert set(range(1, frames)) <= set(shown)
    assert track.dropped == 0
    folder = analysis.engine.folder
    assert folder is not None
    assert not list(folder.iterdir())  # all that was shared was taken and freed
    grown = [(b - a) / MEBI for a, b in zip(memory[0], memory[-1], strict=True)]
    benchmark.extra_info["window_grew_MiB"], benchmark.extra_info["worker_grew_MiB"] = grown
    report.value("longest frame of the window", benchmark.extra_info["longest_turn_ms"], "ms", target=FRAME)
    report.value("longest frame, without waiting", benchmark.extra_info["longest_work_ms"], "ms", target=FRAME)
    for name, more in zip(("window", "engine"), grown, strict=True):
        report.value(f"memory of the {name} after {frames} frames", more, "MiB more", target=24)
