"""What is selected and marked on the canvas: in which order, from afar, in other scopes; what new layers and frames make of it."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QTreeWidget
from window_kit import press, show

from app.ui.canvas.frames import needed_height
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep
from designer.graph import commands, frames
from designer.graph.arrangement import NODE_WIDTH
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer, Source
from designer.graph.template_commands import make_template

SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def window(empty_window):
    made = show(empty_window, kit.small_graph())
    made.said = []
    made.context.message.connect(lambda severity, text: made.said.append((severity, text)))
    return made


def document(window) -> Document:
    return window.context.document


def test_layers_stay_selected_in_the_order_in_which_they_were_chosen(window):
    canvas = window.canvas
    kit.click(canvas, kit.node(canvas, "out"))
    kit.click(canvas, kit.node(canvas, "free"), SHIFT)
    assert window.context.selection == ("out", "free")
    around = canvas.projection["conv"].box()
    start, end = kit.at(canvas, around.topLeft() - QPointF(12, 40)), kit.at(canvas, around.center())
    kit.drag(canvas, start, end, keys=SHIFT)
    assert window.context.selection == ("out", "free", "conv")


def test_a_layer_that_was_deleted_is_not_selected_from_afar(window, monkeypatch):
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    monkeypatch.setattr("app.ui.canvas.projection.FEW", 0)
    graph = document(window).graph.copy()
    window.context.root.history.mark_clean()
    window.context.set_document(Document(graph, window.context.registry, parent=window.context))
    window.context.select(("free", "conv", "cat"))
    document(window).do(commands.remove_layers(graph, ["free"]))
    assert set(window.canvas.viewer.selected_names()) == {"conv", "cat"}
    assert set(window.context.selection) == {"conv", "cat"}
    document(window).undo()
    assert "free" not in window.canvas.viewer.selected_names()


def test_a_layer_in_a_template_opened_on_its_own_is_not_the_inspected_one_of_the_network(window):
    document(window).do(lambda g: make_template(g, ["conv"], "part"))
    instance = next(layer.name for layer in document(window).graph if layer.type == "template")
    inside = next(
        layer.name for layer in document(window).graph.templates["part"].layers if layer.type == "convolution"
    )
    document(window).do(commands.rename_layer(document(window).graph, "free", inside))
    window.context.inspected.emit(inside)
    assert window.canvas.projection[inside].look.inspected
    window.context.set_scope((ScopeStep("", "part"),))
    assert not window.canvas.projection[inside].look.inspected
    window.context.set_scope(())
    window.context.enter(instance)
    assert not window.canvas.projection[inside].look.inspected


def test_the_text_of_a_frame_makes_it_as_tall_as_its_width_needs(window):
    text = "notes\n" + "one word after the other, " * 30
    for key, width, height in (("wide", 640, 160), ("narrow", 192, 320)):
        document(window).do(
            frames.set_frame(document(window).graph, key, Frame(key, "notes", "", "", (0, 400, width, height)))
        )
        window.canvas.viewer.select_frame(window.canvas.projection.frame(key))
        press(window, "F2")
        (editor,) = (e for e in window.canvas.viewer.viewport().findChildren(InlineEditor) if e.isVisible())
        editor.field.selectAll()
        editor.field.insertPlainText(text)
        QTest.keyClick(editor.field, Qt.Key.Key_Return)
        rect = document(window).graph.frames[key].rect
        assert rect[2] == width
        assert rect[3] == max(height, needed_height(width, text))
        document(window).do(frames.set_frame(document(window).graph, key, None))


def test_a_layer_from_the_palette_is_placed_level_with_the_middle_of_a_tall_one(window):
    sources = tuple(Source("input") for _ in range(12))
    document(window).do(
        commands.add_layer(document(window).graph, Layer("tall", "concatenation", (1280, 320), sources))
    )
    window.context.select(("tall",))
    window.context.add_requested.emit("activation")
    (name,) = window.context.selection
    canvas = window.canvas
    tall, new = canvas.projection["tall"].box(), canvas.projection[name].box()
    assert abs(new.center().y() - tall.center().y()) <= 16
    assert tall.right() < new.left() < tall.right() + NODE_WIDTH


def test_a_drag_ends_with_its_own_button_only(window):
    canvas = window.canvas
    start = kit.node(canvas, "free")
    viewport = canvas.viewer.viewport()
    QTest.mousePress(viewport, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(viewport, start + QPoint(0, 40))
    QTest.mouseRelease(viewport, Qt.MouseButton.RightButton, Qt.KeyboardModifier.NoModifier, start + QPoint(0, 40))
    assert document(window).graph["free"].position == (320, 160)
    QTest.mouseMove(viewport, start + QPoint(0, 80))
    QTest.mouseRelease(viewport, kit.LEFT, Qt.KeyboardModifier.NoModifier, start + QPoint(0, 80))
    assert document(window).graph["free"].position[1] > 160


def test_a_layer_in_a_template_that_no_instance_led_to_cannot_be_inspected(window):
    document(window).do(lambda g: make_template(g, ["conv"], "part"))
    window.context.set_scope((ScopeStep("", "part"),))
    inside = next(layer.name for layer in document(window).graph if layer.type == "convolution")
    asked = []
    window.context.inspect_requested.connect(asked.append)
    window.canvas.viewer.inspect_requested.emit(inside)
    assert asked == []
    assert window.said[-1] == (
        "info",
        "This layer does not run here. Open the template through an instance to inspect it.",
    )


def test_a_collapsed_frame_inside_a_moved_frame_takes_its_layers_along(window):
    graph = document(window).graph
    document(window).do(frames.set_frame(graph, "inner", Frame("inner", "inner", "", "", (288, 128, 192, 128))))
    document(window).do(frames.set_frame(graph, "outer", Frame("outer", "outer", "", "", (240, 64, 320, 320))))
    canvas = window.canvas
    canvas.viewer.select_frame(canvas.projection.frame("inner"))
    press(window, "H")
    assert document(window).graph.frames["inner"].collapsed
    before = document(window).graph["free"].position
    outer = canvas.projection.frame("outer")
    grip = kit.at(canvas, QPointF(outer.rect.left() + 60, outer.rect.top() + 8))
    kit.drag(canvas, grip, grip + QPoint(0, 96))
    run = document(window).graph.frames["outer"].rect[1] - 64
    assert run > 0
    assert document(window).graph.frames["inner"].rect[1] == 128 + run
    assert document(window).graph["free"].position == (before[0], before[1] + run)


def test_a_band_with_shift_keeps_links_and_frames_selected_until_it_takes_a_layer(window):
    document(window).do(frames.set_frame(document(window).graph, "f", Frame("f", "here", "", "", (1200, 400, 160, 96))))
    canvas = window.canvas
    link, frame = canvas.projection.link("out", 0), canvas.projection.frame("f")
    link.setSelected(True)
    frame.setSelected(True)
    place = canvas.viewer.mapToScene(20, canvas.viewer.viewport().height() - 60)
    start = kit.at(canvas, place)
    viewport = canvas.viewer.viewport()
    QTest.mousePress(viewport, kit.LEFT, SHIFT, start)
    QTest.mouseMove(viewport, start + QPoint(30, 20))
    assert link.isSelected()
    assert frame.isSelected()
    QTest.mouseMove(viewport, kit.node(canvas, "free"))
    QTest.mouseRelease(viewport, kit.LEFT, SHIFT, kit.node(canvas, "free"))
    assert window.context.selection
    assert not link.isSelected()


def test_the_canvas_stops_scrolling_when_a_drag_at_its_border_ends(window):
    viewport = window.canvas.viewer.viewport()
    start, border = kit.node(window.canvas, "free"), QPoint(viewport.width() - 2, viewport.height() // 2)
    QTest.mousePress(viewport, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(viewport, border)
    assert window.canvas.viewer.scrolling
    QTest.mouseRelease(viewport, kit.LEFT, Qt.KeyboardModifier.NoModifier, border)
    assert not window.canvas.viewer.scrolling


def test_each_scope_comes_back_where_it_was_left_last_however_often(window):
    """The bar with the way back changes the height of the canvas."""
    document(window).do(lambda g: make_template(g, ["conv"], "part"))
    instance = next(layer.name for layer in document(window).graph if layer.type == "template")
    viewer = window.canvas.viewer
    for zoom, x in ((0.5, 100), (1.25, 900)):
        viewer.zoom_by(zoom / viewer.zoom)
        viewer.go(QPointF(x, 50))
        left, inside = viewer.visible_center(), None
        for _ in range(4):
            window.context.enter(instance)
            QApplication.processEvents()
            if inside is None:
                viewer.zoom_by(0.8 / viewer.zoom)
                viewer.pan(QPoint(40, 30))
                inside = viewer.visible_center()
            assert (viewer.visible_center() - inside).manhattanLength() < 6
            window.context.set_scope(())
            QApplication.processEvents()
            assert viewer.zoom == pytest.approx(zoom)
            assert (viewer.visible_center() - left).manhattanLength() < 6


def test_the_search_for_a_connection_lists_what_fits_first_then_what_is_near(window):
    layers = [
        Layer("in", "input", params={"dims": "16x16x3"}),
        Layer("small", "pooling", (0, 320), (Source("in"),), {"size": "2x2", "stride": "2x2"}),
        Layer("far_below", "convolution", (240, 1600)),
        Layer("beside", "convolution", (480, 0)),
        Layer("sum", "element_wise", (16, 16), (Source("small"),)),
        Layer("fed", "convolution", (240, 0), (Source("small"),)),
        Layer("two", "split", (0, 640), (Source("in"),), {"axis": "channels", "parts": "2"}),
    ]
    show(window, Graph(layers))
    window.context.select(("in",))
    press(window, "W")
    found = window.findChild(QTreeWidget, "connect.list")
    rows = [found.topLevelItem(i).text(0) for i in range(found.topLevelItemCount())]
    open_ports = [row.split(" · ")[0] for row in rows if row.split(" · ")[0] in ("beside", "far_below")]
    assert open_ports == ["beside", "far_below"]
    fits = [not found.topLevelItem(i).toolTip(0) for i in range(found.topLevelItemCount())]
    assert fits == sorted(fits, reverse=True)
    assert not all(fits)
    QTest.keyClick(window.findChild(QLineEdit, "connect.text"), Qt.Key.Key_Escape)


def test_both_outputs_of_a_layer_can_be_connected_by_the_search(window):
    layers = [
        Layer("in", "input", params={"dims": "16x16x4"}),
        Layer("two", "split", (240, 0), (Source("in"),), {"axis": "channels", "parts": "2"}),
        Layer("conv", "convolution", (480, 0)),
    ]
    show(window, Graph(layers))
    _, second = (port.name for port in window.canvas.projection["two"].look.outputs)
    window.context.select(("two",))
    press(window, "W")
    line = window.findChild(QLineEdit, "connect.text")
    QTest.keyClicks(line, f"{second} > conv")
    QTest.keyClick(line, Qt.Key.Key_Return)
    QApplication.processEvents()
    assert document(window).graph["conv"].inputs == (Source("two", second),)


def test_only_selected_layers_are_above_the_others(window):
    heights = []
    for names in ((), ("conv", "free"), ("free",), ()):
        window.context.select(names)
        heights.append({name for name in document(window).graph.layers if window.canvas.projection[name].zValue() > 1})
    assert heights == [set(), {"conv", "free"}, {"free"}, set()]


def test_the_number_of_inputs_on_a_layer_is_that_of_its_links(window):
    graph = document(window).graph
    shown = [window.canvas.projection["cat"].look.summary]
    document(window).do(commands.disconnect(graph, "cat", 0))
    assert graph["cat"].inputs[0] is None
    shown.append(window.canvas.projection["cat"].look.summary)
    assert shown == ["2 inputs", "1 input"]


def test_clicking_a_link_deselects_frames_and_layers(window):
    document(window).do(frames.set_frame(document(window).graph, "f", Frame("f", "here", "", "", (0, 400, 160, 96))))
    canvas = window.canvas
    window.context.select(("conv",))
    canvas.projection.frame("f").setSelected(True)
    link = canvas.projection.link("out", 0)
    canvas.viewer.select_link(link)
    assert canvas.viewer.scene().selectedItems() == [link]
    assert window.context.selection == ()


def test_a_layer_without_known_input_says_so_before_its_own_warnings(window):
    graph = document(window).graph
    document(window).do(commands.set_params(graph, {"cat": {"color": "red"}}))
    assert window.canvas.projection["cat"].look.problem == "warning"
    document(window).do(commands.set_params(graph, {"conv": {"kernel": "0x0"}}))
    assert document(window).inference.states["cat"].diagnostics
    assert [window.canvas.projection[name].look.problem for name in ("conv", "cat")] == ["error", "unknown"]


def test_layers_with_and_without_items_are_selected_together(window, monkeypatch):
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    monkeypatch.setattr("app.ui.canvas.projection.FEW", 0)
    graph = document(window).graph.copy()
    window.context.root.history.mark_clean()
    window.context.set_document(Document(graph, window.context.registry, parent=window.context))
    item = window.canvas.projection["free"]
    window.canvas.viewer.supply.marked = {"conv", "cat"}
    item.setSelected(True)
    assert set(window.canvas.viewer.selected_names()) == {"free", "conv", "cat"}
    window.canvas.projection["conv"]  # it comes into view
    assert sorted(window.canvas.viewer.selected_names()) == ["cat", "conv", "free"]
    assert window.canvas.projection["conv"].isSelected()
    kit.click(window.canvas, kit.node(window.canvas, "conv"), SHIFT)
    assert set(window.context.selection) == {"cat", "free"}
    kit.click(window.canvas, kit.node(window.canvas, "conv"), SHIFT)
    assert {found.layer for found in window.canvas.viewer.selected_layers()} == {"free", "conv", "cat"}


@pytest.mark.parametrize("few", [0, 4, 100])
def test_all_of_many_selected_layers_are_dragged_and_each_is_selected_once(qtbot, monkeypatch, few):
    """Those near the view have items, those at the other ends of links into it have some of their links, the others are marked."""
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    monkeypatch.setattr("app.ui.canvas.projection.FEW", few)
    layers = [Layer("l0", "input", (0, 0), params={"dims": "16x16x3"})]
    layers += [Layer(f"l{n}", "identity", (320 * n, 0), (Source(f"l{n - 1}"),)) for n in range(1, 40)]
    canvas = kit.open_canvas(qtbot, Graph(layers))
    viewer, items, graph = canvas.viewer, canvas.projection, canvas.context.document.graph
    qtbot.waitUntil(lambda: not items.busy)
    viewer.zoom_by(1 / viewer.zoom)
    viewer.go(QPointF(3200, 0))
    viewer.repaint()
    every = sorted(graph.layers)
    canvas.select_all()
    for step in range(4):
        if step == 1:
            viewer.go(QPointF(6400, 0))
            viewer.repaint()
        elif step == 2:
            kit.click(canvas, kit.node(canvas, "l20"), SHIFT)
            assert set(canvas.context.selection) == {*every} - {"l20"}
            kit.click(canvas, kit.node(canvas, "l20"), SHIFT)
        elif step == 3:
            canvas.context.select(tuple(every[1:]))
            assert sorted(viewer.selected_names()) == every[1:]
            canvas.context.select(tuple(every))
        assert sorted(viewer.selected_names()) == sorted(canvas.context.selection) == every
        assert bool(items.marked) is (few < 100 and step < 2), "a press makes the items"
        assert all(name not in items._nodes for name in items.marked)
    start = kit.node(canvas, "l20")
    kit.drag(canvas, start, start + QPoint(0, 64))
    assert {layer.position[1] for layer in graph} == {64}


def test_a_selected_link_stays_when_the_view_moves_far_away(window, monkeypatch):
    canvas = window.canvas
    links = {name: canvas.projection.link(name, 0) for name in ("conv", "out")}
    canvas.viewer.select_link(links["out"])
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.go(QPointF(40000, 40000))
    QApplication.processEvents()
    canvas.projection._trim()
    assert canvas.viewer.selected_links() == [links["out"]]
    assert canvas.projection.entry("conv").name == "conv"
    press(window, "Delete")
    assert document(window).graph["out"].inputs in ((), (None,))


def test_where_things_overlap_a_click_finds_what_is_on_top(qtbot):
    """Also the layer that was raised last, wherever it is in the document, and the inner one of two frames."""
    layers = [
        Layer("low", "identity", (0, 0)),
        Layer("middle", "identity", (32, 16)),
        Layer("top", "identity", (64, 32)),
    ]
    outer, inner = Frame("outer", "Outer", rect=(400, 0, 400, 300)), Frame("inner", "Inner", rect=(400, 0, 200, 100))
    canvas = kit.open_canvas(qtbot, Graph(layers, frames=(outer, inner)))
    viewer, projection = canvas.viewer, canvas.projection
    viewer.zoom_by(1 / viewer.zoom)
    viewer.centerOn(300, 100)
    boxes = [projection[name].box() for name in ("low", "middle", "top")]
    shared = boxes[0].intersected(boxes[1]).intersected(boxes[2]).center()
    place = kit.at(canvas, shared)
    for names in (("low", "middle", "top"), ("top", "low", "middle"), ("middle", "top", "low")):
        for height, name in enumerate(names):
            projection[name].setZValue(10 + height)
        assert viewer.hit(place) is projection[names[-1]]
        kit.click(canvas, place)
        assert canvas.context.selection == (names[-1],)
    for height, name in enumerate(("outer", "inner")):
        projection.frame(name).setZValue(-10 + height)
    corner = kit.at(canvas, QPointF(400, 150))
    assert viewer.hit(corner) is projection.frame("outer")
    assert viewer.hit(kit.at(canvas, QPointF(400, 60))) is projection.frame("inner")
    projection.frame("outer").setZValue(-5)
    assert viewer.hit(kit.at(canvas, QPointF(400, 60))) is projection.frame("outer")
