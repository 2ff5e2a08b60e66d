"""Weights follow edits: random networks keep their function, undo restores everything bit for bit."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from surgery_networks import REGISTRY, network, patient, result, same, templated, trained

from designer.files.weights import WeightKey, Weights, required_weights
from designer.graph.commands import insert_on_link, replace_layers
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import edit_template
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
    names = list(ill.inference.graph.layers)
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
    if seed % 2:
        graph = templated(graph, seed)
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


@pytest.mark.parametrize("kind", ["convolution", "transposed_convolution"])
def test_a_normalization_is_folded_into_the_layer_before_it(kind: str) -> None:
    """The kernel of a transposed convolution has its output channels on the second axis."""
    graph = chain(
        Layer("up", kind, inputs=(Source("head"),), params={"features": "5", "kernel": "3x3"}),
        Layer("norm", "batch_normalization", inputs=(Source("up"),)),
    )
    weights = trained(graph)
    expected = result(graph, weights)
    made = fold_batch_normalization(patient(graph, weights), "norm")
    graph.apply(made.edit)
    assert "norm" not in graph
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-5 * np.abs(expected).max())


def test_parameters_are_set_inside_and_outside_of_templates() -> None:
    graph = blocks(shared=True)
    ill = patient(graph, trained(graph))
    found = ill.set_params({"one.wide": {"features": "7"}, "in": {"dims": "16x16x3"}})
    graph.apply(found)
    assert (graph.inside("block")["wide"].params["features"], graph["in"].params["dims"]) == ("7", "16x16x3")


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


# --- layers inside templates ---------------------------------------------------------------------------------------


def blocks(*, shared: bool) -> Graph:
    """A convolution, three instances of a residual block around a normalized convolution, one of them inside of another template."""

    def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
        return Layer(name, kind, inputs=tuple(map(Source, inputs)), params=params)

    block = Template(
        "block",
        (
            layer("x", "template_input"),
            layer("wide", "convolution", "x", features="5"),
            layer("norm", "batch_normalization", "wide"),
            layer("conv", "convolution", "norm", features="6"),
            layer("sum", "element_wise", "x", "conv"),
            layer("y", "template_output", "sum"),
        ),
    )
    sharing = {"shared_weights": "true"} if shared else {}
    group = Template(
        "group",
        (
            layer("x", "template_input"),
            layer("inner", "template", "x", template="block", **sharing),
            layer("y", "template_output", "inner"),
        ),
    )
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features="6"),
            layer("one", "template", "head", template="block", **sharing),
            layer("two", "template", "one", template="block", **sharing),
            layer("three", "template", "two", template="group"),
            layer("tail", "convolution", "three", features="3"),
            layer("out", "output", "tail"),
        ],
        templates=[block, group],
    )


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("edit", "features"),
    [
        (lambda ill: set_features(ill, "two.wide", 8), {"wide": "8", "conv": "6"}),
        (lambda ill: set_features(ill, "three.inner.conv", 9), {"wide": "5", "conv": "9"}),
        (lambda ill: set_features(ill, "head", 7), {"wide": "5", "conv": "7"}),
        (lambda ill: insert_identity(ill, "one.norm", 0), {"convolution_0": "5"}),
        (lambda ill: split_layer(ill, "one.wide"), {"convolution_0": "5", "wide": "5"}),
        (lambda ill: fold_batch_normalization(ill, "two.norm"), {"wide": "5"}),
    ],
)
def test_edits_inside_a_template_change_every_instance(shared: bool, edit, features: dict[str, str]) -> None:
    graph = blocks(shared=shared)
    weights = trained(graph)
    expected = result(graph, weights)
    before = graph.copy()
    made = edit(patient(graph, weights))
    graph.apply(made.edit)
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-4 * np.abs(expected).max())
    inside = graph.inside("block")
    assert features.items() <= {layer.name: layer.params.get("features", "") for layer in inside}.items()
    graph.apply(made.edit.reversed())
    assert graph == before


@pytest.mark.parametrize(
    "edit",
    [
        lambda ill: set_features(ill, "one.conv", 8),
        lambda ill: insert_identity(ill, "one.norm", 0),
        lambda ill: split_layer(ill, "one.conv"),
        lambda ill: fold_batch_normalization(ill, "one.norm"),
    ],
    ids=["widen", "insert", "split", "fold"],
)
def test_templates_with_equal_layers_are_edited_apart(edit) -> None:
    def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
        return Layer(name, kind, inputs=tuple(map(Source, inputs)), params=params)

    equal = (
        layer("x", "template_input"),
        layer("conv", "convolution", "x", features="6"),
        layer("norm", "batch_normalization", "conv"),
        layer("y", "template_output", "norm"),
    )
    layers = [
        layer("in", "input", dims="8x8x3"),
        layer("head", "convolution", "in", features="6"),
        layer("one", "template", "head", template="first"),
        layer("two", "template", "one", template="second"),
        layer("conv", "convolution", "two", features="6"),  # as those inside
        layer("three", "template", "conv", template="first"),
        layer("tail", "convolution", "three", features="3"),
        layer("out", "output", "tail"),
    ]
    graph = Graph(layers, templates=[Template("first", equal), Template("second", equal)])
    weights = trained(graph)
    expected, outside, second = result(graph, weights), graph["conv"], graph.templates["second"]
    made = edit(patient(graph, weights))
    graph.apply(made.edit)
    assert graph.templates["second"] == second
    assert graph["conv"] == outside
    assert graph.templates["first"].layers != second.layers
    assert made.weights.tensors.keys() == required_weights(Inference(graph, REGISTRY)).keys()
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("shared", [False, True])
def test_a_channel_of_a_template_is_removed_from_every_instance(shared: bool) -> None:
    graph = blocks(shared=shared)
    weights = trained(graph)
    made = remove_channels(patient(graph, weights), "one.wide", [1])
    graph.apply(made.edit)
    owners = ["block"] if shared else ["one", "two", "three.inner"]
    for owner in owners:
        kernel = WeightKey(f"{owner}.conv", "kernel")
        np.testing.assert_array_equal(made.weights.tensors[kernel], np.delete(weights.tensors[kernel], 1, 1))
    assert len([key for key in made.weights.tensors if key.tensor == "mean"]) == len(owners)
    assert made.edit.title == "Remove channel 1 of one.wide"


def test_instances_with_other_inputs_keep_parameters_that_count_them() -> None:
    graph = blocks(shared=False)
    norm = Layer("norm", "group_normalization", inputs=(Source("wide"),), params={"groups": "5"})
    graph.apply(edit_template(graph, "block", replace_layers(graph.inside("block"), {"norm": norm}, "", {})))
    made = remove_channels(patient(graph, trained(graph)), "two.wide", [0])
    graph.apply(made.edit)
    assert graph.inside("block")["norm"].params["groups"] == "4"


def halves() -> Graph:
    """Both halves of a convolution's channels, added."""
    split = Layer("halves", "split", inputs=(Source("head"),))
    return chain(split, Layer("sum", "element_wise", inputs=(Source("halves"), Source("halves", "y1"))))


def test_the_title_of_narrowing_has_the_number_of_channels_that_are_left() -> None:
    made = set_features(patient(halves(), trained(halves())), "head", 7)
    assert made.edit.title == "Narrow head to 6"


def test_channels_of_every_output_of_a_layer_are_removed() -> None:
    graph = halves()
    made = remove_channels(patient(graph, trained(graph)), "halves:y1", [3])
    assert made.edit.title == "Remove channel 3 of halves:y1"
    graph.apply(made.edit)
    assert (graph["head"].params["features"], graph["halves"].params["sizes"]) == ("6", "3,3")
