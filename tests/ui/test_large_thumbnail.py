"""The thumbnail of a large picture is read beside the window's own work, and only the last one chosen is shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.engine.client import EngineClient
from app.ui.engine.inputs import slow_to_read, thumbnail
from designer.files.settings import PATTERN
from designer.runtime.images import write_image

pytestmark = pytest.mark.gui


def large(path: Path, width: int, height: int) -> Path:
    write_image(path, np.full((1, 3, height, width), 0.5, np.float32))
    return path


def test_only_large_pictures_are_read_aside(tmp_path: Path) -> None:
    assert slow_to_read(large(tmp_path / "a.png", 500, 400))
    assert not slow_to_read(large(tmp_path / "b.png", 60, 40))
    assert not slow_to_read(Path(f"{PATTERN}zone_plate"))
    assert not slow_to_read(tmp_path / "no.npy")
    assert not slow_to_read(tmp_path / "nothing.png")


def test_the_last_choice_is_shown(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    bench = kit.Launched(qtbot, engine)
    panel = AnalysisPanel(bench.context)
    qtbot.addWidget(panel)
    panel.show()
    bench.open(kit.small_network())
    first = large(tmp_path / "first.png", 900, 700)
    second = large(tmp_path / "second.jpg", 800, 600)
    small = kit.picture(tmp_path, size=(30, 20))
    size = panel.findChild(QLabel, "analysis.input.input_0.size")
    assert isinstance(size, QLabel)
    bench.analysis.inputs.set_file("input_0", first)
    bench.analysis.inputs.set_file("input_0", second)
    qtbot.waitUntil(lambda: size.text() == "800 x 600", timeout=kit.WAIT)
    bench.analysis.inputs.set_file("input_0", first)
    bench.analysis.inputs.set_file("input_0", small)
    assert size.text() == "30 x 20"
    qtbot.wait(200)  # the large one comes back meanwhile
    assert size.text() == "30 x 20"
    assert thumbnail(second)[0] is not None
