"""Weights follow edits: random networks keep their function, undo restores everything bit for bit."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from surgery_networks import REGISTRY, network, patient, result, same, trained

from designer.files.weights import WeightKey, Weights, required_weights
from designer.graph.commands import insert_on_link
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.surgery.operations import (
    Operation,
    fold_batch_normalization,
    insert_identity,
    narrow,
    remove_channels,
    set_features,
    split_layer,
    widen,
)

OPERATIONS = ("widen", "identity", "split", "fold")
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def operate(kind: str, graph: Graph, weights: Weights, random: Random) -> Operation | None:
    """A random operation of a kind that keeps the function; None if the network refuses all of them."""
    ill = patient(graph, weights)
    names = list(graph.layers)
    random.shuffle(names)
    for name in names:
        try:
            match kind:
                case "widen":
                    return widen(ill, name, random.randint(1, 3))
                case "identity":
                    return insert_identity(ill, name, 0, random.choice((1, 3)))
                case "split":
                    return split_layer(ill, name)
                case "fold":
                    return fold_batch_normalization(ill, name)
        except DiagnosticError:
            continue
    return None


@SLOW
@given(st.integers(0, 10**6), st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=3))
def test_edits_keep_the_function_and_undo_is_exact(seed: int, kinds: list[str]) -> None:
    graph = network(seed)
    weights = trained(graph)
    before, expected, original = graph.copy(), result(graph, weights), weights
    random = Random(seed)
    edits = []
    for kind in kinds:
        made = operate(kind, graph, weights, random)
        if made is None:
            continue
        graph.apply(made.edit)
        edits.append(made.edit)
        weights = made.weights
        found = result(graph, weights)
        assert np.abs(found - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max()), kind
    for edit in reversed(edits):
        graph.apply(edit.reversed())
    assert graph == before
    assert same(original, trained(before))


@SLOW
@given(st.integers(0, 10**6))
def test_removing_channels_without_effect_keeps_the_function(seed: int) -> None:
    graph = network(seed)
    weights = trained(graph)
    random = Random(seed)
    names = list(graph.layers)
    random.shuffle(names)
    for name in names:
        try:
            wider = widen(patient(graph, weights), name, 2)
        except DiagnosticError:
            continue
        expected = result(graph, weights)
        graph.apply(wider.edit)
        count = int(graph[name].params["features"])
        again = remove_channels(patient(graph, wider.weights), name, [count - 2, count - 1])
        graph.apply(again.edit)
        assert same(again.weights, weights)
        np.testing.assert_array_equal(result(graph, again.weights), expected)
        return


@SLOW
@given(st.integers(0, 10**6))
def test_narrowing_removes_the_channels_everywhere(seed: int) -> None:
    """The narrowed network computes what the original one does with the channels set to zero where they are read."""
    graph = network(seed)
    weights = trained(graph)
    random = Random(seed)
    for name in random.sample(list(graph.layers), len(graph)):
        ill = patient(graph, weights)
        try:
            made = ill.made(name)
            index = random.randrange(len(made.numbers))
            operation = remove_channels(ill, name, [index])
        except DiagnosticError:
            continue
        gone = ill.channels.root(int(made.numbers[index]))
        masked = {key: tensor.copy() for key, tensor in weights.tensors.items()}
        for axis in ill.channels.axes:
            if axis.reads:
                hit = np.flatnonzero(ill.channels.roots(axis.channels.expanded) == gone)
                view = np.moveaxis(masked[axis.key], axis.axis, 0)
                view[hit] = 0
        expected = result(graph, Weights(masked))
        graph.apply(operation.edit)
        found = result(graph, operation.weights)
        assert np.abs(found - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
        return


# --- single cases --------------------------------------------------------------------------------------------------


def residual() -> Graph:
    def conv(name: str, source: str, features: int) -> Layer:
        return Layer(name, "convolution", inputs=(Source(source),), params={"features": str(features)})

    return Graph(
        [
            Layer("in", "input", params={"dims": "8x8x3"}),
            conv("head", "in", 6),
            conv("body", "head", 6),
            Layer("sum", "element_wise", inputs=(Source("head"), Source("body"))),
            Layer("norm", "batch_normalization", inputs=(Source("sum"),)),
            Layer("join", "concatenation", inputs=(Source("norm"), Source("in"))),
            conv("tail", "join", 3),
            Layer("out", "output", inputs=(Source("tail"),)),
        ]
    )


def test_a_residual_addition_narrows_both_branches_and_what_reads_them() -> None:
    graph = residual()
    weights = trained(graph)
    made = remove_channels(patient(graph, weights), "body", [1, 4])
    graph.apply(made.edit)
    assert graph["head"].params["features"] == graph["body"].params["features"] == "4"
    kept = [0, 2, 3, 5]
    kernel = weights.tensors[WeightKey("tail", "kernel")]
    np.testing.assert_array_equal(made.weights.tensors[WeightKey("tail", "kernel")], kernel[:, [*kept, 6, 7, 8]])
    np.testing.assert_array_equal(
        made.weights.tensors[WeightKey("norm", "mean")], weights.tensors[WeightKey("norm", "mean")][kept]
    )
    assert made.edit.title == "Remove 2 channels of body"


def test_narrowing_keeps_the_strongest_filters() -> None:
    graph = residual()
    weights = trained(graph)
    for name in ("head", "body"):
        weights.tensors[WeightKey(name, "kernel")][[0, 5]] = 1e-3
    made = narrow(patient(graph, weights), "head", 4)
    np.testing.assert_array_equal(
        made.weights.tensors[WeightKey("body", "bias")], weights.tensors[WeightKey("body", "bias")][1:5]
    )


def test_the_number_of_output_channels_is_fixed() -> None:
    graph = residual()
    with pytest.raises(
        DiagnosticError, match=r"the channels of 'tail' cannot change: 'out' \(Output\) needs all of them"
    ):
        set_features(patient(graph, trained(graph)), "tail", 2)


def test_all_weights_of_the_edited_network_are_there() -> None:
    graph = residual()
    made = set_features(patient(graph, trained(graph)), "head", 9)
    graph.apply(made.edit)
    needed = required_weights(Inference(graph, REGISTRY))
    assert {key: tensor.shape for key, tensor in made.weights.tensors.items()} == {
        k: w.shape for k, w in needed.items()
    }
    assert not made.weights.tensors[WeightKey("tail", "kernel")][:, 6:9].any()
    assert made.weights.tensors[WeightKey("head", "kernel")][6:].any()


def test_a_channel_that_may_become_infinite_cannot_be_added() -> None:
    graph = residual()
    log = Layer("log", "unary", params={"function": "log"})
    graph.apply(insert_on_link(graph, log, "join", 0))
    with pytest.raises(DiagnosticError, match="'log' may make it infinite"):
        widen(patient(graph, trained(graph)), "head", 1)


def chain(*layers: Layer) -> Graph:
    """An image, a convolution with 8 channels, the layers, and a convolution."""
    conv = Layer("head", "convolution", inputs=(Source("in"),), params={"features": "8"})
    image = Layer("in", "input", params={"dims": "8x8x3"})
    tail = Layer("tail", "convolution", inputs=(Source(layers[-1].name),), params={"features": "3"})
    return Graph([image, conv, *layers, tail, Layer("out", "output", inputs=(Source("tail"),))])


def test_whole_groups_of_a_group_normalization_are_removed() -> None:
    norm = Layer("norm", "group_normalization", inputs=(Source("head"),), params={"groups": "4"})
    graph = chain(norm)
    weights = trained(graph)
    with pytest.raises(DiagnosticError, match="'norm' normalizes its channels 2 to 3 together"):
        remove_channels(patient(graph, weights), "head", [2])
    with pytest.raises(DiagnosticError, match="'norm' normalizes it together with others"):
        widen(patient(graph, weights), "head", 2)
    made = remove_channels(patient(graph, weights), "head", [2, 3])
    graph.apply(made.edit)
    assert (graph["head"].params["features"], graph["norm"].params["groups"]) == ("6", "3")


def test_channels_of_a_block_are_removed_together() -> None:
    graph = chain(Layer("shuffle", "depth_to_space", inputs=(Source("head"),)))
    weights = trained(graph)
    made = remove_channels(patient(graph, weights), "shuffle", [0])
    graph.apply(made.edit)
    assert graph["head"].params["features"] == "4"
    kernel = weights.tensors[WeightKey("head", "kernel")]
    np.testing.assert_array_equal(made.weights.tensors[WeightKey("head", "kernel")], kernel[4:])


def test_a_layer_before_blocks_of_channels_grows_by_whole_blocks() -> None:
    layer = Layer("shuffle", "depth_to_space", inputs=(Source("head"),), params={"mode": "pixel_dominant"})
    graph = chain(layer)
    weights = trained(graph)
    with pytest.raises(DiagnosticError, match="grows by multiples of 4, not to 10"):
        set_features(patient(graph, weights), "head", 10)
    expected = result(graph, weights)
    made = set_features(patient(graph, weights), "head", 12)
    graph.apply(made.edit)
    assert made.edit.title == "Widen head by 4"
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-5)


def test_a_slice_selects_the_same_channels_afterwards() -> None:
    graph = chain(Layer("cut", "slice", inputs=(Source("head"),), params={"start": "2", "end": "6"}))
    weights = trained(graph)
    made = remove_channels(patient(graph, weights), "head", [0, 5, 7])
    graph.apply(made.edit)
    assert (graph["cut"].params["start"], graph["cut"].params["end"]) == ("1", "4")
    with pytest.raises(DiagnosticError, match="'cut' would select no channel"):
        remove_channels(patient(graph, made.weights), "head", [1, 2, 3])


@pytest.mark.parametrize(("layer", "indices"), [("head", [6]), ("head", []), ("nowhere", [0])])
def test_channels_that_do_not_exist(layer: str, indices: list[int]) -> None:
    graph = residual()
    with pytest.raises(DiagnosticError):
        remove_channels(patient(graph, trained(graph)), layer, indices)


def test_the_last_channel_stays() -> None:
    graph = residual()
    with pytest.raises(DiagnosticError, match="no channel of 'head' would be left"):
        remove_channels(patient(graph, trained(graph)), "head", range(6))
