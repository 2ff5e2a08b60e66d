"""Ranks that are updated after edits, against the definition: a layer has a greater one than its producers."""

from __future__ import annotations

import pytest

from designer.graph import commands
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.ranks import Ranks


def chain(*names: str) -> Graph:
    before = (None, *names)
    return Graph([Layer(n, "t", inputs=(Source(p),) if p else ()) for n, p in zip(names, before, strict=False)])


def check(ranks: Ranks, graph: Graph) -> None:
    assert ranks.known
    for layer in graph:
        for producer in layer.producers():
            assert ranks[producer] < ranks[layer.name]


@pytest.fixture
def graph() -> Graph:
    return chain("a", "b", "c")


@pytest.fixture
def ranks(graph: Graph) -> Ranks:
    ranks = Ranks(graph)
    assert not ranks.known
    ranks.renew()
    check(ranks, graph)
    return ranks


def applied(graph: Graph, ranks: Ranks, edit: Edit) -> dict[str, float]:
    before = {name: ranks[name] for name in graph.layers}
    change = graph.apply(edit)
    ranks.update(change.removed, change.added | change.rewired)
    check(ranks, graph)
    return before


def test_a_layer_between_two_gets_a_rank_between_them_and_others_keep_theirs(graph: Graph, ranks: Ranks) -> None:
    before = applied(graph, ranks, commands.insert_on_link(graph, Layer("new", "t"), "c", 0))
    assert ranks["b"] < ranks["new"] < ranks["c"]
    assert {name: ranks[name] for name in before} == before


def test_layers_before_all_and_after_all(graph: Graph, ranks: Ranks) -> None:
    before = applied(graph, ranks, commands.add_connected(graph, Layer("first", "t"), None, ("a", 0)))
    assert ranks["first"] < before["a"] == ranks["a"]
    before = applied(graph, ranks, commands.add_connected(graph, Layer("last", "t"), Source("c"), None))
    assert ranks["last"] > before["c"] == ranks["c"]


def test_a_link_back_over_the_order_ranks_again(graph: Graph, ranks: Ranks) -> None:
    graph.apply(commands.add_layer(graph, Layer("x", "t")))
    graph.apply(commands.add_layer(graph, Layer("y", "t")))
    ranks.renew()
    one, other = sorted(("x", "y"), key=ranks.__getitem__)
    applied(graph, ranks, commands.connect(graph, Source(other), one, 0))
    applied(graph, ranks, commands.connect(graph, Source("c"), other, 0))


def test_many_layers_in_one_gap_have_ranks_in_order(graph: Graph, ranks: Ranks) -> None:
    for number in range(120):  # more than a float can halve
        applied(graph, ranks, commands.insert_on_link(graph, Layer(f"n{number}", "t"), "b", 0))


def test_a_loop_has_no_ranks_until_it_is_gone(graph: Graph, ranks: Ranks) -> None:
    loop = Edit("", {"a": (graph["a"], graph["a"].with_input(0, Source("c")))})
    ranks.update((), graph.apply(loop).rewired)
    assert not ranks.known
    ranks.update((), graph.apply(loop.reversed()).rewired)
    check(ranks, graph)


def test_a_removed_name_is_ranked_anew(graph: Graph, ranks: Ranks) -> None:
    applied(graph, ranks, commands.remove_layers(graph, ["a"]))
    with pytest.raises(KeyError):
        ranks["a"]
    applied(graph, ranks, commands.add_connected(graph, Layer("a", "t"), Source("c"), None))
    other = Ranks(graph.copy())
    other.adopt(ranks)
    check(other, graph)
