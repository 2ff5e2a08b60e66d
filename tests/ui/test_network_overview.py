"""The Network Overview: what ran, with times, and the way to the Channel Inspector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
import numpy as np
import template_networks
from PySide6.QtCore import QModelIndex, QObject, QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from app.engine.protocol import RunStep
from app.ui.analysis import layer_infos
from app.ui.analysis.heat import HeatDelegate
from app.ui.analysis.layer_infos import FEW, LayerInfo, LayerInfos
from app.ui.analysis.network_overview import NetworkOverviewPanel
from app.ui.analysis.overview_model import HEAT, LAYER, MEMORY, SHAPE, STATE, TIME, TYPE, OverviewModel
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.engine.result import AnalysisResult, Phase
from designer.graph.commands import add_layer, connect, remove_layers, rename_layer, set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import edit_template, rename_template
from designer.operators.registry import Registry, default_registry
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.units import binary

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go


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
    made.analysis.inputs.set_file("input_0", kit.picture(tmp_path, size=(40, 20)))
    made.launch_random()
    return made


def test_before_a_run_it_says_what_will_stand_there(qtbot: QtBot, engine: EngineClient) -> None:
    made = Bench(qtbot, engine)
    assert made.panel.model.rowCount() == 0
    made.open(kit.small_network())
    assert not made.panel.tree.isVisible()


def test_its_button_launches_the_analysis_and_nothing_else(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    """What ran is shown then, in place of the button."""
    made = Bench(qtbot, engine)
    timed: list[str] = []
    made.context.inference_requested.connect(lambda: timed.append("timed"))
    document = made.open(kit.small_network(8))
    document.change_settings(random_seed=0)
    made.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    button = made.panel.findChild(QPushButton, "network_overview.empty.action")
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert timed == []
    made.wait(Phase.READY)
    assert made.panel.tree.isVisible()
    assert not button.isVisible()
    model = made.panel.model
    names = [model.layer_at(model.index(row, LAYER)) for row in range(model.rowCount())]
    assert names == ["input_0", "noise_0", "conv_0", "mix_0", "output_0"]


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


def test_shapes_and_memory_are_those_of_the_network_after_each_edit(bench: Bench) -> None:
    document, model = bench.context.document, bench.panel.model

    def row(layer: str) -> tuple[str, str]:
        index = model.find(layer)
        return bench.text(index, SHAPE), bench.text(index, MEMORY)

    def run(edit: Callable[[], object]) -> None:
        before = bench.analysis.result
        edit()
        bench.qtbot.waitUntil(lambda: bench.analysis.result is not before, timeout=kit.WAIT)
        bench.wait(Phase.READY)

    def wide(features: int) -> tuple[str, str]:
        return f"N x {features} x 20 x 40", binary(features * 20 * 40 * 4)

    assert row("conv_h") == wide(8)
    run(lambda: document.do(lambda g: set_params(g, {"conv_h": {"features": "16"}})))
    assert row("conv_h") == wide(16)
    run(document.undo)
    assert row("conv_h") == wide(8)
    run(lambda: document.do(lambda g: connect(g, Source("noise_0"), "conv_0", 0)))
    assert not model.find("conv_h").isValid()
    run(document.undo)
    assert row("conv_h") == wide(8)


def test_deleted_layers_go_although_the_network_cannot_run_any_more(bench: Bench) -> None:
    document, model = bench.context.document, bench.panel.model

    def listed() -> set[str]:
        groups = [model.index(row, LAYER) for row in range(model.rowCount())]
        rows = [index for group in groups for index in (group, *(model.index(n, 0, group) for n in range(9)))]
        return {model.layer_at(index) for index in rows} - {""}

    def facts(layer: str) -> list[str]:
        return [bench.text(model.find(layer), column) for column in (TYPE, SHAPE, MEMORY)]

    every = listed()
    assert "conv_h" in every
    known = {layer: facts(layer) for layer in every}
    document.do(lambda g: remove_layers(g, ["conv_h", "output_0"]))
    assert listed() == every - {"conv_h", "output_0"}
    assert {layer: facts(layer) for layer in listed()} == {layer: known[layer] for layer in listed()}, "as they ran"
    document.do(lambda g: remove_layers(g, list(g.layers)))
    assert model.rowCount() == 0
    assert not bench.panel.tree.isVisible()
    for _ in range(2):
        document.undo()
    bench.qtbot.waitUntil(lambda: listed() == every, timeout=kit.WAIT)
    assert bench.panel.tree.isVisible()


def test_what_is_left_after_a_deletion_has_the_names_of_now_also_inside_of_templates(qtbot: QtBot) -> None:
    context = Context(default_registry())
    root = Document(template_networks.nested(), context.registry, parent=context)
    context.set_document(root)
    panel = NetworkOverviewPanel(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    panel.show()
    analysis = analysis_of(context)

    def names() -> list[str]:
        return [panel.model.layer_at(panel.model.index(row, LAYER)) for row in range(panel.model.rowCount())]

    def ran() -> None:
        steps = tuple(RunStep((name,), "numpy", 1.0, False) for name in ("head", "a.conv_1", "b.conv_1", "c.r.conv_1"))
        analysis.result = AnalysisResult(steps=steps)
        analysis.result_changed.emit()

    ran()
    assert [name for name in names() if name in ("head", "a.conv_1", "b.conv_1", "c.r.conv_1")] == [
        "head",
        "a.conv_1",
        "b.conv_1",
        "c.r.conv_1",
    ]
    inside = root.graph.inside("residual")
    renamed = edit_template(root.graph, "residual", rename_layer(inside, "conv_1", "first"))
    edits = (
        ("inside of a template", lambda graph: renamed, {"conv_1": "first"}),
        ("a template", lambda graph: rename_template(graph, "residual", "other"), {}),
        ("an instance", lambda graph: rename_layer(graph, "b", "second"), {"b": "second"}),
    )
    for what, edit, new in edits:
        root.do(edit)
        root.do(lambda graph: remove_layers(graph, ["head"]))
        shown = [
            ".".join(new.get(part, part) for part in name.split(".")) for name in ("a.conv_1", "b.conv_1", "c.r.conv_1")
        ]
        assert [name for name in names() if "." in name] == shown, what
        assert "head" not in names()
        root.undo()
        root.undo()
        ran()


def test_a_layer_that_is_deleted_inside_of_a_template_goes_before_the_next_run(qtbot: QtBot) -> None:
    context = Context(default_registry())
    root = Document(template_networks.nested(), context.registry, parent=context)
    context.set_document(root)
    panel = NetworkOverviewPanel(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    analysis = analysis_of(context)
    ran = ("head", "a.conv_1", "a.conv_2", "c.r.conv_2")
    analysis.result = AnalysisResult(steps=tuple(RunStep((name,), "numpy", 1.0, False) for name in ran))
    analysis.result_changed.emit()

    def listed() -> list[str]:
        names = [panel.model.layer_at(panel.model.index(row, LAYER)) for row in range(panel.model.rowCount())]
        return [name for name in names if name in ran]

    assert listed() == list(ran)
    inside = root.graph.inside("residual")
    root.do(edit_template(root.graph, "residual", remove_layers(inside, ["conv_2"])))
    assert listed() == ["head", "a.conv_1"]
    root.undo()
    assert listed() == list(ran)


def test_a_deleted_layer_keeps_its_share_of_the_time_of_its_step() -> None:
    model = OverviewModel()
    infos = {name: LayerInfo("", "", "", weight=share) for name, share in (("a", 3.0), ("b", 5.0), ("c", 2.0))}
    steps = (RunStep(("a", "b", "c"), "onnxruntime", 10.0, False), RunStep(("d",), "numpy", 1.0, False))
    for gone, shown in (
        ("", {"a": "3", "b": "5", "c": "2"}),
        ("c", {"a": "3", "b": "5"}),
        ("bc", {"a": "3"}),
        ("abc", {}),
    ):
        model.show(steps, infos, frozenset(gone))
        cells = {name: model.find(name).siblingAtColumn(TIME) for name in "abc" if model.find(name).isValid()}
        assert {name: cell.data() for name, cell in cells.items()} == shown, gone
        assert all(is_italic(cell) for cell in cells.values()), "a share is modelled"
        assert model.find("d").siblingAtColumn(TIME).data() == "1"
        group = model.index(0, LAYER)
        if len(shown) > 1:
            assert float(group.siblingAtColumn(TIME).data()) == sum(float(text) for text in shown.values()), gone
            assert is_italic(group.siblingAtColumn(TIME)) is bool(gone)
        assert model.rowCount(group) == (len(shown) if len(shown) > 1 else 0)


def test_what_is_too_large_to_be_kept_is_shown_so() -> None:
    steps = (RunStep(("a", "b"), "onnxruntime", 2.0, False, dropped=True), RunStep(("c",), "numpy", 1.0, False))
    model = OverviewModel()
    model.show(steps, {})
    states = [str(model.index(row, STATE).data()) for row in range(2)]
    assert states == ["not kept", "run"]
    assert "memory for kept ones" in str(model.index(0, LAYER).data(Qt.ItemDataRole.ToolTipRole))
    assert "memory for kept ones" not in str(model.index(1, LAYER).data(Qt.ItemDataRole.ToolTipRole))


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


def is_italic(index: QModelIndex) -> bool:
    """How amounts that are computed, not measured, are marked."""
    return bool(index.data(Qt.ItemDataRole.FontRole).italic())


def test_a_group_s_time_is_shared_out_and_marked_as_modelled(bench: Bench) -> None:
    model = bench.panel.model
    group = model.index(2, LAYER)
    texts = [bench.text(model.find(name), TIME) for name in ("conv_h", "conv_0")]
    assert all(is_italic(model.find(name).siblingAtColumn(TIME)) for name in ("conv_h", "conv_0"))
    assert not is_italic(group.siblingAtColumn(TIME))
    assert is_italic(group.siblingAtColumn(MEMORY))
    assert sum(float(text) for text in texts) == pytest.approx(float(bench.text(group, TIME)), rel=0.1, abs=0.02)
    assert bench.text(model.find("conv_h"), MEMORY) == f"{8 * 20 * 40 * 4 / 1024:.1f} KiB"
    assert group.siblingAtColumn(TIME).data(HEAT) is None
    hot = [model.find(name).siblingAtColumn(MEMORY).data(HEAT) for name in ("conv_h", "conv_0")]
    assert hot == [1.0, pytest.approx(3 / 8)]
    assert max(model.find(n).siblingAtColumn(TIME).data(HEAT) for n in ("noise_0", "conv_h", "conv_0", "mix_0")) == 1.0


def test_a_group_s_time_is_shared_out_by_the_profile_that_is_displayed(bench: Bench) -> None:
    model = bench.panel.model
    total = float(bench.text(model.index(2, LAYER), TIME))
    rows = tuple(
        OperatorProfile((name,), "convolution", time_ms=time) for name, time in (("conv_h", 1.0), ("conv_0", 3.0))
    )
    run = ProfileRun("onnxruntime", "fp32", "nchw", "cpu", 1, "24x16", 4.0, 0.1, rows)
    profiling = profiling_of(bench.context)
    profiling.add(Profile(Machine("Test CPU", 2), "small", (run,)))
    shares = [bench.text(model.find(name), TIME) for name in ("conv_h", "conv_0")]
    assert not is_italic(model.find("conv_h").siblingAtColumn(TIME))
    assert [float(text) for text in shares] == pytest.approx([total / 4, total * 3 / 4], rel=0.1, abs=0.006)
    summary = bench.panel.findChild(QLabel, "network_overview.summary")
    assert profiling.current is not None
    assert f"times of layers by profile {profiling.current.title}" in summary.text()
    other = replace(run, operators=(replace(rows[0], type="pooling"), rows[1]))  # of another network
    profiling.add(Profile(Machine("Test CPU", 2), "other", (other,)))
    assert all(is_italic(model.find(name).siblingAtColumn(TIME)) for name in ("conv_h", "conv_0"))
    assert "by profile" not in summary.text()


def test_heat_is_one_map_on_which_numbers_can_be_read(bench: Bench, qapp: QApplication) -> None:
    from app.ui.widgets import theme
    from app.ui.widgets.heat import heat_color

    for mode in ("dark", "light"):
        theme.apply(qapp, mode)  # type: ignore[arg-type]
        grounds = [heat_color(share / 20) for share in range(21)]
        assert len({ground.rgb() for ground in grounds}) == 21
        assert min(theme.contrast(theme.ink_on(ground), ground) for ground in grounds) >= 4.5
    assert not bench.panel.grab().isNull()


def test_a_long_time_keeps_its_first_digits(bench: Bench) -> None:
    index = bench.panel.model.find("noise_0").siblingAtColumn(TIME)
    option = QStyleOptionViewItem()
    delegate = bench.panel.tree.itemDelegateForColumn(TIME)
    assert isinstance(delegate, HeatDelegate)
    delegate.initStyleOption(option, index)
    assert option.textElideMode is Qt.TextElideMode.ElideRight
    needed = bench.panel.fontMetrics().horizontalAdvance("12345.6")
    assert bench.panel.tree.columnWidth(TIME) > needed


def test_columns_sort_and_the_third_click_brings_the_running_order_back(bench: Bench) -> None:
    model, header = bench.panel.model, bench.panel.tree.header()
    bench.panel.resize(900, 400)

    def click(section: int) -> None:
        x = header.sectionViewportPosition(section) + header.sectionSize(section) // 2
        bench.qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(x, header.height() // 2))

    def names() -> list[str]:
        found = []
        for row in range(model.rowCount()):
            top = model.index(row, LAYER)
            inside = model.rowCount(top)
            found += [model.layer_at(model.index(k, LAYER, top)) for k in range(inside)] or [model.layer_at(top)]
        return found

    running = names()
    bench.context.select(("conv_0",))
    click(MEMORY)
    first = names()
    click(MEMORY)
    second = names()
    largest = [order.index("conv_h") < order.index("conv_0") for order in (first, second)]
    assert sorted(largest) == [False, True]
    assert sorted(first) == sorted(second) == sorted(running)
    assert model.layer_at(bench.panel.tree.currentIndex()) == "conv_0"
    result = bench.analysis.result
    bench.context.document.do(lambda g: set_params(g, {"noise_0": {"scale": "0.7"}}))
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not result, timeout=kit.WAIT)
    assert names() == second
    click(MEMORY)
    assert names() == running


def test_other_steps_are_sorted_as_the_header_says(qtbot: QtBot, engine: EngineClient) -> None:
    panel = Bench(qtbot, engine).panel
    facts = {"a": ("type 2", "1 x 9", 3), "b": ("type 1", "3 x 9", 1), "c": ("type 3", "2 x 9", 2)}
    infos = {name: LayerInfo(kind, kind, shape, memory=size) for name, (kind, shape, size) in facts.items()}
    times, kept = {"a": 2.0, "b": 3.0, "c": 1.0}, {"a": False, "b": True, "c": False}
    ran = "bac"

    def shown(names: str) -> list[str]:
        steps = tuple(RunStep((name,), "numpy", times[name], kept[name]) for name in names)
        panel.model.show(steps, infos)
        return [panel.model.layer_at(panel.model.index(row, LAYER)) for row in range(len(names))]

    assert shown(ran) == list(ran)
    for section in range(panel.model.columnCount()):
        for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
            shown("a")
            panel.tree.sortByColumn(section, order)
            at_once = shown(ran)
            panel.tree.sortByColumn(-1, order)
            assert shown(ran) == list(ran)
            panel.tree.sortByColumn(section, order)
            afterwards = [panel.model.layer_at(panel.model.index(row, LAYER)) for row in range(len(ran))]
            assert at_once == afterwards, (section, order)
    panel.tree.sortByColumn(LAYER, Qt.SortOrder.AscendingOrder)
    shown("a")
    assert shown(ran) == list("abc")


def test_heat_is_painted_again_when_another_layer_becomes_the_hottest() -> None:
    def steps(last: float) -> tuple[RunStep, ...]:
        return (
            RunStep(("a",), "numpy", 4.0, False),
            RunStep(("b", "c"), "numpy", 4.0, False),
            RunStep(("d",), "numpy", last, False),
        )

    infos = {name: LayerInfo("", "", "", weight=1.0) for name in "abcd"}
    model = OverviewModel()
    model.show(steps(8.0), infos)
    places = {name: model.find(name).siblingAtColumn(TIME) for name in "abcd"}
    assert [places[name].data(HEAT) for name in "abcd"] == [0.5, 0.25, 0.25, 1.0]
    told: list[tuple[QModelIndex, QModelIndex]] = []
    model.dataChanged.connect(lambda first, last, roles: told.append((first, last)))
    model.show(steps(16.0), infos)
    assert [places[name].data(HEAT) for name in "abcd"] == [0.25, 0.125, 0.125, 1.0]
    for place in places.values():
        assert any(
            place.parent() == first.parent()
            and first.row() <= place.row() <= last.row()
            and first.column() <= TIME <= last.column()
            for first, last in told
        )


def test_kept_results_keep_the_time_that_they_cost(bench: Bench) -> None:
    model = bench.panel.model
    before = bench.text(model.index(2, LAYER), TIME)
    first = bench.analysis.result
    bench.context.document.do(lambda g: set_params(g, {"mix_0": {"amount": "0.125"}}))
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not first, timeout=kit.WAIT)
    assert bench.text(model.index(2, LAYER), STATE) == "kept"
    assert bench.text(model.index(2, LAYER), TIME) == before


def test_values_that_are_no_numbers_are_traced_to_their_layer(bench: Bench, tmp_path: Path) -> None:
    panel = bench.panel
    assert not panel.notice.isVisible()
    path = tmp_path / "broken.npy"
    array = np.random.default_rng(0).random((1, 3, 20, 40), np.float32)
    array[0, :, 3:6, 4:9] = np.nan
    np.save(path, array)
    bench.analysis.inputs.set_file("input_0", path)
    bench.qtbot.waitUntil(lambda: panel.faults.culprit == "input_0", timeout=kit.WAIT)
    assert "NaN is first made by 'input_0'" in panel.notice.text
    assert panel.notice.isVisible()
    assert bench.text(panel.model.find("input_0"), STATE) == "not finite"
    assert bench.text(panel.model.find("output_0"), STATE) == "not finite"
    with bench.qtbot.waitSignal(bench.context.inspect_requested) as asked:
        button = panel.findChild(QPushButton, "network_overview.notice.look")
        bench.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert asked.args == ["input_0"]
    with bench.qtbot.waitSignal(bench.context.reveal_requested) as asked:
        bench.qtbot.mouseClick(panel.findChild(QPushButton, "network_overview.notice.go"), Qt.MouseButton.LeftButton)
    assert asked.args == ["input_0"]
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path, size=(40, 20)))
    bench.qtbot.waitUntil(lambda: not panel.notice.isVisible(), timeout=kit.WAIT)
    assert bench.text(panel.model.find("output_0"), STATE) != "not finite"


def test_the_layer_that_the_inspector_shows_is_marked(bench: Bench) -> None:
    at = bench.panel.model.find("conv_0")
    before = at.data(Qt.ItemDataRole.DecorationRole).cacheKey()
    bench.context.inspected.emit("conv_0")
    assert bench.panel.model.find("conv_0").data(Qt.ItemDataRole.DecorationRole).cacheKey() != before


def test_layers_of_templates_have_their_types_and_shapes(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    made = Bench(qtbot, engine)
    made.open(template_networks.nested())
    made.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    made.launch_random()
    model = made.panel.model
    inside = [row for row in made.panel.infos.infos if "." in row]
    assert inside
    assert all(made.text(model.find(name), SHAPE).startswith("N x") for name in inside if model.find(name).isValid())
    assert any(model.find(name).isValid() for name in inside)


def chain(count: int) -> Document:
    """An input and convolutions, one after the other."""
    layers = [Layer("in", "input", params={"dims": "16x16x3", "tiling": "0"})]
    for number in range(count):
        params = {"features": "4", "kernel": "3x3"}
        layers.append(Layer(f"c{number}", "convolution", inputs=(Source(layers[-1].name),), params=params))
    return Document(Graph(layers), default_registry())


def test_the_facts_of_a_large_network_come_from_a_thread(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    document = chain(FEW)
    parent = QObject()
    infos = LayerInfos(parent)
    compute, computed = layer_infos.layer_infos, []

    def counted(
        graph: Graph, registry: Registry, fed: dict[str, tuple[int, ...]], precision: str, run: ProfileRun | None
    ) -> dict[str, LayerInfo]:
        computed.append(fed["in"])
        return compute(graph, registry, fed, precision, run)

    monkeypatch.setattr(layer_infos, "layer_infos", counted)
    with qtbot.waitSignal(infos.changed, timeout=kit.WAIT):
        infos.ask(document, {"in": (1, 3, 16, 16)}, 0)
        assert infos.infos == {}
        infos.ask(document, {"in": (1, 3, 32, 24)}, 0)  # the last request counts
    assert infos.infos["c9"].shape == "N x 4 x 32 x 24"
    assert infos.infos["c9"].memory == 4 * 32 * 24 * 4
    infos.ask(document, {"in": (1, 3, 32, 24)}, 0)  # known already
    with qtbot.waitSignal(infos.changed, timeout=kit.WAIT):
        infos.ask(document, {"in": (1, 3, 8, 8)}, 0)
    assert computed == [(1, 3, 16, 16), (1, 3, 32, 24), (1, 3, 8, 8)]


def test_the_facts_of_a_large_network_do_not_replace_those_of_the_small_one_that_is_shown(qtbot: QtBot) -> None:
    large, small = chain(FEW), chain(1)
    parent = QObject()
    infos = LayerInfos(parent)
    with qtbot.waitSignal(infos._background.done, timeout=kit.WAIT):
        infos.ask(large, {"in": (1, 3, 16, 16)}, 0)
        infos.ask(small, {"in": (1, 3, 16, 16)}, 0)
    assert set(infos.infos) == {"in", "c0"}


def test_nan_that_the_output_hides_is_traced_to_its_layer(bench: Bench) -> None:
    document = bench.context.document
    before = bench.analysis.result
    hidden = (
        Layer("lower", "scale_shift", inputs=(Source("input_0"),), params={"scale": "1.0", "shift": "-0.9"}),
        Layer("root", "unary", inputs=(Source("lower"),), params={"function": "sqrt"}),
        Layer("compared", "compare", inputs=(Source("root"),)),
        Layer("number", "cast", inputs=(Source("compared"),)),
    )
    with document.group("NaN"):
        for layer in hidden:
            document.do(lambda g, layer=layer: add_layer(g, layer))
        document.do(lambda g: connect(g, Source("number"), "output_0", 0))
    bench.qtbot.waitUntil(lambda: bench.analysis.result is not before, timeout=kit.WAIT)
    panel = bench.panel
    bench.qtbot.waitUntil(lambda: panel.faults.culprit == "root", timeout=kit.WAIT)
    assert "NaN is first made by 'root'" in panel.notice.text
    assert bench.text(panel.model.find("root"), STATE) == "not finite"
    assert bench.text(panel.model.find("output_0"), STATE) != "not finite"
    assert "'root' computes values that are NaN or infinite" in bench.analysis.result.note_of("output_0")


def test_columns_fit_names_with_icons_and_shapes_that_are_known_after_the_run(
    qtbot: QtBot, engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, compute = Event(), layer_infos.layer_infos

    def after_the_run(*about: Any) -> dict[str, LayerInfo]:
        assert shown.wait(kit.WAIT / 1000)
        return compute(*about)

    monkeypatch.setattr(layer_infos, "FEW", 0)  # as for large networks, whose shapes are found in another thread
    monkeypatch.setattr(layer_infos, "layer_infos", after_the_run)
    bench = Bench(qtbot, engine)
    bench.panel.resize(1200, 400)
    bench.open(kit.small_network(8))
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path, size=(40, 20)))
    bench.launch_random()
    shown.set()
    tree = bench.panel.tree
    bench.qtbot.waitUntil(lambda: bench.text(bench.panel.model.find("conv_h"), SHAPE) != "")
    for column in (LAYER, SHAPE):
        assert tree.columnWidth(column) >= tree.sizeHintForColumn(column)


def test_memory_is_in_view_where_names_can_be_told_apart(bench: Bench) -> None:
    tree, character = bench.panel.tree, bench.panel.fontMetrics().averageCharWidth()
    rows = tuple(RunStep((f"a_layer_with_a_long_name_{number}",), "torch", 1.0, False) for number in range(60))
    bench.panel.model.show(rows, {})
    natural = tree.sizeHintForColumn(LAYER)
    for width, least, seen in ((1200, 19, True), (600, 19, True), (330, 19, True), (290, 22, False), (200, 12, False)):
        bench.panel.resize(width, 300)
        QApplication.processEvents()
        assert tree.verticalScrollBar().isVisible()
        assert least * character <= tree.columnWidth(LAYER) <= max(natural, 12 * character)
        assert (tree.columnWidth(LAYER) == natural) is (width >= 600)
        assert (sum(tree.columnWidth(column) for column in (LAYER, TIME, MEMORY)) <= tree.viewport().width()) is seen


def test_thousands_of_milliseconds_are_in_groups(bench: Bench) -> None:
    model = bench.panel.model
    model.show(tuple(RunStep((name,), "torch", took, False) for name, took in (("a", 9999.0), ("b", 23306.4))), {})
    assert [bench.text(model.find(name), TIME) for name in ("a", "b")] == ["9999", "23,306"]
