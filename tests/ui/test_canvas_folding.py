"""Collapsed comment frames: a box in place of its layers, moved, opened, undone, saved; layers next to it stay."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog
from window_kit import press, show

from app.ui.canvas import layer_clipboard
from app.ui.canvas.actions import (
    ACTIONS,
    ANYTHING,
    FOLDABLE,
    INSTANCES,
    MANY,
    ONE,
    ONE_LAYER,
    SELECTION,
    SEVERAL,
)
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.document.document import Document
from designer.files.document import parse_document, write_document
from designer.graph import commands, frames
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, Frame, Layer, Source
from designer.graph.template import Template


def chain() -> Graph:
    layers = [Layer("a", "input", (0, 0), params={"dims": "64x64x3"})]
    for number, name in enumerate("bcd"):
        layers.append(Layer(name, "identity", (256 * (number + 1), 0), (Source("abcd"[number]),)))
    layers.append(Layer("e", "output", (1024, 0), (Source("d"),)))
    return Graph(layers, frames=(Frame("f", "Middle", rect=(496, -64, 512, 192)),))


@pytest.fixture
def window(shared_window):
    window = show(shared_window, chain())
    viewer = window.canvas.viewer
    viewer.zoom_by(0.6 / viewer.zoom)
    viewer.centerOn(560, 60)
    return window


def title(window):
    item = window.canvas.projection.frame("f")
    return kit.at(window.canvas, item.seen.topLeft() + QPointF(60, 14))


def seen(window) -> set[str]:
    return {name for name in window.canvas.projection.layers if window.canvas.projection[name].isVisible()}


def graph_of(window) -> Graph:
    return window.context.document.graph


def collapse(window) -> None:
    kit.click(window.canvas, title(window))
    press(window, "H")


def test_h_collapses_a_frame_to_a_box_and_links_end_at_its_edge(window):
    collapse(window)
    projection = window.canvas.projection
    item = projection.frame("f")
    assert seen(window) == {"a", "b", "e"}
    assert item.members == ("c", "d")
    assert item.seen.height() < 60
    assert projection.link("c", 0).target.center() == item.end(is_input=True)
    assert projection.link("e", 0).source.center() == item.end(is_input=False)
    assert not projection.link("d", 0).isVisible()
    assert projection.link("c", 0).isVisible()
    assert item.isSelected()
    press(window, "H")
    assert seen(window) == set("abcde")
    assert projection.link("c", 0).target.center() != item.end(is_input=True)
    assert write_document(graph_of(window)) == write_document(chain())


def test_undo_save_and_open_keep_it(window):
    before = graph_of(window).copy()
    collapse(window)
    found = parse_document(write_document(graph_of(window)))
    assert found.diagnostics == ()
    assert found.graph == graph_of(window)
    press(window, "Ctrl+Z")
    assert graph_of(window) == before
    assert seen(window) == set("abcde")
    window.context.root.history.mark_clean()
    window.context.set_document(Document(found.graph, window.context.registry, parent=window.context))
    assert seen(window) == {"a", "b", "e"}


def test_the_box_is_dragged_with_what_is_in_it(window):
    collapse(window)
    start = title(window)
    kit.drag(window.canvas, start, start + kit.at(window.canvas, QPointF(0, 160)) - kit.at(window.canvas, QPointF()))
    graph = graph_of(window)
    assert graph.frames["f"].rect == (496, 96, 512, 192)
    assert (graph["c"].position, graph["d"].position) == ((512, 160), (768, 160))
    assert seen(window) == {"a", "b", "e"}
    assert window.canvas.projection.link("c", 0).target.center() == window.canvas.projection.frame("f").end(
        is_input=True
    )
    press(window, "Ctrl+Z")
    assert graph_of(window).frames["f"].rect == (496, -64, 512, 192)


def test_links_follow_the_box_while_it_is_dragged(window):
    collapse(window)
    view, start = window.canvas.viewer.viewport(), title(window)
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start + QPoint(0, 90))
    item = window.canvas.projection.frame("f")
    assert item.pos().y() > 0
    into, out = (window.canvas.projection.link(name, 0).path() for name in "ce")
    assert into.pointAtPercent(1).y() == pytest.approx(item.end(is_input=True).y())
    assert out.pointAtPercent(0).y() == pytest.approx(item.end(is_input=False).y())
    QTest.keyClick(window.canvas.viewer, Qt.Key.Key_Escape)
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start + QPoint(0, 90))
    assert graph_of(window).frames["f"].rect == (496, -64, 512, 192)
    end = window.canvas.projection.link("c", 0).path().pointAtPercent(1)
    assert end.y() == pytest.approx(item.end(is_input=True).y())


def test_what_is_put_on_the_free_place_stays_seen(window):
    collapse(window)
    window.context.document.do(lambda g: commands.add_layer(g, Layer("new", "identity", (700, 32))))
    window.context.document.do(lambda g: commands.move_layers(g, {"b": (640, 48)}))
    assert seen(window) == {"a", "b", "e", "new"}
    QTest.mouseDClick(window.canvas.viewer.viewport(), kit.LEFT, pos=title(window))
    assert seen(window) == {*"abcde", "new"}
    assert not graph_of(window).frames["f"].collapsed


def test_finding_a_layer_opens_its_frame(window):
    collapse(window)
    window.canvas.reveal("d")
    assert "d" in seen(window)
    assert window.context.selection == ("d",)


def test_a_deleted_frame_shows_its_layers(window):
    collapse(window)
    press(window, "Del")
    assert graph_of(window).frames == {}
    assert seen(window) == set("abcde")
    assert not any(layer.folded for layer in graph_of(window))
    press(window, "Ctrl+Z")
    assert seen(window) == {"a", "b", "e"}


def test_a_frame_in_a_frame_folds_into_the_outer_one(window):
    document = window.context.document
    document.do(lambda g: frames.set_frame(g, "g", Frame("g", "All", rect=(200, -160, 824, 400))))
    collapse(window)
    window.canvas.viewer.select_items([])
    window.canvas.projection.frame("g").setSelected(True)
    press(window, "H")
    assert seen(window) == {"a", "e"}
    assert not window.canvas.projection.frame("f").isVisible()
    assert set(window.canvas.projection.frame("g").members) == set("bcd")
    window.canvas.context = window.context
    kit.check_indexes(window.canvas)
    bar = window.canvas.projection.frame("g").seen
    for name, index, right in (("b", 0, False), ("e", 0, True)):
        link = window.canvas.projection.link(name, index)
        end = link.source.center() if right else link.target.center()
        assert end == QPointF(bar.right() if right else bar.left(), bar.center().y())
    assert parse_document(write_document(graph_of(window))).graph == graph_of(window)
    window.structure.unfold("g")
    assert seen(window) == {"a", "b", "e"}
    assert window.canvas.projection.frame("f").isVisible()
    window.structure.unfold("f")
    assert seen(window) == set("abcde")


def test_a_collapsed_frame_without_layers_counts_until_it_is_expanded_or_deleted(window):
    document, items = window.context.document, window.canvas.projection
    alone = items.extent()
    document.do(lambda g: frames.set_frame(g, "n", Frame("n", "Note", rect=(-900, 600, 320, 160), collapsed=True)))
    assert [item.frame.id for item in items.collapsed_frames] == ["n"]
    assert items.extent().contains(items.frame("n").seen)
    for change in (lambda: window.structure.unfold("n"), lambda: document.do(lambda g: frames.remove_frames(g, ["n"]))):
        change()
        assert items.collapsed_frames == ()
        assert items.extent() == alone
        document.undo()
        assert items.extent() != alone


def test_finding_a_layer_opens_all_frames_around_it(window):
    document = window.context.document
    document.do(lambda g: frames.set_frame(g, "g", Frame("g", "All", rect=(200, -160, 824, 400))))
    for frame in "fg":
        document.do(lambda g, f=frame: frames.collapse(g, [], [f], window.canvas.projection.members))
    assert seen(window) == {"a", "e"}
    before = graph_of(window).copy()
    window.canvas.reveal("d")
    assert seen(window) == set("abcde")
    assert not any(layer.folded for layer in graph_of(window))
    window.context.undo()
    assert graph_of(window) == before


def test_arrow_keys_pass_over_hidden_layers(window):
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("low", "identity", (560, 400))))
    collapse(window)
    for start, key, end in (("b", "Right", "e"), ("e", "Left", "b"), ("low", "Up", "b"), ("e", "Down", "low")):
        window.context.select((start,))
        press(window, key)
        assert window.context.selection == (end,)


def test_a_box_in_a_frame_moves_with_it_and_its_layers(window):
    document = window.context.document
    document.do(lambda g: frames.set_frame(g, "g", Frame("g", "All", rect=(200, -160, 824, 400))))
    collapse(window)
    start = kit.at(window.canvas, QPointF(230, -148))
    kit.drag(window.canvas, start, start + QPoint(0, 30))
    graph = graph_of(window)
    down = graph.frames["g"].rect[1] + 160
    assert down > 0
    assert graph.frames["f"].rect == (496, -64 + down, 512, 192)
    assert [graph[name].position[1] for name in "abcde"] == [0, down, down, down, 0]
    assert window.canvas.projection.frame("f").seen.top() == -64 + down


def test_a_frame_moves_the_boxes_that_are_seen_in_it_and_the_layers_whose_middle_is_in_it(window):
    """A collapsed frame would stick out of it if it were open, and one of the layers does stick out."""
    document = window.context.document
    collapse(window)
    item = window.canvas.projection.frame("f")
    outer = QRectF(300, -160, 480, 400)
    assert outer.contains(item.seen)
    assert not outer.contains(item.rect)
    box = window.canvas.projection["b"].box()
    assert outer.contains(box.center())
    assert not outer.contains(box)
    document.do(lambda g: frames.set_frame(g, "g", Frame("g", "Around", rect=(300, -160, 480, 400))))
    document.do(lambda g: frames.set_frame(g, "h", Frame("h", "Outside", rect=(700, 0, 200, 100))))
    start = kit.at(window.canvas, QPointF(330, -148))
    kit.drag(window.canvas, start, start + QPoint(0, 30))
    graph = graph_of(window)
    down = graph.frames["g"].rect[1] + 160
    assert down > 0
    assert graph.frames["f"].rect == (496, -64 + down, 512, 192)
    assert graph.frames["h"].rect == (700, 0, 200, 100), "it only touches the frame"
    assert [graph[name].position[1] for name in "abcde"] == [0, down, down, down, 0]


def test_a_frame_collapses_inside_of_a_template_too(window):
    window.context.select(("c", "d"))
    document = window.context.document
    from designer.graph.template_commands import make_template

    document.do(lambda g: make_template(g, ["c", "d"], "pair"))
    window.context.enter("pair_0")
    frame = next(iter(graph_of(window).frames))
    window.canvas.projection.frame(frame).setSelected(True)
    press(window, "H")
    assert window.context.root.graph.templates["pair"].frames[0].collapsed
    assert {"c", "d"}.isdisjoint(seen(window))
    assert parse_document(write_document(window.context.root.graph)).graph == window.context.root.graph


def test_from_afar_and_on_the_map_only_the_box_is_seen(window):
    collapse(window)
    projection = window.canvas.projection
    far = projection.collect_far()
    rects = [rect for rects in far.blocks.values() for rect in rects]
    assert projection.frame("f").seen in rects
    assert projection["c"].box() not in rects
    assert projection.entry("a").layout.block in rects
    window.canvas.viewer.zoom_by(0.1 / window.canvas.viewer.zoom)
    assert not window.canvas.viewer.grab().isNull()
    window.canvas.minimap.redraw()
    assert projection.extent().contains(projection.frame("f").seen)


def test_items_of_a_large_document_are_folded_when_they_are_made(window, monkeypatch):
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    collapse(window)
    graph = graph_of(window).copy()
    window.context.root.history.mark_clean()
    window.context.set_document(Document(graph, window.context.registry, parent=window.context))
    assert seen(window) == {"a", "b", "e"}
    assert not window.canvas.projection.link("d", 0).isVisible()
    window.structure.unfold("f")
    assert seen(window) == set("abcde")
    assert window.canvas.projection.link("d", 0).isVisible()


def test_from_afar_selected_layers_of_a_collapsed_frame_are_not_drawn(window, monkeypatch):
    monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
    monkeypatch.setattr("app.ui.canvas.projection.FEW", 0)
    collapse(window)
    graph = graph_of(window).copy()
    window.context.root.history.mark_clean()
    window.context.set_document(Document(graph, window.context.registry, parent=window.context))
    window.context.select(tuple("abcde"))
    projection = window.canvas.projection
    assert projection.marked >= {"c", "d"}
    selected = projection.collect_far().selected
    drawn = {name for name in "abcde" if any(projection.entry(name).box().intersects(rect) for rect in selected)}
    assert drawn == set("abe")


@pytest.mark.parametrize("how", ["laid out", "pushed"])
def test_a_frame_stays_around_a_collapsed_one(window, how):
    document = window.context.document
    document.do(lambda g: frames.set_frame(g, "g", Frame("g", "All", rect=(464, -160, 576, 320))))
    collapse(window)
    if how == "laid out":
        document.do(lambda g: commands.move_layers(g, {"a": (-800, -640), "b": (0, 480)}))
        press(window, "Shift+L")
    else:
        window.canvas.viewer.operator_dropped.emit(
            "identity", window.canvas.projection.link("c", 0).nearest(QPointF(490, 0))
        )
    around, inner = (QRectF(*graph_of(window).frames[key].rect) for key in "gf")
    assert inner != QRectF(496, -64, 512, 192)
    assert around.contains(inner)
    assert all(inner.contains(QPointF(*graph_of(window)[name].position)) for name in "cd")


def test_links_run_around_layers_that_are_shown_again(window):
    show(window, kit.small_graph())
    document, projection = window.context.document, window.canvas.projection
    document.do(lambda g: frames.set_frame(g, "f", Frame("f", "Branch", rect=(288, -64, 320, 176))))
    around = projection.link("cat", 1).path()
    document.do(lambda g: frames.collapse(g, [], ["f"], projection.members))
    assert projection.link("cat", 1).path() != around
    document.do(lambda g: frames.collapse(g, [], ["f"], projection.members))
    assert projection.link("cat", 1).path() == around


def test_layout_keeps_a_collapsed_frame_with_its_layers(window):
    collapse(window)
    window.context.document.do(lambda g: commands.move_layers(g, {"b": (640, 48), "c": (480, 640)}))
    press(window, "Shift+L")
    graph = graph_of(window)
    x, y, width, height = graph.frames["f"].rect
    inside = {
        n for n in graph.layers if x <= graph[n].position[0] <= x + width and y <= graph[n].position[1] <= y + height
    }
    assert {"c", "d"} <= inside
    assert seen(window) == {"a", "b", "e"}


@pytest.mark.parametrize("keys", [("Ctrl+Z",), ("Ctrl+Z", "Ctrl+Z", "Ctrl+Y")])
def test_layers_that_undo_and_redo_hide_are_no_longer_selected(window, keys):
    """Delete would remove layers that nobody sees."""
    collapse(window)
    press(window, "H")
    if len(keys) == 3:
        press(window, "Ctrl+Z", "Ctrl+Z")  # the second collapses it again
        assert seen(window) == set("abcde")
        keys = ("Ctrl+Y",)
    window.context.select(("a", "c", "d"))
    press(window, *keys)
    assert seen(window) == {"a", "b", "e"}
    assert window.context.selection == ("a",)
    assert window.canvas.viewer.selected_names() == ["a"]
    press(window, "Delete")
    assert set(graph_of(window).layers) == set("bcde")


@pytest.mark.parametrize(("start", "key", "found"), [("a", "Ctrl+A", "abe"), ("e", "[", "abe"), ("b", "]", "be")])
def test_no_hidden_layer_is_selected(window, start, key, found):
    collapse(window)
    window.context.select((start,))
    press(window, key)
    assert set(window.context.selection) == set(found)


def test_select_all_and_delete_remove_nothing_that_is_hidden(window):
    before = graph_of(window).copy()
    collapse(window)
    press(window, "Ctrl+A")
    assert [item.frame.id for item in window.canvas.viewer.selected_frames()] == ["f"]
    press(window, "Del")
    assert set(graph_of(window).layers) == seen(window) == {"c", "d"}
    assert graph_of(window).frames == {}
    press(window, "Ctrl+Z", "Ctrl+Z")
    assert graph_of(window) == before


HIDDEN = "The selected layers are hidden in a collapsed frame. Expand the frame to edit them."
EDITS = [
    declared.id
    for group in ACTIONS
    for declared in group.actions
    if {SELECTION, ANYTHING, SEVERAL, MANY, ONE_LAYER, ONE, FOLDABLE, INSTANCES}.intersection(declared.needs)
    and not declared.id.startswith("select.")
]


@pytest.mark.parametrize("name", EDITS)
def test_no_command_acts_on_hidden_layers_that_a_panel_selected(window, name):
    """Not on the graph, the clipboard or the screen; with a layer that is shown, only on that one."""
    inner = (Layer("in", "template_input"), Layer("out", "template_output", (256, 0), (Source("in"),)))
    conv = {"features": "3", "kernel": "3x3", "padding": "same"}
    layers = [Layer("a", "input", (0, 0), params={"dims": "64x64x3"})]
    layers += [Layer(n, "convolution", (256 * i + 256, 32 * i), (Source("abc"[i]),), conv) for i, n in enumerate("bcd")]
    layers.append(Layer("i", "template", (1024, 0), (Source("d"),), {"template": "t"}))
    layers.append(Layer("e", "output", (1536, 0), (Source("i"),)))
    frame = Frame("f", "Middle", rect=(496, -64, 816, 256))
    show(window, Graph(layers, frames=(frame,), templates=(Template("t", inner),)))
    window.context.document.do(lambda g: frames.collapse(g, [], ["f"], window.canvas.projection.members))
    assert seen(window) == {"a", "b", "e"}
    QGuiApplication.clipboard().setText("nothing")
    before = graph_of(window).copy()
    said: list[str] = []
    window.context.message.connect(lambda _severity, text: said.append(text))
    for names in (("c",), ("i",), ("c", "d", "i")):
        window.context.select(names)
        QApplication.processEvents()  # actions follow with the next turn
        if window.actions_[name].isEnabled():
            said.clear()
            window.actions_[name].trigger()
            assert said == [HIDDEN], names
            assert graph_of(window) == before
            assert window.context.selection == names
            assert QGuiApplication.clipboard().text() == "nothing"
            assert not any(w.isVisible() for kind in (InlineEditor, QDialog) for w in window.findChildren(kind))
            assert QApplication.activePopupWidget() is None
    assert said


@pytest.mark.parametrize("names", [("b", "c", "d"), ("a", "b", "c")], ids="".join)
@pytest.mark.parametrize("name", [name for name in EDITS if "align" in name or "distribute" in name])
def test_hidden_layers_are_not_aligned_with_those_that_are_shown(window, name, names):
    collapse(window)
    window.context.document.do(lambda g: commands.move_layers(g, {"b": (304, 48)}))
    before = {layer.name: layer.position for layer in graph_of(window)}
    window.context.select(names)
    QApplication.processEvents()
    window.actions_[name].trigger()
    moved = {layer.name for layer in graph_of(window) if layer.position != before[layer.name]}
    assert moved <= {"a", "b"}
    assert bool(moved) is (names[0] == "a" and "align" in name)


@pytest.mark.parametrize("key", ["Ctrl+C", "Ctrl+X", "Ctrl+D", "Alt+Down", "M", "Del"])
def test_commands_act_on_those_of_the_selected_layers_that_are_shown(window, key):
    collapse(window)
    before = graph_of(window).copy()
    window.context.select(("c", "b", "d"))
    press(window, key)
    after = graph_of(window)
    assert all(n in after and after[n].position == before[n].position for n in "cd")
    assert [n for n in after.layers if after[n].bypassed] == (["b"] if key == "M" else [])
    if key in ("Ctrl+C", "Ctrl+X"):
        assert set(layer_clipboard.pasted().layers) == {"b"}
    elif key == "Ctrl+D":
        assert len(after) == len(before) + 1
    elif key == "Alt+Down":
        assert after["b"].position == (256, 16)
    assert ("b" in after) is (key not in ("Ctrl+X", "Del"))


def test_all_that_is_selected_is_dragged_with_the_collapsed_frame(window):
    collapse(window)
    press(window, "Ctrl+A")
    before = graph_of(window).copy()
    run = kit.at(window.canvas, QPointF(0, 160)) - kit.at(window.canvas, QPointF())
    start = kit.node(window.canvas, "b")
    kit.drag(window.canvas, start, start + run)
    graph = graph_of(window)
    assert {name: graph[name].position for name in "abcde"} == {
        name: (before[name].position[0], before[name].position[1] + 160) for name in "abcde"
    }
    assert graph.frames["f"].rect == (496, 96, 512, 192)
    press(window, "Ctrl+Z")
    assert graph_of(window) == before


def test_a_frame_is_renamed_while_a_panel_has_selected_what_is_hidden_in_it(window):
    collapse(window)
    window.context.select(("c",))
    said: list[str] = []
    window.context.message.connect(lambda _severity, text: said.append(text))
    (item,) = window.canvas.projection.collapsed_frames
    item.setSelected(True)
    assert window.context.selection == ("c",)
    press(window, "F2")
    kit.write(window, "other")
    assert graph_of(window).frames["f"].title == "other"
    assert said == []


@pytest.fixture
def two_boxes(window):
    """`b` and `c` with `d` in collapsed frames of their own."""
    document = window.context.document
    for key, rect in (("f", (496, -64, 512, 192)), ("g", (208, -64, 224, 192))):
        document.do(frames.set_frame(document.graph, key, Frame(key, key, rect=rect)))
        window.canvas.viewer.select_frame(window.canvas.projection.frame(key))
        press(window, "H")
    assert seen(window) == {"a", "e"}
    return window


def test_layers_of_a_second_frame_that_is_collapsed_are_no_longer_selected(two_boxes):
    """Also where another one is expanded in the same step."""
    window, canvas = two_boxes, two_boxes.canvas
    press(window, "Ctrl+Z")  # the second is open again
    assert seen(window) == {"a", "b", "e"}
    window.context.select(("a", "b"))
    press(window, "Ctrl+Y")
    assert (seen(window), window.context.selection, canvas.viewer.selected_names()) == ({"a", "e"}, ("a",), ["a"])
    press(window, "Ctrl+Z")
    window.context.select(("a", "b"))
    document, members = window.context.document, canvas.projection.members
    with document.group("Both"):
        for key in ("f", "g"):
            assert document.do(lambda g, key=key: frames.collapse(g, [], [key], members))
    assert (seen(window), window.context.selection) == (set("acde"), ("a",))


def test_links_follow_each_of_two_collapsed_frames_while_it_is_dragged(two_boxes):
    canvas, projection = two_boxes.canvas, two_boxes.canvas.projection
    assert projection.link("c", 0).isVisible()
    assert not projection.link("d", 0).isVisible()

    def follow() -> None:
        into_g, between, out_of_f = (projection.link(name, 0).path() for name in "bce")
        assert into_g.pointAtPercent(1) == projection.frame("g").end(is_input=True)
        assert between.pointAtPercent(0) == projection.frame("g").end(is_input=False)
        assert between.pointAtPercent(1) == projection.frame("f").end(is_input=True)
        assert out_of_f.pointAtPercent(0) == projection.frame("f").end(is_input=False)

    for key, run in (("f", QPoint(0, 96)), ("g", QPoint(0, -96))):
        before = projection.frame(key).rect
        start = kit.at(canvas, projection.frame(key).seen.topLeft() + QPointF(60, 14))
        QTest.mousePress(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
        QTest.mouseMove(canvas.viewer.viewport(), start + run)
        assert projection.frame(key).rect != before
        follow()
        QTest.mouseRelease(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, start + run)
        follow()


@pytest.mark.parametrize("ends", ["released", "cancelled"])
def test_two_collapsed_frames_are_dragged_with_the_selected_layers_and_an_open_frame_is_not(two_boxes, ends):
    """With the layers in them, in one undo step; meanwhile they are seen there, and Escape takes all of them back."""
    window, canvas, projection = two_boxes, two_boxes.canvas, two_boxes.canvas.projection
    document = window.context.document
    document.do(frames.set_frame(document.graph, "n", Frame("n", "Note", rect=(0, 320, 320, 160))))
    press(window, "Ctrl+A")
    projection.frame("n").setSelected(True)
    before, view = graph_of(window).copy(), canvas.viewer.viewport()
    start = kit.node(canvas, "e")
    run = kit.at(canvas, QPointF(0, 160)) - kit.at(canvas, QPointF())
    QTest.mousePress(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseMove(view, start + run)

    def shown() -> dict[str, float]:
        return {key: projection.frame(key).rect.top() for key in "fgn"} | {n: projection[n].pos().y() for n in "ae"}

    away, home = {"f": 96, "g": 96, "n": 320, "a": 160, "e": 160}, {"f": -64, "g": -64, "n": 320, "a": 0, "e": 0}
    assert shown() == away
    if ends == "cancelled":
        QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
        assert shown() == home
    QTest.mouseRelease(view, kit.LEFT, Qt.KeyboardModifier.NoModifier, start + run)
    if ends == "cancelled":
        assert graph_of(window) == before
        return
    graph = graph_of(window)
    assert {key: frame.rect[1] for key, frame in graph.frames.items()} == {"f": 96, "g": 96, "n": 320}
    assert {name: graph[name].position[1] for name in "abcde"} == dict.fromkeys("abcde", 160)
    assert shown() == away
    press(window, "Ctrl+Z")
    assert graph_of(window) == before
    assert shown() == home


def test_a_collapsed_frame_inside_of_another_is_hidden_with_it(window):
    document = window.context.document
    document.do(frames.set_frame(document.graph, "outer", Frame("outer", "outer", rect=(464, -160, 576, 384))))
    collapse(window)
    window.canvas.viewer.select_frame(window.canvas.projection.frame("outer"))
    press(window, "H")
    assert seen(window) == {"a", "b", "e"}
    assert [item.frame.id for item in window.canvas.projection.collapsed_frames] == ["outer"]
    assert not window.canvas.projection.frame("f").isVisible()
    window.structure.unfold("outer")
    assert window.canvas.projection.frame("f").isVisible()
    assert seen(window) == {"a", "b", "e"}


def test_what_a_frame_that_is_open_or_gone_once_contained_is_seen(window):
    """As in files that were written by other programs."""
    layers = [
        Layer(f"in_{frame}", "identity", (320 * n, 0), attributes={FOLDED: frame})
        for n, frame in enumerate(("open", "none", "shut", "deep", "deepest"))
    ]
    layers.append(Layer("next", "identity", (2000, 0), (Source("in_deepest"),)))
    outer = {
        "open": "",
        "shut": "",
        "a": "open",
        "b": "none",
        "c": "shut",
        "deep": "shut",
        "d": "open",
        "deepest": "deep",
    }
    shut = ("shut", "deep", "deepest", "d")
    show(
        window,
        Graph(
            layers,
            frames=[
                Frame(key, key, rect=(400 * n, 500, 300, 100), collapsed=key in shut, folded=around)
                for n, (key, around) in enumerate(outer.items())
            ],
        ),
    )
    items = window.canvas.projection

    def shown() -> tuple[set[str], set[str], set[str]]:
        frames_seen = {key for key in outer if items.frame(key).isVisible()}
        return frames_seen, seen(window), {item.frame.id for item in items.collapsed_frames}

    frames_seen = {"open", "shut", "a", "b", "d"}
    assert shown() == (frames_seen, {"in_open", "in_none", "next"}, {"shut", "d"})
    assert items.frame("shut").members == ("in_shut", "in_deep", "in_deepest")
    assert items.link("next", 0).source.center() == items.frame("shut").end(is_input=False)
    window.structure.unfold("shut")
    frames_seen |= {"c", "deep"}
    assert shown() == (frames_seen, {"in_open", "in_none", "next", "in_shut"}, {"deep", "d"})
    assert items.link("next", 0).source.center() == items.frame("deep").end(is_input=False)
    window.structure.unfold("deep")
    assert shown() == (
        frames_seen | {"deepest"},
        {"in_open", "in_none", "next", "in_shut", "in_deep"},
        {"deepest", "d"},
    )


def test_a_frame_takes_in_the_layers_whose_middle_is_in_it_and_the_frames_that_are_whole_in_it(window):
    """Wherever their corners are."""
    items, document = window.canvas.projection, window.context.document
    frame = QRectF(*graph_of(window).frames["f"].rect)
    half = items.entry("c").box().center() - items.entry("c").pos()
    for x, y, inside in (
        (frame.left() + 4, frame.center().y(), True),
        (frame.left() - 4, frame.center().y(), False),
        (frame.right() - 4, frame.center().y(), True),
        (frame.right() + 4, frame.center().y(), False),
        (frame.center().x(), frame.top() + 4, True),
        (frame.center().x(), frame.top() - 4, False),
        (frame.center().x(), frame.bottom() - 4, True),
        (frame.center().x(), frame.bottom() + 4, False),
    ):
        place = (round(x - half.x()), round(y - half.y()))
        document.do(lambda g, place=place: commands.move_layers(g, {"c": place, "d": (3000, 0)}))
        assert ("c" in items.members("f")[0]) is inside, (x, y)
        collapse(window)
        assert items.hides("c") is inside
        assert graph_of(window)["c"].folded == ("f" if inside else "")
        document.undo()
        document.undo()
    for rect, inside in (((500, -60, 200, 100), True), ((490, -60, 200, 100), False), ((900, -60, 120, 100), False)):
        document.do(lambda g, rect=rect: frames.set_frame(g, "g", Frame("g", "Other", rect=rect)))
        assert (items.members("f")[1] == ["g"]) is inside, rect
        document.undo()


def test_what_is_painted_for_a_folded_layer_is_the_box_of_its_frame(window):
    """In every scope of numbers: its area, its bounds in a list with other layers, and the ends of its links."""
    projection = window.canvas.projection
    open_areas = {name: projection.entry(name).area() for name in "abcde"}
    collapse(window)
    box = projection.frame("f").seen
    assert box != projection.frame("f").rect
    for name in "cd":
        entry = projection.entry(name)
        assert entry.area() == box
        assert entry.bounds() == (box.left(), box.top(), box.right(), box.bottom())
        assert entry.input_place(0) == (box.left(), box.center().y())
        assert entry.output_place("") == (box.right(), box.center().y())
    for name in "abe":
        assert projection.entry(name).area() == open_areas[name]
    press(window, "H")
    assert {name: projection.entry(name).area() for name in "abcde"} == open_areas


def test_zoom_to_hidden_layers_shows_the_box_of_their_frame_and_a_frame_is_made_around_what_is_shown(window):
    """A panel can select them."""
    collapse(window)
    canvas, document = window.canvas, window.context.document
    box = canvas.projection.frame("f").seen
    window.context.select(("c",))
    canvas.frame_selection()
    assert canvas.viewer.zoom == 1.0
    assert (canvas.viewer.visible_center() - box.center()).manhattanLength() <= 4
    canvas.viewer.go(QPointF(200, 700))
    made = {}
    for names in (("c",), (), ("b", "c"), ("b",)):
        window.context.select(names)
        canvas.add_frame()
        (made[names],) = (frame.rect for key, frame in document.graph.frames.items() if key != "f")
        assert canvas.viewer.selected_names() == []
        assert window.context.selection == ()
        kit.write(window, "A frame")
        document.undo()
        document.undo()
    assert made[("b", "c")] == made[("b",)]
    assert made[("c",)] == made[()]
    x, y, width, height = made[()]
    assert abs(x + width / 2 - 200) <= 16
    assert abs(y + height / 2 - 700) <= 16


def test_an_open_frame_takes_along_what_is_in_it_not_what_was_when_it_was_collapsed(window):
    collapse(window)
    press(window, "H")
    document = window.context.document
    document.do(lambda g: commands.move_layers(g, {"c": (512, 400), "e": (640, 0)}))
    start = kit.at(window.canvas, QPointF(520, -52))
    kit.drag(window.canvas, start, start + QPoint(0, -60))
    places = {layer.name: layer.position for layer in graph_of(window)}
    up = -64 - graph_of(window).frames["f"].rect[1]
    assert up > 0
    assert places == {"a": (0, 0), "b": (256, 0), "c": (512, 400), "d": (768, -up), "e": (640, -up)}
