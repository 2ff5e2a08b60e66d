"""Points of links: kept in the document, following copies, renames, moves and undo; no result depends on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designer.files.document import parse_document, write_document
from designer.graph import commands, template_commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import ROUTES, Layer, Source
from designer.graph.routes import MOST, cleared, moved, rewired, routes_of, set_route, with_routes
from designer.graph.template import INPUT, INSTANCE, PARAMETER, Template

GOOD = Path(__file__).parents[1] / "data" / "good"


def small() -> Graph:
    return Graph(
        [
            Layer("input_0", "input", (0, 0)),
            Layer("my conv", "convolution", (320, 0), (Source("input_0"),)),
            Layer("cat_0", "concatenation", (640, 0), (Source("my conv"), Source("input_0"), Source("my conv"))),
        ]
    )


def routed(points=((160, 96), (480, 96)), index=1) -> tuple[Graph, History]:
    graph = small()
    history = History(graph)
    history.commit(set_route(graph, "cat_0", index, points))
    return graph, history


def points_of(graph: Graph, name: str = "cat_0") -> dict:
    return routes_of(graph[name])


def test_a_route_is_set_and_taken_back():
    graph, history = routed()
    assert points_of(graph) == {1: ((160, 96), (480, 96))}
    history.commit(set_route(graph, "cat_0", 1, ()))
    assert points_of(graph) == {}
    assert ROUTES not in graph["cat_0"].attributes
    history.undo()
    history.undo()
    assert graph == small()


def test_a_route_is_a_look_and_not_a_change_of_what_is_computed():
    graph = small()
    change = ChangeSet.of(set_route(graph, "cat_0", 1, [(16, 16)]))
    assert change.moved == {"cat_0"}
    assert not change.computed


def test_files_without_a_route_stay_byte_for_byte_and_those_with_one_too():
    for path in sorted(GOOD.glob("*.xml")):
        data = path.read_bytes()
        graph = parse_document(data, str(path)).graph
        if write_document(graph) != data:
            continue  # a foreign spelling, which other tests are about
        name = next((layer.name for layer in graph if any(layer.inputs)), None)
        if name is None:
            continue
        index = next(i for i, s in enumerate(graph[name].inputs) if s is not None)
        history = History(graph)
        history.commit(set_route(graph, name, index, [(32, -48), (64, 0)]))
        saved = write_document(graph)
        reading = parse_document(saved, str(path))
        assert routes_of(reading.graph[name]) == {index: ((32, -48), (64, 0))}
        assert not [d for d in reading.diagnostics if d.code == "schema"]
        assert write_document(reading.graph) == saved
        history.undo()
        assert write_document(graph) == data


def test_renaming_either_end_keeps_the_route():
    graph, history = routed()
    history.commit(commands.rename_layer(graph, "input_0", "picture"))
    history.commit(commands.rename_layer(graph, "cat_0", "joined"))
    assert points_of(graph, "joined") == {1: ((160, 96), (480, 96))}


def test_points_move_with_both_ends_and_stay_when_one_moves():
    graph, history = routed()
    history.commit(commands.move_layers(graph, {"cat_0": (656, 0)}))
    assert points_of(graph) == {1: ((160, 96), (480, 96))}
    history.commit(commands.move_layers(graph, {"cat_0": (656, 32), "input_0": (0, 32)}))
    assert points_of(graph) == {1: ((160, 128), (480, 128))}
    history.undo()
    assert points_of(graph) == {1: ((160, 96), (480, 96))}


def test_copies_bring_their_points_along():
    graph, history = routed()
    history.commit(commands.paste(graph, [graph["input_0"], graph["my conv"], graph["cat_0"]], (32, 16)))
    copy = next(layer for layer in graph if layer.type == "concatenation" and layer.name != "cat_0")
    assert routes_of(copy) == {1: ((192, 112), (512, 112))}
    assert "input_0/" not in copy.attributes[ROUTES]
    history.commit(commands.paste(graph, [graph["cat_0"]], (32, 16)))  # without what it reads
    alone = [layer for layer in graph if layer.type == "concatenation" and not any(layer.inputs)]
    assert [routes_of(x) for x in alone] == [{}]
    assert all(ROUTES not in x.attributes for x in alone)


def test_a_route_goes_with_its_source_when_inputs_move_up():
    graph, history = routed(index=1)
    history.commit(commands.disconnect(graph, "cat_0", 0, close_gap=True))
    assert points_of(graph) == {0: ((160, 96), (480, 96))}


def test_a_route_does_not_pass_to_another_link():
    graph, history = routed(index=1)
    history.commit(commands.connect(graph, Source("my conv"), "cat_0", 1))
    assert points_of(graph) == {}
    history.undo()
    assert points_of(graph) == {1: ((160, 96), (480, 96))}


def test_two_links_from_one_source_have_routes_of_their_own():
    graph, history = routed(index=2)
    history.commit(set_route(graph, "cat_0", 0, [(400, 64)]))
    assert points_of(graph) == {0: ((400, 64),), 2: ((160, 96), (480, 96))}
    assert routes_of(cleared(graph["cat_0"], ["my conv"])) == {}


def test_what_cannot_be_routed_is_refused():
    graph = small()
    for index in (7, -1):
        with pytest.raises(DiagnosticError, match="no link"):
            set_route(graph, "cat_0", index, [(0, 0)])
    with pytest.raises(DiagnosticError, match=f"{MOST} waypoints"):
        set_route(graph, "cat_0", 0, [(0, 0)] * (MOST + 1))


@given(st.text("0123/,-xin put_//", max_size=60))
def test_any_text_is_read_without_a_fault(text):
    layer = Layer("a", "concatenation", inputs=(Source("in put_0"), Source("x")), attributes={ROUTES: text})
    for index, points in routes_of(layer).items():
        assert index < 2
        assert routes_of(with_routes(layer, {index: points})) == {index: points}


@pytest.mark.parametrize(
    ("text", "routes"),
    [
        ("0/a/1,2", {0: ((1, 2),)}),
        ("1/b:y/1,2/-3,4//0/a/5,6", {1: ((1, 2), (-3, 4)), 0: ((5, 6),)}),
        ("9999/b:y/1,2", {1: ((1, 2),)}),  # the input that reads it now
        ("10000/a/1,2", {}),
        ("0/a/1,2/", {}),
        ("0/a", {}),
        ("0/a/1234567,-1234567", {0: ((1234567, -1234567),)}),
        ("0/a/12345678,0", {}),
        ("²/a/1,2", {}),
        ("/a/1,2", {}),
        ("0/c/1,2", {}),
        ("2/a/1,2", {2: ((1, 2),)}),
        ("5/a/1,2//6/a/3,4//7/a/5,6", {0: ((1, 2),), 2: ((3, 4),)}),
        ("0/a/" + "/".join(["1,2"] * MOST), {0: ((1, 2),) * MOST}),
        ("0/a/" + "/".join(["1,2"] * (MOST + 1)), {}),
    ],
)
def test_routes_are_read_by_the_rules_of_their_text(text, routes):
    layer = Layer("x", "t", inputs=(Source("a"), Source("b", "y"), Source("a")), attributes={ROUTES: text})
    assert routes_of(layer) == routes


def test_routes_of_inputs_that_do_not_exist_are_not_written():
    layer = Layer("x", "t", inputs=(Source("a"), None), attributes={"lw:other": "1"})
    assert with_routes(layer, {0: (), 1: ((1, 2),), 2: ((1, 2),), 3: ((1, 2),)}) == layer
    both = with_routes(replace(layer, inputs=(Source("a"), Source("b"))), {1: ((3, 4), (5, -6)), 0: ((1, 2),)})
    assert both.attributes == {"lw:other": "1", ROUTES: "0/a/1,2//1/b/3,4/5,-6"}


def twice(*indices: int, extra: bool = False) -> tuple[Graph, History]:
    """A concatenation that reads one layer twice, with a waypoint `(index, 0)` at each of these links."""
    first = (Source("input_0"),) if extra else ()
    graph = Graph(
        [
            Layer("input_0", "input"),
            Layer("a", "convolution", (320, 0), (Source("input_0"),)),
            Layer("cat", "concatenation", (640, 0), (*first, Source("a"), Source("a"))),
        ]
    )
    history = History(graph)
    for index in indices:
        history.commit(set_route(graph, "cat", index, [(index, 0)]))
    return graph, history


def without_first(graph):
    return commands.disconnect(graph, "cat", 0, close_gap=True)


def without_link(index):
    return lambda graph: commands.delete(graph, [], [("cat", index)], variadic=lambda *_: True)


CHANGES = {
    "the routed link is removed": ((0,), False, lambda g: commands.disconnect(g, "cat", 0), {}),
    "the routed link is removed and the other moves up": ((0,), False, without_first, {}),
    "the other link is removed and the routed one moves up": ((1,), False, without_first, {0: ((1, 0),)}),
    "both move up": ((1, 2), True, without_first, {0: ((1, 0),), 1: ((2, 0),)}),
    "the first of two that move up": ((1,), True, without_first, {0: ((1, 0),)}),
    "the second of two that move up": ((2,), True, without_link(0), {1: ((2, 0),)}),
    "one of two is deleted": ((1, 2), True, without_link(1), {1: ((2, 0),)}),
    "another layer is connected there": (
        (1,),
        False,
        lambda g: commands.connect(g, Source("input_0"), "cat", 1),
        {},
    ),
    "a layer is inserted into the link": (
        (1,),
        False,
        lambda g: commands.insert_on_link(g, Layer("new", "relu"), "cat", 1),
        {},
    ),
    "the link is moved to a third input": (
        (0, 1),
        False,
        lambda g: commands.move_link(g, ("cat", 0), Source("a"), "cat", 2, close_gap=True),
        {0: ((1, 0),), 1: ((0, 0),)},
    ),
    "the link is moved and leaves a gap": (
        (0,),
        False,
        lambda g: commands.move_link(g, ("cat", 0), Source("a"), "cat", 2),
        {2: ((0, 0),)},
    ),
    "a layer is added in front of it": (
        (0,),
        False,
        lambda g: commands.add_connected(g, Layer("new", "relu"), None, ("cat", 0)),
        {},
    ),
    "a layer is added in front of the other": (
        (0,),
        False,
        lambda g: commands.add_connected(g, Layer("new", "relu"), None, ("cat", 1)),
        {0: ((0, 0),)},
    ),
    "a link of another layer is moved there": (
        (0,),
        False,
        lambda g: commands.move_link(g, ("a", 0), Source("input_0"), "cat", 0),
        {},
    ),
    "its source is removed and what that reads takes its place": (
        (0, 1),
        False,
        lambda g: commands.remove_layers(g, ["a"], heal=True),
        {},
    ),
    "its source is renamed": ((0, 1), True, lambda g: commands.rename_layer(g, "a", "b"), {0: ((0, 0),), 1: ((1, 0),)}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_links_from_one_source_do_not_exchange_their_routes(what):
    routed_links, extra, change, expected = CHANGES[what]
    graph, history = twice(*routed_links, extra=extra)
    before = write_document(graph)
    history.commit(change(graph))
    assert points_of(graph, "cat") == expected
    opened = parse_document(write_document(graph)).graph
    assert routes_of(opened["cat"]) == expected
    history.undo()
    assert write_document(graph) == before
    history.redo()
    assert points_of(graph, "cat") == expected


def test_a_new_link_does_not_begin_with_the_route_of_a_removed_one():
    graph, history = twice(1)
    history.commit(commands.disconnect(graph, "cat", 1))
    history.commit(commands.connect(graph, Source("a"), "cat", 2))
    assert points_of(graph, "cat") == {}


def test_routes_into_an_instance_follow_its_ports():
    inside = (Layer("x", INPUT, params={"index": "0"}), Layer("y", INPUT, params={"index": "1"}))
    graph = Graph(
        [
            Layer("a", "input"),
            Layer("use", INSTANCE, (320, 0), (Source("a"), Source("a")), {PARAMETER: "block"}),
        ],
        templates=[Template("block", inside)],
    )
    history = History(graph)
    history.commit(set_route(graph, "use", 1, [(160, 96)]))
    history.commit(
        template_commands.edit_template(graph, "block", commands.remove_layers(graph.inside("block"), ["x"]))
    )
    assert points_of(graph, "use") == {0: ((160, 96),)}


def test_links_keep_their_rank_among_those_of_one_source():
    layer = with_routes(
        Layer("x", "join", inputs=(Source("a"), Source("a"), Source("b"))), {0: ((1, 1),), 1: ((2, 2),), 2: ((3, 3),)}
    )
    after = rewired(layer, (Source("b"), Source("a"), None, Source("a")))
    assert routes_of(after) == {0: ((3, 3),), 1: ((1, 1),), 3: ((2, 2),)}
    assert routes_of(rewired(layer, (Source("a"), Source("c"), Source("b")))) == {0: ((1, 1),), 2: ((3, 3),)}
    # an input that reads another layer now has no route, also where its origin is known
    assert routes_of(rewired(layer, (Source("c"), Source("a"), Source("b")), [0, 1, 2])) == {1: ((2, 2),), 2: ((3, 3),)}
    graph = Graph([Layer("a", "t"), Layer("b", "t"), Layer("c", "t"), layer])
    moved_link = commands.move_link(graph, ("x", 0), Source("c"), "x", 3)
    assert routes_of(moved_link.layers["x"][1]) == {1: ((2, 2),), 2: ((3, 3),)}


def test_text_that_is_not_a_route_survives_other_links():
    text = "1/a/5,5//of a newer version//7/b/1,1"
    layer = Layer("x", "join", inputs=(Source("a"), Source("a")), attributes={ROUTES: text, "lw:frozen": "true"})
    assert rewired(layer, (Source("a"), Source("a"), Source("c"))).attributes == layer.attributes
    assert rewired(layer, (Source("a"),)).attributes != layer.attributes


def test_a_link_has_at_most_64_waypoints():
    graph = Graph([Layer("a", "t"), Layer("x", "t", inputs=(Source("a"), Source("a")))])
    points = [(i, -i) for i in range(64)]
    graph.apply(set_route(graph, "x", 0, points))
    graph.apply(set_route(graph, "x", 1, [(5, 5)]))
    assert routes_of(graph["x"]) == {0: tuple(points), 1: ((5, 5),)}
    with pytest.raises(DiagnosticError, match="at most 64"):
        set_route(graph, "x", 0, [*points, (1, 1)])
    assert routes_of(moved(graph["x"], (3, -7))) == {0: tuple((x + 3, y - 7) for x, y in points), 1: ((8, -2),)}


@pytest.mark.parametrize(
    ("after", "origins", "expected"),
    [
        ("a a b", None, {0: 0, 1: 1, 2: 2}),
        ("- a b", None, {1: 1, 2: 2}),  # fewer links from one source: each keeps its index
        ("a - b", None, {0: 0, 2: 2}),
        ("a b", None, {0: 0, 1: 2}),
        ("b a", None, {0: 2, 1: 1}),
        ("b a a", None, {0: 2, 1: 0, 2: 1}),  # as many links: each keeps its rank
        ("- a a b", None, {1: 0, 2: 1, 3: 2}),
        ("a a a b", None, {0: 0, 1: 1, 3: 2}),  # more links: the new one has no waypoints
        ("b b a", None, {}),
        ("c a b", None, {1: 1, 2: 2}),
        ("", None, {}),
        ("a a b", [1, 0, None], {0: 1, 1: 0}),
        ("a a b", [None, None, None], {}),
        ("a a", [0, 1, 2], {0: 0, 1: 1}),
        ("b a", [0, 1], {1: 1}),  # waypoints do not pass to a link from another source
    ],
)
def test_waypoints_stay_with_their_links(after, origins, expected):
    def inputs(text):
        return tuple(Source(name) if name != "-" else None for name in text.split())

    points = {index: ((16 * index, 32),) for index in range(3)}
    before = with_routes(Layer("x", "y", inputs=inputs("a a b")), points)
    made = rewired(before, inputs(after), origins)
    assert made.inputs == inputs(after)
    assert routes_of(made) == {index: points[origin] for index, origin in expected.items()}
