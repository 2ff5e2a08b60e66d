"""Mix on the output picture: the line by mouse and keys, and the other ways of putting two pictures together."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.gui

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path

import analysis_kit as kit
import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from analysis_layers.mix import SELECTIONS
from analysis_layers.noise import SCALES
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.output_view import OutputView
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.widgets.image_view import ImageView, SplitMode
from designer.graph.bypass import bypass
from designer.graph.commands import set_params
from designer.graph.edits import Edit
from designer.graph.model import Source
from designer.operators.registry import default_registry

engine_is_let_go = kit.engine_is_let_go


class Bench(kit.Launched):
    """The analysis panel with a network that ends in a Mix."""

    def __init__(self, qtbot: QtBot, engine: EngineClient, folder: Path) -> None:
        super().__init__(qtbot, engine)
        self.document = self.open(kit.small_network())
        self.panel = AnalysisPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(1000, 700)
        self.panel.show()
        qtbot.waitExposed(self.panel)
        self.analysis.inputs.set_file("input_0", kit.picture(folder))
        self.launch_random()
        self.view = self.panel.findChild(ImageView, "analysis.output.output_0.picture")
        assert self.view is not None

    @property
    def amount(self) -> float:
        return float(self.document.graph["mix_0"].params["amount"])

    def choose(self, selection: str) -> None:
        box = self.panel.findChild(QComboBox, "analysis.mix_0.selection")
        assert box is not None
        box.setCurrentIndex(box.findData(selection))
        box.activated.emit(box.currentIndex())


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(qtbot, engine, tmp_path)
    yield made
    made.panel.hide()


def test_the_cursor_tells_where_the_line_is_and_arrows_move_it(bench: Bench) -> None:
    view, qtbot = bench.view, bench.qtbot
    assert view is not None
    assert view.split is SplitMode.VERTICAL
    qtbot.mouseMove(view, view.place_of(12, 8).toPoint())
    assert view.cursor().shape() is Qt.CursorShape.SplitHCursor
    qtbot.mouseMove(view, view.place_of(3, 8).toPoint())
    assert view.cursor().shape() is Qt.CursorShape.CrossCursor
    before = bench.analysis.result
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert bench.amount == pytest.approx(0.59)
    qtbot.waitUntil(lambda: bench.analysis.result is not before, timeout=kit.WAIT)
    bench.choose("h_split")
    assert view.split is SplitMode.HORIZONTAL
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert bench.amount == pytest.approx(0.60)
    bench.document.undo()  # a key is a step of its own
    assert bench.amount == pytest.approx(0.59)


def test_a_horizontal_line_is_dragged_and_the_picture_follows(bench: Bench) -> None:
    bench.choose("h_split")
    view, qtbot = bench.view, bench.qtbot
    assert view is not None
    on, to = view.place_of(5, 8).toPoint(), view.place_of(5, 12).toPoint()
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=on)
    qtbot.mouseMove(view, to)
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=to)
    assert bench.amount == pytest.approx(0.75, abs=0.03)

    analysis = bench.analysis

    def followed() -> bool:
        """The hidden tensors above and below the line, which is at row 12 of 16."""
        result = analysis.result
        if result is None or not {"conv_0", "noise_0"} <= result.captures.keys():
            return False
        row = ceil(bench.amount * 16)
        a, b, shown = result.captures["conv_0"], result.captures["noise_0"], result.outputs["output_0"]
        return bool(
            np.array_equal(shown[:, :, :row], a[:, :, :row]) and np.array_equal(shown[:, :, row:], b[:, :, row:])
        )

    analysis.set_capture("conv_0", ("noise_0",))
    qtbot.waitUntil(followed, timeout=kit.WAIT)


def test_a_mix_without_stored_parameters_has_the_line_of_the_defaults(bench: Bench) -> None:
    view, qtbot = bench.view, bench.qtbot
    assert view is not None
    bench.document.do(lambda g: set_params(g, {"mix_0": dict.fromkeys(g["mix_0"].params)}))
    assert not bench.document.graph["mix_0"].params
    assert view.split is SplitMode.VERTICAL
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert bench.amount == pytest.approx(0.51)


def test_each_drag_of_the_line_is_undone_alone(bench: Bench) -> None:
    view, qtbot = bench.view, bench.qtbot
    amounts = [bench.amount]
    for x, to in ((12, 18), (18, 6)):
        on, end = view.place_of(x, 8).toPoint(), view.place_of(to, 8).toPoint()
        qtbot.mouseMove(view, on)
        qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=on)
        qtbot.mouseMove(view, view.place_of((x + to) // 2, 8).toPoint())
        qtbot.mouseMove(view, end)
        qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=end)
        amounts.append(bench.amount)
    assert amounts == pytest.approx([amounts[0], 0.75, 0.25], abs=0.05)
    bench.document.undo()
    assert bench.amount == amounts[1]
    bench.document.undo()
    assert bench.amount == amounts[0]


def test_a_kind_of_noise_that_is_measured_otherwise_begins_with_its_usual_scale(bench: Bench) -> None:
    for kind in ("uniform", "blur", "jpeg", "gaussian"):
        box = bench.panel.findChild(QComboBox, "analysis.noise_0.kind")  # other options replace it
        assert box is not None
        before = bench.document.graph["noise_0"].params
        box.setCurrentIndex(box.findData(kind))
        box.activated.emit(box.currentIndex())
        params = bench.document.graph["noise_0"].params
        assert params["kind"] == kind
        same = SCALES[before["kind"]].measure == SCALES[kind].measure
        assert float(params["scale"]) == (float(before["scale"]) if same else SCALES[kind].usual)


def test_the_line_is_on_outputs_that_depend_on_its_mix(qtbot: QtBot) -> None:
    graph = kit.small_network()
    more = replace(graph["output_0"], name="output_1", inputs=(Source("noise_0"),))
    graph.apply(Edit("More", {"output_1": (None, more)}))
    context = Context(default_registry())
    document = Document(graph, context.registry)
    context.set_document(document)
    panel = AnalysisPanel(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    views = [panel.findChild(ImageView, f"analysis.output.{name}.picture") for name in ("output_0", "output_1")]
    assert [view.split for view in views] == [SplitMode.VERTICAL, SplitMode.NONE]
    second = replace(graph["mix_0"], name="mix_1", params={"selection": "h_split", "amount": "0.75"})
    document.do(lambda g: Edit("Second", {"mix_1": (None, second)}))
    document.do(
        lambda g: Edit("To it", {"output_1": (g["output_1"], replace(g["output_1"], inputs=(Source("mix_1"),)))})
    )
    assert [view.split for view in views] == [SplitMode.VERTICAL, SplitMode.HORIZONTAL]
    for output, amount in (("output_1", 0.2), ("output_0", 0.4), ("output_1", 0.6)):
        panel.findChild(OutputView, f"analysis.output.{output}").split_moved.emit(amount)
    amounts = [document.graph[name].params["amount"] for name in ("mix_0", "mix_1")]
    assert amounts == ["0.4", "0.6"]
    document.do(lambda g: bypass(g, document.inference, ["mix_0"]))
    assert [view.split for view in views] == [SplitMode.NONE, SplitMode.HORIZONTAL]


@pytest.mark.parametrize("selection", [s for s in SELECTIONS if s not in ("v_split", "h_split", "custom")])
def test_every_way_of_mixing_can_be_chosen(bench: Bench, selection: str) -> None:
    before = bench.analysis.result
    assert before is not None
    bench.choose(selection)
    assert bench.document.graph["mix_0"].params["selection"] == selection
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not before, timeout=kit.WAIT)
    assert bench.view is not None
    assert bench.view.split is SplitMode.NONE
    assert bench.analysis.result is not None
    if selection != "flicker":  # that one shows the first as it is
        assert not np.array_equal(bench.analysis.result.outputs["output_0"], before.outputs["output_0"])
