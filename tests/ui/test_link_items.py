"""Links are marked, labeled, shown and drawn as the document says, after every step that makes, moves or removes their items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
import numpy as np
from PySide6.QtCore import QPointF, QRectF
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
        for away in ((480, 2000), (-700, y - 40), (2200, y - 40), (-700, y + 700)):
            document.do(lambda g, away=away: commands.move_layers(g, {"new": away}))
            assert item.path() == direct, place
            document.do(lambda g, place=place: commands.move_layers(g, {"new": place}))
            assert (item.path() != direct) is moves, place
        document.do(lambda g: commands.remove_layers(g, ["new"]))
        assert item.path() == direct, place
        document.undo()
        assert (item.path() != direct) is moves, place
        for _ in range(9):
            document.undo()
        assert item.path() == direct


# --- bounds without items --------------------------------------------------------------------------------------------

BOXES: dict[str, tuple[float, float, float, float]] = {  # left, top, right, bottom
    "from": (0.0, 0.0, 160.0, 80.0),
    "right": (240.0, 40.0, 400.0, 120.0),
    "touching": (160.0, 300.0, 320.0, 360.0),
    "almost far": (343.0, -200.0, 500.0, -100.0),
    "far": (344.0, -200.0, 500.0, -100.0),
    "very far": (3000.0, 900.0, 3160.0, 980.0),
    "below": (20.0, 400.0, 180.0, 480.0),
    "left": (-900.0, -60.0, -740.0, 20.0),
    "overlapping": (159.0, 500.0, 260.0, 560.0),
}
POINTS: dict[str, tuple[tuple[float, float], ...]] = {
    "none": (),
    "inside": ((100.0, 20.0),),
    "above": ((200.0, -700.0),),
    "all around": ((-1500.0, 10.0), (50.0, 1500.0), (2500.0, -20.0)),
}


class Boxes:
    """Layers that are only boxes."""

    def bounds(self, names: list[str]) -> np.ndarray:
        return np.array([BOXES[name] for name in names])


def link_area(source: str, target: str, points: tuple[tuple[float, float], ...]) -> tuple[float, float, float, float]:
    """The area that certainly contains a link, with 64 units to spare."""
    boxes = BOXES[source], BOXES[target]
    left, top = (min(box[side] for box in boxes) for side in (0, 1))
    right, bottom = (max(box[side] for box in boxes) for side in (2, 3))
    gap = BOXES[target][0] - BOXES[source][2]
    if gap < 0:
        left, right = left - 220, right + 220
    if gap >= 184:
        top, bottom = top - 960, bottom + 960
    if points:
        left, right = min(left, *(x for x, _ in points)), max(right, *(x for x, _ in points))
        top, bottom = min(top, *(y for _, y in points)), max(bottom, *(y for _, y in points))
        more = 0.3 * ((right - left) ** 2 + (bottom - top) ** 2) ** 0.5
        left, top, right, bottom = left - more, top - more, right + more, bottom + more
    return left - 64, top - 64, right + 64, bottom + 64


def probe(x: float, y: float) -> QRectF:
    return QRectF(x, y, 0.01, 0.01)


@pytest.mark.parametrize("points", POINTS)
def test_bounds_of_links_contain_every_way_that_they_can_take(points: str) -> None:
    """Every box to every other one, all at once and one after the other."""
    places = {}
    index = LinkIndex(Boxes(), lambda key: places.get(key, ()))
    pairs = [(source, target) for source in BOXES for target in BOXES if source != target]
    entries = []
    for source, target in pairs:
        key = (target, list(BOXES).index(source))
        places[key] = POINTS[points]
        entries.append(index.put(key, Source(source)))
    index.fit([])
    assert index.count_near(QRectF(-9000, -9000, 18000, 18000)) == 0
    for fit in (lambda: index.fit(iter(entries)), lambda: [index.fit([entry]) for entry in reversed(entries)]):
        fit()
        for entry, pair in zip(entries, pairs, strict=True):
            left, top, right, bottom = link_area(*pair, POINTS[points])
            x, y = (left + right) / 2, (top + bottom) / 2
            for inside in ((left + 0.5, y), (right - 0.5, y), (x, top + 0.5), (x, bottom - 0.5)):
                assert entry in index.near(probe(*inside)), pair
            for outside in ((left - 0.5, y), (right + 0.5, y), (x, top - 0.5), (x, bottom + 0.5)):
                assert entry not in index.near(probe(*outside)), pair
                assert index.count_near(probe(*outside)) == len(index.near(probe(*outside)))
        assert index.count_near(QRectF(-9000, -9000, 18000, 18000)) == len(index) == len(pairs)


def test_an_index_of_links_knows_what_enters_and_leaves_a_layer() -> None:
    index = LinkIndex(Boxes())
    keys = {("right", 0): "from", ("right", 1): "left", ("far", 0): "right", ("far", 2): "right", ("left", 0): "far"}
    for key, source in keys.items():
        index.put(key, Source(source))
    index.fit(list(index))

    def check() -> None:
        assert {entry.key: entry.source.layer for entry in index} == keys
        assert index.count_near(QRectF(-9000, -9000, 18000, 18000)) == len(index) == len(keys)
        for name in BOXES:
            into = {key for key in keys if key[0] == name}
            leaving = {key for key, source in keys.items() if source == name}
            assert (index.into(name), index.leaving(name)) == (into, leaving)
            assert [entry.key for entry in index.of(name)] == sorted(into | leaving)

    check()
    for gone in (("far", 0), ("right", 1), ("left", 0)):
        index.drop(index.get(gone))
        del keys[gone]
        check()
        assert index.get(gone) is None


@dataclass
class Place:
    """One end of a link, or what holds it."""

    at: QPointF
    layer: str
    folded: object = None

    @property
    def node(self) -> Place:
        return self

    def center(self) -> QPointF:
        return self.at


@dataclass(eq=False)
class Ends:
    """A link that is only its ends."""

    source: Place
    target: Place


class Between:
    """What is between the ends of links; of the layers there, not all are measured."""

    def __init__(self, names: list[str], folded: dict[str, object] | None = None) -> None:
        self.names, self.stale, self.asked = names, True, []
        self.folded = folded or {}
        self.obstacles = self

    def __getitem__(self, name: str) -> Place:
        return Place(QPointF(), name, self.folded.get(name))

    def near(self, area: QRectF) -> list[str]:
        self.asked.append(area.getRect())
        return self.names

    def measured(self, name: str) -> None:
        self.asked.append(name)

    def lane(self, *ends: object) -> float:
        self.asked.append(ends)
        return 7.5


def test_a_long_link_asks_for_a_lane_between_its_ends_once_all_there_is_measured() -> None:
    def link(start: tuple[float, float], end: tuple[float, float]) -> LinkItem:
        return cast(LinkItem, Ends(Place(QPointF(*start), "a"), Place(QPointF(*end), "b")))

    for start, end in (((0, 10), (200, 50)), ((5, 900), (2005, -900)), ((-300, 3), (0, 3))):
        layers = Between(["x", "y"])
        index = LinkIndex(layers)
        ends = (start, end, "a", "b")
        top, bottom = sorted((start[1], end[1]))
        area = (start[0], top - 960, end[0] - start[0], bottom - top + 2 * 960)
        assert index.route(link(start, end)) == 7.5
        assert layers.asked == [area, "x", "y", ends]
        layers.stale = False
        layers.asked.clear()
        assert index.route(link(start, end)) == 7.5
        assert layers.asked == [ends]
    for short in (((0, 0), (199, 0)), ((0, 0), (-500, 900))):
        assert index.route(link(*short)) is None
    for count, lane in ((1600, 7.5), (1601, None)):
        crowd = Between([f"l{n}" for n in range(count)])
        assert LinkIndex(crowd).route(link((0, 0), (900, 0))) == lane


def test_a_link_is_inside_of_a_collapsed_frame_with_both_of_its_ends() -> None:
    one, two = object(), object()
    for source in (None, one, two):
        for target in (None, one, two):
            index = LinkIndex(Between([], {"a": source, "b": target}))
            assert index.inner(index.put(("b", 0), Source("a"))) is (source is target and source is not None)
