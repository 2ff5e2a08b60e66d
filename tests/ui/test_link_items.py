"""Links are marked, labeled, shown and drawn as the document says, after every step that makes, moves or removes their items."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem

from app.ui.canvas import link_paths
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.link_index import LinkIndex
from app.ui.canvas.links import LinkItem
from designer.graph import commands, frames, routes
from designer.graph.model import Frame, Layer, Source

KEY = QColor(255, 0, 255)  # a color that nothing is painted in


@pytest.fixture
def canvas(qtbot) -> Canvas:
    return kit.open_canvas(qtbot, kit.small_graph())


def check_links(canvas: Canvas) -> dict[tuple[str, int], LinkItem]:
    """The items of all links are as the document says; returns them."""
    context, items = canvas.context, canvas.projection
    document, chosen = context.document, context.selection
    graph, found = document.graph, {}
    before = graph.upstream(chosen) if len(chosen) == 1 else set()
    after = graph.downstream(chosen) if len(chosen) == 1 else set()
    for layer in graph:
        for index, source in enumerate(layer.inputs):
            if source is None or source.layer not in graph:
                assert items.link(layer.name, index) is None
                continue
            link = found[layer.name, index] = items.link(layer.name, index)
            assert link is not None
            assert link.scene() is canvas.viewer.scene()
            assert link.on_path is (layer.name in before or source.layer in after), (layer.name, index, chosen)
            folded = [items.entry(end).folded for end in (source.layer, layer.name)]
            assert link.isVisible() is not (folded[0] is not None and folded[0] is folded[1]), (layer.name, index)
            outputs = document.inference.states[source.layer].outputs or ()
            number = link.source.index
            assert link.label == (str(outputs[number]).removeprefix("N x ") if number < len(outputs) else "")
            ends = (link.source.center().toTuple(), link.target.center().toTuple())
            assert items.ends(next(edge for edge in items.links if edge.key == link.key)) == ends
            assert [point.toTuple() for point in link.points] == list(routes.points_into(graph, layer.name, index))
            for share in range(11):
                place = link.path().pointAtPercent(share / 10)
                area = QRectF(place.x() - 1, place.y() - 1, 2, 2)
                assert link.key in {edge.key for edge in items._edges.near(area)}, (layer.name, index, place)
    listed = [item for item in canvas.viewer.scene().items() if isinstance(item, LinkItem)]
    assert {item.key for item in listed} == found.keys()
    assert len(listed) == len(found), "items of links that are gone"
    for name in graph.layers:
        own = {key for key, link in found.items() if link.target.node.layer == name or link.source.node.layer == name}
        assert {link.key for link in items[name].links()} == own
    return found


def test_links_up_and_down_from_the_selected_layer_are_marked_after_every_edit(canvas):
    """Also those whose items are made while it is selected."""
    document, context = canvas.context.document, canvas.context
    check_links(canvas)
    for names in (("conv",), ("input",), ("out",), ("conv", "cat"), (), ("cat",), ("free",), ("conv",)):
        context.select(names)
        check_links(canvas)
    steps = [
        lambda g: commands.connect(g, Source("conv"), "cat", 2),
        lambda g: commands.connect(g, Source("input"), "free", 0),
        lambda g: commands.insert_on_link(g, Layer("new", "identity", (560, 0)), "cat", 0),
        lambda g: commands.rename_layer(g, "conv", "first"),
        lambda g: commands.disconnect(g, "cat", 1, close_gap=True),
        lambda g: commands.collapse_layers(g, ["first", "cat"], True),
        lambda g: commands.set_params(g, {"first": {"features": "3"}}),
        lambda g: commands.set_params(g, {"first": {"kernel": "0x0"}}),
        lambda g: commands.add_layer(g, Layer("side", "output", (960, 160), (Source("first"),))),
        lambda g: routes.set_route(g, "side", 0, [(560, 400), (880, -320)], "Bend"),
        lambda g: commands.move_layers(g, {"first": (-640, 64), "side": (-1600, 640)}),
        lambda g: commands.remove_layers(g, ["new"], heal=True),
        lambda g: commands.remove_layers(g, ["cat"]),
    ]
    for step in steps:
        assert document.do(step)
        check_links(canvas)
    for _ in steps:
        document.undo()
        check_links(canvas)
    for _ in steps:
        document.redo()
        check_links(canvas)
    context.select(())
    assert not any(link.on_path for link in check_links(canvas).values())


def test_links_in_collapsed_frames_are_hidden_also_those_made_meanwhile(canvas):
    document = canvas.context.document
    members = canvas.projection.members
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Outer", "", "", (-64, -96, 900, 400))))
    document.do(frames.set_frame(document.graph, "g", Frame("g", "Inner", "", "", (288, -64, 240, 160))))
    steps = [
        lambda g: frames.collapse(g, [], ["g"], members),
        lambda g: commands.connect(g, Source("conv"), "free", 0),
        lambda g: frames.collapse(g, [], ["f"], members),
        lambda g: commands.connect(g, Source("free"), "cat", 2),
        lambda g: commands.connect(g, Source("free"), "out", 0),
        lambda g: commands.rename_layer(g, "free", "other"),
        lambda g: frames.move_frame(g, "f", (-64, 320, 900, 400), {}, []),
        lambda g: frames.collapse(g, [], ["f"], members),
        lambda g: frames.collapse(g, [], ["g"], members),
    ]
    hidden = []
    for step in steps:
        assert document.do(step)
        hidden.append(sum(not link.isVisible() for link in check_links(canvas).values()))
    assert hidden[0] == 0
    assert max(hidden) >= 4
    assert hidden[-1] == 0
    for _ in steps:
        document.undo()
        check_links(canvas)
    for _ in steps:
        document.redo()
        check_links(canvas)


def test_links_that_cross_an_area_are_found_there(canvas):
    """Forwards, backwards, around layers and through points: whatever is painted is found in the index of links."""
    document = canvas.context.document
    places = [(640, 0), (-1200, 0), (640, 900), (300, -700), (0, 0), (2400, 8), (-40, 900), (-40, -900)]
    bends = [(), ((400, 700),), ((400, -700),), ((-900, 0), (2600, 40))]
    for style in link_paths.STYLES:
        link_paths.set_style(style)
        try:
            canvas.projection.redraw_links()
            for place in places:
                document.do(lambda g, place=place: commands.move_layers(g, {"cat": place}))
                for bend in bends:
                    document.do(lambda g, bend=bend: routes.set_route(g, "cat", 1, bend, "Bend"))
                    check_links(canvas)
        finally:
            link_paths.set_style(link_paths.CURVED)


def painted(item: LinkItem) -> bool:
    """Whether the label of a link is painted at 100 %."""
    image = QImage(40, 12, QImage.Format.Format_RGB32)
    image.fill(KEY)
    painter = QPainter(image)
    painter.translate(20, 6)
    painter.translate(-item.label_box.center())
    item.paint(painter, QStyleOptionGraphicsItem())
    painter.end()
    corners = [(1, 1), (38, 1), (1, 10), (38, 10)]
    return all(image.pixelColor(x, y) != KEY for x, y in corners)


def test_the_label_of_a_link_gives_way_to_the_title_of_any_frame(canvas):
    document = canvas.context.document
    document.do(lambda g: commands.move_layers(g, {"conv": (640, 0), "cat": (1280, 0)}))
    item = canvas.projection.link("conv", 0)
    assert item.label_fits
    assert painted(item)
    x, y = (round(v) for v in item.label_box.topLeft().toTuple())
    far, over = (
        Frame("a", "Far away", "", "", (-800, -800, 320, 160)),
        Frame("b", "Over it", "", "", (x - 8, y - 4, 320, 160)),
    )
    below = Frame("b", "Over it", "", "", (x - 8, y + 200, 320, 160))
    for first, second in ((far, over), (over, far)):
        document.do(frames.set_frame(document.graph, first.id, first))
        assert painted(item) is (first is far)
        document.do(frames.set_frame(document.graph, second.id, second))
        assert not painted(item)
        document.do(frames.set_frame(document.graph, "b", below))
        assert painted(item)
        document.do(lambda g: frames.remove_frames(g, ["a", "b"]))
        assert painted(item)
    document.do(lambda g: commands.move_layers(g, {"conv": (176, 0)}))
    assert not item.label_fits
    assert not painted(item)


def test_links_forget_items_that_are_gone(canvas):
    """What is routed around layers is what is long now."""
    document, index = canvas.context.document, canvas.projection._edges
    assert isinstance(index, LinkIndex)

    def long() -> set[tuple[str, int]]:
        return {link.key for link in index._long}

    def wanted() -> set[tuple[str, int]]:
        links = check_links(canvas).values()
        return {
            link.key for link in links if not link.points and link.target.center().x() - link.source.center().x() >= 200
        }

    assert long() == wanted() == {("cat", 1)}
    document.do(lambda g: commands.move_layers(g, {"out": (1600, 0)}))
    assert long() == wanted() == {("cat", 1), ("out", 0)}
    document.do(lambda g: commands.move_layers(g, {"out": (800, 0)}))
    assert long() == wanted() == {("cat", 1)}
    document.do(lambda g: commands.disconnect(g, "cat", 1, close_gap=False))
    assert long() == wanted() == set()
    document.undo()
    document.do(lambda g: commands.remove_layers(g, ["input"]))
    assert long() == wanted() == set()
    document.undo()
    assert long() == wanted() == {("cat", 1)}


def test_what_is_put_between_the_ends_of_a_link_moves_it_and_nothing_else_does(canvas):
    """A layer left or right of a link, or far above it, leaves it alone; its own ends are never in its way."""
    document = canvas.context.document
    document.do(lambda g: commands.remove_layers(g, ["conv", "free", "out"]))
    item = canvas.projection.link("cat", 1)
    document.do(lambda g: commands.move_layers(g, {"cat": (1280, 0)}))
    direct = item.path()
    y = round(item.source.center().y())
    places = {(480, y - 40): True, (1000, y - 30): True, (480, y + 400): False, (480, y - 400): False, (-400, y - 40): False,
              (1800, y - 40): False}  # fmt: skip
    for place, moves in places.items():
        document.do(lambda g, place=place: commands.add_layer(g, Layer("new", "identity", place)))
        assert (item.path() != direct) is moves, place
        box = canvas.projection["new"].box()
        assert not any(box.contains(item.path().pointAtPercent(share / 60)) for share in range(61)), place
        document.do(lambda g: commands.move_layers(g, {"new": (480, 2000)}))
        assert item.path() == direct, place
        document.do(lambda g, place=place: commands.move_layers(g, {"new": place}))
        assert (item.path() != direct) is moves, place
        document.do(lambda g: commands.remove_layers(g, ["new"]))
        assert item.path() == direct, place
        document.undo()
        assert (item.path() != direct) is moves, place
        for _ in range(3):
            document.undo()
        assert item.path() == direct
