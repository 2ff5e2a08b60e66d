"""Thumbnails are decoded in the engine's process: raster pictures of regular files alone, whatever their names say."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.engine.client import EngineClient
from designer.files.settings import PATTERN
from designer.runtime.images import write_image

pytestmark = pytest.mark.gui

DATA = Path(__file__).parent.parent / "data" / "hostile"


class Bench:
    def __init__(self, qtbot: QtBot, engine: EngineClient) -> None:
        self.launched = kit.Launched(qtbot, engine)
        self.qtbot = qtbot
        self.panel = AnalysisPanel(self.launched.context)
        qtbot.addWidget(self.panel)
        self.panel.show()
        self.launched.open(kit.small_network())

    def label(self, name: str) -> QLabel:
        found = self.panel.findChild(QLabel, f"analysis.input.input_0.{name}")
        assert isinstance(found, QLabel)
        return found

    def choose(self, path: Path) -> float:
        """CPU seconds of the window's thread until the picture was chosen."""
        began = time.thread_time()
        self.launched.analysis.inputs.set_file("input_0", path)
        return time.thread_time() - began

    def wait(self, text: str) -> None:
        self.qtbot.waitUntil(lambda: self.label("size").text() == text, timeout=kit.WAIT)


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient) -> Bench:
    return Bench(qtbot, engine)


def picture(path: Path, width: int, height: int) -> Path:
    write_image(path, np.full((1, 3, height, width), 0.5, np.float32))
    return path


def test_the_last_choice_is_shown(bench: Bench, tmp_path: Path) -> None:
    bench.choose(picture(tmp_path / "first.png", 900, 700))
    bench.choose(picture(tmp_path / "second.jpg", 800, 600))
    bench.wait("800 x 600")
    assert not bench.label("thumbnail").pixmap().isNull()
    bench.choose(tmp_path / "first.png")
    bench.choose(picture(tmp_path / "small.png", 30, 20))
    bench.wait("30 x 20")
    bench.choose(Path(f"{PATTERN}zone_plate"))
    bench.wait("at the size of dims")
    bench.choose(Path(f"{PATTERN}no such"))
    bench.wait("no such pattern")


def test_a_drawing_that_is_called_a_picture_is_not_drawn(bench: Bench) -> None:
    assert bench.choose(DATA / "svg_named.png") < 0.2
    bench.wait("no preview")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(bench: Bench, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    assert bench.choose(tmp_path / "pipe.png") < 0.2
    bench.wait("no preview")
    bench.choose(picture(tmp_path / "small.png", 30, 20))  # the engine is still there
    bench.wait("30 x 20")
