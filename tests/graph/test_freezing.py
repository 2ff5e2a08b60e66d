"""Frozen layers: a toggle that is an edit, and keeps everything else of a layer."""

from __future__ import annotations

from test_commands import check_reversible

from designer.graph.freezing import freeze
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source


def test_it_is_a_toggle_that_keeps_everything() -> None:
    graph = Graph([Layer("in", "tiny_input"), Layer("conv", "tiny_convolution", inputs=(Source("in"),))])
    before = graph.copy()
    check_reversible(graph, freeze(graph, ["conv"]))
    assert graph["conv"].frozen
    graph.apply(freeze(graph, ["in", "conv"]))
    assert graph["in"].frozen
    graph.apply(freeze(graph, ["in", "conv"]))
    assert graph == before


def test_titles_and_layers_that_are_partly_frozen():
    graph = Graph([Layer("a", "t", attributes={"lw:other": "1"}), Layer("b", "t")])
    graph.apply(freeze(graph, ["a"]))
    assert freeze(graph, ["a"]).title == "Unfreeze a"
    edit = freeze(graph, ["a", "b"])
    assert edit.title == "Freeze 2 layers"
    graph.apply(edit)
    assert [layer.frozen for layer in graph] == [True, True]
    edit = freeze(graph, ["a", "b"])
    assert edit.title == "Unfreeze 2 layers"
    graph.apply(edit)
    assert [layer.frozen for layer in graph] == [False, False]
    assert graph["a"].attributes == {"lw:other": "1"}
