"""Parts of the Channel Inspector with values that no engine has to compute."""

from __future__ import annotations

import csv
import gc
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from PIL import Image
from pseudo_kit import Pseudo
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QPushButton, QWidgetItem
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.receptive_field import ReceptiveField
from app.ui.engine.result import AnalysisResult, Phase
from app.ui.inspector import channel_grid
from app.ui.inspector import tiles as tiles_module
from app.ui.inspector.animation import save_animation
from app.ui.inspector.channel_grid import GAP, MARGIN, ChannelGrid
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.inspector.channel_statistics import BINS, NAMED, TensorStatistics, channel_statistics
from app.ui.inspector.color_bar import LINE, ColorBar
from app.ui.inspector.enlarged import EnlargedPage
from app.ui.inspector.export import statistics as table_of
from app.ui.inspector.histogram_strip import HistogramStrip
from app.ui.inspector.input_pane import InputPane
from app.ui.inspector.look import Look, pixels
from app.ui.inspector.order import Order, order_of
from app.ui.inspector.pages import by_filter, page_of
from app.ui.inspector.subject import Kind
from app.ui.inspector.subject_bar import SubjectBar
from app.ui.inspector.tiles import Tiles
from app.ui.widgets import theme
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.overlays import BoxOverlay, CrossOverlay
from app.ui.widgets.render import picture_pixels, to_image
from designer import texts
from designer.graph.commands import rename_layer, set_params
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui


@pytest.fixture
def panel(qtbot: QtBot) -> ChannelInspectorPanel:
    """On the hidden convolution of a network that does not run."""
    context = Context(default_registry())
    context.set_document(Document(kit.small_network(8), context.registry))
    made = ChannelInspectorPanel(context)
    context.setParent(made)
    qtbot.addWidget(made)
    made.show()
    made.inspect("conv_h")
    return made


def show(panel: ChannelInspectorPanel, value: np.ndarray) -> None:
    panel.subject.value = value
    panel.subject.changed.emit()


def test_other_numbers_of_channels_are_in_the_chosen_order(panel: ChannelInspectorPanel) -> None:
    panel.subjects.order.setCurrentIndex(list(Order).index(Order.ENERGY))
    rng = np.random.default_rng(0)
    for count in (8, 16, 4):
        value = rng.standard_normal((1, count, 6, 5)).astype(np.float32)
        show(panel, value)
        assert list(panel.grid.order) == order_of(value[0], Order.ENERGY)


def test_every_item_of_a_batch_is_in_the_chosen_order(panel: ChannelInspectorPanel) -> None:
    panel.subjects.order.setCurrentIndex(list(Order).index(Order.ENERGY))
    batch = np.random.default_rng(0).standard_normal((2, 8, 6, 5)).astype(np.float32)
    orders = [order_of(item, Order.ENERGY) for item in batch]
    assert orders[0] != orders[1]
    show(panel, batch)
    for item in (1, 0, 1):
        panel.subjects.item.setValue(item)
        assert list(panel.grid.order) == orders[item]
    show(panel, batch[:1].copy())  # the item that was shown is gone
    assert list(panel.grid.order) == orders[0]
    show(panel, batch[1:].copy())  # an edit or another frame: tiles do not jump
    assert list(panel.grid.order) == orders[0]


@pytest.mark.parametrize("width", [600, 720, 800, 1000, 1200])
def test_the_text_about_a_pixel_is_whole(panel: ChannelInspectorPanel, width: int) -> None:
    values = -np.abs(np.random.default_rng(0).standard_normal((1, 128, 200, 250))).astype(np.float32) * 1.2345e-3
    values[:, 100, :40] = 0
    show(panel, values)
    panel.resize(width, 500)
    panel.probe._set_hover((100, 210, 120))
    labels = (panel.probe.status, panel.probe.details)
    for _ in range(2):  # a layout that changes is arranged again
        QApplication.processEvents()
    assert panel.width() == width
    texts = [label.text() for label in labels if label.isVisible()]
    assert [part for part in ("channel 100", "-0.00", "mean", "zeros 20") if part not in "   ".join(texts)] == []
    for label in labels:
        assert label.fontMetrics().horizontalAdvance(label.text()) <= label.width() or not label.isVisible()
    assert panel.legend.width() == panel.legend.sizeHint().width()


def test_no_object_of_a_moved_text_stays_in_python(panel: ChannelInspectorPanel) -> None:
    """Qt deletes the item of a widget that moves in a grid. Python would take a new widget at the same address for that item."""
    for width in (400, 1200, 400):
        panel.resize(width, 500)
        QApplication.processEvents()
    column = panel.layout()
    assert column is not None
    assert not [each for each in gc.get_referents(column) if isinstance(each, QWidgetItem)]


def test_longer_texts_of_another_language_wrap(qtbot: QtBot) -> None:
    before = texts.take(Pseudo())
    try:
        bar = SubjectBar()
    finally:
        texts.take(before)
    qtbot.addWidget(bar)
    bar.show_tensors([("weight", "weight  64 x 64 x 3 x 3")], "weight")
    bar.show_items(3, 0)
    assert bar.minimumSizeHint().width() <= LINE


def test_a_range_that_was_set_stays_with_the_weights_of_a_renamed_layer(panel: ChannelInspectorPanel) -> None:
    panel.look_at(Kind.WEIGHTS)
    panel.subject.tensor = "weight"
    weights = np.random.default_rng(0).standard_normal((8, 3, 5, 5)).astype(np.float32)
    show(panel, weights)
    panel.bar.set_look(3.0, 0.5)
    panel.bar.look_touched.emit()
    document = panel._context.document
    assert document.do(lambda g: rename_layer(g, "conv_h", "first"))
    assert panel.subject.title == "first weight"
    show(panel, weights + 1)
    assert (panel.bar.look.gain, panel.bar.look.shift) == (3.0, 0.5)


def test_every_output_of_a_renamed_layer_stays_inspected(panel: ChannelInspectorPanel) -> None:
    """Also those other than the first, and those of layers in templates: they are asked for under their names of now."""
    context = panel._context
    inside = (
        Layer("x", "template_input"),
        Layer("moments", "statistics", inputs=(Source("x"),)),
        Layer("y", "template_output", inputs=(Source("moments"),)),
    )
    layers = [
        Layer("input_0", "input", params={"dims": "8x8x3"}),
        Layer("stat", "statistics", inputs=(Source("input_0"),)),
        Layer("block", "template", inputs=(Source("stat"),), params={"template": "t"}),
        Layer("output_0", "output", inputs=(Source("block"),)),
    ]
    document = Document(Graph(layers, templates=(Template("t", inside),)), context.registry)
    context.set_document(document)
    reported: list[str] = []
    context.inspected.connect(reported.append)
    for layer, rest in (("input_0", ""), ("stat", ""), ("stat", ":figures"), ("block", ".moments:figures")):
        panel.inspect(f"{layer}{rest}")
        for name, edit in (
            ("renamed", lambda layer=layer: document.do(lambda g: rename_layer(g, layer, "renamed"))),
            (layer, document.undo),
        ):
            reported.clear()
            assert edit()
            now = f"{name}{rest}"
            assert (panel.source, panel.subject.title, panel.subjects.layer.currentText()) == (now, now, now)
            assert analysis_of(context).capture == now
            assert reported == [now.partition(":")[0]]


def test_kernels_of_a_transposed_convolution_are_shown_also_while_its_groups_are_wrong(
    panel: ChannelInspectorPanel,
) -> None:
    document = panel._context.document
    layer = document.graph["conv_h"]
    wrong = replace(layer, type="transposed_convolution", params={**layer.params, "groups": "2"})
    assert document.do(lambda g: Edit("Another type", {"conv_h": (layer, wrong)}))
    panel.look_at(Kind.WEIGHTS)
    panel.subject.tensor = "weight"
    kernel = np.arange(3 * 8, dtype=np.float32).reshape(3, 8, 1, 1).repeat(3, 2).repeat(3, 3)
    for groups, channels in (("2", 3), ("x", 3), ("3", 24), ("1", 8)):
        assert document.do(lambda g, text=groups: set_params(g, {"conv_h": {"groups": text}})) or groups == "2"
        show(panel, kernel.copy())
        assert panel.grid.channels == channels


def test_kernels_of_a_transposed_convolution_inside_of_a_template_are_by_filter(panel: ChannelInspectorPanel) -> None:
    """Also in a template inside of a template; a layer of the same name outside does not count."""

    def part(name: str, inner: Layer) -> Template:
        layers = [Layer("x", "template_input"), replace(inner, inputs=(Source("x"),))]
        return Template(name, (*layers, Layer("y", "template_output", inputs=(Source(inner.name),))))

    up = Layer("conv", "transposed_convolution", params={"features": "4", "groups": "3"})
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "6x5x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "8"}),
            Layer("one", "template", inputs=(Source("conv"),), params={"template": "inner"}),
            Layer("two", "template", inputs=(Source("one"),), params={"template": "outer"}),
            Layer("out", "output", inputs=(Source("two"),)),
        ],
        templates=[part("inner", up), part("outer", Layer("nested", "template", params={"template": "inner"}))],
    )
    context = panel._context
    context.set_document(Document(graph, context.registry, parent=context))
    panel.look_at(Kind.WEIGHTS)
    kernel = np.random.default_rng(0).random((3, 8, 2, 2)).astype(np.float32)
    for source, tensor, filters in (
        ("conv", "weight", kernel),
        ("one", "conv.weight", by_filter(kernel, 3)),
        ("two", "nested.conv.weight", by_filter(kernel, 3)),
        ("one", "gone.weight", kernel),
    ):
        panel.inspect(source)
        panel.subject.tensor = tensor
        show(panel, kernel.copy())
        assert panel.page is not None
        assert np.array_equal(panel.page.values, page_of(filters, Kind.WEIGHTS).values), (source, tensor)


def test_the_input_is_the_item_of_the_batch_that_is_inspected(qtbot: QtBot) -> None:
    analysis = analysis_of(Context(default_registry()))
    pane = InputPane(ReceptiveField(analysis, analysis))
    qtbot.addWidget(pane)
    batch = np.zeros((2, 1, 4, 6), np.float32)
    batch[1] = 1
    for item, light in ((0, 0), (1, 255), (0, 0)):
        pane.show_input("input_0", batch, item)
        assert QColor(pane.view.image.pixel(2, 1)).red() == light


def test_values_that_are_not_finite_are_named_so(qtbot: QtBot) -> None:
    view = FeatureView("features", "Values")
    qtbot.addWidget(view)
    view.resize(600, 200)
    for values, top in (
        ((1.0, np.nan, 3.0, np.inf), [3, 2, 0, 1]),
        ((np.nan,) * 3, [0, 1, 2]),
        ((-np.inf, -2.0), [1, 0]),
        ((np.inf,), [0]),
        ((0.25, 0.75), [1, 0]),
    ):
        view.show_values(np.array([values], np.float32))
        assert view.top() == top
        np.testing.assert_array_equal(view._values, np.array(values, np.float32))
        assert np.isfinite(view._drawn).all()
        assert np.abs(view._drawn).max() <= 3
        finite = [value for value in values if np.isfinite(value)] or [0.0]
        assert view.range == (min(finite), max(finite))
        assert not view.grab().isNull()


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ((1, 1, 0.25, 0.5), "saturated"), ((1, 1, 0.25, 0.5, 0.75), ""), ((-1, -1, 0.25, 0.5), "saturated"), ((0, 0, 0.25, 0.5), ""),
        ((1, 0.5), ""), ((1, 1, 1, 0.5), "saturated"), ((1, 1, 1), "dead"), ((1,), ""), ((np.nan, 1, 1, 0.5), "not finite"),
    ],
)  # fmt: skip
def test_a_channel_is_saturated_from_half_of_its_values_on(values: tuple[float, ...], flag: str) -> None:
    """Of two at least; zeros are what ReLU produces."""
    found = channel_statistics(np.array([values], np.float32))
    finite = [value for value in values if np.isfinite(value)]
    assert (found.flag, found.broken, found.counts.sum()) == (flag, len(values) - len(finite), len(finite))
    assert (found.low, found.high, found.zeros) == (min(finite), max(finite), finite.count(0) / len(finite))
    assert (found.mean, found.deviation) == (pytest.approx(np.mean(finite)), pytest.approx(np.std(finite)))


def test_a_range_beyond_what_can_be_computed_with_is_limited(qtbot: QtBot) -> None:
    bar = ColorBar()
    qtbot.addWidget(bar)
    looks: list[Look] = []
    bar.look_changed.connect(looks.append)
    for gain, shown in ((1e20, 1e12), (1e-20, 1e-9), (1e11, 1e11), (2e-9, 2e-9), (3.0, 3.0)):
        bar.set_look(gain, 0.5)
        assert looks[-1].gain == pytest.approx(shown)
        bar.set_look(gain)  # the shift stays
        assert (looks[-1].gain, looks[-1].shift) == (pytest.approx(shown), 0.5)


# --- the grid ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def grid(qtbot: QtBot) -> ChannelGrid:
    """30 channels of 20 x 10 pixels in tiles of 100 x 50."""
    made = ChannelGrid("grid", "Channels")
    qtbot.addWidget(made)
    made.resize(400, 300)
    made.set_side(100)
    made.show_data(np.zeros((30, 10, 20), np.float32))
    made.show()
    return made


def test_keys_move_through_the_grid_and_scroll(grid: ChannelGrid, qtbot: QtBot) -> None:
    across = grid.tile_rect(1).left() - grid.tile_rect(0).left()
    columns = next(c for c in range(30) if grid.tile_rect(c).top() > grid.tile_rect(0).top())
    assert across == 100 + GAP
    assert (
        grid.tile_rect(columns - 1).right()
        <= grid.viewport().width()
        < grid.tile_rect(0).left() + (columns + 1) * across
    )
    for key, current in (
        (Qt.Key.Key_Right, 1),
        (Qt.Key.Key_Down, 1 + columns),
        (Qt.Key.Key_Left, columns),
        (Qt.Key.Key_Up, 0),
        (Qt.Key.Key_Up, 0),
        (Qt.Key.Key_Down, columns),
        (Qt.Key.Key_Down, 2 * columns),
        (Qt.Key.Key_Down, 3 * columns),  # which is seen in part before
        (Qt.Key.Key_End, 29),
        (Qt.Key.Key_Right, 29),
        (Qt.Key.Key_Home, 0),
    ):
        qtbot.keyClick(grid, key)
        assert grid.current == current
        whole = grid.tile_rect(current).adjusted(0, 0, 0, grid.fontMetrics().height())
        assert grid.viewport().rect().contains(whole.toAlignedRect())
        assert current in grid.visible()
    bar = grid.verticalScrollBar()
    bar.setValue(30)
    grid.set_current(2 * columns)  # whole in sight: nothing moves
    assert bar.value() == 30
    grid.set_current(0)
    activated: list[int] = []
    grid.activated.connect(activated.append)
    qtbot.keyClick(grid, Qt.Key.Key_Return)
    assert activated == [0]
    assert [grid.neighbour(0, step) for step in (-1, 1)] == [29, 1]


def test_keys_and_clicks_do_nothing_on_a_grid_without_channels(grid: ChannelGrid, qtbot: QtBot) -> None:
    grid.show_data(None)
    heard: list[object] = []
    for signal in (grid.activated, grid.pinned, grid.side_changed):
        signal.connect(heard.append)
    probed: list[object] = []
    grid.probed.connect(probed.append)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Up, Qt.Key.Key_A):
        qtbot.keyClick(grid, key)
    qtbot.mouseMove(grid.viewport(), QPoint(30, 30))
    place, plain = QPointF(30, 30), Qt.KeyboardModifier.NoModifier
    for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton):
        released = QMouseEvent(QEvent.Type.MouseButtonRelease, place, place, button, Qt.MouseButton.NoButton, plain)
        QApplication.sendEvent(grid.viewport(), released)
    wheel = QWheelEvent(
        place, place, QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, Qt.KeyboardModifier.ControlModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(grid.viewport(), wheel)
    assert heard == []
    assert set(probed) <= {None}
    assert (grid.current, grid.channels, grid.on_sheet, list(grid.visible())) == (0, 0, 0, [])


def test_a_grid_without_channels_does_not_scroll(grid: ChannelGrid) -> None:
    assert grid.verticalScrollBar().maximum() > 0
    grid.show_data(None)
    assert grid.verticalScrollBar().maximum() == 0


def turn(grid: ChannelGrid, angle: int) -> None:
    """One step of the wheel over the middle of the grid."""
    place = QPointF(grid.viewport().rect().center())
    event = QWheelEvent(
        place,
        QPointF(grid.viewport().mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, angle),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(grid.viewport(), event)


@pytest.mark.parametrize("size", [(400, 300), (260, 170), (900, 200)])
def test_the_wheel_reaches_every_channel(grid: ChannelGrid, size: tuple[int, int]) -> None:
    grid.resize(*size)
    reached = set(grid.visible())
    for channel in grid.visible():
        assert grid.channel_at(grid.tile_rect(channel).center()) == channel
    for _ in range(100):
        turn(grid, -120)
        reached |= set(grid.visible())
    assert reached == set(range(30))
    last = grid.tile_rect(29).adjusted(0, 0, 0, grid.fontMetrics().height())
    assert grid.viewport().rect().contains(last.toAlignedRect())
    assert grid.viewport().height() - last.bottom() < 3 * GAP  # nothing empty can be scrolled to
    assert grid.current == 0
    for _ in range(100):
        turn(grid, 120)
    assert grid.verticalScrollBar().value() == 0
    assert grid.tile_rect(0).top() > 0


@pytest.mark.parametrize("side", [40, 100, 130])
def test_a_row_has_as_many_tiles_as_fit_and_all_that_is_in_sight_is_known(grid: ChannelGrid, side: int) -> None:
    """For every width around those at which another tile fits, at the top, in the middle and at the end."""
    grid.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
    QApplication.processEvents()
    grid.set_side(side)
    frame = grid.width() - grid.viewport().width()
    bar = grid.verticalScrollBar()
    for count in (1, 2, 3, 5):
        exact = 2 * MARGIN + count * side + (count - 1) * GAP
        if exact + frame <= grid.minimumWidth():
            continue
        for more, columns in ((-1, count - 1), (0, count), (1, count), (side + GAP - 1, count)):
            grid.resize(exact + frame + more, 300)
            tops = [grid.tile_rect(channel).top() for channel in range(30)]
            assert tops.count(tops[0]) == max(1, columns), (count, more)
            assert columns < 1 or max(grid.tile_rect(c).right() for c in range(30)) <= grid.viewport().width() - MARGIN
            for place in (0, bar.maximum() // 2, bar.maximum()):
                bar.setValue(place)
                view, caption = QRectF(grid.viewport().rect()), grid._caption()
                seen = {c for c in range(30) if grid.tile_rect(c).adjusted(0, 0, 0, caption).intersects(view)}
                assert seen <= set(grid.visible()), (count, more, place)
                assert len(grid.visible()) <= len(seen) + 2 * max(1, columns)
            lowest = max(grid.tile_rect(c).bottom() for c in range(30)) + caption
            assert lowest <= view.bottom(), (count, more)
            assert not bar.maximum() or lowest >= view.bottom() - MARGIN - 2, (count, more)


def test_every_pixel_of_a_tile_is_found(grid: ChannelGrid) -> None:
    for channel in (0, 2, 4):
        rect = grid.tile_rect(channel)
        assert grid._pixel_at(rect.topLeft() + QPointF(0.5, 0.5)) == (channel, 0, 0)
        assert grid._pixel_at(rect.bottomRight() - QPointF(0.5, 0.5)) == (channel, 19, 9)
        assert grid._pixel_at(rect.topLeft() + QPointF(5 * 7.5, 5 * 3.5)) == (channel, 7, 3)
        assert grid.channel_at(rect.bottomLeft() + QPointF(3, 3)) == channel  # its caption
        assert grid._pixel_at(rect.bottomLeft() + QPointF(3, 3)) is None
        assert grid.channel_at(rect.topRight() + QPointF(GAP / 2, 3)) is None
    assert grid.channel_at(QPointF(2, 2)) is None


def test_another_size_of_tiles_keeps_what_is_at_the_top(grid: ChannelGrid) -> None:
    bar = grid.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    top = grid.visible()[0]
    grid.set_side(130)
    assert top in grid.visible()[:3]
    assert grid.tile_rect(top).bottom() > 0


# --- parts ------------------------------------------------------------------------------------------------------------


def test_the_part_of_a_gradient_that_is_not_zero_has_room_around_it() -> None:
    gradient = np.zeros((1, 2, 30, 40), np.float32)
    gradient[0, 1, 20, 10] = 1
    page = page_of(gradient, Kind.GRADIENT, cut=True)
    assert (page.offset, page.size) == ((4, 14), (40, 30))
    np.testing.assert_array_equal(page.data, gradient[0, :, 14:27, 4:17])
    gradient[0, 0, 0, 39] = gradient[0, 0, 20, 5] = 1  # at the edge of the image, and larger
    page = page_of(gradient, Kind.GRADIENT, cut=True)
    assert page.offset == (4, 0)
    np.testing.assert_array_equal(page.data, gradient[0, :, :22, 4:])


def test_many_channels_with_a_flag_are_counted_and_the_first_are_named(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = TensorStatistics()
    data = np.random.default_rng(0).standard_normal((20, 4, 4)).astype(np.float32)
    data[3:17] = 1
    data[1, 0, 0] = np.nan
    with qtbot.waitSignal(statistics.changed):
        statistics.show_data(data)
    qtbot.waitUntil(lambda: statistics.complete)
    assert statistics.flagged() == {"dead": 14, "not finite": 1}
    assert statistics.flagged_texts() == ["14 dead (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 …)", "1 not finite (1)"]
    assert (statistics.flag(2), statistics.flag(3)) == ("", "dead")
    data[3 + NAMED :] = data[0]
    monkeypatch.setattr("app.ui.inspector.channel_statistics.SLICE", 0.0)  # a channel at a time
    known = []
    statistics.changed.connect(
        lambda: known.append(sum(statistics.range(channel) is not None for channel in range(20)))
    )
    statistics.show_data(data)
    qtbot.waitUntil(lambda: statistics.complete)
    assert known == list(range(1, 21))
    assert statistics.flagged_texts()[0] == f"{NAMED} dead (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)"
    statistics.show_data(data[:2])
    assert not statistics.complete
    assert statistics.range(0) is None


def test_the_table_of_statistics_has_every_column() -> None:
    plane = np.array([[[0.0, 0.0, 3.0, np.inf]], [[-2.0, 2.0, 4.0, 8.0]]], np.float32)
    rows = list(csv.DictReader(table_of(plane).splitlines()))
    numbers = ("channel", "minimum", "maximum", "mean", "zeros", "not_finite")
    assert [[float(row[name]) for name in numbers] for row in rows] == [
        [0, 0, 3, 1, pytest.approx(2 / 3), 1],
        [1, -2, 8, 3, 0, 0],
    ]
    assert [float(row["deviation"]) for row in rows] == pytest.approx([2**0.5, 13**0.5])
    assert [row["flag"] for row in rows] == ["not finite", ""]


def test_the_histogram_is_drawn_from_the_lowest_to_the_highest_value(qtbot: QtBot) -> None:
    strip = HistogramStrip()
    qtbot.addWidget(strip)
    values = np.repeat(np.array([-1.0, 3.0], np.float32), (1, 16))
    strip.show_statistics(channel_statistics(values[None]))
    image = strip.grab().toImage()
    accent = theme.color("accent")
    bars = [[x for x in range(image.width()) if image.pixelColor(x, y) == accent] for y in (35, 30, 5)]
    last = 2 * BINS - 1
    assert bars == [[1, 2, last, last + 1], [1, 2, last, last + 1], [last, last + 1]]  # heights by the square root
    assert image.pixelColor(1 + 2 * BINS // 4, 10) == theme.color("outline")  # zero
    assert "-1" in strip.toolTip()
    strip.show_statistics(None)
    assert strip.toolTip() == ""


def test_the_range_of_the_shift_is_a_round_number(qtbot: QtBot) -> None:
    bar = ColorBar()
    qtbot.addWidget(bar)
    for extent, most in ((0.7, 1), (1.5, 2), (2, 2), (3, 5), (700, 1000), (0.0, 1000), (np.inf, 1000)):
        bar.show_extent(extent)
        bar.shift.slider.setValue(bar.shift.slider.maximum())
        assert bar.look.shift == pytest.approx(most)


@pytest.mark.parametrize("ending", [".gif", ".webp", ".png"])
def test_every_frame_of_an_animation_is_as_it_was(tmp_path: Path, ending: str) -> None:
    """Its pixels, its time, how often it is played, and where it came from; smaller frames are at the top left."""
    rng = np.random.default_rng(4)
    sizes = ((5, 4), (3, 6), (5, 4))  # width x height: neither frame is as large as all of them
    arrays = [rng.integers(0, 2, (height, width, 3)).astype(np.uint8) * 255 for width, height in sizes]
    frames = [
        QImage(array.tobytes(), array.shape[1], array.shape[0], array.shape[1] * 3, QImage.Format.Format_RGB888)
        for array in arrays
    ]
    path = tmp_path / f"a{ending}"
    save_animation(path, [frame.convertToFormat(QImage.Format.Format_RGB32) for frame in frames], 120, "from here")
    with Image.open(path) as made:
        assert (made.n_frames, made.size, made.info["loop"]) == (3, (5, 6), 0)
        if ending != ".webp":
            comment = made.info["comment" if ending == ".gif" else "Comment"]
            assert comment in ("from here", b"from here")
        for number, array in enumerate(arrays):
            made.seek(number)
            made.load()
            whole = np.zeros((6, 5, 3), np.uint8)
            whole[: array.shape[0], : array.shape[1]] = array
            assert np.array_equal(np.asarray(made.convert("RGB")), whole), number
            assert made.info["duration"] == 120


def test_a_coarse_channel_is_drawn_at_the_size_of_the_full_one(qtbot: QtBot) -> None:
    page = EnlargedPage()
    qtbot.addWidget(page)
    full = np.arange(48, dtype=np.float32).reshape(6, 8) / 48
    page.show_plane(full, Look(), None, False)
    page.show_plane(full[::2, ::2], Look(), None, True)
    expected = pixels(full[::2, ::2].repeat(2, 0).repeat(2, 1), Look())
    assert page.view.image == to_image(expected)
    page.show_plane(full[:3], Look(), None, False)
    assert page.view.image == to_image(pixels(full[:3], Look()))
    page.show_plane(full[:3] * 2, Look(), None, True)  # of the same size
    assert page.view.image == to_image(pixels(full[:3] * 2, Look()))
    other = EnlargedPage()
    qtbot.addWidget(other)
    other.show_plane(full[::2, ::2], Look(), None, True)  # before any full one
    assert other.view.image == to_image(pixels(full[::2, ::2], Look()))
    other.show_plane(full, Look(), None, False)
    other.show_plane(full[::3, ::4], Look(), None, True)
    assert other.view.image == to_image(pixels(full[::3, ::4].repeat(3, 0).repeat(4, 1), Look()))


def test_frames_of_an_animation_are_in_its_upper_left_corner(tmp_path: Path) -> None:
    frames = [QImage(width, height, QImage.Format.Format_RGB32) for width, height in ((4, 2), (2, 3))]
    for frame, color in zip(frames, ("#ff0000", "#00ff00"), strict=True):
        frame.fill(QColor(color))
    save_animation(tmp_path / "a.png", frames, 125, "origin")
    with Image.open(tmp_path / "a.png") as made:
        assert (made.size, made.n_frames, made.info["loop"], made.info["duration"]) == ((4, 3), 2, 0, 125)
        for number, (width, height) in enumerate(((4, 2), (2, 3))):
            made.seek(number)
            shown = np.asarray(made.convert("RGB"))
            assert (shown[:height, :width, number] == 255).all()
            assert shown.astype(int).sum() == 255 * width * height


def test_marks_on_the_input_are_the_field_the_cursor_and_the_pin(qtbot: QtBot) -> None:
    analysis = analysis_of(Context(default_registry()))
    field = ReceptiveField(analysis, analysis)
    pane = InputPane(field)
    qtbot.addWidget(pane)
    field.box = (1, 2, 5, 6)
    for pin, hover, marks in (
        ((3, 4), (3, 4), [CrossOverlay(3, 4)]),
        ((3, 4), (1, 1), [CrossOverlay(1, 1, role="muted"), CrossOverlay(3, 4)]),
        (None, (1, 1), [CrossOverlay(1, 1, role="muted")]),
        (None, None, []),
    ):
        pane.mark(pin, hover)
        assert list(pane.view.overlays) == [BoxOverlay(1, 2, 5, 6), *marks]
    for box, words in ((None, "depends on all of it"), ((0, 0, 2, 2), "2 x 2"), (None, "")):
        field.box, field.text = box, words
        field.changed.emit()
        assert pane.words.text() == words
        assert list(pane.view.overlays) == ([BoxOverlay(*box)] if box is not None else [])


def test_a_pixel_of_the_input_is_reported_with_the_size_of_the_image(qtbot: QtBot) -> None:
    """The one under the cursor, the one that is clicked, and none outside of the image or without one."""
    analysis = analysis_of(Context(default_registry()))
    pane = InputPane(ReceptiveField(analysis, analysis))
    qtbot.addWidget(pane)
    reported: list[object] = []
    pane.probed.connect(lambda place: reported.append(("probed", place)))
    pane.pinned.connect(lambda place: reported.append(("pinned", place)))

    def report() -> list[object]:
        reported.clear()
        for place in ((3, 4), None):
            pane.view.probed.emit(place)
            pane.view.clicked.emit()
            pane.view.right_clicked.emit(place)
        return list(reported)

    nowhere = [("probed", None), ("pinned", None), ("pinned", None)]
    assert report() == nowhere * 2
    array = np.random.default_rng(0).random((2, 3, 6, 5)).astype(np.float32)
    pane.show_input("image", array)
    there = ((3, 4), (5, 6))
    assert report() == [("probed", there), ("pinned", there), ("pinned", there), *nowhere]
    for shown, item in ((array, 0), (array, 1), (array[:, :, :4], 1), (array[:, :, :4], 0)):
        pane.show_input("other", shown, item)
        assert pane.title.text() == "other"
        assert pane.view.image == to_image(picture_pixels(shown[item]))
    pane.show_input("other", None)
    assert (pane.view.image, pane.size_of_picture) == (None, None)
    assert report() == nowhere * 2


def test_why_nothing_is_shown(panel: ChannelInspectorPanel) -> None:
    subject, analysis = panel.subject, panel._analysis
    launch = panel.findChild(QPushButton, "channel_inspector.empty.action")
    for phase, message, words in (
        (Phase.IDLE, "", "Launch Analysis to see"),
        (Phase.WEIGHTS, "", "Launch Analysis to see"),
        (Phase.FAILED, "It failed.", "It failed."),
        (Phase.BLOCKED, "", "Waiting for 'conv_h'"),
        (Phase.READY, "an old message", "Waiting for 'conv_h'"),
        (Phase.STOPPED, "It was stopped.", "It was stopped."),
        (Phase.RUNNING, "", "Waiting for 'conv_h'"),
    ):
        analysis.phase, analysis.message = phase, message
        assert subject.reason().startswith(words)
        analysis.phase_changed.emit(phase)
        assert panel._empty.text() == subject.reason()
        assert launch.isVisible() is (phase not in (Phase.READY, Phase.RUNNING))
    subject.message = "The engine says why."
    assert subject.reason() == "The engine says why."
    analysis.phase = Phase.BLOCKED
    analysis.message = "The problem of the network."
    assert subject.reason() == "The problem of the network."
    subject.source = ""
    assert subject.reason().startswith("Double-click a layer")
    for phase in (
        Phase.FAILED,
        Phase.WEIGHTS,
        Phase.STOPPED,
    ):  # these are not of a layer: they are said without one, too
        analysis.phase = phase
        assert subject.reason() == "The problem of the network."
        analysis.message = ""
        assert subject.reason().startswith("Launch Analysis to see")
        analysis.message = "The problem of the network."


def test_the_oldest_recorded_runs_are_dropped_first(
    panel: ChannelInspectorPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, button = panel.exporter, panel.subjects.export
    button._actions["record"].setChecked(True)
    for number in range(3):
        show(panel, np.full((1, 8, 4, 4), number, np.float32))
    assert len(exporter._frames) == 3
    assert button._actions["runs"].isEnabled()
    assert "3" in button._actions["runs"].text()
    size = exporter._frames[0].sizeInBytes()
    monkeypatch.setattr("app.ui.inspector.export.RECORDED", 2 * size)
    kept = list(exporter._frames)[-1]
    show(panel, np.full((1, 8, 4, 4), 9, np.float32))
    assert len(exporter._frames) == 2
    assert exporter._frames[0] is kept
    monkeypatch.setattr("app.ui.inspector.export.WIDEST", 100)
    show(panel, np.full((1, 8, 4, 4), 5, np.float32))
    assert exporter._frames[-1].width() == 100
    kept = exporter._frames[-1]
    panel.enlarge(3)
    assert panel.shown.channel == 3
    panel.hide()
    assert panel.shown.channel == 3, "it is shown alone again when the panel is seen again"
    show(panel, np.full((1, 8, 4, 4), 6, np.float32))
    exporter.record()
    assert exporter._frames[-1] is kept, "nothing is recorded that nobody sees"


def test_layers_are_listed_in_running_order_with_their_other_outputs(qtbot: QtBot) -> None:
    layers = [
        Layer("output_0", "output", inputs=(Source("stat"),)),
        Layer("stat", "statistics", inputs=(Source("input_0"),)),
        Layer("input_0", "input", params={"dims": "8x8x3"}),
    ]
    alike = Layer("alike", "statistics", inputs=(Source("stat"),))
    bar = SubjectBar()
    qtbot.addWidget(bar)
    bar.show_document(Document(Graph(layers), default_registry()))
    names = ["input_0", "stat", "stat:figures", "output_0"]
    assert [bar.layer.itemText(number) for number in range(bar.layer.count())] == names
    for shown, row in (("stat:figures", 2), ("group_1.conv", -1), ("stat", 1), ("", -1)):
        bar.show_source(shown)
        assert (bar.layer.currentIndex(), bar.layer.currentText()) == (row, shown)
    bar.show_source("stat")
    bar.show_document(Document(Graph([alike, *layers[1:]]), default_registry()))
    names = ["input_0", "stat", "stat:figures", "alike", "alike:figures"]
    assert [bar.layer.itemText(number) for number in range(bar.layer.count())] == names
    bar.show_document(Document(Graph(layers[1:]), default_registry()))
    assert (bar.layer.count(), bar.layer.currentText()) == (3, "stat")
    renamed = [Layer("moments", "statistics", inputs=(Source("input_0"),)), layers[2]]
    bar.show_document(Document(Graph(renamed), default_registry()))
    names = ["input_0", "moments", "moments:figures"]
    assert [bar.layer.itemText(number) for number in range(bar.layer.count())] == names, "as many as before"
    assert bar.layer.currentText() == "", "the layer of that name is gone"


def test_another_layer_or_kind_is_shown_without_the_element_of_the_one_before(panel: ChannelInspectorPanel) -> None:
    subject = panel.subject
    subject.choose("conv_h", Kind.GRADIENT)
    for source, kind in (("conv_h:b", Kind.GRADIENT), ("conv_h", Kind.OUTPUT)):
        subject.choose("conv_h", Kind.GRADIENT)
        subject.choose_at((1, 2, 3))
        assert subject.title == "gradient of conv_h  channel 1  x 3  y 2"
        subject.choose(source, kind)
        subject.choose(source, Kind.GRADIENT)
        assert subject.title == f"gradient of the sum of {source}"


def test_a_range_that_was_set_is_that_of_its_tensor_until_another_image_comes(panel: ChannelInspectorPanel) -> None:
    value = np.random.default_rng(0).standard_normal((1, 8, 6, 5)).astype(np.float32)

    def look_of(layer: str) -> tuple[float, float]:
        panel.inspect(layer)
        show(panel, value.copy())
        return panel.bar.look.gain, panel.bar.look.shift

    fitted = look_of("conv_h")
    assert fitted == (pytest.approx(1 / np.percentile(np.abs(value), 99.5), rel=1e-6), 0)
    panel.bar.set_look(3.0, 0.5)
    panel.bar.look_touched.emit()
    assert look_of("conv_0") == fitted
    assert look_of("conv_h") == (3.0, 0.5)
    panel.bar.lock.setChecked(True)
    assert look_of("conv_0") == (3.0, 0.5)
    panel.ranges.other_picture()
    show(panel, value.copy())  # another image does not count while the range is locked
    panel.bar.lock.setChecked(False)
    assert look_of("conv_h") == (3.0, 0.5)
    assert look_of("conv_0") == fitted
    assert look_of("conv_h") == (3.0, 0.5)
    show(panel, value + 1)
    assert panel.bar.look.gain == 3.0
    panel.ranges.other_picture()
    show(panel, value.copy())
    assert (panel.bar.look.gain, panel.bar.look.shift) == fitted
    panel.ranges.forget()
    assert (panel.bar.look.gain, panel.bar.look.shift) == (1, 0)


def test_a_smaller_batch_shows_an_item_that_it_has(panel: ChannelInspectorPanel) -> None:
    batch = np.random.default_rng(0).standard_normal((3, 2, 4, 5)).astype(np.float32)
    show(panel, batch)
    item = panel.subjects.item
    item.setValue(2)
    np.testing.assert_array_equal(panel.page.values, batch[2])
    assert (item.maximum(), item.suffix()) == (2, " of 3")
    show(panel, batch[:2])
    np.testing.assert_array_equal(panel.page.values, batch[1])
    assert (item.value(), panel.shown.item) == (1, 1)
    show(panel, batch[:1])
    assert not item.isVisible()
    np.testing.assert_array_equal(panel.page.values, batch[0])


def test_the_tensors_that_can_be_chosen_are_those_of_the_layer(qtbot: QtBot) -> None:
    bar = SubjectBar()
    qtbot.addWidget(bar)
    bar.resize(1600, 60)
    bar.show()
    for tensors, shown in (
        ([("weight", "weight  8 x 3"), ("bias", "bias  8")], "bias"),
        ([("weight", "weight  8 x 3"), ("bias", "bias  8")], "weight"),
        ([("bias", "bias  4")], "bias"),
        ([("bias", "bias  5")], "bias"),  # as many, of another shape
        ([("scale", "scale  5")], "scale"),
        ([], ""),
        ([("scale", "scale  2")], "gone"),
    ):
        bar.show_tensors(tensors, shown)
        assert [(bar.tensor.itemData(i), bar.tensor.itemText(i)) for i in range(bar.tensor.count())] == tensors
        assert bar.tensor.isVisible() is bool(tensors)
        expected = tensors[0][0] if tensors and shown == "gone" else shown
        assert (bar.tensor.currentData() or "") == expected
    more = QPushButton("more")
    bar.add_buttons(more)
    QApplication.processEvents()
    assert bar.export.x() > more.x() > bar.order.x()  # the button to export is the last one


def test_a_channel_is_removed_where_the_output_is_shown_only(panel: ChannelInspectorPanel) -> None:
    values = np.random.default_rng(0).standard_normal((8, 3, 5, 5)).astype(np.float32)
    for kind, there in ((Kind.OUTPUT, True), (Kind.WEIGHTS, False), (Kind.GRADIENT, False), (Kind.OUTPUT, True)):
        panel.look_at(kind)
        show(panel, values.copy())
        assert panel._remove.isHidden()  # of all channels none is chosen
        panel.enlarge(2)
        assert panel.shown.channel == 2
        assert panel._remove.isHidden() is not there


@pytest.mark.parametrize("shape", [(1, 8, 4, 5), (1, 6, 7), (1, 9)])
def test_the_note_is_that_of_the_latest_run(panel: ChannelInspectorPanel, shape: tuple[int, ...]) -> None:
    analysis, rng = panel._analysis, np.random.default_rng(2)
    for note in ("random weights", "", "reduced size", "random weights", ""):
        value = rng.random(shape, np.float32)
        analysis.result = AnalysisResult(captures={"conv_h": value}, note=note)
        analysis.result_changed.emit()
        assert panel.page is not None
        assert np.array_equal(panel.page.values.reshape(-1), value.reshape(-1))
        assert {panel.grid._note, panel.view.note, panel.features.note, panel.matrix._note} == {note}


@pytest.mark.parametrize("inputs", [1, 3, 4, 5, 9, 40])
def test_each_pixel_of_a_kernel_is_the_weight_that_is_read_there(inputs: int) -> None:
    kernel = np.random.default_rng(0).standard_normal((2, inputs, 3, 7)).astype(np.float32)
    page = page_of(kernel, Kind.WEIGHTS)
    assert page.filters is not None
    assert page.gaps is not None
    assert page.filters.columns == {1: 1, 3: 3, 4: 4, 5: 3, 9: 3, 40: 7}[inputs]  # up to four in one row
    count, height, width = page.data.shape
    read = set()
    for y, x in product(range(height), range(width)):
        at = page.filters.at(x, y)
        assert (at is None) == page.gaps[y, x]
        if at is not None:
            number, across, down = at
            assert [page.data[f, y, x] for f in range(count)] == [kernel[f, number, down, across] for f in range(count)]
            read.add(at)
    assert len(read) == kernel[0].size


def test_each_pixel_of_a_part_is_the_one_of_the_whole_at_its_offset() -> None:
    whole = np.zeros((1, 2, 40, 90), np.float32)
    whole[0, :, 5:9, 60:75] = np.random.default_rng(0).standard_normal((2, 4, 15))
    page = page_of(whole, Kind.GRADIENT, cut=True)
    (left, top), (height, width) = page.offset, page.data.shape[1:]
    assert np.array_equal(page.data, whole[0, :, top : top + height, left : left + width])
    assert (np.count_nonzero(page.data), page.size) == (np.count_nonzero(whole), (90, 40))


def test_the_channels_in_sight_of_a_sorted_grid_are_known(grid: ChannelGrid) -> None:
    grid.set_order([*range(29, -1, -2), *range(0, 30, 2)])
    grid.set_side(60)
    grid.resize(200, 150)
    bar = grid.verticalScrollBar()
    for place in (0, bar.maximum() // 2, bar.maximum()):
        bar.setValue(place)
        view = QRectF(grid.viewport().rect())
        seen = {channel for channel in range(30) if grid.tile_rect(channel).intersects(view)}
        assert seen
        assert seen <= set(grid.visible())


# --- tiles ------------------------------------------------------------------------------------------------------------


def test_tiles_are_made_some_at_a_time_and_the_ones_before_stay_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).standard_normal((6, 8, 10)).astype(np.float32)
    whole, made = Tiles(), Tiles()
    for tiles in (whole, made):
        tiles.show(values)
    assert whole.make(range(6))
    monkeypatch.setattr(tiles_module, "BATCH", 2 * 8 * 10)
    for count in (2, 4, 6):
        assert made.make(range(6), until=0.0) == (count == 6)
        assert made.missing(range(6)) == list(range(count, 6))
        assert [made.picture(channel) is not None for channel in range(6)] == [n < count for n in range(6)]
    assert [made.picture(channel) for channel in range(6)] == [whole.picture(channel) for channel in range(6)]
    other = Tiles()
    other.show(-values)
    other.make(range(6))
    made.show(-values)
    assert made.missing(range(6)) == list(range(6))
    assert made.picture(5) == whole.picture(5)  # the one of the values before
    made.make(range(6), until=0.0)
    assert [made.picture(n) for n in (0, 1, 2, 5)] == [
        *(other.picture(n) for n in (0, 1)),
        *(whole.picture(n) for n in (2, 5)),
    ]
    made.show(values[:, :4])
    assert made.picture(5) is None  # that of another shape would be wrong
    made.show(None)
    assert made.make(range(6))
    assert len(made) == 0


def test_tiles_that_were_seen_long_ago_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles_module, "KEPT", 3)
    tiles = Tiles()
    tiles.show(np.zeros((12, 4, 4), np.float32))
    for first in range(0, 12, 2):
        tiles.make(range(first, first + 2))
    assert len(tiles) == 5
    assert tiles.missing(range(12)) == list(range(7))

    tiles.set_look(Look("gray"))
    before = {channel: tiles.picture(channel) for channel in range(7, 12)}
    assert all(before.values())
    for first in (7, 0, 2, 4):
        tiles.make(range(first, first + 2))
    assert tiles.picture(7) is None  # it was made and dropped: not the one of the look before
    assert [tiles.picture(channel) for channel in (9, 10, 11)] == [before[channel] for channel in (9, 10, 11)]


@pytest.mark.parametrize(
    "shape", [(16, 16), (17, 16), (20, 11), (11, 20), (29, 3), (3, 29), (31, 31), (44, 20), (70, 1)]
)
def test_a_tile_shows_all_of_its_plane(shape: tuple[int, int]) -> None:
    """Planes larger than a tile: means of blocks, then evenly spaced ones of them, up to the last."""
    side, (height, width) = 16, shape
    plane = np.random.default_rng(0).uniform(-1, 1, (1, *shape)).astype(np.float32)
    gaps = np.random.default_rng(1).random(shape) < 0.25
    for marked in (None, gaps):
        tiles = Tiles()
        tiles.set_side(side)
        tiles.show(plane, marked)
        tiles.make([0])
        block = max(1, max(shape) // side)
        down, across = (min(block, length) for length in shape)
        rows, columns = height // down, width // across
        means = plane[0, : rows * down, : columns * across].reshape(rows, down, columns, across).mean((1, 3))
        longest = max(rows, columns)
        high, wide = (max(1, n * side // longest) if longest > side else n for n in (rows, columns))
        at = np.ix_([y * rows // high for y in range(high)], [x * columns // wide for x in range(wide)])
        expected = pixels(np.ascontiguousarray(means[at], np.float32), Look(), None)
        if marked is not None and block == 1:
            expected[gaps[at]] = theme.color("border").rgb()
        picture = tiles.picture(0)
        assert picture is not None
        assert (picture.width(), picture.height()) == (wide, high)
        assert picture == to_image(expected)


def test_the_channel_of_the_cursor_is_in_sight_as_a_whole(qtbot: QtBot) -> None:
    grid = ChannelGrid("grid", "Channels")
    qtbot.addWidget(grid)
    grid.resize(400, 300)
    grid.set_side(100)
    grid.show_data(np.zeros((40, 10, 20), np.float32))
    grid.show()
    order = np.random.default_rng(0).permutation(40).tolist()
    for channel in [*range(40), *range(39, -1, -1), *order]:
        before, bar = grid.tile_rect(channel), grid.verticalScrollBar()
        there, height = bar.value(), grid.viewport().height()
        grid.set_current(channel)
        now = grid.tile_rect(channel)
        assert now.top() >= 0
        assert now.bottom() + grid._caption() <= height
        if before.top() >= channel_grid.MARGIN and before.top() + grid._pitch()[1] <= height:
            assert bar.value() == there, "what is in sight is not scrolled"


def test_a_grid_is_completed_step_by_step(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).standard_normal((30, 10, 20)).astype(np.float32)

    def shown() -> ChannelGrid:
        found = ChannelGrid("grid", "Channels")
        qtbot.addWidget(found)
        found.resize(400, 300)
        found.set_side(100)
        found.show_data(values)
        found.show()
        return found

    def pictures(grid: ChannelGrid) -> list[QImage | None]:
        return [grid._tiles.picture(channel) for channel in grid.visible()]

    at_once = shown()
    qtbot.waitUntil(lambda: at_once.complete)
    expected = pictures(at_once)
    assert len(expected) >= 9
    assert None not in expected
    monkeypatch.setattr(tiles_module, "BATCH", 1)
    monkeypatch.setattr(channel_grid, "WORK", -1.0)
    grid = shown()
    grid._next.setInterval(10**6)
    grid.viewport().grab()
    assert not grid.complete
    missing = grid._tiles.missing(grid.visible())
    assert missing
    painted: list[QRect] = []
    port = grid.viewport()
    monkeypatch.setattr(port, "update", lambda *area: painted.extend(area))
    while missing:
        grid._work()
        assert painted == [grid._whole_rect(missing[0])], "only what is finished is painted again"
        painted.clear()
        assert pictures(grid)[: -len(missing)] == expected[: -len(missing)]
        assert grid._tiles.missing(grid.visible()) == missing[1:]
        missing = missing[1:]
        assert grid.complete == (not missing)
    assert pictures(grid) == expected
    later = shown()
    qtbot.waitUntil(lambda: later.complete)  # it goes on by itself
    assert pictures(later) == expected


def test_the_training_branch_is_not_waited_for(panel: ChannelInspectorPanel) -> None:
    subject, document = panel.subject, panel._context.root
    assert "training branch" not in subject.reason()
    document.training = frozenset({"conv_h"})
    assert subject.reason() == "'conv_h' is part of the training branch: inference leaves it out."
