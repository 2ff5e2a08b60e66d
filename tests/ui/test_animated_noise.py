"""Noise that differs in every frame while it is visible, and is the document's own otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from pytestqt.qtbot import QtBot
from window_kit import open_window

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.engine import analysis as analysis_module
from app.ui.engine.analysis import analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.result import Phase
from app.ui.shell.panels import ANALYSIS
from designer.files.document import save_document, write_document
from designer.graph.commands import set_params

pytestmark = pytest.mark.gui
OUT = "output_0"


def test_frames_differ_while_it_is_seen_and_the_document_stays(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_module, "DIM_AFTER", 0)  # every frame takes longer than that
    bench = kit.Launched(qtbot, engine)
    panel = AnalysisPanel(bench.context)
    qtbot.addWidget(panel)
    panel.show()
    document = bench.open(kit.small_network())
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    bench.launch_random()
    assert bench.analysis.result is not None
    still = bench.analysis.result.outputs[OUT].copy()
    seen: list[bytes] = []

    def see() -> None:
        if bench.analysis.result is not None:  # none any more when the test lets the engine go
            seen.append(bench.analysis.result.outputs[OUT].tobytes())

    bench.analysis.result_changed.connect(see)
    dimmed: list[bool] = []
    bench.analysis.stale_changed.connect(dimmed.append)
    document.do(lambda g: set_params(g, {"noise_0": {"animate": "true"}}))
    text = write_document(document.graph)
    assert panel.flicker.running
    qtbot.waitUntil(lambda: len(set(seen)) >= 5, timeout=kit.WAIT)
    assert True not in dimmed[1:]  # only the edit dims, no frame
    assert write_document(document.graph) == text
    assert document.graph["noise_0"].params["seed"] == "0"
    panel.hide()
    assert not panel.flicker.running
    bench.wait(Phase.READY)
    panel.show()
    count = len(seen)
    qtbot.waitUntil(lambda: len(seen) >= count + 2, timeout=kit.WAIT)
    document.do(lambda g: set_params(g, {"noise_0": {"kind": "blur"}}))
    assert not panel.flicker.running  # a blur draws nothing
    document.undo()
    assert panel.flicker.running
    document.do(lambda g: set_params(g, {"noise_0": {"animate": "false"}}))
    assert not panel.flicker.running
    qtbot.waitUntil(lambda: bench.analysis.phase is Phase.READY and seen[-1] == still.tobytes(), timeout=kit.WAIT)
    assert np.array_equal(bench.analysis.result.outputs[OUT], still)


def test_how_often_a_mix_flickers_is_an_option(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    bench = kit.Launched(qtbot, engine)
    panel = AnalysisPanel(bench.context)
    qtbot.addWidget(panel)
    panel.show()
    document = bench.open(kit.small_network())
    for rate, interval in (("1.0", 1000), ("2.5", 400)):
        document.do(lambda g, r=rate: set_params(g, {"mix_0": {"selection": "flicker", "rate": r}}))
        assert panel.flicker.interval == interval
    document.do(lambda g: set_params(g, {"mix_0": {"selection": "blend"}}))
    assert not panel.flicker.running


def test_a_window_may_close_while_noise_moves(qtbot: QtBot, tmp_path: Path) -> None:
    graph = kit.small_network()
    graph.apply(set_params(graph, {"noise_0": {"animate": "true"}}))
    save_document(graph, tmp_path / "moving.xml")
    window = open_window(qtbot, tmp_path)
    assert window.files.open(tmp_path / "moving.xml")
    window.docks.set_workspace(ANALYSIS)
    analysis = analysis_of(window.context)
    assert analysis is not None
    analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    analysis.launch_random()
    panel = window.docks.panel("analysis")
    assert isinstance(panel, AnalysisPanel)
    for _ in range(2):  # the first result, and a frame
        with qtbot.waitSignal(analysis.result_changed, timeout=kit.WAIT):
            pass
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=kit.WAIT)
    window.close_now()  # what a panel does when it is hidden must not ask an engine that is gone
    assert not window.isVisible()
