"""The Network Overview: what ran, with times, and the way to the Channel Inspector."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from PySide6.QtCore import QModelIndex, QPoint, Qt
from pytestqt.qtbot import QtBot

from app.ui.analysis.overview_model import LAYER, SHAPE, STATE, TIME
from app.ui.jobs.engine import EngineClient
from app.ui.panels.network_overview import NetworkOverviewPanel
from designer.graph.commands import set_params

pytestmark = pytest.mark.gui


class Bench(kit.Launched):
    def __init__(self, qtbot: QtBot, engine: EngineClient) -> None:
        super().__init__(qtbot, engine)
        self.panel = NetworkOverviewPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(600, 400)
        self.panel.show()

    def text(self, index: QModelIndex, column: int) -> str:
        return str(index.siblingAtColumn(column).data())

    def click_point(self, layer: str) -> QPoint:
        return self.panel.tree.visualRect(self.panel.model.find(layer)).center()


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    made = Bench(qtbot, engine)
    made.open(kit.small_network(8))
    made.analysis.set_input("input_0", kit.picture(tmp_path, size=(40, 20)))
    made.launch_random()
    return made


def test_before_a_run_it_says_what_will_stand_there(qtbot: QtBot, engine: EngineClient) -> None:
    made = Bench(qtbot, engine)
    assert made.panel.model.rowCount() == 0
    made.open(kit.small_network())
    assert not made.panel.tree.isVisible()


def test_steps_stand_in_running_order_with_the_sizes_of_what_was_fed(bench: Bench) -> None:
    model = bench.panel.model
    names = [model.layer_at(model.index(row, LAYER)) for row in range(model.rowCount())]
    assert names == ["input_0", "noise_0", "conv_0", "mix_0", "output_0"]
    group = model.index(2, LAYER)
    assert model.rowCount(group) == 2
    assert [model.layer_at(model.index(row, 0, group)) for row in range(2)] == ["conv_h", "conv_0"]
    assert bench.text(model.find("conv_h"), SHAPE) == "N x 8 x 20 x 40"
    assert bench.text(group, STATE) == "run"
    assert float(bench.text(group, TIME)) > 0


def test_what_a_slider_left_alone_is_shown_as_kept(bench: Bench) -> None:
    first = bench.analysis.result
    bench.context.document.do(lambda g: set_params(g, {"mix_0": {"amount": "0.125"}}))
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not first, timeout=kit.WAIT)
    model = bench.panel.model
    assert bench.text(model.index(2, LAYER), STATE) == "kept"
    assert bench.text(model.find("mix_0"), STATE) == "run"


def test_a_double_click_asks_for_the_inspector(bench: Bench) -> None:
    viewport = bench.panel.tree.viewport()
    with bench.qtbot.waitSignal(bench.context.inspect_requested) as asked:
        bench.qtbot.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=bench.click_point("conv_h"))
        bench.qtbot.mouseDClick(viewport, Qt.MouseButton.LeftButton, pos=bench.click_point("conv_h"))
    assert asked.args == ["conv_h"]
    assert bench.context.selection == ("conv_h",)


def test_enter_asks_for_the_inspector_and_the_selection_is_followed(bench: Bench) -> None:
    bench.context.select(("mix_0",))
    assert bench.panel.model.layer_at(bench.panel.tree.currentIndex()) == "mix_0"
    with bench.qtbot.waitSignal(bench.context.inspect_requested) as asked:
        bench.qtbot.keyClick(bench.panel.tree, Qt.Key.Key_Return)
    assert asked.args == ["mix_0"]


def test_the_model_keeps_qt_s_rules(bench: Bench, qtmodeltester: object) -> None:
    qtmodeltester.check(bench.panel.model)  # type: ignore[attr-defined]
