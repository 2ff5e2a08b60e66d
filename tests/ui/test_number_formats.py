"""Number formats in the window: given to layers by chip, menu and drag, followed live, measured; blame on the canvas."""

from __future__ import annotations

from pathlib import Path

import analysis_kit as kit
import numpy as np
import pytest
import window_kit

pytest.importorskip("PySide6")
pytest.importorskip("torch")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QMimeData, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTreeWidget, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.computations import variant_name
from app.engine.protocol import BitsReply, LayerBits, SizePoint
from app.ui.canvas.viewer import FORMAT_MIME
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.number_formats import TITLES, number_formats_of
from app.ui.engine.result import Phase
from app.ui.precision import number_formats_panel
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.channel_pairs import ChannelPairs
from app.ui.precision.number_formats_panel import MEASURED, FormatChip, NumberFormatsPanel
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from designer.files.variants import Variant
from designer.graph.commands import add_layer
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from designer.runtime.number_formats import FLOAT32, format_of
from designer.units import binary

engine_is_let_go = kit.engine_is_let_go


def network() -> Graph:
    def conv(name: str, source: str, features: int) -> Layer:
        return Layer(name, "convolution", inputs=(Source(source),), params={"features": str(features)})

    return Graph(
        [
            Layer("input_0", "input", params={"dims": "24x16x3"}),
            conv("conv_0", "input_0", 6),
            conv("conv_1", "conv_0", 3),
            Layer("output_0", "output", inputs=(Source("conv_1"),)),
        ]
    )


class Bench(kit.Launched):
    """A network with random weights and an image."""

    def __init__(self, qtbot: QtBot, engine: EngineClient, folder: Path) -> None:
        super().__init__(qtbot, engine)
        self.document = self.open(network())
        self.document.change_settings(input_files={"input_0": str(kit.picture(folder))}, random_seed=1)
        self.formats = number_formats_of(self.context)
        self.heat: list[object] = []
        self.context.heat_requested.connect(self.heat.append)

    def part(self, panel: QWidget, kind: type, name: str):
        self.qtbot.addWidget(panel)
        found = panel.findChild(kind, name)
        assert found is not None
        return found

    def idle(self) -> None:
        self.qtbot.waitUntil(lambda: not self.formats.busy, timeout=kit.WAIT)

    def output(self) -> np.ndarray:
        self.wait(Phase.READY)
        assert self.analysis.result is not None
        return np.array(self.analysis.result.outputs["output_0"])


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Bench:
    return Bench(qtbot, engine, tmp_path)


def test_a_chip_gives_the_selected_layers_a_format_and_the_image_follows(bench):
    panel = NumberFormatsPanel(bench.context)
    chip = bench.part(panel, FormatChip, "number_formats.int4")
    bench.analysis.launch()
    plain = bench.output()
    bench.context.select(("conv_0",))
    with bench.qtbot.waitSignal(bench.analysis.result_changed, timeout=kit.WAIT):
        chip.click()
    assert bench.formats.formats == {"conv_0": "int4"}
    four = bench.output()
    assert np.abs(four - plain).max() > 1e-3

    opened = bench.analysis.engine.opened
    with bench.qtbot.waitSignal(bench.analysis.result_changed, timeout=kit.WAIT):
        bench.formats.set_format("int2")
    two = bench.output()
    assert np.abs(two - four).max() > 1e-3
    assert bench.analysis.engine.opened is opened  # the network was not opened anew
    table = bench.part(panel, QTreeWidget, "number_formats.layers")
    assert [table.topLevelItem(0).text(i) for i in (0, 1)] == ["conv_0", "INT2"]

    with bench.qtbot.waitSignal(bench.analysis.result_changed, timeout=kit.WAIT):
        bench.document.undo()
    np.testing.assert_array_equal(bench.output(), four)
    with bench.qtbot.waitSignal(bench.analysis.result_changed, timeout=kit.WAIT):
        bench.document.undo()
    np.testing.assert_array_equal(bench.output(), plain)


def rows(table: QTreeWidget) -> list[list[str]]:
    return [[table.topLevelItem(i).text(column) for column in (0, 1)] for i in range(table.topLevelItemCount())]


def test_layers_inside_an_instance_have_its_format_or_their_own(bench):
    bench.document.do(lambda g: make_template(g, ["conv_0", "conv_1"], "Part"))
    formats = bench.formats
    formats.set_format("int8", ["Part_0"])
    shown = {name: formats.format_of(name) for name in ("Part_0", "Part_0.conv_0", "Part_0.conv_1", "output_0")}
    assert shown == {"Part_0": "int8", "Part_0.conv_0": "int8", "Part_0.conv_1": "int8", "output_0": "float32"}
    formats.set_format("float32", ["Part_0.conv_0", "output_0"])
    assert formats.formats == {"Part_0": "int8", "Part_0.conv_0": "float32"}
    assert formats.format_of("Part_0.conv_0") == "float32"
    for path in shown:  # as they run
        assert formats.format_of(path) == format_of(path, formats.formats, FLOAT32).name


def test_all_layers_are_listed_with_their_format_before_anything_is_measured(bench):
    table = bench.part(NumberFormatsPanel(bench.context), QTreeWidget, "number_formats.layers")
    assert rows(table) == [["conv_0", "FP32"], ["conv_1", "FP32"]]
    bench.formats.set_format("int8", ["conv_1"])
    assert rows(table) == [["conv_0", "FP32"], ["conv_1", "INT8"]]
    bench.document.do(lambda g: add_layer(g, Layer("conv_2", "convolution", inputs=(Source("conv_1"),))))
    bench.qtbot.waitUntil(lambda: rows(table) == [["conv_0", "FP32"], ["conv_1", "INT8"], ["conv_2", "FP32"]])


def test_blame_says_what_its_table_will_list(bench):
    panel = BlamePanel(bench.context)
    table = bench.part(panel, QTreeWidget, "blame.operators")
    hint = panel.findChild(EmptyState)
    panel.show()
    assert hint.isVisible()
    assert not table.isVisible()
    idle = panel.causes.icon().pixmap(16).toImage()
    panel.causes.click()
    assert panel.causes.text() == "Stop"
    assert panel.causes.icon().pixmap(16).toImage() == theme.icon("stop").pixmap(16).toImage()
    bench.idle()
    assert panel.causes.icon().pixmap(16).toImage() == idle
    assert table.isVisible()
    assert not hint.isVisible()


def test_fp32_takes_a_format_away(bench):
    bench.formats.set_format("int8", ["conv_0", "conv_1"])
    bench.formats.set_format("float32", ["conv_0"])
    assert bench.formats.formats == {"conv_1": "int8"}
    assert len(bench.document.settings.variants) == 1


def test_a_format_of_another_version_is_listed_as_it_is(bench):
    panel = NumberFormatsPanel(bench.context)
    table = bench.part(panel, QTreeWidget, "number_formats.layers")
    bench.formats.set_format("fp3", ["conv_0"])
    assert table.topLevelItem(0).text(1) == "fp3"


def test_a_chip_dropped_on_a_layer_of_the_selection_is_for_all_of_it(window):
    window_kit.show(window, window_kit.network())
    context, viewer = window.context, window.canvas.viewer
    first, second = list(context.document.graph.layers)[:2]
    item = window.canvas.projection[first]
    viewer.centerOn(item)
    point = viewer.mapFromScene(item.box().center())
    data = QMimeData()
    data.setData(FORMAT_MIME, b"int6")
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    context.select((first, second))
    enter = QDragEnterEvent(point, Qt.DropAction.CopyAction, data, buttons, keys)
    QApplication.sendEvent(viewer.viewport(), enter)
    assert enter.isAccepted()
    drop = QDropEvent(QPointF(point), Qt.DropAction.CopyAction, data, buttons, keys)
    QApplication.sendEvent(viewer.viewport(), drop)
    assert number_formats_of(context).formats == {first: "int6", second: "int6"}
    context.select(())
    outside = QDragEnterEvent(viewer.viewport().rect().bottomRight(), Qt.DropAction.CopyAction, data, buttons, keys)
    QApplication.sendEvent(viewer.viewport(), outside)
    assert not outside.isAccepted()


def test_measured_bits_are_in_the_table_on_the_canvas_and_in_the_curve(bench):
    panel = NumberFormatsPanel(bench.context)
    table = bench.part(panel, QTreeWidget, "number_formats.layers")
    measure = bench.part(panel, QPushButton, "number_formats.measure")
    measure.click()
    assert measure.text() == "Stop"
    bench.idle()
    assert [table.topLevelItem(i).text(0) for i in range(table.topLevelItemCount())] == ["conv_0", "conv_1"]
    column = 2 + number_formats_panel.MEASURED.index("int4")
    heat = bench.heat[-1]
    assert heat.label("conv_0") == f"{table.topLevelItem(0).text(column)} dB"
    assert panel.plot is not None
    plain, *choices = panel._found.points
    assert not plain.formats
    size = bench.part(panel, QLabel, "number_formats.size")
    for chosen in (choices[0], choices[-1]):
        panel.plot.chosen.emit(chosen)
        assert bench.formats.formats == chosen.formats
        assert size.text() == f"Weights: {binary(chosen.bytes)} instead of {binary(plain.bytes)}"


def test_blame_names_the_first_deviating_operator_and_opens_its_channels(bench):
    panel = BlamePanel(bench.context)
    table = bench.part(panel, QTreeWidget, "blame.operators")
    bench.part(panel, QPushButton, "blame.find").click()
    bench.idle()
    shares = [float(table.topLevelItem(i).text(1)) for i in range(table.topLevelItemCount())]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    first = bench.part(panel, QPushButton, "blame.first")
    assert first.text() == "First deviating operator: conv_0"
    assert bench.heat[-1].label("conv_0").endswith(" %")
    first.click()
    bench.idle()
    pairs = panel.window().findChild(ChannelPairs)
    assert pairs is not None
    assert pairs.channel.maximum() == 6
    assert pairs.views[0].image is not None
    pairs.close()


def test_blame_between_engines_finds_only_rounding(bench):
    panel = BlamePanel(bench.context)
    panel.a.setCurrentIndex(panel.a.findData("torch"))
    panel.b.setCurrentIndex(panel.b.findData("onnxruntime"))
    bench.part(panel, QPushButton, "blame.find").click()
    bench.idle()
    assert "no operator deviates by more than rounding" in bench.part(panel, QLabel, "blame.status").text()


def test_a_file_that_is_not_a_model_is_refused_with_the_reason(bench, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    panel = BlamePanel(bench.context)
    panel.compare_with_file(tmp_path / "bad.onnx")
    bench.part(panel, QPushButton, "blame.find").click()
    bench.idle()
    assert "ONNX" in bench.part(panel, QLabel, "blame.status").text()


def test_the_curve_has_the_best_choices_only():
    from app.ui.precision.size_plot import best_points

    large, worse, small, least = (
        SizePoint(size, psnr, {"a": "int8"}) for size, psnr in ((100, 60.0), (80, 30.0), (60, 40.0), (20, 10.0))
    )
    assert best_points([large, worse, small, least]) == [large, small, least]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_channels_with_values_that_are_not_finite_are_the_worst_ones(qtbot, bad):
    window = QWidget()
    qtbot.addWidget(window)
    a = np.linspace(0, 1, 60, dtype=np.float32).reshape(1, 3, 4, 5)
    b = a + np.float32(0.25) * (np.arange(3).reshape(1, 3, 1, 1) == 0)
    a[0, 1, 0, 0] = b[0, 1, 0, 0] = np.inf  # the same in both
    b[0, 2, 1, 1] = bad
    pairs = ChannelPairs("conv", ("FP32", "FP16"), a, b, window)
    assert list(pairs._order) == [2, 0, 1]
    assert pairs.text.text().startswith(
        "Channel 2, from 0.678 to 1.00; the largest difference is 0; 5.00 % of the values"
    )
    gray = [pairs.views[0].image.pixelColor(x, 3).red() for x in (0, 4)]
    assert gray[1] == 255 > gray[0] > 150
    pairs.channel.setValue(2)
    assert pairs.text.text() == "Channel 0, from 0 to 0.572; the largest difference is 0.250"


def test_every_format_that_is_measured_has_a_column_of_numbers(qtbot):
    context = Context(default_registry())
    context.set_document(Document(network(), context.registry, parent=context))
    panel = NumberFormatsPanel(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    psnr = dict(zip(MEASURED, (30.0 + number for number in range(len(MEASURED))), strict=True))
    panel._found = BitsReply((LayerBits("conv_0", 162, psnr),), ())
    panel._show_layers()
    qtbot.waitUntil(lambda: panel.table.topLevelItemCount() == 2)
    header, row = panel.table.headerItem(), panel.table.topLevelItem(0)
    for column, name in enumerate(MEASURED, 2):
        assert header.text(column) == TITLES[name]
        assert "if only this layer has the format" in header.toolTip(column)
        assert float(row.text(column)) == psnr[name]
        for item in (header, row):
            assert Qt.AlignmentFlag(item.textAlignment(column)) & Qt.AlignmentFlag.AlignRight
    assert [header.text(column) for column in (0, 1, header.columnCount() - 1)] == ["Layer", "Format", "Reason"]
    assert not header.toolTip(header.columnCount() - 1)


def test_rows_that_are_no_longer_shown_are_deleted(qtbot):
    """Piece by piece, also those of a document that was closed meanwhile."""
    context = Context(default_registry())
    context.set_document(Document(network(), context.registry, parent=context))
    panel = NumberFormatsPanel(context)
    context.setParent(panel)
    qtbot.addWidget(panel)
    rows = [panel.table.topLevelItem(row) for row in range(panel.table.topLevelItemCount())]
    assert len(rows) == 2
    panel._show_layers()
    rows += [panel.table.topLevelItem(row) for row in range(panel.table.topLevelItemCount())]
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert panel.table.topLevelItemCount() == 0
    qtbot.waitUntil(lambda: not any(map(isValid, rows)))
    assert panel._gone == []
    assert not panel._filling.isActive()


def test_a_chip_dropped_on_a_layer_that_is_not_selected_is_for_it_alone(qtbot):
    """And one that is dropped on one of the selected layers for all of them, each by its path."""
    context = Context(default_registry())
    names = ("a", "b", "c")
    layers = [Layer("image", "input", params={"dims": "8x8x3"})]
    for name in names:
        layers.append(Layer(name, "convolution", inputs=(Source(layers[-1].name),), params={"features": "3"}))
    context.set_document(Document(Graph(layers), context.registry, parent=context))
    formats = number_formats_of(context)
    for selection, target, wanted in (
        ((), "b", {"b"}),
        (("a", "c"), "b", {"b"}),
        (("a", "c"), "c", {"a", "c"}),
        (("a",), "a", {"a"}),
        (names, "b", set(names)),
    ):
        context.select(selection)
        context.format_dropped.emit("float16", target)
        assert formats.formats == dict.fromkeys(wanted, "float16")
        assert context.selection == selection
        context.root.undo()
        assert formats.formats == {}


def test_a_network_without_layers_says_what_the_table_will_list(qtbot):
    context = Context(default_registry())
    document = Document(Graph(), context.registry, parent=context)
    context.set_document(document)
    panel = window_kit.shown(qtbot, NumberFormatsPanel(context), 400, 400)
    hint = panel.findChild(EmptyState, "number_formats.empty")
    assert hint.isVisible()
    assert hint.text() == "Add layers from the Layer Palette to choose their number formats here."
    for layer in network():
        document.do(lambda graph, layer=layer: add_layer(graph, layer))
    qtbot.waitUntil(panel.table.isVisible, timeout=kit.WAIT)
    assert not hint.isVisible()
    assert panel.table.topLevelItemCount() == 2


def test_what_is_compared_stays_chosen_as_long_as_it_is_offered(bench, qtbot):
    panel, document = BlamePanel(bench.context), bench.context.root
    qtbot.addWidget(panel)
    kept = document.settings.variants

    def change(*names: str) -> None:
        document.change_settings(variants=(*kept, *(Variant(name, "fp16") for name in names)))

    change("x")
    for box, usual in ((panel.a, "fp32"), (panel.b, "int8")):
        offered = [box.itemData(row) for row in range(box.count())]
        for name in offered:
            box.setCurrentIndex(box.findData(name))
            change("x", "y")
            assert box.currentData() == name
            change("x")
            assert box.currentData() == name
            change("y")
            assert box.currentData() == (name if box.findData(name) >= 0 else usual)
            assert (box.findData(name) >= 0) is (name != variant_name("x"))
            change("x")
    assert panel.a.count() == panel.b.count() == len(offered)
