"""The tools of graph passes: replaced tensors, weights that move, and weights that layers share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from runtime_networks import layer

from designer.files.weights import WeightKey, Weights
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.passes.rewriting import Rewriting, Subject, alone, moved_activation, shared_again

REGISTRY = load(entry_points=False)
Tensors = dict[str, float]


def subject(layers: list[Layer], values: Tensors) -> Subject:
    """`values` are filled tensors by texts such as `a/kernel`."""
    tensors = {WeightKey(*text.split("/")): np.full(2, value, np.float32) for text, value in values.items()}
    graph = Graph([layer("image", "input", dims="8x8x3"), *layers])
    return Subject.of(graph, REGISTRY, Weights(tensors, source="net.pt", note="a note", sha256="abc"))


def values(found: Subject) -> Tensors:
    return {f"{key.layer}/{key.tensor}": float(tensor[0]) for key, tensor in found.weights.tensors.items()}


def owners(found: Subject) -> dict[str, str]:
    return {each.name: each.weights_name for each in found.graph if each.name != "image"}


def sharing(name: str, of: str = "", source: str = "image") -> Layer:
    return replace(layer(name, "convolution", source), weights_of=of)


def test_a_replaced_tensor_is_read_from_what_replaces_it_at_last() -> None:
    work = Rewriting()
    assert not work
    work.replaced |= {"c": Source("b", "y1"), "b": Source("a", "y"), "d": Source("c")}
    assert work
    assert [str(work.source(Source(name))) for name in "abcd"] == ["a", "a:y", "a:y", "a:y"]
    assert work.source(Source("a", "z")) == Source("a", "z")


def test_changes_are_applied_at_once() -> None:
    before = subject(
        [
            layer("a", "identity", "image"),
            layer("b", "identity", "a"),
            layer("c", "identity", "b"),
            layer("sum", "element_wise", "c,b"),
            Layer("open", "element_wise", inputs=(None, Source("c"))),
        ],
        {"a/kernel": 1, "sum/bias": 2},
    )
    work = Rewriting(
        {"b": Source("a"), "c": Source("b")},
        {"sum": layer("sum", "element_wise", "b,c", operation="multiply")},
        {WeightKey("sum", "bias"): np.full(2, 9, np.float32), WeightKey("new", "x"): np.full(2, 3, np.float32)},
    )
    made = work.applied(before)
    assert sorted(made.graph.layers) == ["a", "image", "open", "sum"]
    assert [str(source) for source in made.graph["sum"].inputs] == ["a", "a"]
    assert made.graph["sum"].params["operation"] == "multiply"
    assert made.graph["open"].inputs == (None, Source("a"))
    assert values(made) == {"a/kernel": 1, "sum/bias": 9, "new/x": 3}
    assert (made.weights.source, made.weights.note, made.weights.sha256) == ("net.pt", "a note", "abc")
    assert made.inference.graph is made.graph
    assert sorted(before.graph.layers) == ["a", "b", "c", "image", "open", "sum"]


def test_weights_of_an_activation_move_under_the_name_that_the_layer_uses() -> None:
    found = subject(
        [sharing("act", "owner"), sharing("to", "other"), sharing("owner"), sharing("other")],
        {"owner/activation_slope": 1, "owner/kernel": 2, "act/activation_slope": 3, "other/activation_slope": 4},
    )
    moved = moved_activation(found, found.graph["act"], found.graph["to"])
    assert {key: float(tensor[0]) for key, tensor in moved.items()} == {WeightKey("other", "activation_slope"): 1}
    assert moved_activation(found, found.graph["to"], found.graph["act"]).keys() == {
        WeightKey("owner", "activation_slope")
    }


def test_a_layer_gets_weights_of_its_own() -> None:
    plain = subject([sharing("a"), sharing("b")], {"a/kernel": 1, "b/kernel": 2})
    assert alone(plain, "a") is plain
    shared = subject(
        [sharing("a"), sharing("b", "a"), sharing("c", "a"), sharing("d")], {"a/kernel": 1, "a/bias": 2, "d/kernel": 3}
    )
    reader = alone(shared, "c")
    assert owners(reader) == {"a": "a", "b": "a", "c": "c", "d": "d"}
    assert values(reader) == {"a/kernel": 1, "a/bias": 2, "c/kernel": 1, "c/bias": 2, "d/kernel": 3}
    owner = alone(shared, "a")
    assert owners(owner) == {"a": "a", "b": "b", "c": "b", "d": "d"}
    assert values(owner) == {"a/kernel": 1, "a/bias": 2, "b/kernel": 1, "b/bias": 2, "d/kernel": 3}
    lost = subject([sharing("b", "gone"), sharing("c", "gone")], {"gone/kernel": 1})
    assert owners(alone(lost, "b")) == {"b": "b", "c": "gone"}


def test_layers_share_again_what_is_still_equal() -> None:
    """Among those that shared before; a layer that a pass added, or that never shared, keeps its own."""
    before = Graph([sharing("a"), *(sharing(name, "a") for name in "bcde"), sharing("own")])
    now = subject(
        [*(sharing(name) for name in "abcde"), sharing("own"), sharing("new")],
        {
            "a/kernel": 1, "b/kernel": 2, "c/kernel": 2, "d/kernel": 1, "e/kernel": 1, "e/bias": 5,
            "own/kernel": 1, "new/kernel": 1,
        },
    )  # fmt: skip
    made = shared_again(now, before)
    assert owners(made) == {"a": "a", "b": "b", "c": "b", "d": "a", "e": "e", "own": "own", "new": "new"}
    assert values(made) == {
        "a/kernel": 1, "b/kernel": 2, "e/kernel": 1, "e/bias": 5, "own/kernel": 1, "new/kernel": 1,
    }  # fmt: skip
