"""Edits of positions: aligned, distributed and moved out of the way."""

from __future__ import annotations

import pytest
from test_commands import check_reversible

from designer.graph.arrangement import (
    FRAME_EDGE,
    FRAME_TOP,
    Side,
    align,
    around,
    distribute,
    lay_out,
    make_room,
    on_grid,
)
from designer.graph.commands import move_layers
from designer.graph.graph import Graph
from designer.graph.layout import LayerBox, arrange
from designer.graph.model import GRID, Frame, Layer, Source
from designer.graph.routes import routes_of, set_route

SIZES = {"a": (160.0, 64.0), "b": (160.0, 96.0), "c": (192.0, 64.0), "d": (160.0, 64.0)}


@pytest.fixture
def graph() -> Graph:
    return Graph(
        [
            Layer("a", "tiny", (0, 0)),
            Layer("b", "tiny", (240, 64), (Source("a"),)),
            Layer("c", "tiny", (480, 32), (Source("b"),)),
            Layer("d", "tiny", (960, 0), (Source("c"),)),
        ],
        frames=[Frame("f", rect=(0, 0, 16, 16))],
    )


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        (Side.LEFT, [(0, 0), (0, 64), (0, 32)]),
        (Side.RIGHT, [(512, 0), (512, 64), (480, 32)]),
        (Side.CENTER, [(256, 0), (256, 64), (240, 32)]),
        (Side.TOP, [(0, 0), (240, 0), (480, 0)]),
        (Side.BOTTOM, [(0, 96), (240, 64), (480, 96)]),
        (Side.MIDDLE, [(0, 48), (240, 32), (480, 48)]),
    ],
)
def test_layers_are_aligned_on_the_grid(graph: Graph, side: Side, expected: list[tuple[int, int]]) -> None:
    check_reversible(graph, align(graph, SIZES, ["a", "b", "c"], side))
    assert [graph[n].position for n in "abc"] == expected


def test_layers_are_distributed_between_the_outermost(graph: Graph) -> None:
    check_reversible(graph, distribute(graph, SIZES, ["c", "a", "d", "b"], vertical=False))
    assert [graph[n].position[0] for n in "abcd"] == [0, 304, 624, 960]
    graph.apply(distribute(graph, SIZES, ["a", "c", "b"], vertical=True))
    assert [graph[n].position[1] for n in "acb"] == [0, 32, 64]


def test_room_is_made_on_the_grid_and_frames_follow_or_grow(graph: Graph) -> None:
    graph.frames["g"] = Frame("g", rect=(400, 0, 800, 160))
    check_reversible(graph, make_room(graph, ["c", "d"], 20, {"f": ["a", "b", "c"], "g": ["c", "d"]}))
    assert [graph[n].position for n in "abcd"] == [(0, 0), (240, 64), (512, 32), (992, 0)]
    assert graph.frames["f"].rect == (0, 0, 48, 16)
    assert graph.frames["g"].rect == (432, 0, 800, 160)


def test_frames_are_fitted_again_around_what_was_laid_out(graph: Graph) -> None:
    boxes = {n: LayerBox(*SIZES[n], (32.0,), {"": 32.0}, 0) for n in graph.layers}
    check_reversible(graph, lay_out(graph, boxes, list(graph.layers), {"f": ["a", "b"]}))
    places = {n: graph[n].position for n in "ab"}
    assert graph.frames["f"].rect == around(places, boxes)
    assert len({graph[n].position[0] for n in "abcd"}) == 4


def test_a_frame_around_another_stays_around_it(graph: Graph) -> None:
    boxes = {n: LayerBox(*SIZES[n], (32.0,), {"": 32.0}, 0) for n in graph.layers}
    graph.frames["g"] = Frame("g", rect=(-32, -64, 512, 256))
    graph.frames["f"] = Frame("f", rect=(0, 0, 256, 96))
    check_reversible(graph, lay_out(graph, boxes, list(graph.layers), {"g": ["a", "b"], "f": ["b"]}))
    x, y, width, height = graph.frames["f"].rect
    left, top, wide, high = graph.frames["g"].rect
    assert top <= y - FRAME_TOP  # the titles are apart
    assert left < x < x + width < left + wide
    assert y + height < top + high


def test_a_frame_around_layers_has_room_for_its_title_and_ends_on_the_grid() -> None:
    boxes = {
        "a": LayerBox(100.0, 40.0, (32.0,), {"": 32.0}, 0),
        "b": LayerBox(33.0, 200.0, (32.0,), {"": 32.0}, 0),
    }
    assert around({"a": (64, 160), "b": (96, 80)}, boxes) == (32, 32, 176, 272)
    assert around({"b": (-16, 0)}, boxes) == (-48, -48, 112, 272)
    assert around({"a": (0, 0)}, {"a": LayerBox(96.0, 48.0, (), {}, 0)}) == (-32, -48, 160, 112)


def test_only_frames_whose_layers_moved_are_fitted_again(graph: Graph) -> None:
    boxes = {n: LayerBox(*SIZES[n], (32.0,), {"": 32.0}, 0) for n in graph.layers}
    graph.apply(lay_out(graph, boxes, list(graph.layers), {}))
    again = lay_out(graph, boxes, list(graph.layers), {"f": ["a"]})
    assert not again.layers
    assert not again.frames
    graph.frames["g"] = Frame("g", rect=(0, 0, 16, 16))
    x, y = graph["c"].position
    graph.apply(move_layers(graph, {"c": (x + 320, y + 160)}))
    edit = lay_out(graph, boxes, list(graph.layers), {"f": ["a"], "g": ["c", "d"]})
    assert edit.frames.keys() == {"g"}
    assert edit.title == "Lay out"


@pytest.mark.parametrize(("run", "step"), [(16.0, 16), (16.5, 32), (1.0, 16), (0.0, 0)])
def test_room_is_rounded_up_to_the_grid(graph: Graph, run: float, step: int) -> None:
    graph.apply(make_room(graph, ["d"], run, {}))
    assert graph["d"].position == (960 + step, 0)


def test_equal_steps_of_layers_of_different_heights(graph: Graph) -> None:
    graph.apply(move_layers(graph, {"a": (0, 0), "b": (7, 64), "c": (9, 320), "d": (1, 640)}))
    check_reversible(graph, distribute(graph, SIZES, ["d", "b", "a", "c"], vertical=True))
    assert [graph[n].position for n in "abcd"] == [(0, 0), (7, 208), (9, 432), (1, 640)]
    before = graph.copy()
    graph.apply(distribute(graph, SIZES, ["a"], vertical=False))
    assert graph == before
    assert distribute(graph, SIZES, ["a", "b"], vertical=True).title == "Distribute vertically"
    assert distribute(graph, SIZES, ["a", "b"], vertical=False).title == "Distribute horizontally"


def boxes_of(graph: Graph) -> dict[str, LayerBox]:
    return {n: LayerBox(*SIZES[n], (32.0,), {"": 32.0}, 0) for n in graph.layers}


def test_a_frame_stays_around_a_frame_that_did_not_move(graph: Graph) -> None:
    """The inner frame has the same left edge and top as the outer one, and its layer is not laid out."""
    graph.frames["f"] = Frame("f", rect=(-64, -96, 448, 320))
    graph.frames["g"] = Frame("g", rect=(-64, -96, 1280, 320))
    edit = lay_out(graph, boxes_of(graph), ["c", "d"], {"g": ["a", "c", "d"], "f": ["a"]})
    assert edit.frames.keys() == {"g"}
    check_reversible(graph, edit)
    x, y, width, height = graph.frames["g"].rect
    assert (x, y) == (-64 - FRAME_EDGE, -96 - FRAME_TOP)
    assert y + height == -96 + 320 + GRID
    right = max(graph[n].position[0] + SIZES[n][0] for n in "cd")
    assert x + width >= right + FRAME_EDGE


def test_waypoints_of_links_from_layers_that_are_not_laid_out_stay(graph: Graph) -> None:
    for consumer in ("c", "d"):
        graph.apply(set_route(graph, consumer, 0, [(400, 400)]))
    graph.apply(move_layers(graph, {"d": (960, 160)}))
    graph.apply(lay_out(graph, boxes_of(graph), ["c", "d"], {}))
    assert routes_of(graph["c"]) == {0: ((400, 400),)}
    assert routes_of(graph["d"]) == {}


def test_layers_at_the_same_position_are_distributed_by_name(graph: Graph) -> None:
    graph.apply(move_layers(graph, {"a": (0, 0), "b": (0, 64), "c": (480, 32), "d": (480, 0)}))
    for names in (["a", "b", "c", "d"], ["d", "b", "c", "a"]):
        made = graph.copy()
        made.apply(distribute(made, SIZES, names, vertical=False))
        positions = [made[n].position[0] for n in "abcd"]
        assert positions == sorted(positions)
        assert (positions[0], positions[3]) == (0, 480)


def test_a_frame_with_one_layer_that_stays_grows(graph: Graph) -> None:
    held = {"f": ["a", "b", "c"], "g": ["b", "c", "d"], "h": ["a"]}
    for key in "gh":
        graph.frames[key] = Frame(key, rect=(0, 0, 160, 64))
    edit = make_room(graph, ["b", "c", "d"], 32, held)
    graph.apply(edit)
    assert graph.frames["f"].rect == (0, 0, 48, 16)
    assert graph.frames["g"].rect == (32, 0, 160, 64)
    assert edit.frames.keys() == {"f", "g"}
    assert edit.title == "Make room"


@pytest.mark.parametrize(
    ("point", "expected"),
    [((0, 0), (0, 0)), ((9, 7), (16, 0)), ((-9, -7), (-16, 0)), ((31.5, -31.5), (32, -32)), ((15, 40), (16, 32))],
)
def test_the_nearest_grid_point(point: tuple[float, float], expected: tuple[int, int]) -> None:
    assert on_grid(*point) == expected


@pytest.mark.parametrize("moved", [(), ("c",), ("b", "d"), ("a", "b", "c", "d")])
@pytest.mark.parametrize("names", ["abcd", "bcd", "bc", "ad"])
def test_links_between_layers_laid_out_lose_their_waypoints_whether_they_move_or_not(
    graph: Graph, names: str, moved: tuple[str, ...]
) -> None:
    graph.apply(lay_out(graph, boxes_of(graph), [*graph.layers], {}))
    for consumer in "bcd":
        graph.apply(set_route(graph, consumer, 0, [(8, 8), (16, 16)]))
    graph.apply(move_layers(graph, {n: (graph[n].position[0] + 4, graph[n].position[1] + 320) for n in moved}))
    places = {n: graph[n].position for n in "abcd"} | arrange(graph, boxes_of(graph), [*names])
    edit = lay_out(graph, boxes_of(graph), [*names], {})
    check_reversible(graph, edit)
    assert {n: graph[n].position for n in "abcd"} == places
    between = {consumer for producer, consumer in ("ab", "bc", "cd") if producer in names and consumer in names}
    assert {n for n in "bcd" if not routes_of(graph[n])} == between
    assert edit.title == "Lay out" or not edit.layers
    assert between <= edit.layers.keys()
