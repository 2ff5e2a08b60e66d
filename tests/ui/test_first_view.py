"""What a document looks like when it opens: framed, with names of one size that can be read."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from window_kit import show

import samples
from app.ui.canvas import node_paint
from app.ui.canvas.canvas import OPENING_ZOOM
from app.ui.canvas.node_layout import LEAST
from app.ui.canvas.view import NEARLY
from app.ui.widgets import theme
from designer.files.document import read_document
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source


def test_a_document_opens_with_everything_in_view(window):
    show(window, kit.small_graph())
    canvas = window.canvas
    assert canvas.viewer.seen().contains(canvas.projection.extent())
    assert canvas.viewer.zoom >= 0.25


def test_a_large_document_opens_where_names_can_be_read(window):
    layers = [Layer("l0", "input")]
    layers += [Layer(f"l{n}", "identity", (n * 240, 0), (Source(f"l{n - 1}"),)) for n in range(1, 80)]
    show(window, Graph(layers))
    assert window.canvas.viewer.zoom == pytest.approx(0.25)


@pytest.mark.parametrize("detail", [0.25, 0.3, 0.44, 0.5, 0.62, 1.0, 2.0])
def test_names_have_one_size_at_a_scale_of_at_least_nine_pixels(qapp, detail):
    font, metrics = node_paint.name_font(detail)
    assert font.pixelSize() * detail >= 9
    assert metrics.height() > 0
    if detail < 0.6:
        assert font.pixelSize() * detail < 10
        assert font.stretch() == node_paint.CONDENSED
        assert font.weight() == QFont.Weight.Medium


@pytest.mark.parametrize("sign", "_.")
def test_a_name_is_broken_behind_a_sign_that_separates_words(qapp, sign):
    name = f"encoder{sign}attention"
    _, metrics = node_paint.name_font(0.5)
    width = metrics.horizontalAdvance(name) * 0.75
    assert node_paint.name_lines(width, 400, name, 0.5) == (f"encoder{sign}", "attention")


@pytest.mark.parametrize("path", [*samples.documents(), *map(samples.starting_point, samples.STARTING_POINTS)])
def test_names_of_samples_are_whole_down_to_a_quarter(window, path):
    show(window, read_document(path).graph)
    for name in window.context.document.graph.layers:
        block = window.canvas.projection.entry(name).layout.block
        for detail in (NEARLY * OPENING_ZOOM, 0.25, 0.35, 0.5, 0.69):
            lines = node_paint.name_lines(block.width(), block.height(), name, detail)
            most = 13 if detail >= OPENING_ZOOM else 12
            assert "".join(lines) == name or (detail <= OPENING_ZOOM and len(name) > most), lines
            _, metrics = node_paint.name_font(detail)
            assert all(metrics.horizontalAdvance(line) <= block.width() for line in lines)
            assert len(lines) * LEAST / detail <= block.height()


def test_long_names_break_at_their_words_and_keep_both_ends(qapp):
    assert node_paint.name_lines(144, 80, "conv_enc_1", 0.25) == ("conv_", "enc_1")
    assert node_paint.name_lines(144, 80, "convolution_7", 0.25)[1].endswith("_7")
    head, tail = node_paint.name_lines(144, 80, "a_very_long_name_of_a_layer_17", 0.25)
    assert head.startswith("a_")
    assert tail.endswith("_17")
    assert tail.startswith("…")


def test_a_layer_far_out_is_hit_wherever_it_is_painted(window):
    show(window, kit.small_graph())
    viewer, item = window.canvas.viewer, window.canvas.projection["conv"]
    below = item.mapToScene(item.layout.block.bottomLeft() + QPointF(20, -2))
    assert not item.box().contains(below)
    viewer.zoom_by(0.4 / viewer.zoom)
    assert viewer.hit(viewer.mapFromScene(below)) is item
    viewer.zoom_by(1 / viewer.zoom)
    assert viewer.hit(viewer.mapFromScene(below)) is None


def grid(rows: int, columns: int, start: int) -> Graph:
    """Chains of layers, one per row, that read an input at the height of row `start`."""
    chains = [
        Layer(f"l{row}_{n}", "identity", (n * 240 + 480, row * 160), (Source(f"l{row}_{n - 1}" if n else "in"),))
        for row in range(rows)
        for n in range(columns)
    ]
    return Graph([*chains[:5], Layer("in", "input", (0, start * 160)), *chains[5:]])


@pytest.mark.parametrize("start", [0, 100, 199])
def test_a_network_too_large_for_the_view_opens_at_its_input(window, start):
    show(window, grid(200, 8, start))
    viewer = window.canvas.viewer
    seen = viewer.seen().adjusted(-4, -4, 4, 4)  # a pixel more: positions are rounded
    assert seen.contains(window.canvas.projection.entry("in").area())
    assert viewer.zoom == pytest.approx(0.25)


def test_a_large_document_that_fits_at_readable_names_is_framed(window):
    window.resize(2560, 1440)
    show(window, grid(18, 18, 0))
    canvas = window.canvas
    assert len(canvas.projection.layers) > 300
    assert canvas.viewer.seen().contains(canvas.projection.extent())
    assert canvas.viewer.zoom >= 0.2


def test_what_begins_in_the_view_is_in_its_middle(window):
    layers = [Layer("l0", "input")]
    layers += [Layer(f"l{n}", "identity", (n * 240, n * 60), (Source(f"l{n - 1}"),)) for n in range(1, 400)]
    show(window, Graph(layers))
    seen = window.canvas.viewer.seen()
    first = [window.canvas.projection.entry(name).area() for name in window.canvas.projection.within(seen)]
    above = min(area.top() for area in first) - seen.top()
    below = seen.bottom() - max(area.bottom() for area in first)
    assert above == pytest.approx(below, abs=80)


def test_few_layers_in_view_of_a_large_document_are_painted_with_their_links(window, qtbot):
    show(window, grid(200, 8, 0))
    canvas = window.canvas
    qtbot.waitUntil(lambda: not canvas.projection.busy)
    seen = canvas.viewer.seen()
    assert not canvas.projection.crowded(seen, 0.25)
    assert canvas.projection.crowded(canvas.projection.extent(), 0.25)
    assert not canvas.projection.crowded(canvas.projection.extent(), 0.5)


def test_everything_stays_in_view_when_the_user_comes_back(window, tmp_path):
    """Also in a canvas of another size: a view that the user did not choose is not a place to return to."""
    window.resize(1600, 1000)
    show(window, kit.small_graph())
    first = window.tabs.shown
    show(window, kit.small_graph())
    window.resize(1100, 700)
    window.tabs.show(first)
    canvas = window.canvas
    assert canvas.viewer.seen().contains(canvas.projection.extent())
    canvas.viewer.zoom_by(3.0)
    chosen = canvas.viewer.zoom
    window.tabs.step(1)
    window.tabs.step(1)
    assert canvas.viewer.zoom == pytest.approx(chosen)


def test_the_map_hides_itself_when_everything_is_in_view(window, qtbot):
    window.resize(1366, 768)
    show(window, kit.small_graph())
    canvas = window.canvas
    canvas.frame_all()
    canvas.minimap.redraw()
    assert not canvas.minimap.isVisible()
    canvas.viewer.zoom_by(3.0)
    qtbot.waitUntil(canvas.minimap.isVisible)
    canvas.frame_all()
    qtbot.waitUntil(lambda: not canvas.minimap.isVisible())


def test_the_mark_of_an_error_is_clear_of_the_name(window):
    image = QImage(200, 80, QImage.Format.Format_ARGB32)
    ground = theme.color("accent")
    image.fill(ground)
    painter = QPainter(image)
    node_paint.paint_block_mark(painter, QRectF(10, 20, 150, 50), "error", 0.5)
    painter.end()
    middle = [image.pixelColor(x, 40) for x in range(20, 130)]
    assert all(colour == ground for colour in middle)


def test_a_link_that_fits_is_not_blamed_for_another_port_that_is_open(window):
    graph = Graph(
        [
            Layer("in", "input", (0, 0), params={"dims": "16x16x3"}),
            Layer("loss", "l1_loss", (320, 0)),
        ]
    )
    show(window, graph)
    said = []
    window.context.message.connect(lambda severity, text: said.append(text))
    kit.drag(window.canvas, kit.output(window.canvas, "in"), kit.port(window.canvas, "loss", 0))
    assert window.context.document.graph["loss"].inputs == (Source("in"),)
    assert not [text for text in said if "does not fit" in text]


def test_a_new_template_is_laid_out_and_its_ports_say_what_they_carry(window):
    conv = {"features": "3", "padding": "same"}
    layers = [
        Layer("photo", "input", (0, 0), params={"dims": "16x16x3"}),
        Layer("convolution_0", "convolution", (240, 0), (Source("photo"),), conv),
        Layer("sum", "element_wise", (250, 10), (Source("convolution_0"), Source("photo"))),
        Layer("out", "output", (720, 0), (Source("sum"),)),
    ]
    show(window, Graph(layers))
    window.context.select(("convolution_0", "sum"))
    window.structure.ask_template()
    QTest.keyClick(window.findChild(QLineEdit, "template_name.name"), Qt.Key.Key_Return)
    template = window.context.root.graph.templates["block"]
    assert (template.inputs, template.outputs) == (("photo",), ("sum_2",))
    window.context.enter("block")
    areas = [window.canvas.projection.entry(n).area() for n in window.context.document.graph.layers]
    assert not any(a.intersects(b) for i, a in enumerate(areas) for b in areas[:i])
    columns = {n: window.context.document.graph[n].position[0] for n in ("photo", "convolution_0", "sum", "sum_2")}
    assert list(columns.values()) == sorted(set(columns.values()))
