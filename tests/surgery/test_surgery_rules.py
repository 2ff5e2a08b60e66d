"""What each layer on the path of channels allows: where channels can be added and removed, and what is said otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from surgery_networks import layer, patient, result, trained

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import BYPASSED, ActivationSpec, Layer
from designer.graph.template import Template
from designer.surgery.operations import (
    MAX_FEATURES,
    fold_batch_normalization,
    insert_identity,
    narrow,
    remove_channels,
    set_features,
    split_layer,
    widen,
)


def network(*middle: Layer, features: int = 8, dims: str = "8x8x3") -> Graph:
    return Graph(
        [
            layer("in", "input", dims=dims),
            layer("head", "convolution", "in", features=features),
            *middle,
            layer("tail", "convolution", middle[-1].name if middle else "head", features=3),
            layer("out", "output", "tail"),
        ],
        name="net",
    )


def refusal(operation: object) -> Diagnostic:
    with pytest.raises(DiagnosticError) as failed:
        operation()
    return failed.value.diagnostics[0]


FREE, NO_NEW, FIXED = "free", "no new ones", "fixed"
RULES = {
    "slopes of a PReLU for each channel": ([layer("m", "activation", "head", "prelu")], FIXED),
    "a reciprocal": ([layer("m", "unary", "head", function="reciprocal")], NO_NEW),
    "an absolute value": ([layer("m", "unary", "head", function="abs")], FREE),
    "a division": ([layer("m", "element_wise", "head head", operation="divide")], NO_NEW),
    "a product": ([layer("m", "element_wise", "head head", operation="multiply")], FREE),
    "a group normalization": ([layer("m", "group_normalization", "head", groups="8")], NO_NEW),
    "a softmax in a layer without channels of its own": ([layer("m", "identity", "head", "softmax")], FIXED),
    "a softmax behind filters": ([layer("m", "convolution", "head", "softmax", features=8, groups=8)], FIXED),
    "blocks that are adjacent": ([layer("m", "depth_to_space", "head", block_size=2, mode="channel_dominant")], NO_NEW),
    "blocks of one pixel": ([layer("m", "depth_to_space", "head", block_size=1, mode="channel_dominant")], FREE),
    "a broadcast channel": (
        [layer("one", "convolution", "in", features=1), layer("m", "element_wise", "head one")],
        FREE,
    ),
    "a constant without the axis of the batch": (
        [layer("p", "parameter", shape="8,1,1"), layer("m", "element_wise", "head p")],
        FIXED,
    ),
    **{
        f"{title} of several filters for each channel": (
            [layer("d", "depthwise_convolution", "head", multiplier=2), middle],
            FIXED,
        )
        for title, middle in (
            ("blocks", layer("m", "depth_to_space", "d", block_size=2)),
            ("a slice", layer("m", "slice", "d", start=1, end=9)),
            ("a part", layer("m", "split", "d", sizes="5,11")),
        )
    },
    "a constant": ([layer("p", "parameter", shape="1,8,1,1"), layer("m", "element_wise", "head p")], FIXED),
    "a bypassed softmax": (
        [replace(layer("m", "activation", "head", "softmax"), attributes={BYPASSED: "true"})],
        FIXED,
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_where_channels_are_added_and_removed(rule: str) -> None:
    middle, allowed = RULES[rule]
    graph = network(*middle)
    weights = trained(graph)
    ill = patient(graph, weights)
    if allowed == FIXED:
        for operation in (lambda: remove_channels(ill, "head", [3]), lambda: widen(ill, "head", 1)):
            assert refusal(operation).code == "fixed-channels"
        return
    removed = remove_channels(ill, "head", [3])
    after = graph.copy()
    after.apply(removed.edit)
    assert int(after["head"].params["features"]) < 8
    assert np.isfinite(result(after, removed.weights)).any()
    if allowed == NO_NEW:
        found = refusal(lambda: widen(ill, "head", 1))
        assert (found.code, found.layer) == ("cannot-widen", "head")
        assert "'m'" in found.message
        return
    expected = result(graph, weights)
    widened = widen(ill, "head", 1)
    after = graph.copy()
    after.apply(widened.edit)
    np.testing.assert_allclose(result(after, widened.weights), expected, atol=1e-4 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize(
    "function", ["acos", "asin", "atanh", "cosh", "exp", "log", "log1p", "reciprocal", "sinh", "sqrt"]
)
def test_a_function_that_may_be_infinite_or_not_a_number_allows_no_new_channel(function: str) -> None:
    """Zero weights would not hide what it makes of random filters."""
    graph = network(layer("m", "unary", "head", function=function))
    found = refusal(lambda: widen(patient(graph, trained(graph)), "head", 1))
    assert (found.code, found.message) == (
        "cannot-widen",
        "a new channel cannot have no effect: 'm' may make it infinite",
    )


@pytest.mark.parametrize("order", ["head other", "other head"])
@pytest.mark.parametrize("widened", ["head", "other"])
def test_a_channel_added_to_one_that_may_be_infinite_cannot_be_added_either(order: str, widened: str) -> None:
    graph = network(
        layer("log", "unary", "head", function="log"),
        layer("reader", "convolution", "log", features=2),
        layer("other", "convolution", "in", features=8),
        layer("m", "element_wise", order, operation="add"),
    )
    found = refusal(lambda: widen(patient(graph, trained(graph)), widened, 1))
    assert (found.code, found.layer) == ("cannot-widen", widened)
    assert "'log' may make it infinite" in found.message


@pytest.mark.parametrize("edit", [lambda ill: widen(ill, "free", 2), lambda ill: remove_channels(ill, "free", [1])])
def test_layers_whose_channels_do_not_change_keep_their_parameters(edit: object) -> None:
    """As they are written: counted from the end, with spaces, or not at all."""
    graph = network(
        layer("cut", "slice", "head", start=-3, end=-1),
        layer("open", "slice", "head", start=-2),
        layer("parts", "split", "head", sizes="2, 6"),
        layer("halves", "split", "head", parts=2),
        layer("groups", "group_normalization", "head", groups=4),
        layer("all", "concatenation", "cut open parts halves:y1 groups"),
        layer("narrow", "convolution", "all", features=2),
        layer("free", "convolution", "in", features=5),
        layer("behind", "convolution", "free", features=2),
        layer("m", "element_wise", "narrow behind", operation="add"),
    )
    made = edit(patient(graph, trained(graph)))
    assert made.edit.layers.keys() == {"free"}
    before, after = made.edit.layers["free"]
    assert {**before.params, "features": after.params["features"]} == after.params


@pytest.mark.parametrize(("part", "step"), [("s:y1", 4), ("s", 1)])
@pytest.mark.parametrize("count", [6, 8])
def test_a_layer_grows_by_the_channels_that_belong_to_its_last_one(part: str, step: int, count: int) -> None:
    """Its first four or its last four channels become one channel of four pixels."""
    rest = "s" if part == "s:y1" else "s:y1"
    sizes = f"{count - 4},4" if part == "s:y1" else f"4,{count - 4}"
    graph = network(
        layer("s", "split", "head", sizes=sizes),
        layer("d", "depth_to_space", part, block_size=2, mode="pixel_dominant"),
        layer("one", "convolution", "d", features=2, stride="2x2"),
        layer("other", "convolution", rest, features=2),
        layer("m", "element_wise", "one other", operation="add"),
        features=count,
    )
    weights = trained(graph)
    expected = result(graph, weights)
    for features in range(count, count + 5):
        ill = patient(graph, weights)
        if (features - count) % step:
            found = refusal(lambda ill=ill, features=features: set_features(ill, "head", features))
            assert found.message == f"'head' has {count} channels and grows by multiples of {step}, not to {features}"
            assert found.remedy == f"use for instance {count + 4}"
            continue
        made = set_features(ill, "head", features)
        after = graph.copy()
        after.apply(made.edit)
        assert after["head"].params["features"] == str(features)
        np.testing.assert_allclose(result(after, made.weights), expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("mode", ["pixel_dominant", "channel_dominant"])
@pytest.mark.parametrize("count", [8, 16, 20])
def test_a_channel_of_several_pixels_is_removed_with_its_block(mode: str, count: int) -> None:
    graph = network(layer("d", "depth_to_space", "head", block_size=2, mode=mode), features=count)
    weights, left = trained(graph), count // 4
    for channel in (0, left - 1):
        made = remove_channels(patient(graph, weights), "d", [channel])
        block = (
            [channel + left * n for n in range(4)] if mode == "pixel_dominant" else [4 * channel + n for n in range(4)]
        )
        for tensor in ("kernel", "bias"):
            before, after = (each.tensors[WeightKey("head", tensor)] for each in (weights, made.weights))
            np.testing.assert_array_equal(after, np.delete(before, block, 0))
        tail = WeightKey("tail", "kernel")
        np.testing.assert_array_equal(made.weights.tensors[tail], np.delete(weights.tensors[tail], channel, 1))


def test_nothing_is_inserted_where_neither_an_image_nor_a_vector_is_read() -> None:
    graph = network(
        layer("rows", "flatten", "head", start_axis=2),
        layer("dense", "fully_connected", "rows", features=4, flatten="false"),
        layer("m", "reshape", "dense", shape="8,2,2"),
    )
    ill = patient(graph, trained(graph))
    for name, index in (("dense", 0), ("m", 0), ("rows", 1), ("in", 0)):
        found = refusal(lambda name=name, index=index: insert_identity(ill, name, index))
        assert (found.code, found.layer) == ("no-link", name)
        assert found.message == f"input {index} of '{name}' does not read an image or a vector"


def test_the_channel_that_is_broadcast_stays() -> None:
    graph = network(layer("one", "convolution", "in", features=1), layer("m", "element_wise", "head one"))
    ill = patient(graph, trained(graph))
    found = refusal(lambda: widen(ill, "one", 1))
    assert "'m' broadcasts it" in found.message


@pytest.mark.parametrize("activation", ["softmax", "prelu"])
def test_filters_whose_activation_mixes_or_counts_their_channels_keep_them(activation: str) -> None:
    graph = network(layer("m", "convolution", "head", activation, features=5))
    ill = patient(graph, trained(graph))
    for operation in (
        lambda: widen(ill, "m", 1),
        lambda: narrow(ill, "m", 3),
        lambda: remove_channels(ill, "m", [0]),
        lambda: set_features(ill, "m", 7),
        lambda: widen(ill, "head", 1),
    ):
        found = refusal(operation)
        assert found.code == "fixed-channels"
        assert "'m'" in found.message


def test_bounds_of_the_number_of_channels() -> None:
    graph = network()
    ill = patient(graph, trained(graph))
    for features in (0, -1, MAX_FEATURES + 1):
        found = refusal(lambda features=features: set_features(ill, "head", features))
        assert (found.code, found.remedy) == ("bad-parameter", f"use 1 to {MAX_FEATURES}")
    assert set_features(ill, "head", 1).edit.title == "Narrow head to 1"
    assert set_features(ill, "head", 8).edit.title == "Widen head by 0"
    for indices in ([8], [-1], [], [0, 8]):
        found = refusal(lambda indices=indices: remove_channels(ill, "head", indices))
        assert (found.code, found.message) == ("no-such-channel", "'head' has the channels 0 to 7")
    assert remove_channels(ill, "head", [7]).edit.title == "Remove channel 7 of head"
    assert remove_channels(ill, "head", [1, 0]).edit.title == "Remove 2 channels of head"
    blocks = network(layer("m", "depth_to_space", "head", block_size=2, mode="pixel_dominant"))
    ill = patient(blocks, trained(blocks))
    for features, following in ((9, 12), (11, 12), (13, 16)):
        found = refusal(lambda features=features: set_features(ill, "head", features))
        assert found.remedy == f"use for instance {following}"


def test_narrowing_removes_the_filters_of_the_smallest_magnitude_without_their_bias() -> None:
    graph = network(features=4)
    weights = trained(graph)
    kernel = np.zeros_like(weights.tensors[WeightKey("head", "kernel")])
    kernel[0], kernel[1], kernel[2], kernel[3] = 1.0, -3.0, 2.0, 0.5
    reader = np.zeros_like(weights.tensors[WeightKey("tail", "kernel")])
    reader[:, 0], reader[:, 3] = 100.0, 50.0  # what reads a channel does not count
    tensors = {
        **weights.tensors,
        WeightKey("head", "kernel"): kernel,
        WeightKey("head", "bias"): np.array([1000, 0, 0, 900], np.float32),
        WeightKey("tail", "kernel"): reader,
    }
    source = replace(weights, tensors=tensors, source="folder", note="trained")
    made = narrow(patient(graph, source), "head", 2)
    np.testing.assert_array_equal(made.weights.tensors[WeightKey("head", "kernel")], kernel[[1, 2]])
    assert (made.weights.source, made.weights.note) == ("folder", "trained")


def test_an_open_end_of_a_slice_stays_open_and_parts_of_a_split_stay() -> None:
    graph = network(layer("m", "slice", "head", start=3))
    made = remove_channels(patient(graph, trained(graph)), "head", [1, 5])
    graph.apply(made.edit)
    assert (graph["m"].params["start"], graph["m"].params.get("end", "0")) == ("2", "0")
    graph = network(layer("s", "split", "head", sizes="2,6"), layer("m", "concatenation", "s:y1 s"))
    ill = patient(graph, trained(graph))
    made = remove_channels(ill, "head", [1, 5])
    found = refusal(lambda: remove_channels(ill, "head", [0, 1]))
    assert (found.code, found.layer, found.message) == ("no-channels-left", "s", "'s' would select no channel")
    graph.apply(made.edit)
    assert graph["s"].params["sizes"] == "1,5"


@pytest.mark.parametrize("order", ["few many", "many few"])
def test_the_layer_that_would_lose_its_last_channel_is_named(order: str) -> None:
    """Also where the channels are removed from a tensor that other layers have a part in."""
    middle = (layer("few", "convolution", "head", features=2), layer("many", "convolution", "head", features=5))
    graph = network(*middle, layer("m", "concatenation", order))
    ill = patient(graph, trained(graph))
    start = 0 if order == "few many" else 5
    found = refusal(lambda: remove_channels(ill, "m", [start, start + 1]))
    expected = ("no-channels-left", "few", "no channel of 'few' would be left", "keep at least one")
    assert (found.code, found.layer, found.message, found.remedy) == expected
    graph.apply(remove_channels(ill, "m", [start]).edit)
    assert [graph[name].params["features"] for name in ("few", "many", "head")] == ["1", "5", "8"]


def test_the_first_group_of_which_a_part_would_be_removed_is_named() -> None:
    graph = network(layer("m", "group_normalization", "head", groups="4"))
    ill = patient(graph, trained(graph))
    for indices, first in (([2], 2), ([3, 6], 2), ([0, 1, 7], 6)):
        found = refusal(lambda indices=indices: remove_channels(ill, "head", indices))
        assert found.message == f"'m' normalizes its channels {first} to {first + 1} together"
    graph.apply(remove_channels(ill, "head", [2, 3, 6, 7]).edit)
    assert (graph["head"].params["features"], graph["m"].params["groups"]) == ("4", "2")


def edited(graph: Graph, *, remove: str, channel: int = 1) -> tuple[Graph, Weights]:
    made = remove_channels(patient(graph, trained(graph)), remove, [channel])
    after = graph.copy()
    after.apply(made.edit)
    assert np.isfinite(result(after, made.weights)).all()
    return after, made.weights


def test_layers_that_share_weights_lose_a_channel_together() -> None:
    graph = network(
        layer("a", "convolution", "head", features=4),
        replace(layer("b", "convolution", "head", features=4), weights_of="a"),
        layer("m", "concatenation", "a b"),
    )
    for name in ("a", "b"):
        after, weights = edited(graph, remove=name)
        assert [after[each].params["features"] for each in ("a", "b")] == ["3", "3"]
        assert weights.tensors[WeightKey("a", "kernel")].shape[0] == 3
        assert weights.tensors[WeightKey("tail", "kernel")].shape[1] == 6


PER_INSTANCE = {
    "filters of single channels": layer("m", "convolution", "x", features=8, groups=8),
    "a group normalization": layer("m", "group_normalization", "x", groups=8),
    "a slice": layer("m", "slice", "x", start=0, end=6),
    "a split": layer("m", "split", "x", sizes="6,2"),
}


@pytest.mark.parametrize("kind", PER_INSTANCE)
def test_a_parameter_of_a_template_counts_the_same_channels_in_every_instance(kind: str) -> None:
    """The instances read different layers, which both lose the channel."""
    inside = Template("block", (layer("x", "template_input"), PER_INSTANCE[kind], layer("y", "template_output", "m")))
    graph = Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=8),
            layer("other", "convolution", "in", features=8),
            layer("one", "template", "head", template="block"),
            layer("two", "template", "other", template="block"),
            layer("sum", "concatenation", "one two"),
            layer("tail", "convolution", "sum", features=3),
            layer("out", "output", "tail"),
        ],
        name="net",
        templates=[inside],
    )
    after, _ = edited(graph, remove="head")
    assert [after[name].params["features"] for name in ("head", "other")] == ["7", "7"]


def test_filters_of_groups_of_channels_keep_what_they_read() -> None:
    graph = network(layer("m", "convolution", "head", features=4, groups=4))
    ill = patient(graph, trained(graph))
    for name in ("head", "m"):
        assert refusal(lambda name=name: remove_channels(ill, name, [0])).code == "fixed-channels"


def test_flattened_channels_that_are_joined_are_removed_with_all_their_values() -> None:
    graph = Graph(
        [
            layer("in", "input", dims="4x4x3"),
            layer("head", "convolution", "in", features=8),
            layer("flat", "flatten", "head"),
            layer("pooled", "global_pooling", "head"),
            layer("few", "flatten", "pooled"),
            layer("m", "concatenation", "flat few"),
            layer("scores", "fully_connected", "m", features=5),
            layer("out", "output", "scores", analysis_view="tensor"),
        ],
        name="net",
    )
    weights = trained(graph)
    made = remove_channels(patient(graph, weights), "head", [3])
    kernel = weights.tensors[WeightKey("scores", "kernel")]
    gone = [*range(48, 64), 8 * 16 + 3]
    np.testing.assert_array_equal(made.weights.tensors[WeightKey("scores", "kernel")], np.delete(kernel, gone, 1))


def test_vectors_of_the_same_length_with_other_channels_keep_them() -> None:
    """8 channels of 4 x 4 pixels and 32 channels of 2 x 2: their values do not belong together."""
    graph = Graph(
        [
            layer("in", "input", dims="4x4x3"),
            layer("head", "convolution", "in", features=8),
            layer("flat", "flatten", "head"),
            layer("other", "convolution", "in", features=32),
            layer("pooled", "pooling", "other", size="2x2", stride="2x2"),
            layer("few", "flatten", "pooled"),
            layer("m", "element_wise", "flat few"),
            layer("scores", "fully_connected", "m", features=5),
            layer("out", "output", "scores", analysis_view="tensor"),
        ],
        name="net",
    )
    ill = patient(graph, trained(graph))
    for name in ("head", "other"):
        found = refusal(lambda name=name: remove_channels(ill, name, [0]))
        assert found.code == "fixed-channels"
        assert "'m'" in found.message


def test_the_first_reason_against_new_channels_is_said() -> None:
    graph = network(layer("m", "group_normalization", "head", groups="4"), layer("n", "unary", "m", function="exp"))
    found = refusal(lambda: widen(patient(graph, trained(graph)), "head", 1))
    assert found.message.endswith("'m' normalizes it together with others")


FOLDED = {
    "a convolution": ([layer("c", "convolution", "head", features=4), layer("n", "batch_normalization", "c")], True),
    "an activation between": (
        [layer("c", "convolution", "head", "relu", features=4), layer("n", "batch_normalization", "c")],
        False,
    ),
    "a bypassed layer": (
        [
            replace(layer("c", "convolution", "head", features=8), attributes={BYPASSED: "true"}),
            layer("n", "batch_normalization", "c"),
        ],
        False,
    ),
    "another reader": (
        [
            layer("c", "convolution", "head", features=4),
            layer("n", "batch_normalization", "c"),
            layer("m", "element_wise", "n c"),
        ],
        False,
    ),
    "statistics of the batch": (
        [
            layer("c", "convolution", "head", features=4),
            layer("n", "batch_normalization", "c", track_running_stats="false"),
        ],
        False,
    ),
    "a normalization without scale": (
        [layer("c", "convolution", "head", features=4), layer("n", "batch_normalization", "c", affine="false")],
        True,
    ),
    "a convolution without bias": (
        [
            layer("c", "convolution", "head", features=4, apply_bias="false"),
            layer("n", "batch_normalization", "c"),
        ],
        True,
    ),
    "groups of a transposed convolution": (
        [layer("c", "transposed_convolution", "head", features=8, groups=2), layer("n", "batch_normalization", "c")],
        False,
    ),
    "groups of a convolution": (
        [layer("c", "convolution", "head", features=8, groups=2), layer("n", "batch_normalization", "c")],
        True,
    ),
    "a layer bypassed by the other": (
        [
            layer("c", "convolution", "head", features=8),
            replace(layer("b", "convolution", "c", features=8), attributes={BYPASSED: "true"}),
            layer("n", "batch_normalization", "b"),
        ],
        False,
    ),
    "nothing to fold into": ([layer("p", "pooling", "head"), layer("n", "batch_normalization", "p")], False),
}


def rows_of_a_matrix(*middle: Layer) -> Graph:
    """Layers that compute along the last axis of an 8 x 8 x 8 tensor or of a vector."""
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=8),
            *middle,
            layer("tail", "fully_connected", "n", features=3),
            layer("out", "output", "tail", analysis_view="tensor"),
        ],
        name="net",
    )


@pytest.mark.parametrize(
    ("flatten", "features", "folds"), [("true", 5, True), ("false", 5, False), ("false", 8, False)]
)
def test_a_normalization_of_another_axis_than_that_of_the_matrix_is_not_folded(
    flatten: str, features: int, folds: bool
) -> None:
    graph = rows_of_a_matrix(
        layer("c", "fully_connected", "head", features=features, flatten=flatten),
        layer("n", "batch_normalization", "c"),
    )
    weights = trained(graph)
    ill = patient(graph, weights)
    if not folds:
        assert refusal(lambda: fold_batch_normalization(ill, "n")).code == "cannot-fold"
        return
    expected = result(graph, weights)
    made = fold_batch_normalization(ill, "n")
    graph.apply(made.edit)
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("features", [5, 8])
def test_a_normalization_of_the_rows_of_a_matrix_is_not_folded(features: int) -> None:
    graph = rows_of_a_matrix(
        layer("rows", "flatten", "head", start_axis=2),
        layer("c", "fully_connected", "rows", features=features, flatten="false"),
        layer("n", "batch_normalization", "c"),
    )
    ill = patient(graph, trained(graph))
    assert ill.inference.states["n"].inputs[0].rank == 3
    assert refusal(lambda: fold_batch_normalization(ill, "n")).code == "cannot-fold"


@pytest.mark.parametrize("case", FOLDED)
@pytest.mark.parametrize("activation", ["", "relu"])
def test_which_normalizations_are_folded(case: str, activation: str) -> None:
    middle, folds = FOLDED[case]
    spec = ActivationSpec(activation) if activation else None
    middle = [replace(one, activation=spec) if one.name == "n" else one for one in middle]
    graph = network(*middle)
    weights = trained(graph)
    ill = patient(graph, weights)
    if not folds:
        assert refusal(lambda: fold_batch_normalization(ill, "n")).code == "cannot-fold"
        return
    assert refusal(lambda: fold_batch_normalization(ill, "c")).code == "cannot-fold"
    expected = result(graph, weights)
    made = fold_batch_normalization(ill, "n")
    graph.apply(made.edit)
    assert graph["c"].activation == spec
    assert graph["c"].params["apply_bias"] == "true"
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-4 * np.abs(expected).max())


def templated() -> Graph:
    """Two instances of a block that have weights of their own; a layer of the document has the name of one inside."""
    inside = Template(
        "block",
        (
            layer("x", "template_input"),
            layer("wide", "convolution", "x", features=8),
            layer("slim", "convolution", "wide", features=4),
            layer("y", "template_output", "slim"),
        ),
    )
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("convolution_0", "convolution", "in", features=4),
            layer("one", "template", "convolution_0", template="block"),
            layer("two", "template", "one", template="block"),
            layer("out", "output", "two"),
        ],
        name="net",
        templates=[inside],
    )


@pytest.mark.parametrize("bias", ["true", "false"])
def test_layers_are_split_and_inserted_in_every_instance(bias: str) -> None:
    graph = templated()
    wide = graph.templates["block"]
    layers = tuple(
        replace(one, params={**one.params, "apply_bias": bias}) if one.name == "wide" else one for one in wide.layers
    )
    graph = Graph(list(graph), name="net", templates=[replace(wide, layers=layers)])
    weights = trained(graph)
    expected = result(graph, weights)
    for operation in (
        lambda ill: split_layer(ill, "two.wide"),
        lambda ill: insert_identity(ill, "one.slim", 0, 5),
        lambda ill: insert_identity(ill, "one.slim", 0, 1),
    ):
        made = operation(patient(graph, weights))
        after = graph.copy()
        after.apply(made.edit)
        new = {one.name for one in after.inside("block")} - {one.name for one in graph.inside("block")}
        assert new == {"convolution_0"}  # the name is free in the block
        np.testing.assert_allclose(result(after, made.weights), expected, atol=1e-3 * np.abs(expected).max())
    split = split_layer(patient(graph, weights), "one.wide")
    graph.apply(split.edit)
    inside = {one.name: one for one in graph.inside("block")}
    assert inside["convolution_0"].params["apply_bias"] == "false"
    assert inside["wide"].params["apply_bias"] == bias


def test_a_layer_with_a_fault_elsewhere_does_not_prevent_edits() -> None:
    graph = network()
    faulty = Graph([*graph, layer("odd", "convolution", "head", features=0)], name="net")
    made = widen(patient(faulty, Weights(trained(graph).tensors)), "head", 1)
    assert made.edit.layers
