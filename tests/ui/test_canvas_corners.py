"""What the canvas does in states that are seldom: a view that is let go, things dropped that it does not take, edits without a network."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import sys
from dataclasses import replace
from itertools import product
from random import Random
from types import ModuleType, SimpleNamespace

import canvas_kit as kit
from PySide6.QtCore import QMimeData, QPoint, QPointF, QRectF, Qt, QUrl
from PySide6.QtGui import QDragMoveEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from app.ui import canvas as canvas_package
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.difference_marks import GHOST
from app.ui.canvas.format_marks import MOST_TIPS
from app.ui.canvas.layer_index import LayerEntry
from app.ui.canvas.layout_boxes import MAX_LEVEL, levels_of
from app.ui.canvas.node_look import PortLook
from app.ui.canvas.viewer import FORMAT_MIME, OPERATOR_MIME
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from designer.graph import commands
from designer.graph.bypass import bypass
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, Frame, Layer, Source
from designer.graph.template import Template
from designer.operators.api import Category
from designer.operators.registry import default_registry

NONE = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def canvas(qtbot):
    made = kit.open_canvas(qtbot, kit.small_graph())
    made.viewer.zoom_by(0.7 / made.viewer.zoom)
    made.viewer.centerOn(480, 150)
    return made


def test_escape_while_the_view_is_dragged_lets_it_go_where_it_is(canvas):
    """The pointer is a hand only meanwhile, and moving it afterwards moves nothing."""
    view, start = canvas.viewer.viewport(), QPoint(600, 500)
    usual = view.cursor().shape()
    QTest.mousePress(view, kit.MIDDLE, NONE, start)
    assert view.cursor().shape() is Qt.CursorShape.ClosedHandCursor
    QTest.mouseMove(view, start + QPoint(40, 30))
    moved = canvas.viewer.visible_center()
    QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    assert view.cursor().shape() is usual
    assert canvas.viewer._gesture is None
    QTest.mouseMove(view, start + QPoint(90, 90))
    assert canvas.viewer.visible_center() == moved
    QTest.mouseRelease(view, kit.MIDDLE, NONE, start + QPoint(90, 90))
    assert canvas.viewer.visible_center() == moved
    assert canvas.context.selection == ()


def data(kind: str, content: bytes) -> QMimeData:
    mime = QMimeData()
    if kind == "files":
        mime.setUrls([QUrl.fromLocalFile("/tmp/a.xml")])
    else:
        mime.setData(kind, content)
    return mime


@pytest.mark.parametrize(
    ("kind", "content", "on_layer", "on_port", "nowhere"),
    [
        (OPERATOR_MIME, b"identity", True, True, True),
        (OPERATOR_MIME, "template:größe".encode(), True, True, True),
        (FORMAT_MIME, b"int8", True, True, False),
        ("files", b"", False, False, False),
        ("text/plain", b"identity", False, False, False),
    ],
)
def test_what_is_dragged_over_the_canvas_and_dropped_is_taken_where_it_has_a_meaning(
    canvas, kind, content, on_layer, on_port, nowhere
):
    viewer = canvas.viewer
    heard: list[tuple[object, ...]] = []
    viewer.operator_dropped.connect(lambda name, place: heard.append(("operator", name, place)))
    viewer.format_dropped.connect(lambda name, layer: heard.append(("format", name, layer)))
    canvas.viewer.operator_dropped.disconnect(canvas._on_dropped)
    how = (Qt.MouseButton.LeftButton, NONE)
    free = kit.at(canvas, QPointF(0, 400))
    for point, taken, layer in (
        (kit.node(canvas, "conv"), on_layer, "conv"),
        (kit.port(canvas, "cat", 1), on_port, "cat"),
        (free, nowhere, ""),
    ):
        mime = data(kind, content)
        move = QDragMoveEvent(point, Qt.DropAction.CopyAction, mime, *how)
        move.setAccepted(not taken)
        viewer.dragMoveEvent(move)
        assert move.isAccepted() is taken, layer
        drop = QDropEvent(QPointF(point), Qt.DropAction.CopyAction, mime, *how)
        drop.setAccepted(not taken)
        viewer.dropEvent(drop)
        assert drop.isAccepted() is taken, layer
        found, heard[:] = list(heard), []
        if not taken:
            assert found == []
        elif kind == FORMAT_MIME:
            assert found == [("format", "int8", layer)]
        else:
            assert found == [("operator", content.decode(), viewer.mapToScene(point))]


def test_a_canvas_without_a_network_does_nothing_that_needs_one(qtbot):
    context = Context(default_registry())
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.show()
    asked: list[object] = []
    assert canvas.do(asked.append) is None
    assert canvas.add(asked.append) is None
    canvas.delete_selection()
    canvas.delete_selection(heal=True)
    canvas.open_search(QPointF(), None)
    canvas._add("identity", QPointF(), None)
    canvas._add("unknown", QPointF(), None)
    assert canvas.templates() == []
    assert asked == []
    assert canvas.viewer.selected_names() == []
    assert canvas.viewer.layers_within(QRectF(-1e4, -1e4, 2e4, 2e4)) == []
    canvas.viewer.select_names(["a"])
    assert context.selection == ()


def test_an_operator_that_does_not_exist_is_refused_by_its_name(canvas):
    before = canvas.context.document.graph.copy()
    canvas._add("no_such", QPointF(0, 0), None)
    assert canvas.messages == [("error", "The operator 'no_such' is unknown: load its plugin, or add another one")]
    assert canvas.context.document.graph == before
    assert canvas.context.selection == ()


def test_a_selected_link_stays_selected_when_layers_that_are_not_shown_are_selected(canvas):
    """A panel can select what the canvas does not have; a layer that it has takes the place of the link."""
    link = canvas.projection.link("out", 0)
    canvas.viewer.select_link(link)
    assert canvas.viewer.selected_links() == [link]
    canvas.context.select(("conv",))
    assert canvas.viewer.selected_links() == []
    assert canvas.viewer.selected_names() == ["conv"]
    link.setSelected(True)
    canvas.context.select(("elsewhere",))
    assert canvas.viewer.selected_names() == []
    assert canvas.viewer.selected_links() == [link]
    canvas.context.select(("free",))
    assert (canvas.viewer.selected_names(), canvas.viewer.selected_links()) == (["free"], [])


def test_a_layer_that_is_not_measured_has_no_look_but_a_place(qapp):
    entry = LayerEntry("a", 10.0, 20.0, (240.0, 120.0))
    with pytest.raises(RuntimeError, match="'a' was not measured"):
        _ = entry.seen
    assert entry.bounds() == (2.0, 12.0, 250.0, 140.0)
    assert entry.area() == QRectF(2, 12, 248, 128)
    assert entry.box() == QRectF(10, 20, 160, 64)
    assert (entry.output_place(""), entry.output_place("other")) == ((170.0, 60.0), (170.0, 60.0))
    assert [entry.input_place(index) for index in range(3)] == [(10.0, 60.0), (10.0, 78.0), (10.0, 96.0)]


@pytest.mark.parametrize("count", [1, 2, MOST_TIPS - 1, MOST_TIPS, MOST_TIPS + 1, MOST_TIPS + 5])
def test_the_badge_of_a_collapsed_frame_names_its_first_layers_and_counts_the_others(qtbot, count):
    layers = [Layer("in", "input", (0, 0), params={"dims": "16x16x3"})]
    layers += [
        Layer(f"l{n:02}", "identity", (320, 160 * n), (Source("in"),), attributes={FOLDED: "f"}) for n in range(count)
    ]
    canvas = kit.open_canvas(qtbot, Graph(layers, frames=(Frame("f", "Frame", collapsed=True),)))
    formats = number_formats_of(canvas.context)
    names = [layer.name for layer in layers[1:]]
    formats.set_formats(dict.fromkeys(names, "int8"))
    (badge,) = canvas.formats.item.badges
    assert badge.text == "INT8"
    lines = badge.tip.replace("<br>", "\n").splitlines()
    own = names if count <= MOST_TIPS else names[: MOST_TIPS - 1]
    expected = [f"{name}: INT8" for name in own] if count > 1 else ["INT8"]
    expected += [f"and {count - len(own)} more"] if len(own) < count else []
    assert lines == expected


def test_items_far_away_stay_while_something_is_dragged_and_go_afterwards(canvas, monkeypatch):
    projection, viewer = canvas.projection, canvas.viewer
    assert all(name in projection._nodes for name in ("input", "out"))
    busy = [True]
    monkeypatch.setattr(type(viewer), "busy", property(lambda _viewer: busy[0]))
    viewer.centerOn(1e6, 1e6)
    projection._trimming.stop()
    projection._trim()
    assert projection._trimming.isActive(), "it is tried again later"
    assert set(projection._nodes) == set(projection.layers)
    busy[0] = False
    projection._trimming.stop()
    canvas.context.select(("conv",))
    projection._trim()
    assert not projection._trimming.isActive()
    assert "conv" in projection._nodes, "it is selected"
    assert "free" not in projection._nodes


def reaches(ends: tuple[tuple[float, float], tuple[float, float]], area: QRectF) -> bool:
    """Whether the rectangle between two ends of a link intersects an area."""
    (x, y), (at_x, at_y) = ends
    return QRectF(QPointF(x, y), QPointF(at_x, at_y)).normalized().intersects(area)


def test_a_large_network_keeps_few_items_when_the_view_moves_along_it(qtbot, monkeypatch):
    """Those near the view with their links, the other ends of these, and the links that cross the view; the others are made
    again when they come into view."""
    for name, value in (("EAGER", 0), ("BUDGET", 6), ("TRIM_MS", 10**6)):
        monkeypatch.setattr(f"app.ui.canvas.projection.{name}", value)
    layers = [Layer("l0", "input", (0, 0), params={"dims": "16x16x3"})]
    layers += [Layer(f"l{n}", "identity", (320 * n, 0), (Source(f"l{n - 1}"),)) for n in range(1, 24)]
    layers.append(Layer("far", "identity", (320 * 23, 160), (Source("l0"),)))
    canvas = kit.open_canvas(qtbot, Graph(layers), (700, 400))
    viewer, projection = canvas.viewer, canvas.projection
    qtbot.waitUntil(lambda: not projection.busy)
    viewer.zoom_by(1 / viewer.zoom)
    for place, y in ((0, 0), (5000, 0), (0, 0), (7000, 0), (0, 9000), (3500, 0)):
        projection._trimming.stop()
        viewer.go(QPointF(place, y))
        viewer.repaint()
        seen = viewer.seen()
        near = {name for name in projection.layers if projection.entry(name).area().intersects(seen)}
        assert near <= projection.whole
        assert projection._trimming.isActive() is (len(projection._nodes) > 6), place
        crossing = {edge.key for edge in projection.links if reaches(projection.ends(edge), seen)}
        assert (("far", 0) in crossing) is (y == 0)
        assert {edge.key for edge in projection.links if edge.item is None}.isdisjoint(crossing)
        projection._trimming.stop()
        projection._trim()
        assert {edge.key for edge in projection.links if edge.item is None}.isdisjoint(crossing)
        around = seen.adjusted(-seen.width(), -seen.height(), seen.width(), seen.height())
        kept = {name for name in projection.layers if projection.entry(name).area().intersects(around)}
        assert near <= kept
        assert near <= projection.whole <= kept
        linked = {edge.key[0]: edge.source.layer for edge in projection.links if edge.item is not None}
        reach = around.adjusted(-400, 0, 400, 0)
        for name, source in linked.items():
            ends = [projection.entry(end).area() for end in (name, source)]
            assert ends[0].united(ends[1]).intersects(reach), name
        assert {name for name in near if name not in linked} <= {"l0"}
        assert set(projection._nodes) == kept & set(projection._nodes) | linked.keys() | set(linked.values())
        assert not projection._trimming.isActive()


def test_points_of_links_are_removed_from_a_selected_link_that_has_some(canvas):
    document, routes = canvas.context.document, canvas.routes
    before = document.graph.copy()
    routes.remove()
    canvas.viewer.select_link(canvas.projection.link("out", 0))
    routes.remove()
    assert document.graph == before
    canvas.viewer.menu_place = None
    routes.add()
    assert len(canvas.projection.link("out", 0).points) == 1
    routes.remove()
    assert document.graph == before
    assert canvas.messages == []


def test_a_click_that_trembles_moves_neither_a_layer_nor_a_frame(canvas):
    document = canvas.context.document
    document.do(commands.add_layer(document.graph, Layer("more", "identity", (320, 320))))
    document.history.mark_clean()
    view = canvas.viewer.viewport()
    for away in (QPoint(1, 0), QPoint(0, 2)):
        start = kit.node(canvas, "more")
        QTest.mousePress(view, kit.LEFT, NONE, start)
        QTest.mouseMove(view, start + away)
        QTest.mouseRelease(view, kit.LEFT, NONE, start + away)
        assert document.history.is_clean
        assert canvas.projection["more"].pos() == QPointF(320, 320)
        assert canvas.context.selection == ("more",)


def test_levels_of_layers_follow_their_images_and_those_of_the_smallest_producer_else(qapp):
    """Halved so many times; tensors without height and width, unknown layers and loops have the level of what they read."""
    half = {"size": "2x2", "stride": "2x2"}
    layers = [
        Layer("in", "input", params={"dims": "64x32x3"}),
        Layer("p1", "pooling", inputs=(Source("in"),), params=half),
        Layer("p2", "pooling", inputs=(Source("p1"),), params=half),
        Layer("p3", "pooling", inputs=(Source("p2"),), params=half),
        Layer("f1", "flatten", inputs=(Source("p1"),)),
        Layer("f3", "flatten", inputs=(Source("p3"),)),
        Layer("both", "concatenation", inputs=(Source("f1"), Source("f3"))),
        Layer("again", "concatenation", inputs=(Source("f3"), Source("f1"))),
        Layer("strange", "of_a_plugin", inputs=(Source("in"), Source("p2"))),
        Layer("after", "of_a_plugin", inputs=(Source("strange"),)),
        Layer("loop_a", "of_a_plugin", inputs=(Source("loop_b"), Source("p1"))),
        Layer("loop_b", "of_a_plugin", inputs=(Source("loop_a"),)),
        Layer("alone", "of_a_plugin"),
        Layer("small", "input", params={"dims": "1x1x3"}),
    ]
    document = Document(Graph(layers), default_registry())
    assert levels_of(document) == {
        "in": 0, "p1": 1, "p2": 2, "p3": 3, "f1": 1, "f3": 3, "both": 3, "again": 3, "strange": 2, "after": 2,
        "loop_a": 1, "loop_b": 1, "alone": 0, "small": 6,
    }  # fmt: skip
    assert levels_of(Document(Graph(), default_registry())) == {}
    huge = [Layer("in", "input", params={"dims": "65536x65536x1"}), Layer("dot", "input", params={"dims": "1x1x1"})]
    assert levels_of(Document(Graph(huge), default_registry())) == {"in": 0, "dot": MAX_LEVEL}


def test_links_into_and_out_of_an_item_follow_it_at_once_and_so_does_its_block_from_afar(canvas):
    """While it is dragged the document still has its old place."""
    projection, viewer = canvas.projection, canvas.viewer
    item = projection["cat"]
    into, out = projection.link("cat", 0), projection.link("out", 0)
    before = projection.entry("cat").pos()
    item.move_to(QPointF(700, 240))
    assert into.path().pointAtPercent(1) == into.target.center() == item.inputs[0].center()
    assert out.path().pointAtPercent(0) == out.source.center() == item.outputs[0].center()
    assert projection.entry("cat").pos() == before
    viewer.far_changed()
    far = projection.collect_far()
    block = item.layout.block.translated(QPointF(700, 240))
    assert [rects for rects in far.blocks.values() if block in rects]
    old = item.layout.block.translated(before)
    assert not [rects for rects in far.blocks.values() if old in rects]
    item.move_to(before)


def test_from_afar_the_activation_of_a_bypassed_layer_is_pale_with_it(canvas):
    document, projection = canvas.context.document, canvas.projection

    def tabs() -> tuple[int, int]:
        far = projection.collect_far()
        return len(far.blocks.get(Category.ACTIVATION, [])), len(far.ghosts.get(Category.ACTIVATION, []))

    document.do(lambda g: commands.set_params(g, {"conv": {"features": "3"}}))  # it can be bypassed
    assert tabs() == (1, 0)
    document.do(lambda g: bypass(g, document.inference, ["conv"]))
    assert projection["conv"].look.bypassed
    assert tabs() == (0, 1)
    document.undo()
    assert tabs() == (1, 0)


@pytest.mark.parametrize(
    ("added", "changed", "moved", "sign"),
    [(1, 1, 0, "~"), (1, 0, 0, "+"), (0, 1, 0, "~"), (0, 0, 1, "→"), (1, 0, 1, "~"), (1, 1, 1, "~")],
)
def test_the_mark_of_a_collapsed_frame_is_that_of_its_layers_if_they_have_the_same(qtbot, added, changed, moved, sign):
    folded = {"attributes": {FOLDED: "f"}}
    layers = [
        Layer("in", "input", (0, 0), params={"dims": "16x16x3"}),
        Layer("conv", "convolution", (320, 0), (Source("in"),), {"features": "4"}, **folded),
        Layer("new", "identity", (320, 160), (Source("in"),), **folded),
        Layer("plain", "identity", (320, 320), (Source("in"),), **folded),
    ]
    canvas = kit.open_canvas(qtbot, Graph(layers, frames=(Frame("f", "Frame", collapsed=True),)))
    before = [
        replace(layer, params={"features": "8"}) if layer.name == "conv" and changed else layer for layer in layers
    ]
    before = [layer for layer in before if layer.name != "new" or not added]
    before = [replace(layer, position=(320, 480)) if layer.name == "plain" and moved else layer for layer in before]
    context = canvas.context
    context.comparison.with_graph(Graph(before, frames=(Frame("f", "Frame", collapsed=True),)), "before")
    box = canvas.projection.frame("f").seen
    qtbot.waitUntil(lambda: bool(canvas.differences.item.marks))
    assert [(mark.sign, mark.rect) for mark in canvas.differences.item.marks] == [(sign, box)]


def using(name: str, *others: str) -> Template:
    """A template with an instance of each of the others in a row."""
    layers = [Layer("x", "template_input")]
    for other in others:
        layers.append(Layer(f"use_{other}", "template", (320, 0), (Source(layers[-1].name),), {"template": other}))
    return Template(name, (*layers, Layer("y", "template_output", (640, 0), (Source(layers[-1].name),))))


def test_a_template_is_not_offered_where_it_would_contain_itself_on_any_way(qtbot):
    templates = (
        using("outer", "inner"),
        using("inner", "least"),
        using("least"),
        using("around", "other", "outer"),
        using("other"),
    )
    layers = [
        Layer("in", "input", params={"dims": "16x16x3"}),
        Layer("first", "template", (320, 0), (Source("in"),), {"template": "around"}),
        Layer("second", "template", (640, 0), (Source("first"),), {"template": "outer"}),
    ]
    canvas = kit.open_canvas(qtbot, Graph(layers, templates=templates))
    names = sorted(template.name for template in templates)
    for way, refused in (
        ((), {}),
        (("second",), {"outer": "outer", "around": "outer"}),
        (("second", "use_inner"), {"outer": "outer", "around": "outer", "inner": "inner"}),
        (
            ("second", "use_inner", "use_least"),
            {"outer": "outer", "around": "outer", "inner": "inner", "least": "least"},
        ),
        (("first",), {"around": "around"}),
        (("first", "use_other"), {"around": "around", "other": "other"}),
        (("first", "use_outer"), {"around": "around", "outer": "outer"}),
    ):
        assert canvas.context.set_scope(())
        for instance in way:
            assert canvas.context.enter(instance)
        found = canvas.templates()
        assert [name for name, _ in found] == names
        texts = {name: f"the template '{outermost}' would use itself" for name, outermost in refused.items()}
        assert {name: why for name, why in found if why} == texts, way


def test_what_an_empty_canvas_says(qtbot):
    """The welcome for an empty network where it has room, else a hint, as in an empty template; nothing where layers or frames are."""
    templates = (Template("empty", ()), using("full"))
    context = Context(default_registry())
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.resize(600, 400)
    welcome = QLabel("welcome")
    welcome.setMinimumSize(300, 200)
    hint = canvas.findChild(QLabel, "canvas.hint")

    def shown() -> str:
        return "".join(
            (("welcome " if not welcome.isHidden() else ""), ("hint" if not hint.isHidden() else ""))
        ).strip()

    layer, frame = Layer("a", "identity"), Frame("f", "Note")
    graphs = {
        "empty": Graph(templates=templates),
        "a layer": Graph([layer], templates=templates),
        "a frame": Graph(frames=[frame], templates=templates),
        "both": Graph([layer], frames=[frame], templates=templates),
    }
    documents = {name: Document(graph, context.registry, parent=context) for name, graph in graphs.items()}
    canvas.show()
    qtbot.waitExposed(canvas)
    assert shown() == ""  # no network is open
    for name, document in documents.items():
        context.set_document(document)
        assert shown() == ("hint" if name == "empty" else ""), "the welcome is made later"
    context.set_document(documents["empty"])
    canvas.show_when_empty(welcome)
    assert shown() == "welcome"
    for name, document in documents.items():
        context.set_document(document)
        assert shown() == ("welcome" if name == "empty" else ""), name
    context.set_document(documents["empty"])
    assert context.enter("empty")
    assert shown() == "hint"
    context.leave()
    assert shown() == "welcome"
    for size, what in (((300, 200), "welcome"), ((299, 400), "hint"), ((600, 199), "hint"), ((600, 400), "welcome")):
        canvas.resize(*size)
        assert shown() == what, size
        middle = canvas.viewer.rect().center()
        assert (welcome.geometry().center() - middle).manhattanLength() <= 2
        assert hint.geometry() == canvas.viewer.rect()
    document = documents["empty"]
    document.do(lambda g: commands.add_layer(g, layer))
    assert shown() == ""
    document.undo()
    assert shown() == "welcome"
    canvas.viewer.pan(QPoint(40, 30))
    assert (welcome.geometry().center() - canvas.viewer.rect().center()).manhattanLength() <= 2


def test_the_sign_of_a_layer_is_that_of_its_largest_difference(canvas):
    """Added before changed in any way before moved; in another network that is shown, removed ones are ghosts where they were."""
    kinds = ("moved", "instance", "changed", "rewired", "renamed", "added")
    marker, projection = canvas.differences, canvas.projection
    other = Graph([Layer("gone", "identity", (40, 600)), Layer("conv", "identity")])
    shown = SimpleNamespace(moved=(), changed=(), rewired=(), renamed={}, added=(), removed=())
    comparison = SimpleNamespace(
        other=other, shown=lambda: shown, shown_instances=lambda: instances, shown_other=lambda: shown_other
    )
    marker._context = SimpleNamespace(has_document=True, document=canvas.context.document, comparison=comparison)
    for flags in product((False, True), repeat=len(kinds)):
        on = {kind for kind, flag in zip(kinds, flags, strict=True) if flag}
        names = {kind: ("conv",) if kind in on else () for kind in kinds}
        instances = frozenset(names["instance"])
        shown.moved, shown.changed, shown.rewired, shown.added = (
            names[k] for k in ("moved", "changed", "rewired", "added")
        )
        shown.renamed = {"before": "conv"} if "renamed" in on else {}
        for shown.removed, shown_other in (((), other), (("gone", "nowhere"), other), (("gone",), None)):
            marker.refresh()
            sign = "+" if "added" in on else "~" if on - {"moved"} else "→" if on else ""
            wanted = [(sign, projection.entry("conv").area(), "")] if sign else []
            wanted += [("−", QRectF(40, 600, *GHOST), "gone")] if shown.removed and shown_other is not None else []
            assert [(mark.sign, mark.rect, mark.ghost) for mark in marker.item.marks] == wanted, on
            assert marker.item.isVisible() is bool(wanted)
    shown.added, shown.moved = ("nowhere",), ("elsewhere",)
    comparison.other, instances, shown_other = None, frozenset(), None
    marker.refresh()
    assert marker.item.marks == []


@pytest.mark.parametrize("seed", range(3))
def test_the_tip_of_a_port_after_any_steps(canvas, seed):
    """Why it is refused, as long as it is; else what it takes, with what it carries once the pointer was over it."""
    dice, item = Random(seed), canvas.projection["cat"]
    looks = (PortLook("x", "x, rank 4"), PortLook("y", "y, rank 2"))
    for dot in (item.inputs[0], item.inputs[-1], item.outputs[0]):
        look, refusal, misfit, over, hovered = dot.look, "", "", False, False
        for _ in range(60):
            step = dice.choice(("refuse", "refuse", "look", "enter", "leave"))
            if step == "refuse":
                new = dice.choice((("", ""), ("", "rank"), ("", "type"), ("full", ""), ("full", "rank"), ("loop", "")))
                over = over and new == (refusal, misfit)
                refusal, misfit = new
                dot.refuse(*new)
            elif step == "look":
                new_look = dice.choice(looks)
                if new_look != look:  # a node that changes refuses nothing
                    look, over, refusal, misfit = new_look, False, "", ""
                    dot.refuse("")
                dot.show_look(new_look)
            elif step == "enter":
                over, hovered = over or not (refusal or misfit), True
                dot.hoverEnterEvent(None)
            else:
                hovered = False
                dot.hoverLeaveEvent(None)
            if refusal:
                tip = f"Cannot connect here: {refusal}"
            elif misfit:
                tip = f"Type mismatch: {misfit}. The link can still be connected here."
            else:
                carried = dot.carried()
                tip = f"{look.tip}, currently {carried}" if over and carried else look.tip
            assert (dot.toolTip(), dot.hovered, dot.grayed) == (tip, hovered, bool(refusal or misfit))
    assert item.inputs[0].carried() == "8 x 48 x 64 float32"
    assert item.inputs[-1].carried() == ""
    assert item.outputs[0].carried() == "11 x 48 x 64 float32"


def test_what_the_pointer_is_on_is_hovered_and_nothing_else(canvas):
    """The tip of a port then says what it carries."""
    viewer, items = canvas.viewer, canvas.projection
    canvas.context.select(())
    viewer.frame_all()
    link = items.link("cat", 0)
    spots = {
        "nothing": QPoint(4, 4),
        "input": kit.port(canvas, "cat"),
        "output": kit.output(canvas, "conv"),
        "last": kit.output(canvas, "cat"),
        "node": kit.node(canvas, "cat"),
        "link": kit.at(canvas, link.path().pointAtPercent(0.5)),
    }

    def hovered() -> list[str]:
        dots = (dot for name in items.layers for dot in (*items[name].inputs, *items[name].outputs))
        found = [f"{dot.node.layer} {'input' if dot.is_input else 'output'} {dot.index}" for dot in dots if dot.hovered]
        return found + [f"link {edge.key}" for edge in items.links if edge.item.emphasized]

    wanted = {
        "nothing": [],
        "input": ["cat input 0"],
        "output": ["conv output 0"],
        "last": ["cat output 0"],
        "node": [],
        "link": ["link ('cat', 0)"],
    }
    for before, after in product(spots, repeat=2):
        if before == after:
            continue
        for place in (before, after):
            QTest.mouseMove(viewer.viewport(), spots[place])
            QApplication.processEvents()
            assert hovered() == wanted[place], (before, after)
    for dot, channels in ((items["cat"].inputs[0], 8), (items["conv"].outputs[0], 8), (items["cat"].outputs[0], 11)):
        assert dot.toolTip() == f"{dot.look.tip}, currently {channels} x 48 x 64 float32"
    assert items["cat"].inputs[1].toolTip() == items["cat"].inputs[1].look.tip


@pytest.mark.parametrize("loaded", [(), ("distutils", "distutils.version"), ("distutils", "distutils.version", "Qt")])
def test_modules_that_were_loaded_before_the_canvas_stay(monkeypatch, loaded):
    """Its library is imported with others in their place: a plugin may have loaded the real ones."""
    names = ("distutils", "distutils.version", "Qt")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in loaded:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    before = {name: sys.modules.get(name) for name in names}
    canvas_package._import_library()
    assert {name: sys.modules.get(name) for name in names} == before
