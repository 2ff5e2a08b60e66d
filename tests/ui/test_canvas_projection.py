"""The items equal the document after any change, and nodes show what is known of their layers."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import random
from dataclasses import replace

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, QRectF, QSizeF, QTimer
from PySide6.QtGui import QColor, QFont, QGuiApplication
from PySide6.QtWidgets import QLabel

from app.ui.canvas import layer_clipboard
from app.ui.canvas import projection as module
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.layer_index import LayerIndex
from app.ui.canvas.node_layout import layout
from app.ui.canvas.node_look import node_look
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import theme
from designer.graph import commands, frames
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.operators.api import Category
from designer.operators.registry import default_registry


@pytest.fixture
def context(qapp):
    return Context(default_registry())


def shown(qtbot, context, graph) -> Canvas:
    canvas = context.canvas = Canvas(context)  # kept until the end: qtbot does not, and it is painted once more
    canvas.context = context
    qtbot.addWidget(canvas)
    canvas.resize(1200, 600)
    canvas.show()
    qtbot.waitExposed(canvas)
    context.set_document(Document(graph, context.registry, parent=context))
    return canvas


def test_random_edits_undo_and_redo(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    document = context.document
    kit.check(canvas, document)
    dice = random.Random(7)
    for step in range(120):
        names = list(document.graph.layers)
        what = dice.choice(["add", "remove", "connect", "cut", "rename", "move", "undo", "redo", "param", "paste"])
        one, two = dice.choice(names), dice.choice(names)
        context.select(tuple(dice.sample(names, min(2, len(names)))))
        if what == "add":
            kind = dice.choice(["convolution", "concatenation", "pooling", "mystery"])
            document.do(lambda g, k=kind, s=step: commands.add_layer(g, Layer(f"new_{s}", k, (16 * s, 0))))
        elif what == "remove" and len(names) > 3:
            document.do(lambda g, n=one, h=step % 2 == 1: commands.remove_layers(g, [n], heal=h))
        elif what == "connect":
            index = dice.randrange(2)
            document.do(lambda g, a=one, b=two, i=index: commands.connect(g, Source(a), b, i))
        elif what == "cut":
            document.do(lambda g, n=one, c=step % 2 == 1: commands.disconnect(g, n, 0, close_gap=c))
        elif what == "rename":
            document.do(lambda g, n=one, s=step: commands.rename_layer(g, n, f"renamed_{s}"))
        elif what == "move":
            document.do(lambda g, n=one, s=step: commands.move_layers(g, {n: (16 * s, 32)}))
        elif what == "param":
            document.do(lambda g, n=one, s=step: commands.set_params(g, {n: {"features": str(1 + s)}}))
        elif what == "paste":
            document.do(lambda g, n=one: commands.paste(g, [g[n]], keep_links=True))
        elif what == "undo":
            document.undo()
        elif what == "redo":
            document.redo()
        kit.check(canvas, document)


def test_rename_keeps_item_selection_and_links(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    item = canvas.projection["conv"]
    context.select(("conv",))
    canvas.do(lambda d: commands.rename_layer(d.graph, "conv", "encoder"))
    assert canvas.projection["encoder"] is item
    assert item.look.name == "encoder"
    assert context.selection == ("encoder",)
    kit.check(canvas, context.document)


def test_node_shows_name_type_summary_shape_and_activation(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    look = canvas.projection["conv"].look
    assert (look.name, look.title, look.activation) == ("conv", "Convolution", "relu")
    assert look.summary == context.registry.get("convolution")(features=8).summary()
    assert look.shapes == ("8 x 48 x 64",)
    assert look.category is Category.CONVOLUTION
    assert canvas.projection.link("cat", 0).label == "8 x 48 x 64"
    assert canvas.projection["cat"].look.summary == "2 inputs"


def test_only_the_first_output_is_at_the_tab_of_the_activation(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    lstm = Layer("lstm", "lstm", (320, 480), (), {}, ActivationSpec("leaky_relu"))
    context.document.do(lambda g: commands.add_layer(g, lstm))
    item = canvas.projection["lstm"]
    box, tab = item.layout.box, item.layout.tab
    assert tab.left() == box.right()
    assert [dot.pos().x() for dot in item.outputs] == [tab.right(), box.right(), box.right()]
    assert [dot.pos().x() for dot in item.inputs] == [0.0] * len(item.inputs)
    heights = [dot.pos().y() for dot in item.outputs]
    assert heights == sorted(set(heights))
    assert abs(tab.center().y() - heights[0]) < 2
    kit.check_indexes(canvas)


def test_no_text_is_wider_than_its_node(qtbot, context):
    from app.ui.canvas.node_layout import PAD, fonts

    layers = [
        Layer("a" * 60, "convolution"),
        Layer("m", "mix", (0, 200)),
        Layer("x", "a_type_nobody_has_ever_heard_of"),
    ]
    canvas = shown(qtbot, context, Graph(layers))
    f = fonts()
    for name in canvas.projection.layers:
        item = canvas.projection[name]
        room = item.layout.box.width() - 2 * PAD
        assert f.name_metrics.horizontalAdvance(item.look.name) <= room
        margins = item.layout.left + item.layout.right
        assert f.small_metrics.horizontalAdvance(item.look.title) + margins <= room
        assert f.mono_metrics.horizontalAdvance(item.look.summary) + margins <= room
        assert item.layout.bounds.contains(item.layout.box)


def test_nodes_are_as_large_as_the_font_of_the_application_requires(qtbot, context):
    canvas, font = shown(qtbot, context, kit.small_graph()), QGuiApplication.font()
    small = layout(canvas.projection["cat"].look)
    larger, in_pixels = QFont(font), QFont(font)
    dots = QGuiApplication.primaryScreen().logicalDotsPerInch()
    in_pixels.setPixelSize(24)  # some desktops give it in pixels
    larger.setPointSizeF(24 * 72 / dots)
    try:
        QGuiApplication.setFont(larger)
        large = layout(canvas.projection["cat"].look)
        QGuiApplication.setFont(in_pixels)
        assert layout(canvas.projection["cat"].look) == large
    finally:
        QGuiApplication.setFont(font)
    assert large.header > 1.5 * small.header
    assert large.box.height() > 1.3 * small.box.height()
    assert layout(canvas.projection["cat"].look) == small


@pytest.mark.parametrize(
    ("below", "around"), [(-90, False), (-40, True), (-2, True), (1, True), (3, False), (300, False)]
)
def test_links_go_around_a_layer_and_the_shape_below_it(qtbot, context, below, around):
    """`below` is how far the line of the link is below the text that is below the box."""
    layers = [
        Layer("in", "input", (0, 0), params={"dims": "64x48x3"}),
        Layer("between", "identity", (640, 0), (Source("in"),)),
        Layer("out", "output", (1280, 0), (Source("in"),)),
    ]
    canvas = shown(qtbot, context, Graph(layers))
    link, between = canvas.projection.link("out", 0), canvas.projection["between"]
    assert between.look.under
    text = between.layout.bounds.bottom()
    top = round(link.source.center().y() - text - below)
    context.document.do(lambda g: commands.move_layers(g, {"between": (640, top)}))
    assert (link.path().boundingRect().height() > 2) is around


def test_the_tips_of_ports_number_those_of_one_kind_from_1(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    tips = [dot.toolTip() for dot in canvas.projection["cat"].inputs]
    assert len(tips) == 3  # one is free
    assert all(f"x {number}" in tip for number, tip in enumerate(tips, 1))


def test_problems_are_marked_and_reach_downstream(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    assert canvas.projection["free"].look.problem == "error"
    context.document.do(lambda g: commands.set_params(g, {"conv": {"kernel": "banana"}}))
    assert canvas.projection["conv"].look.problem == "error"
    assert "banana" in canvas.projection["conv"].toolTip()
    assert canvas.projection["cat"].look.problem == "unknown"
    assert canvas.projection.link("cat", 0).label == ""
    context.document.undo()
    assert canvas.projection["cat"].look.problem == ""
    assert canvas.projection.link("cat", 0).label == "8 x 48 x 64"


def test_node_is_painted_in_its_category_colour(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    canvas.viewer.resetTransform()
    canvas.viewer.frame_rect(canvas.projection["conv"].sceneBoundingRect())
    image = canvas.viewer.viewport().grab().toImage()
    point = canvas.viewer.mapFromScene(canvas.projection["conv"].pos() + QPointF(130, 4))
    ratio = image.devicePixelRatio()
    found = QColor(image.pixel(round(point.x() * ratio), round(point.y() * ratio)))
    wanted = theme.category(Category.CONVOLUTION)
    assert abs(found.red() - wanted.red()) + abs(found.green() - wanted.green()) < 12


def test_copy_and_paste_as_text(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    context.select(("conv", "cat"))
    canvas.copy_selection()
    text = QGuiApplication.clipboard().text()
    assert "<NetworkModel" in text
    assert 'name="conv"' in text
    canvas.paste()
    graph = context.document.graph
    assert context.selection == ("cat_0", "conv_0") or set(context.selection) == {"cat_0", "conv_0"}
    assert graph["conv_0"].activation == graph["conv"].activation
    assert graph["cat_0"].inputs == (Source("conv_0"),)
    canvas.paste(keep_links=True)
    assert graph["cat_1"].inputs == (Source("conv_1"), Source("input"))
    context.document.undo()
    context.document.undo()
    assert "conv_0" not in graph
    kit.check(canvas, context.document)


def test_paste_of_plain_text_from_elsewhere(qtbot, context):
    canvas = shown(qtbot, context, Graph())
    QGuiApplication.clipboard().setText(
        '<?xml version="1.0"?>\n<NetworkModel name="x" version="2" user_version_tag="1">\n'
        '\t<Layer name="p" type="pooling" edit_pos="0,0" />\n</NetworkModel>\n'
    )
    assert layer_clipboard.can_paste()
    canvas.paste()
    assert list(context.document.graph.layers) == ["p"]


def test_the_clipboard_is_looked_at_once_after_each_change(qtbot, context, monkeypatch):
    asked = []
    can_paste = layer_clipboard.can_paste
    monkeypatch.setattr(layer_clipboard, "can_paste", lambda: asked.append(1) or can_paste())
    QGuiApplication.clipboard().setText("a letter")
    held = layer_clipboard.ClipboardWatch(context)
    assert [held.layers() for _ in range(3)] == [False] * 3
    assert len(asked) == 1
    with qtbot.waitSignal(held.changed):
        QGuiApplication.clipboard().setText('<NetworkModel name="x" version="2"></NetworkModel>')
    assert [held.layers() for _ in range(3)] == [can_paste()] * 3 == [True] * 3
    assert len(asked) == 2


@pytest.mark.parametrize("text", ["hello", "<NetworkModel", "<NetworkModel><Layer/></NetworkModel>"])
def test_paste_of_something_else_is_refused(qtbot, context, text):
    canvas = shown(qtbot, context, kit.small_graph())
    QGuiApplication.clipboard().setText(text)
    with qtbot.waitSignal(context.document.refused):
        canvas.paste()
    assert context.document.history.is_clean


def test_cut_duplicate_and_heal(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    graph = context.document.graph
    context.select(("cat",))
    canvas.delete_selection(heal=True)
    assert graph["out"].inputs == (Source("conv"),)
    context.document.undo()
    context.select(("conv",))
    canvas.duplicate_selection(keep_links=True)
    assert graph["conv_0"].inputs == (Source("input"),)
    assert graph["conv_0"].position == (352, 272)  # clear of the others
    context.select(("conv",))
    canvas.cut_selection()
    assert "conv" not in graph
    assert graph["cat"].inputs == (None, Source("input"))
    kit.check(canvas, context.document)


def test_adding_from_the_palette_by_key_connects_to_the_selection(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    context.select(("conv",))
    context.add_requested.emit("pooling")
    assert context.document.graph["pooling_0"].inputs == (Source("conv"),)
    assert context.selection == ("pooling_0",)
    kit.check(canvas, context.document)


def test_another_document_replaces_everything(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    first = context.document
    context.set_document(Document(Graph([Layer("only", "input")]), context.registry, parent=context))
    kit.check(canvas, context.document)
    first.do(lambda g: commands.remove_layers(g, ["conv"]))  # the old one is not listened to any more
    kit.check(canvas, context.document)
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert not list(canvas.projection.layers)
    assert canvas.findChild(QLabel, "canvas.hint").isVisible()


def test_a_thousand_layers_open(qtbot, context):
    conv = {"features": "8", "kernel": "3x3", "padding": "same"}
    layers = [Layer("n0", "input", params={"dims": "64x64x8"})]
    layers += [
        Layer(f"n{i}", "convolution", (320 * (i % 40), 160 * (i // 40)), (Source(f"n{i - 1}"),), conv)
        for i in range(1, 1000)
    ]
    graph = Graph(layers)
    canvas = shown(qtbot, context, graph)
    assert len(list(canvas.projection.layers)) == 1000
    context.document.do(lambda g: commands.move_layers(g, {"n500": (0, -320)}))
    context.document.do(lambda g: commands.remove_layers(g, ["n500"], heal=True))
    assert canvas.projection.get("n500") is None


def chain(count: int) -> Graph:
    sources = [(), *((Source(f"l{number}"),) for number in range(count - 1))]
    places = [(300 * (number % 20), 200 * (number // 20)) for number in range(count)]
    return Graph(
        Layer(f"l{number}", "identity", place, inputs=inputs)
        for number, (inputs, place) in enumerate(zip(sources, places, strict=True))
    )


def test_the_far_view_of_a_large_network_is_collected_over_several_frames(qtbot, context, monkeypatch):
    projection = shown(qtbot, context, chain(400)).projection
    block = projection.entry("l0").layout.block
    far = projection.collect_far()
    assert projection.collect_blocks()
    before = far.blocks
    monkeypatch.setattr(module, "FRAME_MS", 0)
    context.document.do(lambda g: commands.move_layers(g, {"l0": (-320, -320)}))
    turns = 1
    while not projection.collect_blocks():
        assert far.blocks is before  # the previous one is shown until then
        turns += 1
    assert turns > 4
    assert any(block.translated(-320, -320) in rects for rects in far.blocks.values())


def test_the_item_of_a_link_far_away_is_made_when_it_is_asked_for(qtbot, context):
    canvas = shown(qtbot, context, chain(400))
    assert canvas.projection.links
    assert "l399" not in {item.layer for item in canvas.viewer.layer_items()}
    link = canvas.projection.link("l399", 0)
    assert link is not None
    assert (link.source.node.layer, link.target.node.layer) == ("l398", "l399")
    assert canvas.projection.link("l399", 1) is None


def test_layers_that_are_dragged_do_not_put_off_the_far_view(qtbot, context, monkeypatch):
    projection = shown(qtbot, context, chain(400)).projection
    far = projection.collect_far()
    before = far.blocks
    monkeypatch.setattr(module, "FRAME_MS", 0)
    far.forget()
    for _ in range(10):  # moves of the mouse
        far.forget(moving=True)
        projection.collect_blocks()
    assert far.blocks is not before


def test_surplus_and_dangling_inputs_are_shown(qtbot, context):
    graph = kit.small_graph()
    out = graph["out"]
    broken = Graph(
        [*(layer for layer in graph if layer.name != "out"), replace(out, inputs=(Source("cat"), Source("ghost")))]
    )
    canvas = shown(qtbot, context, broken)
    assert len(canvas.projection["out"].inputs) == 2
    assert canvas.projection["out"].look.problem == "error"
    assert canvas.projection.link("out", 1) is None
    context.document.do(lambda g: commands.add_layer(g, Layer("ghost", "input")))
    assert canvas.projection.link("out", 1) is not None


def test_the_inspected_layer_is_marked_also_after_a_rename(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    context.inspect_requested.emit("conv")
    assert canvas.projection["conv"].look.inspected
    canvas.do(lambda d: commands.rename_layer(d.graph, "conv", "encoder"))
    assert canvas.projection["encoder"].look.inspected
    context.inspect_requested.emit("cat")
    assert not canvas.projection["encoder"].look.inspected
    assert canvas.projection["cat"].look.inspected


def test_comment_frames_follow_the_document(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    document = context.document
    frame = Frame("f", "Encoder", "reads the picture", "#4080c0", (-32, -64, 640, 256))
    document.do(lambda g: frames.set_frame(g, "f", frame))
    (item,) = (i for i in canvas.viewer.scene().items() if isinstance(i, FrameItem))
    assert item.frame == frame
    canvas.viewer.viewport().grab()  # it can be painted
    start = kit.at(canvas, QPointF(-16, 150))  # gestures go through it
    kit.drag(canvas, start, start + QPoint(300, -200))
    assert "input" in context.selection
    document.undo()
    assert not [i for i in canvas.viewer.scene().items() if isinstance(i, FrameItem)]


def test_a_layer_that_is_not_measured_is_found_where_it_will_be_painted(qapp):
    """The estimate of its size is generous, also after it was moved or shown again: else it would not be drawn at its edges."""
    name = "a concatenation of very many feature maps"
    graph = Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3"}),
            Layer(name, "concatenation", (320, 0), tuple(Source("input") for _ in range(60))),
        ]
    )
    document = Document(graph, default_registry(), parent=qapp)
    exact = LayerIndex(lambda layer: node_look(document, layer))
    exact.put(graph)
    size = exact.measured(name).area()
    for move in (False, True):
        index = LayerIndex(lambda layer: node_look(document, layer))
        index.put(graph)
        place = QPointF(0, 0)
        if move:
            index.move(name, (5000, 700))
            place = QPointF(5000 - 320, 700)
        assert index[name].area().contains(size.translated(place))
        corners = (size.topLeft(), size.bottomRight() - QPointF(1, 1))
        assert all(name in index.near(QRectF(corner + place, QSizeF(1, 1))) for corner in corners)
    document.deleteLater()


def test_links_of_a_layer_that_is_not_measured_end_near_where_its_ports_will_be(qapp):
    """Ports have a distance of 18, and the first estimate is off by less than that; folded layers end at their frame."""
    layers = [Layer("in", "input", (40, 60)), Layer("cat", "concatenation", (320, 80), (Source("in"),) * 20)]
    document = Document(Graph(layers), default_registry(), parent=qapp)
    rough, exact = (LayerIndex(lambda layer: node_look(document, layer)) for _ in range(2))
    for index in (rough, exact):
        index.put(document.graph)
    for name in ("in", "cat"):
        measured = exact.measured(name)
        for number in range(len(document.graph[name].inputs)):
            (x, y), (at_x, at_y) = rough[name].input_place(number), measured.input_place(number)
            assert x == at_x
            assert y == pytest.approx(at_y, abs=17), number
        x, y = rough[name].output_place("")
        assert y == pytest.approx(measured.output_place("")[1], abs=30)
        assert rough[name].area().contains(QPointF(x, y))
        assert measured.input_place(99) is None
        assert measured.output_place("unknown") is None
    frame = FrameItem(Frame("f", "Frame", rect=(0, 0, 400, 300), collapsed=True))
    for entry in (rough["cat"], exact["cat"]):
        entry.folded = frame
        bar = frame.seen
        assert entry.input_place(7) == (bar.left(), bar.center().y())
        assert entry.output_place("") == (bar.right(), bar.center().y())
    document.deleteLater()


@pytest.mark.parametrize("count", [40, 1100])
def test_a_canvas_without_work_is_idle(qtbot, context, count):
    """A timer that is not stopped would keep a core busy."""
    canvas = shown(qtbot, context, chain(count))

    def working() -> list[QTimer]:
        return [t for t in canvas.findChildren(QTimer) if t.isActive() and t.interval() == 0]

    qtbot.waitUntil(lambda: not working())
    context.document.do(lambda g: commands.remove_layers(g, ["l5"]))
    context.document.undo()
    qtbot.waitUntil(lambda: not working())
    assert canvas.projection.measured
    assert not canvas.projection.busy


@pytest.mark.parametrize("together", [1, 7, 1000])
def test_the_links_of_a_large_network_are_all_found_however_many_turns_that_takes(
    qtbot, context, monkeypatch, together
):
    """Meanwhile the far view is shown instead of items, and it has no links."""
    for name, value in (("EAGER", 3), ("FRAME_MS", 0), ("TOGETHER", together)):
        monkeypatch.setattr(module, name, value)
    canvas, count = shown(qtbot, context, chain(30)), 29
    projection = canvas.projection
    stale: list[bool] = []
    canvas.viewer.far_stale.connect(lambda: stale.append(projection.busy))
    turns = 0
    while projection._linking is not None:
        assert projection.busy
        assert projection.crowded(QRectF(-9e5, -9e5, 1, 1), 1.0)
        assert projection.far.links.isEmpty()
        projection._link_some()
        turns += 1
        assert turns <= 31
    assert turns >= 29 // together
    assert stale
    assert not projection._link_timer.isActive()
    assert not projection.crowded(QRectF(-9e5, -9e5, 1, 1), 1.0)
    assert {edge.key: edge.source for edge in projection._index} == {
        (name, 0): context.document.graph[name].inputs[0] for name in list(context.document.graph.layers)[1:]
    }
    assert len(list(projection.links)) == count


def test_the_far_view_follows_what_was_measured_while_idle(qtbot, context):
    canvas = shown(qtbot, context, chain(400))
    qtbot.waitUntil(lambda: not canvas.projection.busy)
    seen: list[bool] = []
    canvas.viewer.far_stale.connect(lambda: seen.append(canvas.projection.measured))
    context.document.do(lambda g: commands.collapse_layers(g, ["l399"], True))
    assert seen
    assert not seen[-1]
    qtbot.waitUntil(lambda: seen[-1])


LONG = "a name that is so long that the box of its layer has to be wider"
LOOKS = {
    "parameters": lambda g: commands.set_params(g, {"conv": {"features": "100000000", "kernel": "1001x1001"}}),
    "activation": lambda g: commands.set_activation(g, ["conv", "cat"], ActivationSpec("leaky_relu")),
    "no activation": lambda g: commands.set_activation(g, ["conv"], None),
    "collapsed": lambda g: commands.collapse_layers(g, ["conv", "cat"], True),
    "expanded": lambda g: commands.collapse_layers(g, ["conv", "cat"], False),
    "name": lambda g: commands.rename_layer(g, "conv", LONG),
}


def test_links_end_at_the_ports_of_layers_that_get_another_size(qtbot, context):
    canvas = shown(qtbot, context, kit.small_graph())
    document = context.document
    moved = set()
    for what, edit in LOOKS.items():
        before = {n: [dot.pos() for dot in canvas.projection[n].outputs] for n in document.graph.layers}
        assert document.do(edit)
        kit.check(canvas, document)
        if any(
            n in before and [dot.pos() for dot in canvas.projection[n].outputs] != before[n]
            for n in document.graph.layers
        ):
            moved.add(what)
    assert {"collapsed", "expanded"} <= moved
    for _ in LOOKS:
        document.undo()
        kit.check(canvas, document)


def test_the_far_view_follows_the_selection_of_items(qtbot, context):
    """Also while layers are selected or deselected in the scene only, as during a rubber band."""
    canvas = shown(qtbot, context, kit.small_graph())
    projection = canvas.projection
    assert not projection.collect_far().selected
    for names in (("conv",), ("conv", "cat"), ("cat",), ()):
        for name in projection.layers:
            projection[name].setSelected(name in names)
        areas = [projection[name].layout.block.translated(projection[name].pos()) for name in names]
        found = projection.collect_far().selected
        assert len(found) == len(areas)
        assert all(any(rect.contains(area.center()) for rect in found) for area in areas)


@pytest.mark.parametrize("eager", [0, 300])
def test_a_name_that_became_free_is_used_again(qtbot, context, monkeypatch, eager):
    """By a new layer, whose links and selection are its own."""
    monkeypatch.setattr(module, "EAGER", eager)
    canvas = shown(qtbot, context, kit.small_graph())
    document, items = context.document, canvas.projection

    def check() -> None:
        for name in items.layers:
            assert items[name].layer == name
        kit.check(canvas, document)

    context.select(("conv",))
    check()
    document.do(lambda g: commands.rename_layer(g, "conv", "other"))
    assert (canvas.viewer.selected_names(), context.selection) == (["other"], ("other",))
    document.do(lambda g: commands.add_layer(g, Layer("conv", "identity", (320, 400), (Source("input"),))))
    document.do(lambda g: commands.connect(g, Source("conv"), "free", 0))
    check()
    assert items.link("conv", 0).source.node.layer == "input"
    assert items.link("free", 0).source.node.layer == "conv"
    assert context.selection == ("other",)
    document.do(lambda g: commands.remove_layers(g, ["conv"]))
    document.do(lambda g: commands.rename_layer(g, "other", "conv"))
    check()
    for _ in range(5):
        document.undo()
        check()
    assert document.graph == kit.small_graph()


def test_nothing_is_selected_or_marked_in_another_document_of_the_same_layers(qtbot, context, monkeypatch):
    """Layers of a large network are selected without items; none of that is left when another one is shown."""
    monkeypatch.setattr(module, "EAGER", 3)
    canvas = shown(qtbot, context, kit.small_graph())
    projection = canvas.projection
    for _ in range(2):
        canvas.select_all()
        assert sorted(canvas.viewer.selected_names()) == sorted(projection.layers)
        projection.marked = set(projection.layers)
        projection.inspect("conv")
        context.set_document(Document(kit.small_graph(), context.registry, parent=context))
        assert projection.marked == set()
        assert projection.inspected == ""
        assert canvas.viewer.selected_names() == []
        assert not projection.collect_far().selected
        assert not canvas.has_selection
