"""Queries on random graphs with loops and dangling links, causes of unknown shapes, and saved states of a history."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from designer.graph import inference as inference_module
from designer.graph.commands import _without_input, delete, disconnect
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.model import MAX_NAME, Layer, Source
from designer.graph.routes import ROUTES, points_into
from designer.graph.template_commands import _numbered
from designer.operators.registry import Registry

NAMES = "abcdefgh"


def random_graph(source: random.Random) -> Graph:
    """Up to 8 layers that read each other, themselves and layers that do not exist, some by a named port."""
    names = source.sample(NAMES, source.randrange(1, 8))
    known = [*names, "gone", "lost"]

    def sources() -> tuple[Source | None, ...]:
        count = source.choice([0, 1, 1, 1, 2, 3])
        return tuple(
            source.choice([None, Source(source.choice(known), source.choice(["", "", "y1"]))]) for _ in range(count)
        )

    return Graph([Layer(name, source.choice("tu"), inputs=sources()) for name in names])


def paths(graph: Graph, members: set[str]) -> set[tuple[str, str]]:
    """Pairs of layers among `members` that a path of at least one link joins, by Warshall's algorithm."""
    found = {(p, c) for p, _, c, _ in graph.links() if p in members and c in members}
    for middle, start, end in product(sorted(members), repeat=3):
        if (start, middle) in found and (middle, end) in found:
            found.add((start, end))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_what_depends_on_what(seed: int) -> None:
    source = random.Random(seed)
    graph = random_graph(source)
    layers = set(graph.layers)
    links = [(s.layer, s.port, x.name, i) for x in graph for i, s in enumerate(x.inputs) if s is not None]
    assert list(graph.links()) == links
    for name in (*layers, "gone", "lost", "other"):
        assert graph.consumers(name) == tuple(sorted({c for p, _, c, _ in links if p == name}))
    joined = paths(graph, layers)
    for names in (
        (),
        *([name] for name in sorted(layers)),
        source.sample(sorted(layers), len(layers) // 2),
        ["gone", *sorted(layers)[:1]],
    ):
        chosen = layers.intersection(names)
        assert graph.upstream(names) == chosen | {start for start, end in joined if end in chosen}
        assert graph.downstream(names) == chosen | {end for start, end in joined if start in chosen}
    for start, end in product(sorted(layers), repeat=2):
        assert graph.reaches(start, end) == (start == end or (start, end) in joined)
    for names in (None, source.sample(sorted(layers), source.randrange(len(layers) + 1)), ["gone", *sorted(layers)]):
        members = layers if names is None else layers.intersection(names)
        inside = paths(graph, members)
        looped = {name for name in members if (name, name) in inside}
        behind = looped | {end for start, end in inside if start in looped}
        ordered, cyclic = graph.order(names)
        assert cyclic == sorted(behind)
        assert sorted(ordered) == sorted(members - behind)
        for start, end in inside:
            if start in ordered and end in ordered:
                assert ordered.index(start) < ordered.index(end)
        assert graph.loops(members if names is None else names) == looped
    shuffled = [*graph]
    source.shuffle(shuffled)
    again = Graph(shuffled)
    assert again.order() == graph.order()
    assert again == graph
    assert dict(again.types) == dict(graph.types) == {t: n for t in "tu" if (n := sum(x.type == t for x in graph))}


@pytest.mark.parametrize("seed", range(40))
def test_edits_leave_the_graph_that_they_describe(seed: int) -> None:
    """After random edits, the graph answers as one that is made anew from its layers."""
    source = random.Random(seed)
    graph = random_graph(source)
    for _ in range(6):
        other = random_graph(source)
        every = sorted({*graph.layers, *other.layers})
        names = source.sample(every, min(len(every), source.randrange(1, 4)))
        before = graph.copy()
        edit = Edit("", {name: (graph.get(name), other.get(name)) for name in names})
        graph.apply(edit)
        fresh = Graph([*graph])
        assert graph == fresh
        assert graph.types == fresh.types
        for name in (*NAMES, "gone"):
            assert graph.consumers(name) == fresh.consumers(name)
            assert graph.get(name) == (other.get(name) if name in names else before.get(name))
        undone = graph.copy()
        undone.apply(Edit("", {name: (graph.get(name), before.get(name)) for name in names}))
        assert undone == before
        if graph != before:
            with pytest.raises(ValueError, match=r"has changed since"):
                graph.apply(edit)


@pytest.mark.parametrize("seed", range(30))
def test_an_unknown_shape_is_because_of_the_first_input_that_has_none(tiny: Registry, seed: int) -> None:
    source = random.Random(seed)
    layers = [Layer("in", "tiny_input")]
    causes: dict[str, str | None] = {"in": None}
    broken: set[str] = set()
    for number in range(source.randrange(3, 11)):
        name = f"n{number}"
        reads = [source.choice([*causes]) for _ in range(source.randrange(1, 4))]
        kind = source.choice(["tiny_join", "tiny_join", "tiny_join", "strange"])
        unknown = {read for read in reads if read in broken or causes[read]}
        sources = (Source(read, source.choice(["", "y9"]) if read in unknown else "") for read in reads)
        layers.append(Layer(name, kind, inputs=tuple(sources)))
        because = next(
            (read if read in broken else causes[read] for read in reads if read in broken or causes[read]), None
        )
        causes[name] = because
        if kind == "strange":
            broken.add(name)
    inference = Inference(Graph(layers), tiny)
    for name, cause in causes.items():
        state = inference.states[name]
        if name in broken:
            assert state.outputs is None
            assert [d.code for d in state.diagnostics] == ["unknown-operator"]
        else:
            assert state.because_of == cause, name
            assert (state.outputs is None) == (cause is not None)
            assert state.diagnostics == ()


@pytest.mark.parametrize("seed", range(25))
def test_a_document_is_clean_only_in_the_state_that_was_saved(seed: int) -> None:
    """Random edits, undo, redo, saves and recoveries, against the states that a list of them has."""
    source = random.Random(seed)
    graph = Graph([Layer("a", "t")])
    history = History(graph)
    states, place, saved, aside = ["0"], 0, 0, False

    def edit(text: str) -> Edit:
        return Edit("Edit", {"a": (graph["a"], Layer("a", "t", params={"p": text}))})

    for number in range(1, 40):
        what = source.choice(["edit", "edit", "undo", "redo", "save", "aside"])
        if what == "edit":
            history.commit(edit(str(number)))
            saved = saved if saved is not None and saved <= place else None
            states[place + 1 :] = [str(number)]
            place += 1
        elif what == "undo" and place:
            history.undo()
            place -= 1
        elif what == "redo" and place + 1 < len(states):
            history.redo()
            place += 1
        elif what == "save":
            history.mark_clean()
            saved, aside = place, False
        elif what == "aside":
            history.mark_unsaved()
            aside = True
        assert graph["a"].params.get("p", "0") == states[place]
        assert history.is_clean == (saved == place and not aside), what
        assert history.steps == place
        assert (history.undo_title, history.redo_title) == (
            "Edit" if place else None, "Edit" if place + 1 < len(states) else None
        )  # fmt: skip


def test_names_of_copies_are_the_first_free_ones() -> None:
    taken: Any = {"a", "a_2", "a_3", "a_5"}
    assert [_numbered("a", taken) for _ in range(3)] == ["a_4", "a_6", "a_7"]
    assert taken == {"a", "a_2", "a_3", "a_4", "a_5", "a_6", "a_7"}
    long = "b" * MAX_NAME
    assert _numbered(long, taken) == "b" * (MAX_NAME - 8) + "_2"
    assert _numbered("b" * (MAX_NAME - 9) + "  c", taken) == "b" * (MAX_NAME - 9) + "_2"


READS = tuple(Source(name) if name else None for name in ("p", "", "q", "p"))


@pytest.mark.parametrize("close_gap", [False, True])
@pytest.mark.parametrize("index", range(-1, 6))
def test_a_link_is_removed_with_or_without_its_place(index: int, close_gap: bool) -> None:
    layer = Layer("x", "t", inputs=READS)
    graph = Graph([Layer("p", "t"), Layer("q", "t"), layer])
    edit = disconnect(graph, "x", index, close_gap=close_gap)
    if not 0 <= index < len(READS):
        assert (edit.title, edit.layers) == ("Disconnect", {})
    else:
        assert edit.title == "Disconnect x"
        before, after = edit.layers["x"]
        assert (before, after is not None) == (layer, True)
        texts = [str(s) if s is not None else "" for s in READS]
        expected = texts[:index] + ([] if close_gap else [""]) + texts[index + 1 :]
        while expected and not expected[-1]:
            expected.pop()
        assert after is not None
        assert [str(s) if s is not None else "" for s in after.inputs] == expected
    assert _without_input(layer, max(index, 4), close_gap=close_gap) is layer


def test_links_are_deleted_together_from_the_last_one() -> None:
    graph = Graph([Layer("p", "t"), Layer("q", "t"), Layer("x", "t", inputs=READS), Layer("y", "t", inputs=READS[:1])])
    asked: list[tuple[str, int]] = []

    def variadic(consumer: str, index: int) -> bool:
        asked.append((consumer, index))
        return consumer == "x"

    for links, title, left in (
        ([("x", 0)], "Delete link", ["", "q", "p"]), ([("x", 0), ("x", 2)], "Delete 2 links", ["", "p"]),
        ([("x", 2), ("x", 0), ("x", 3)], "Delete 3 links", []),
    ):  # fmt: skip
        edit = delete(graph, [], links, variadic=variadic)
        after = edit.layers["x"][1]
        assert after is not None
        assert edit.title == title
        assert [str(s) if s is not None else "" for s in after.inputs] == left
        assert edit.layers["x"][0] == graph["x"]
        assert asked == sorted(links, reverse=True)
        asked.clear()
    both = delete(graph, ["q"], [("x", 3), ("y", 0), ("q", 0)], variadic=variadic)
    assert asked == [("y", 0), ("x", 3)]
    assert {name: pair[1] is None for name, pair in both.layers.items()} == {"q": True, "x": False, "y": False}
    assert both.layers["y"][1] == Layer("y", "t")


def test_the_waypoints_of_a_link() -> None:
    layer = Layer("x", "t", inputs=READS, attributes={ROUTES: "0/p/1,2/3,4//2/q/5,6"})
    graph = Graph([layer, Layer("plain", "t", inputs=READS)])
    found = {index: points_into(graph, "x", index) for index in range(5)}
    assert found == {0: ((1, 2), (3, 4)), 1: (), 2: ((5, 6),), 3: (), 4: ()}
    assert points_into(graph, "plain", 0) == points_into(graph, "gone", 0) == ()


def test_the_results_of_layers_are_forgotten_before_they_are_too_many(
    tiny: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shapes stay right when the memory of results is full after every third layer."""
    chain = [Layer("c0", "tiny_input")]
    chain += [
        Layer(f"c{n}", "tiny_convolution", inputs=(Source(f"c{n - 1}"),), params={"features": str(n % 5 + 1)})
        for n in range(1, 25)
    ]
    usual = Inference(Graph(chain), tiny)
    monkeypatch.setattr(inference_module, "REMEMBERED", 3)
    few = Inference(Graph(chain), tiny)
    assert few.states == usual.states
    assert len(few._results._states) <= 3
    assert len(few._results._types) <= 4
