"""Dragging a link: ports that would not fit are greyed with the rule they break, the view scrolls at its edge."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QRubberBand, QToolTip

from app.ui.canvas import gestures
from app.ui.canvas.edge_scroll import EDGE
from app.ui.document.document import Document
from app.ui.widgets.tooltips import plain_tip
from designer.graph import commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators import links

NONE = Qt.KeyboardModifier.NoModifier


def fitting_graph() -> Graph:
    """An image of 64 x 48, a half of it, an addition that reads the image, and layers that take other ranks and types."""
    return Graph(
        [
            Layer("input", "input", (0, 0), params={"dims": "64x48x3"}),
            Layer("half", "pooling", (288, 176), (Source("input"),), {"size": "2x2", "stride": "2x2"}),
            Layer("add", "element_wise", (576, 0), (Source("input"),)),
            Layer("flat", "flatten", (288, 320), (Source("input"),)),
            Layer("words", "embedding", (576, 320)),
            Layer("conv", "convolution", (864, 0), (Source("add"),), {"features": "4"}),
        ],
        name="fitting",
    )


@pytest.fixture
def canvas(qtbot):
    canvas = kit.open_canvas(qtbot, fitting_graph())
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.centerOn(560, 220)
    return canvas


def press(canvas, start: QPoint, away: QPoint) -> None:
    QTest.mousePress(canvas.viewer.viewport(), kit.LEFT, NONE, start)
    QTest.mouseMove(canvas.viewer.viewport(), start + away)
    kit.settle(canvas)


def release(canvas, end: QPoint) -> None:
    QTest.mouseRelease(canvas.viewer.viewport(), kit.LEFT, NONE, end)


def test_ports_are_greyed_each_with_its_own_reason(canvas):
    items = canvas.projection
    press(canvas, kit.output(canvas, "half"), QPoint(20, 30))
    assert items["add"].inputs[0].misfit == ""  # the link there is replaced
    assert "3 x 48 x 64" in items["add"].inputs[1].misfit
    assert "Type mismatch" in items["add"].inputs[1].toolTip()
    assert "rank" in items["words"].inputs[0].refusal or "int64" in items["words"].inputs[0].refusal
    assert items["conv"].inputs[0].grayed is False
    release(canvas, kit.at(canvas, QPointF(700, 500)))
    assert not any(dot.grayed for name in items.layers for dot in items[name].inputs)
    assert items["add"].inputs[1].toolTip() == items["add"].inputs[1].look.tip


def test_the_reason_is_shown_at_the_pointer(canvas):
    start, end = kit.output(canvas, "half"), kit.port(canvas, "add", 1)
    press(canvas, start, QPoint(20, 30))
    QTest.mouseMove(canvas.viewer.viewport(), end)
    assert "3 x 24 x 32" in QToolTip.text()
    release(canvas, end)
    assert canvas.context.document.graph["add"].inputs[1] == Source("half")  # to be mended there
    assert any(severity == "warning" and "types do not match" in text for severity, text in canvas.messages)


def test_the_reason_goes_when_the_link_is_elsewhere_and_the_link_is_drawn_to_what_takes_it(canvas, monkeypatch):
    """At each place: whether a reason is shown, where the link ends, and whether it is drawn as refused."""
    start = kit.output(canvas, "half")
    tips: list[str] = []
    monkeypatch.setattr(gestures.QToolTip, "showText", lambda _at, text, _widget: tips.append(text))
    monkeypatch.setattr(gestures.QToolTip, "hideText", lambda: tips.append(""))
    drawn: list[tuple[QPointF, bool]] = []
    follow = gestures.LiveLink.follow

    def note(link, anchor, pointer, *, refused):
        drawn.append((QPointF(pointer), refused))
        follow(link, anchor, pointer, refused=refused)

    monkeypatch.setattr(gestures.LiveLink, "follow", note)
    press(canvas, start, QPoint(20, 30))
    items, view = canvas.projection, canvas.viewer.viewport()
    taken, refused = items["add"].inputs[0], items["add"].inputs[1]
    empty = kit.at(canvas, QPointF(560, 480))
    for place, end, tip in (
        (kit.port(canvas, "add", 1), refused.center(), refused.toolTip()),
        (empty, canvas.viewer.mapToScene(empty), ""),
        (kit.port(canvas, "add", 0), taken.center(), ""),
        (kit.port(canvas, "words", 0), items["words"].inputs[0].center(), items["words"].inputs[0].toolTip()),
        (kit.node(canvas, "conv"), items["conv"].inputs[0].center(), ""),
        (kit.node(canvas, "half"), canvas.viewer.mapToScene(kit.node(canvas, "half")), ""),
    ):
        tips.clear()
        drawn.clear()
        QTest.mouseMove(view, place)
        assert tips[-1:] == [tip]
        assert drawn[-1:] == [(end, bool(tip))]
    assert refused.toolTip()
    release(canvas, empty)


@pytest.mark.parametrize("end", ["released", "cancelled", "another document"])
def test_the_reason_goes_with_the_drag(canvas, monkeypatch, end):
    tips: list[str] = []
    monkeypatch.setattr(gestures.QToolTip, "showText", lambda _at, text, _widget: tips.append(text))
    monkeypatch.setattr(gestures.QToolTip, "hideText", lambda: tips.append(""))
    place = kit.port(canvas, "words", 0)
    press(canvas, kit.output(canvas, "half"), QPoint(20, 30))
    QTest.mouseMove(canvas.viewer.viewport(), place)
    assert tips[-1]
    live = [item for item in canvas.viewer.overlays if isinstance(item, gestures.LiveLink)]
    assert len(live) == 1
    assert live[0].scene() is canvas.viewer.scene()
    if end == "released":
        release(canvas, place)
    elif end == "cancelled":
        QTest.keyClick(canvas.viewer, Qt.Key.Key_Escape)
    else:
        canvas.context.set_document(Document(fitting_graph(), canvas.context.registry, parent=canvas.context))
    assert tips[-1] == ""
    assert live[0] not in canvas.viewer.overlays
    assert live[0].scene() is None
    assert not canvas.viewer.busy


def test_a_node_gets_the_link_at_the_port_that_fits(canvas):
    """The free port would not fit, so a link dropped on the node's body replaces the one that is there."""
    kit.drag(canvas, kit.output(canvas, "half"), kit.node(canvas, "add"))
    assert canvas.context.document.graph["add"].inputs == (Source("half"),)


@pytest.mark.parametrize("zoom", [0.26, 0.4, 0.7, 1.0, 2.5])
def test_the_port_nearest_to_the_pointer_is_hit(canvas, zoom):
    """The areas in which ports are hit overlap, more so at small scales: one above the other, and of two layers side by side."""
    document = canvas.context.document
    document.do(lambda g: commands.connect(g, Source("input"), "add", 1))
    close = canvas.projection["add"].box().right() + 12
    document.do(lambda g: commands.move_layers(g, {"conv": (round(close), 0)}))
    dots = [
        dot for name in ("add", "conv") for dot in (*canvas.projection[name].inputs, *canvas.projection[name].outputs)
    ]
    assert len(dots) > 5
    canvas.viewer.zoom_by(zoom / canvas.viewer.zoom)
    canvas.viewer.centerOn(760, 100)
    for dot in dots:
        for way in (QPointF(), QPointF(0, 7), QPointF(0, -7), QPointF(8, 0), QPointF(-8, 0)):
            point = kit.at(canvas, dot.center() + way)
            place = canvas.viewer.mapToScene(point)
            hit = canvas.viewer.hit(point)
            assert (hit.center() - place).manhattanLength() == min(
                (other.center() - place).manhattanLength() for other in dots
            ), (dot.node.layer, dot.look.name, way)


@pytest.mark.parametrize("away", [QPoint(), QPoint(0, 8), QPoint(0, -8), QPoint(8, 0), QPoint(-8, 0)])
@pytest.mark.parametrize("number", [0, 1])
def test_a_link_dropped_on_a_connected_port_replaces_its_link(canvas, number, away):
    """Also if every port of the layer is connected: only its free port and its body add an input."""
    document = canvas.context.document
    document.do(lambda g: commands.connect(g, Source("input"), "add", 1))
    document.do(lambda g: commands.add_layer(g, Layer("other", "input", (0, 480), params={"dims": "64x48x3"})))
    kit.drag(canvas, kit.output(canvas, "other"), kit.port(canvas, "add", number) + away)
    inputs = [Source("input"), Source("input")]
    inputs[number] = Source("other")
    assert document.graph["add"].inputs == tuple(inputs)
    document.undo()
    for free in (kit.port(canvas, "add", 2), kit.node(canvas, "add")):
        kit.drag(canvas, kit.output(canvas, "other"), free)
        assert document.graph["add"].inputs == (Source("input"), Source("input"), Source("other"))
        document.undo()


def test_a_port_that_is_still_open_is_not_reported_as_the_fault_of_the_link(canvas):
    document = canvas.context.document
    document.do(lambda g: commands.add_layer(g, Layer("mix", "mix", (576, 400))))
    kit.drag(canvas, kit.output(canvas, "input"), kit.port(canvas, "mix", 0))
    assert document.graph["mix"].inputs == (Source("input"),)
    assert canvas.messages == []
    kit.drag(canvas, kit.output(canvas, "half"), kit.port(canvas, "mix", 1))
    assert [severity for severity, _ in canvas.messages] == ["warning"]


def test_a_loop_and_a_surplus_are_refused_outright(canvas):
    items = canvas.projection
    press(canvas, kit.output(canvas, "conv"), QPoint(20, 30))
    assert "loop" in items["add"].inputs[1].refusal
    assert "Cannot connect here" in items["add"].inputs[1].toolTip()
    release(canvas, kit.port(canvas, "add", 1))
    assert canvas.context.document.history.is_clean


def test_from_an_input_the_outputs_are_greyed(canvas):
    press(canvas, kit.port(canvas, "add", 1), QPoint(-20, 40))
    items = canvas.projection
    assert items["half"].outputs[0].misfit
    assert not items["input"].outputs[0].grayed
    assert "loop" in items["conv"].outputs[0].refusal
    release(canvas, kit.output(canvas, "input"))
    assert canvas.context.document.graph["add"].inputs == (Source("input"), Source("input"))
    for dot in (dot for name in items.layers for dot in (*items[name].inputs, *items[name].outputs)):
        assert (dot.refusal, dot.misfit, dot.toolTip()) == ("", "", plain_tip(dot.look.tip))


def test_a_moved_link_does_not_stand_in_its_own_way(canvas):
    """The second link of the addition, moved to the first port, is not compared with itself."""
    document = canvas.context.document
    document.do(lambda g: commands.connect(g, Source("half"), "add", 1))
    press(canvas, kit.port(canvas, "add", 1), QPoint(-20, 40))
    items = canvas.projection
    assert not items["add"].inputs[0].grayed
    assert items["add"].inputs[1].misfit == ""  # where it came from
    release(canvas, kit.port(canvas, "add", 1))


def test_only_what_is_seen_is_checked(canvas, qtbot, monkeypatch):
    checked = []
    monkeypatch.setattr(links, "misfit", lambda inference, source, consumer, *_: checked.append(consumer) or "")
    canvas.viewer.centerOn(0, 220)
    canvas.viewer.resize(500, 700)
    press(canvas, kit.output(canvas, "input"), QPoint(20, 30))
    seen = set(checked)
    assert "conv" not in seen
    canvas.viewer.pan(QPoint(-700, 0))
    qtbot.waitUntil(lambda: "conv" in checked)
    release(canvas, kit.at(canvas, QPointF(1000, 500)))
    assert "conv" in checked
    assert checked.count("half") == 1


def test_nodes_that_come_into_view_are_checked_too(canvas, qtbot):
    """Of a large network only nodes near the view have items; those made while a link is dragged are greyed as well."""
    layers = [Layer("input", "input", (0, 0), params={"dims": "64x48x3"})]
    layers += [Layer("half", "pooling", (288, 0), (Source("input"),), {"size": "2x2", "stride": "2x2"})]
    for i in range(400):
        layers.append(Layer(f"add{i}", "element_wise", (600 + 288 * (i % 40), 160 * (i // 40)), (Source("input"),)))
    canvas.context.set_document(Document(Graph(layers), canvas.context.registry, parent=canvas.context))
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.centerOn(300, 100)
    press(canvas, kit.output(canvas, "half"), QPoint(20, 30))
    canvas.viewer.pan(QPoint(-5000, 0))
    seen = canvas.projection.within(canvas.viewer.mapToScene(canvas.viewer.viewport().rect()).boundingRect())
    assert "add15" in seen
    qtbot.waitUntil(lambda: all(canvas.projection[n].inputs[1].misfit for n in seen))
    canvas.viewer.pan(QPoint(5000, 0))
    release(canvas, kit.at(canvas, QPointF(500, 500)))
    assert not any(canvas.projection[n].inputs[1].grayed for n in seen)


@pytest.mark.parametrize("what", ["link", "node", "band", "end"])
def test_dragging_to_the_edge_scrolls(canvas, qtbot, what):
    view, viewer = canvas.viewer.viewport(), canvas.viewer
    starts = {
        "link": kit.output(canvas, "conv"),
        "node": kit.node(canvas, "conv"),
        "band": kit.at(canvas, QPointF(500, 500)),
        "end": kit.port(canvas, "conv"),
    }
    start, before = starts[what], viewer.horizontalScrollBar().value()
    QTest.mousePress(view, kit.LEFT, NONE, start)
    QTest.mouseMove(view, start + QPoint(30, 0))
    assert not viewer.scrolling
    end = QPoint(view.width() - EDGE // 4, start.y())
    QTest.mouseMove(view, end)
    qtbot.waitUntil(lambda: viewer.horizontalScrollBar().value() > before + 60)
    QTest.mouseMove(view, QPoint(view.width() // 2, start.y()))
    assert not viewer.scrolling
    run = viewer.horizontalScrollBar().value() - before
    release(canvas, QPoint(view.width() // 2, start.y()))
    graph = canvas.context.document.graph
    if what == "node":  # the node is where the pointer is on the canvas, not on the screen
        moved = graph["conv"].position[0] - 864
        assert abs(moved - (run + view.width() // 2 - start.x())) <= 16
    elif what == "band":
        assert "conv" not in canvas.context.selection
        assert viewer.findChild(QRubberBand).isHidden()


def test_the_view_that_is_moved_itself_does_not_scroll_at_the_edge(canvas):
    view, viewer = canvas.viewer.viewport(), canvas.viewer
    start, before = QPoint(view.width() // 2, view.height() // 2), viewer.visible_center()
    for end in (QPoint(3, start.y()), QPoint(start.x(), view.height() - 3)):
        QTest.mousePress(view, kit.MIDDLE, NONE, start)
        QTest.mouseMove(view, end)
        assert not viewer.scrolling
        QTest.mouseRelease(view, kit.MIDDLE, NONE, end)
        moved = (viewer.visible_center() - before) * viewer.zoom + QPointF(end - start)
        assert moved.manhattanLength() < 3
        QTest.mousePress(view, kit.MIDDLE, NONE, end)
        QTest.mouseMove(view, start)
        QTest.mouseRelease(view, kit.MIDDLE, NONE, start)


def test_escape_ends_scrolling(canvas, qtbot):
    view, viewer = canvas.viewer.viewport(), canvas.viewer
    start = kit.node(canvas, "conv")
    QTest.mousePress(view, kit.LEFT, NONE, start)
    QTest.mouseMove(view, start + QPoint(30, 0))
    QTest.mouseMove(view, QPoint(3, start.y()))
    assert viewer.scrolling
    QTest.keyClick(viewer, Qt.Key.Key_Escape)
    assert not viewer.scrolling
    release(canvas, QPoint(3, start.y()))
    assert canvas.context.document.history.is_clean


def by_dragging(canvas) -> None:
    press(canvas, kit.output(canvas, "half"), QPoint(20, 30))
    release(canvas, kit.port(canvas, "add", 1))


def by_dragging_back(canvas) -> None:
    press(canvas, kit.port(canvas, "add", 1), QPoint(-20, 30))
    release(canvas, kit.output(canvas, "half"))


def by_moving_a_link(canvas) -> None:
    """The link into `conv` is moved to the second input of `add`, from `half`."""
    canvas.context.document.do(lambda g: commands.connect(g, Source("half"), "conv", 0))
    press(canvas, kit.port(canvas, "conv"), QPoint(-20, 30))
    release(canvas, kit.port(canvas, "add", 1))


def searched(canvas, outgoing: bool, text: str) -> None:
    canvas.context.select(("half",) if outgoing else ("add",))
    (canvas.links.connect_to if outgoing else canvas.links.connect_from)()
    line = canvas.findChild(QLineEdit, "connect.text")
    QTest.keyClicks(line, text)
    QTest.keyClick(line, Qt.Key.Key_Return)


def by_dropping_on_a_link(canvas) -> None:
    """A free layer that changes the size is dropped on a link into `add`, which has another input already."""
    document = canvas.context.document
    document.do(lambda g: commands.connect(g, Source("input"), "add", 1))
    document.do(lambda g: commands.disconnect(g, "half", 0))
    link, item = canvas.projection.link("add", 0), canvas.projection["half"]
    run = kit.at(canvas, link.path().pointAtPercent(0.5)) - kit.at(canvas, item.box().center())
    kit.drag(canvas, kit.node(canvas, "half"), kit.node(canvas, "half") + run)


WAYS = {
    "dragging": by_dragging,
    "dragging from the input": by_dragging_back,
    "moving a link": by_moving_a_link,
    "searching an input": lambda canvas: searched(canvas, True, "add b"),
    "searching an output": lambda canvas: searched(canvas, False, "half b"),
    "dropping on a link": by_dropping_on_a_link,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_connect_reports_types_that_do_not_match(canvas, way):
    WAYS[way](canvas)
    graph = canvas.context.document.graph
    assert Source("half") in graph["add"].inputs
    assert Source("input") in (*graph["add"].inputs, *graph["half"].inputs)
    (said,) = canvas.messages
    severity, text = said
    assert severity == "warning"
    assert text.startswith("Connected, but the types do not match: ")
    rule = text.removeprefix("Connected, but the types do not match: ").removesuffix(". See Type Checking.")
    assert rule in [finding.message for finding in canvas.context.document.inference.states["add"].diagnostics]


@pytest.mark.parametrize("way", WAYS)
def test_links_whose_types_match_are_made_without_a_word(canvas, way):
    canvas.context.document.do(lambda g: commands.set_params(g, {"half": {"size": "1x1", "stride": "1x1"}}))
    WAYS[way](canvas)
    assert Source("half") in canvas.context.document.graph["add"].inputs
    assert canvas.messages == []


# --- what a drop changes ----------------------------------------------------------------------------------------------


def offers(canvas) -> list[str]:
    """The operators that the search lists."""
    popup = canvas._quick_add
    return [match.key for match in popup._operators("")]


def test_a_link_that_moves_to_another_input_leaves_no_gap_where_inputs_are_a_list(canvas):
    """A concatenation has as many inputs as it reads; other layers keep the place of an input that is open now."""
    document = canvas.context.document
    document.do(
        lambda g: commands.add_layer(g, Layer("cat", "concatenation", (864, 176), (Source("input"), Source("half"))))
    )
    document.do(lambda g: commands.connect(g, Source("half"), "add", 1))
    graph = document.graph
    for owner, others in (("cat", (Source("half"),)), ("add", (None, Source("half")))):
        start = kit.port(canvas, owner, 0)
        kit.drag(canvas, start, kit.port(canvas, "conv"))
        assert graph[owner].inputs == others
        assert graph["conv"].inputs == (Source("input"),)
        kit.check(canvas, document)
        document.undo()
        kit.drag(canvas, start, kit.at(canvas, QPointF(700, 500)))
        assert graph[owner].inputs == others
        kit.check(canvas, document)
        document.undo()


@pytest.mark.parametrize("held", ["the port that it enters", "near its end", "near its start"])
def test_where_the_loose_end_of_a_link_is_let_go(canvas, held):
    """The link from `input` to `add`: its end is loose, or near its start, its start."""
    document, items = canvas.context.document, canvas.projection
    link = items.link("add", 0)
    along = {"near its end": 0.8, "near its start": 0.2}
    start = kit.at(canvas, link.path().pointAtPercent(along[held])) if held in along else kit.port(canvas, "add")
    image, nothing = (Source("input"),), ()
    if held == "near its start":
        ends = {
            kit.at(canvas, QPointF(700, 500)): nothing,
            kit.node(canvas, "add"): nothing,  # at the layer that it enters
            kit.port(canvas, "add"): nothing,
            kit.output(canvas, "input"): image,
            kit.node(canvas, "input"): image,
            kit.output(canvas, "half"): (Source("half"),),
            kit.node(canvas, "half"): (Source("half"),),
            kit.output(canvas, "conv"): image,  # a loop
        }
    else:
        ends = {
            kit.at(canvas, QPointF(700, 500)): nothing,
            kit.node(canvas, "input"): nothing,  # at the layer that it leaves
            kit.output(canvas, "input"): nothing,
            kit.port(canvas, "add"): image,
            kit.port(canvas, "conv"): nothing,
            kit.node(canvas, "conv"): nothing,
        }
    before = document.graph.copy()
    for end, inputs in ends.items():
        kit.drag(canvas, start, end)
        assert document.graph["add"].inputs == inputs, end
        taken = end in (kit.port(canvas, "conv"), kit.node(canvas, "conv")) and held != "near its start"
        assert document.graph["conv"].inputs == (Source("input" if taken else "add"),)
        assert not canvas.viewer.busy
        if inputs != image:
            document.undo()
        assert document.graph == before  # one step
        assert items.link("add", 0).isVisible()


def test_a_layer_goes_into_the_link_nearest_to_its_middle(canvas):
    """Several links run under it, also in other orders than those of their heights."""
    heights = {"c": 16, "a": 0, "b": 32}
    layers = [Layer("free", "identity", (480, 480))]
    for name, y in heights.items():
        layers += [
            Layer(f"{name}_in", "input", (0, y), params={"dims": "64x48x3"}),
            Layer(f"{name}_out", "output", (960, y), (Source(f"{name}_in"),)),
        ]
    canvas.context.set_document(Document(Graph(layers), canvas.context.registry, parent=canvas.context))
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    canvas.viewer.centerOn(540, 240)
    document, items = canvas.context.document, canvas.projection
    grip = kit.node(canvas, "free")
    middle = items["free"].box().center()
    for name in heights:
        for aside in (-96, 0, 96):
            place = QPointF(540 + aside, items.link(f"{name}_out", 0).path().pointAtPercent(0.5).y())
            kit.drag(canvas, grip, grip + kit.at(canvas, place) - kit.at(canvas, middle))
            fed = {other for other in heights if document.graph[f"{other}_out"].inputs == (Source("free"),)}
            assert fed == {name}
            assert document.graph["free"].inputs == (Source(f"{name}_in"),)
            document.undo()


def test_a_link_can_be_taken_to_another_output(canvas):
    """Its end at the layer that it comes from is the loose one near there; the input stays."""
    document = canvas.context.document
    link = canvas.projection.link("add", 0)
    start = kit.at(canvas, link.path().pointAtPercent(0.2))
    kit.drag(canvas, start, kit.output(canvas, "half"))
    assert document.graph["add"].inputs == (Source("half"),)
    document.undo()
    kit.drag(canvas, start, kit.output(canvas, "input"))
    assert document.graph["add"].inputs == (Source("input"),)
    assert document.history.undo_title is None, "back where it was, nothing changes"


def test_a_link_that_is_dropped_on_nothing_offers_what_reads_its_tensor_with_the_first_input(canvas):
    registry, document = canvas.context.registry, canvas.context.document
    ends = {
        "output": (kit.output(canvas, "half"), document.inference.type_of(Source("half"))),
        "input": (kit.port(canvas, "words"), None),
    }
    for end, (start, tensor) in ends.items():
        kit.drag(canvas, start, kit.at(canvas, QPointF(700, 520)))
        found = set(offers(canvas))
        canvas._quick_add.hide()
        for cls in registry:
            if end == "input":
                assert (cls.type in found) is bool(cls.outputs), cls.type
            elif cls.type in found or cls.inputs:
                assert (cls.type in found) is (bool(cls.inputs) and not cls.inputs[0].refusal(tensor)), cls.type
        assert ("gather" in found, "input" in found) == (True, end == "input")
    canvas._on_quick_add(QPointF(0, 0), None)
    assert set(offers(canvas)) >= {cls.type for cls in registry}, "a search for any operator offers all again"
    canvas._quick_add.hide()


def test_the_canvas_has_the_keyboard_after_a_layer_was_connected_in_the_search(canvas):
    document = canvas.context.document
    canvas.activateWindow()
    canvas.context.select(("half",))
    canvas.links.connect_to()
    search = canvas.links._connect_search
    row = next(n for n, offer in enumerate(search._offers) if (offer.consumer, offer.at) == ("conv", 0))
    assert not canvas.viewer.hasFocus()
    search.hide()
    search.chosen.emit(str(row))
    assert document.graph["conv"].inputs == (Source("half"),)
    assert canvas.viewer.hasFocus()


def test_a_layer_that_cannot_be_inserted_where_it_was_dropped_goes_back(canvas, monkeypatch):
    """With its place in the document, whatever refuses the edit."""
    document = canvas.context.document
    document.do(lambda g: commands.add_layer(g, Layer("free", "identity", (576, 480))))

    def refuse(*_: object) -> Edit:
        raise DiagnosticError.of("refused", "it is refused", remedy="take another one")

    link = canvas.projection.link("add", 0)
    middle = kit.at(canvas, canvas.projection["free"].box().center())
    place = kit.at(canvas, link.path().pointAtPercent(0.5)) + kit.node(canvas, "free") - middle
    for refused in (True, False):
        if refused:
            monkeypatch.setattr(commands, "insert_on_link", refuse)
        else:
            monkeypatch.undo()
        kit.drag(canvas, kit.node(canvas, "free"), place)
        inserted = document.graph["add"].inputs == (Source("free"),)
        assert inserted is not refused
        item = canvas.projection["free"]
        assert item.pos().toTuple() == document.graph["free"].position
        if refused:
            assert document.graph["free"].position == (576, 480)
        kit.check(canvas, document)


def test_the_search_opens_at_a_layer_that_was_out_of_view(canvas, monkeypatch):
    canvas.context.document.do(lambda g: commands.move_layers(g, {"conv": (9000, 7000)}))
    places = []
    monkeypatch.setattr(canvas.links._connect_search, "open_for", lambda _d, _l, place, **_: places.append(place))
    for outgoing, corner in ((True, "topRight"), (False, "topLeft")):
        places.clear()
        canvas.context.select(("conv",))
        canvas.viewer.centerOn(QPointF(0, 0))
        (canvas.links.connect_to if outgoing else canvas.links.connect_from)()
        viewport = canvas.viewer.viewport()
        box = canvas.projection["conv"].box()
        assert places == [viewport.mapToGlobal(canvas.viewer.mapFromScene(getattr(box, corner)()))]
        assert viewport.rect().contains(viewport.mapFromGlobal(places[0]))


def test_the_search_of_a_layer_lists_its_own_ports(canvas):
    """Of the layer that was selected last."""
    search = canvas.links._connect_search
    for name, outgoing in (("half", True), ("add", True), ("conv", False), ("add", False)):
        canvas.context.select((name,))
        (canvas.links.connect_to if outgoing else canvas.links.connect_from)()
        assert search.isVisible()
        ends = {offer.source.layer if outgoing else offer.consumer for offer in search._offers}
        assert ends == {name}
        search.hide()
    canvas.context.select(())
    canvas.links.connect_to()
    assert not search.isVisible()
