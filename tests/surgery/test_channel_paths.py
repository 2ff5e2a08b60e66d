"""Channels on their paths from the layer that computes them to the layers that read them, for every notation of an axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from surgery_networks import layer, patient, result, trained

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer
from designer.graph.template import Template
from designer.surgery.operations import (
    fold_batch_normalization,
    insert_identity,
    narrow,
    remove_channels,
    set_features,
    split_layer,
    widen,
)


def network(*middle: Layer, reader: str = "convolution") -> Graph:
    """A convolution with 8 channels, layers that pass them on without a bias, and a layer that reads the last of them."""
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=8),
            *middle,
            layer("tail", reader, middle[-1].name, features=3),
            layer("out", "output", "tail", analysis_view="image" if reader == "convolution" else "tensor"),
        ]
    )


CHANNELS, SPATIAL = (1, -3), (2, 3, -1, -2)
FROM_TO = {"start": 2, "end": 6}
PATHS = {  # middle layers, and whether a fully connected layer reads them
    **{f"joined with the image along {a}": ([layer("m", "concatenation", "head in", axis=a)], False) for a in CHANNELS},
    **{f"image first along {a}": ([layer("m", "concatenation", "in head", axis=a)], False) for a in CHANNELS},
    **{f"joined with itself along {a}": ([layer("m", "concatenation", "head head", axis=a)], False) for a in (*CHANNELS, *SPATIAL)},
    **{f"cut along {a}": ([layer("m", "slice", "head", axis=a, **FROM_TO)], False) for a in (*CHANNELS, *SPATIAL)},
    **{f"cut from the end along {a}": ([layer("m", "slice", "head", axis=a, start=-6, end=-1)], False) for a in (*CHANNELS, *SPATIAL)},
    **{f"every second along {a}": ([layer("m", "slice", "head", axis=a, step=2)], False) for a in SPATIAL},
    **{
        f"split along {a}": ([layer("s", "split", "head", axis=a), layer("m", "concatenation", "s:y1 s", axis=a)], False)
        for a in (*CHANNELS, *SPATIAL)
    },
    **{
        f"parts of 5 and 3 along {a}": ([layer("s", "split", "head", axis=a, sizes="5,3"), layer("m", "concatenation", "s:y1 s", axis=a)], False)
        for a in (*CHANNELS, *SPATIAL)
    },
    **{f"half of it along {a}": ([layer("m", "split", "head", axis=a)], False) for a in (*CHANNELS, *SPATIAL)},
    **{
        f"flattened from {start} to {end}": ([layer("m", "flatten", "head", start_axis=start, end_axis=end)], True)
        for start, end in ((1, -1), (1, 3), (-3, -1), (-3, 3))
    },
    **{
        f"rows flattened from {start} to {end}, then all": (
            [layer("f", "flatten", "head", start_axis=start, end_axis=end), layer("m", "flatten", "f")], True,
        )
        for start, end in ((2, 3), (2, -1), (-2, -1), (1, 2), (-3, -2))
    },
    **{
        f"{first} blocks of {second} blocks": (
            [layer("b", "space_to_depth", "head", mode=first), layer("m", "space_to_depth", "b", mode=second)], False,
        )
        for first in ("pixel_dominant", "channel_dominant") for second in ("pixel_dominant", "channel_dominant")
    },
    **{f"{mode} blocks, read as a vector": ([layer("m", "space_to_depth", "head", mode=mode)], True)
       for mode in ("pixel_dominant", "channel_dominant")},
    **{
        f"{mode} blocks of two from each channel": (
            [layer("d", "depthwise_convolution", "head", multiplier=2, apply_bias="false"), layer("m", "space_to_depth", "d", mode=mode)],
            False,
        )
        for mode in ("pixel_dominant", "channel_dominant")
    },
    "added to its own mean": ([layer("g", "global_pooling", "head"), layer("m", "element_wise", "head g")], False),
    "flattened by its reader": ([layer("m", "pooling", "head")], True),
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_channel_without_effect_leaves_on_every_path(path):
    """A channel of zeros that meets no bias changes nothing where it is read, so removing it keeps the function."""
    middle, flat = PATHS[path]
    graph = network(*middle, reader="fully_connected" if flat else "convolution")
    weights = trained(graph)
    for tensor in ("kernel", "bias"):
        weights.tensors[WeightKey("head", tensor)][3] = 0.0
    expected, read = result(graph, weights), weights.tensors[WeightKey("tail", "kernel")].shape[1]
    made = remove_channels(patient(graph, weights), "head", [3])
    graph.apply(made.edit)
    assert graph["head"].params["features"] == "7"
    assert made.weights.tensors[WeightKey("tail", "kernel")].shape[1] < read
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-5 * np.abs(expected).max())


PER_CHANNEL = {  # a layer with values per channel, and the channels that it makes of channel 3
    "depthwise": (layer("m", "depthwise_convolution", "head"), [3]),
    "depthwise without a bias": (layer("m", "depthwise_convolution", "head", apply_bias="false"), [3]),
    "two of each channel": (layer("m", "depthwise_convolution", "head", multiplier=2), [6, 7]),
    "as many groups as channels": (layer("m", "convolution", "head", features=8, groups=8), [3]),
    "batch normalization": (layer("m", "batch_normalization", "head"), [3]),
    "instance normalization": (layer("m", "instance_normalization", "head"), [3]),
    "groups of one channel": (layer("m", "group_normalization", "head", groups=8), [3]),
}


@pytest.mark.parametrize("kind", PER_CHANNEL)
def test_values_of_a_removed_channel_leave_every_layer_that_has_some(kind):
    """The function is that of the network whose last layer does not read what was made of the channel."""
    middle, gone = PER_CHANNEL[kind]
    graph = network(middle)
    weights = trained(graph)
    made = remove_channels(patient(graph, weights), "head", [3])
    unread = weights.tensors[WeightKey("tail", "kernel")].copy()
    unread[:, gone] = 0.0
    expected = result(graph, Weights({**weights.tensors, WeightKey("tail", "kernel"): unread}))
    graph.apply(made.edit)
    found = result(graph, made.weights)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("path", PATHS)
def test_a_new_channel_has_no_effect_on_any_path(path):
    middle, flat = PATHS[path]
    graph = network(*middle, reader="fully_connected" if flat else "convolution")
    weights = trained(graph)
    expected = result(graph, weights)
    made = set_features(patient(graph, weights), "head", 11)
    graph.apply(made.edit)
    assert graph["head"].params["features"] == "11"
    np.testing.assert_allclose(result(graph, made.weights), expected, atol=1e-5 * np.abs(expected).max())


def softmax(axis: int) -> Layer:
    return replace(layer("m", "activation", "head"), activation=ActivationSpec("softmax", {"axis": str(axis)}))


@pytest.mark.parametrize(
    "middle",
    [
        *([layer("m", "slice", "head", axis=axis, step=2)] for axis in CHANNELS),
        *([softmax(axis)] for axis in CHANNELS),
        [layer("m", "reshape", "head", shape="4,16,8")],
        [layer("m", "convolution", "head", features=8, groups=2)],
        [layer("m", "transposed_convolution", "head", features=8, groups=2)],
        [layer("f", "flatten", "head"), layer("m", "slice", "f", end=256), layer("r", "reshape", "m", shape="4,8,8")],
        [layer("m", "reduce", "head", axes="1"), layer("sum", "element_wise", "head m")],
    ],
    ids=lambda middle: " ".join(f"{one.type} {' '.join(one.params.values())}" for one in middle),
)
def test_channels_that_a_layer_mixes_stay(middle):
    graph = network(*middle)
    ill = patient(graph, trained(graph))
    for operation in (lambda: remove_channels(ill, "head", [3]), lambda: widen(ill, "head", 1)):
        with pytest.raises(
            DiagnosticError, match=r"the channels of 'head' cannot change: 'm' \(\w.*\) needs all of them"
        ):
            operation()


OPERATIONS = {
    "widen": lambda ill, name: widen(ill, name, 1),
    "narrow": lambda ill, name: narrow(ill, name, 1),
    "set features": lambda ill, name: set_features(ill, name, 2),
    "remove": lambda ill, name: remove_channels(ill, name, [0]),
    "insert": lambda ill, name: insert_identity(ill, name, 0),
    "split": split_layer,
    "fold": fold_batch_normalization,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("name", "code"), [("nowhere", "no-such-layer"), ("open", "unknown-shape"), ("strange", "unknown-shape")]
)
def test_layers_without_known_shapes_are_refused_by_every_operation(operation, name, code):
    """`open` has an input without a link, `strange` is of a type that no plugin declares."""
    graph = network(layer("m", "pooling", "head"))
    weights = trained(graph)
    graph = Graph([*graph, layer("open", "convolution", features=4), layer("strange", "no_such_type", "head")])
    with pytest.raises(DiagnosticError) as refused:
        OPERATIONS[operation](patient(graph, weights), name)
    (found,) = refused.value.diagnostics
    assert (found.code, found.layer) == (code, name)


def divided() -> Graph:
    """Links from every port of a split and of a template, into layers that order matters to, and a vector."""
    parts = Template(
        "parts",
        (
            layer("x", "template_input"),
            layer("cut", "split", "x", sizes="2,3,1"),
            layer("body", "convolution", "cut:y1", features=4),
            layer("a", "template_output", "body"),
            layer("b", "template_output", "cut:y2"),
        ),
    )
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=6),
            layer("halves", "split", "head", sizes="4,2"),
            layer("both", "concatenation", "halves:y1 halves"),
            layer("first", "template", "both", template="parts"),
            layer("second", "template", "head", template="parts"),
            layer("difference", "element_wise", "first:b second:b", operation="subtract"),
            layer("all", "concatenation", "second first difference"),
            layer("flat", "flatten", "all"),
            layer("dense", "fully_connected", "flat", features=3),
            layer("out", "output", "dense", analysis_view="tensor"),
        ],
        templates=[parts],
    )


def links() -> list[tuple[str, int]]:
    """The reader and the input of every link in the network without templates that reads an image or a vector."""
    graph = divided()
    outside = [(one.name, n) for one in graph for n, _ in enumerate(one.inputs) if one.type != "template"]
    inside = [(f"first.{one.name}", n) for one in graph.inside("parts") for n, _ in enumerate(one.inputs)]
    return [*outside, *inside]


@pytest.mark.parametrize(("name", "index"), links())
def test_an_identity_is_inserted_into_any_link_whatever_port_it_reads(name, index):
    graph = divided()
    weights = trained(graph)
    expected = result(graph, weights)
    before = graph.copy()
    operation = insert_identity(patient(graph, weights), name, index)
    graph.apply(operation.edit)
    room, reader = (graph, name) if "." not in name else (graph.inside("parts"), name.partition(".")[2])
    source = room[reader].inputs[index]
    assert source is not None
    assert source.layer not in before
    assert room[source.layer].inputs[0] == (before if room is graph else before.inside("parts"))[reader].inputs[index]
    np.testing.assert_allclose(result(graph, operation.weights), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    "kind",
    [{"type": "group_normalization", "groups": 4}, {"type": "convolution", "features": 8, "groups": 8}],
    ids=["normalization", "depthwise"],
)
def test_channels_that_instances_of_a_template_divide_differently_stay(kind):
    """The first instance reads 8 channels, the second two values of each of 4 channels."""
    params = {key: value for key, value in kind.items() if key != "type"}
    inside = Template(
        "block",
        (layer("x", "template_input"), layer("m", kind["type"], "x", **params), layer("y", "template_output", "m")),
    )
    graph = Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=8),
            layer("other", "convolution", "in", features=4),
            layer("wide", "depthwise_convolution", "other", multiplier=2),
            layer("a", "template", "head", template="block"),
            layer("b", "template", "wide", template="block"),
            layer("tail", "convolution", "a", features=3),
            layer("end", "convolution", "b", features=3),
            layer("sum", "element_wise", "tail end"),
            layer("out", "output", "sum"),
        ],
        templates=[inside],
    )
    ill = patient(graph, trained(graph))
    for name in ("head", "other"):
        for operation in (lambda name=name: remove_channels(ill, name, [1]), lambda name=name: widen(ill, name, 1)):
            with pytest.raises(DiagnosticError, match="another instance of the template has other channels at 'b"):
                operation()


def test_as_many_channels_of_other_numbers_of_values_are_not_those_of_another_instance():
    """Both instances read 8 channels of 4 kernels: two of each here, three of two and one of two there."""
    norm = (
        layer("x", "template_input"),
        layer("m", "group_normalization", "x", groups=4),
        layer("y", "template_output", "m"),
    )
    graph = Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=4),
            layer("pairs", "depthwise_convolution", "head", multiplier=2),
            layer("two", "convolution", "in", features=2),
            layer("threes", "depthwise_convolution", "two", multiplier=3),
            layer("other", "convolution", "in", features=2),
            layer("joined", "concatenation", "threes other", axis=1),
            layer("a", "template", "pairs", template="block"),
            layer("b", "template", "joined", template="block"),
            layer("tail", "convolution", "a", features=3),
            layer("end", "convolution", "b", features=3),
            layer("sum", "element_wise", "tail end"),
            layer("out", "output", "sum"),
        ],
        templates=[Template("block", norm)],
    )
    ill = patient(graph, trained(graph))
    for name in ("head", "two", "other"):
        with pytest.raises(DiagnosticError, match="another instance of the template has other channels at 'b"):
            remove_channels(ill, name, [1])
