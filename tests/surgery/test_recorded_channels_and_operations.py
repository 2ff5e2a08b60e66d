"""Every edit of weights on many networks as recorded: the changed document, the weights, and each refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from recorded import check_recorded
from recorded_edits_of_weights import block, done, with_source
from surgery_networks import REGISTRY, layer, patient, trained

from designer.files.weights import WeightKey
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import BYPASSED, Layer
from designer.graph.template import Template
from designer.operators.api import Operator
from designer.surgery.operations import (
    Operation,
    Patient,
    fold_batch_normalization,
    insert_identity,
    narrow,
    remove_channels,
    set_features,
    split_layer,
    widen,
)

Edit = Callable[[Patient], Operation]


ONE_LESS_ONE_MORE: tuple[Edit, ...] = (
    lambda ill: remove_channels(ill, "head", [3]),
    lambda ill: widen(ill, "head", 1),
)


def behind(kind: type[Operator], **params: object) -> Graph:
    """A convolution with 8 channels, the operator with as many inputs from it as it requires, and a reader."""
    count = max(sum(not port.optional for port in kind.inputs), 1)
    sources = " ".join(["head"] * count)
    activation = "" if kind.type != "activation" else "relu"
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=8, apply_bias="false"),
            layer("m", kind.type, sources, activation, **params),
            layer("tail", "convolution", "m", features=3),
            layer("out", "output", "tail"),
        ]
    )


def test_what_every_operator_makes_of_channels_is_as_recorded() -> None:
    """Whether channels in front of each operator can be removed and added, and what changes then."""
    found = []
    for kind in REGISTRY:
        graph = behind(kind)
        inference = Inference(graph, REGISTRY)
        if not inference.states["m"].ok:
            found.append(f"{kind.type}: does not read it")
            continue
        ill = with_source(graph)
        for edit in ONE_LESS_ONE_MORE:
            found += [f"{kind.type}:", *(f"  {line}" for line in done(ill, edit))]
    check_recorded("surgery/operators.txt", "\n".join(found) + "\n")


def test_what_every_activation_makes_of_channels_is_as_recorded() -> None:
    found = []
    for name in REGISTRY.activations:
        graph = Graph(
            [
                layer("in", "input", dims="8x8x3"),
                layer("head", "convolution", "in", name, features=8),
                layer("tail", "convolution", "head", features=3),
                layer("out", "output", "tail"),
            ]
        )
        if Inference(graph, REGISTRY).states["tail"].ok:
            ill = with_source(graph)
            found += [f"{name}: {next(done(ill, edit))}" for edit in ONE_LESS_ONE_MORE]
    check_recorded("surgery/activations.txt", "\n".join(found) + "\n")


@pytest.mark.parametrize(("name", "parameter"), [("unary", "function"), ("element_wise", "operation")])
def test_what_every_function_makes_of_channels_is_as_recorded(name: str, parameter: str) -> None:
    """Functions that may be infinite allow no new channel."""
    found = []
    kind = next(kind for kind in REGISTRY if kind.type == name)
    for choice in next(p.info.choices for p in kind.parameters if p.name == parameter):
        graph = behind(kind, **{parameter: choice})
        if Inference(graph, REGISTRY).states["m"].ok:
            ill = with_source(graph)
            found += [f"{choice}: {next(done(ill, edit))}" for edit in ONE_LESS_ONE_MORE]
    check_recorded(f"surgery/{name}.txt", "\n".join(found) + "\n")


def network(*middle: Layer, features: int = 8, reader: str = "convolution", dims: str = "8x8x3") -> Graph:
    view = "image" if reader == "convolution" else "tensor"
    return Graph(
        [
            layer("in", "input", dims=dims),
            layer("head", "convolution", "in", features=features),
            *middle,
            layer("tail", reader, middle[-1].name if middle else "head", features=3),
            layer("out", "output", "tail", analysis_view=view),
        ]
    )


def bypassed(one: Layer) -> Layer:
    return replace(one, attributes={BYPASSED: "true"})


NETWORKS = {
    "nothing between": network(),
    "without bias": network(layer("m", "convolution", "head", features=6, apply_bias="false")),
    "a chain of kernels": network(
        layer("d", "depthwise_convolution", "head", multiplier=2),
        layer("g", "convolution", "d", features=16, groups=16),
        layer("s", "separable_convolution", "g", multiplier=2, features=5),
        layer("t", "transposed_convolution", "s", features=7),
        layer("m", "batch_normalization", "t"),
    ),
    "groups": network(layer("m", "convolution", "head", features=8, groups=4)),
    "groups of another number": network(layer("m", "convolution", "head", features=4, groups=4)),
    "groups of a transposed convolution": network(layer("m", "transposed_convolution", "head", features=8, groups=2)),
    "an addition of three": network(
        layer("b", "convolution", "in", features=8),
        layer("c", "convolution", "b", features=8),
        layer("bc", "element_wise", "b c"),
        layer("m", "linear_blend", "head bc"),
    ),
    "a gate": network(
        layer("p", "global_pooling", "head"),
        layer("e", "convolution", "p", "sigmoid", features=8, kernel="1x1"),
        layer("m", "element_wise", "head e", operation="multiply"),
    ),
    "a broadcast channel": network(
        layer("one", "convolution", "in", features=1), layer("m", "element_wise", "head one")
    ),
    "joined, cut and split": network(
        layer("b", "convolution", "in", features=4),
        layer("j", "concatenation", "head b in"),
        layer("c", "slice", "j", start=1, end=-2),
        layer("s", "split", "c", sizes="5,4,3"),
        layer("m", "concatenation", "s:y3 s:y1"),
    ),
    "three of equal channels below each other": network(
        layer("b", "convolution", "in", features=8),
        layer("c", "convolution", "in", features=8),
        layer("m", "concatenation", "head b c", axis=2),
    ),
    "rows in two parts": network(
        layer("s", "split", "head", axis=2, sizes="2,6"), layer("m", "concatenation", "s:y1 s", axis=2)
    ),
    "every second channel": network(layer("m", "slice", "head", step=2)),
    "an open end": network(layer("m", "slice", "head", start=-3)),
    "groups of normalization": network(layer("m", "group_normalization", "head", groups=4)),
    "groups of one": network(layer("m", "group_normalization", "head", groups=8)),
    "blocks": network(layer("m", "depth_to_space", "head", block_size=2, mode="pixel_dominant")),
    "blocks of neighbors": network(layer("m", "depth_to_space", "head", block_size=2, mode="channel_dominant")),
    "pixels as channels": network(
        layer("b", "space_to_depth", "head", block_size=2, mode="pixel_dominant"),
        layer("m", "space_to_depth", "b", block_size=2, mode="channel_dominant"),
    ),
    "flattened": network(layer("p", "pooling", "head"), layer("m", "flatten", "p"), reader="fully_connected"),
    "flattened by the reader": network(reader="fully_connected", dims="4x2x3"),
    "rows of a matrix": network(
        layer("f", "flatten", "head", start_axis=2), layer("m", "fully_connected", "f", features=4, flatten="false"),
        reader="fully_connected",
    ),
    "vectors": network(
        layer("v", "fully_connected", "head", "relu", features=6),
        layer("m", "fully_connected", "v", features=6, flatten="false"),
        reader="fully_connected",
    ),
    "bypassed": network(bypassed(layer("m", "batch_normalization", "head"))),
    "one slope": network(layer("m", "activation", "head", "leaky_relu")),
    "softmax behind filters": network(layer("m", "convolution", "head", "softmax", features=8)),
    "two fixed reasons": network(
        layer("a", "activation", "head", "softmax"), layer("m", "reshape", "a", shape="8,8,8")
    ),
}  # fmt: skip


def instances(template: Template, *outside: Layer, **params: object) -> Graph:
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=8),
            layer("use", "template", "head", template="block", **params),
            layer("again", "template", "use", template="block", **params),
            *outside,
            layer("tail", "convolution", outside[-1].name if outside else "again", features=3),
            layer("out", "output", "tail"),
        ],
        templates=[template],
    )


CONV = block(layer("a", "convolution", "x", "relu", features=6), layer("b", "convolution", "a", features=8))


NETWORKS |= {
    "instances": instances(CONV),
    "instances with shared weights": instances(CONV, shared_weights="true"),
    "normalized instances": instances(
        block(layer("a", "convolution", "x", features=8), layer("n", "batch_normalization", "a", "relu"))
    ),
    "a slice in instances": instances(
        block(layer("c", "slice", "x", end=6), layer("a", "convolution", "c", features=8))
    ),
    "a split in instances": instances(
        block(
            layer("s", "split", "x", sizes="3,5"),
            layer("j", "concatenation", "s:y2 s"),
            layer("a", "convolution", "j", features=8),
        )
    ),
    "instances of other inputs": Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=8),
            layer("wide", "convolution", "in", features=12),
            layer("use", "template", "head", template="block"),
            layer("again", "template", "wide", template="block"),
            layer("m", "concatenation", "use again"),
            layer("tail", "convolution", "m", features=3),
            layer("out", "output", "tail"),
        ],
        templates=[block(layer("d", "depthwise_convolution", "x"), layer("a", "convolution", "d", features=4))],
    ),
    "a bypassed layer in instances": instances(
        block(bypassed(layer("n", "batch_normalization", "x")), layer("a", "convolution", "n", features=8))
    ),
    "a training branch": Graph(
        [
            *network(layer("m", "convolution", "head", features=6)),
            layer("side", "convolution", "head", features=3),
            layer("loss", "l1_loss", "side in"),
        ]
    ),
}


EDITS: dict[str, Edit] = {
    "remove 3": lambda ill: remove_channels(ill, "head", [3]),
    "remove 0 and 7": lambda ill: remove_channels(ill, "head", [7, 0]),
    "widen by 2": lambda ill: widen(ill, "head", 2),
    "11 features": lambda ill: set_features(ill, "head", 11),
    "12 features": lambda ill: set_features(ill, "head", 12),
    "5 features": lambda ill: set_features(ill, "head", 5),
    "narrow to 4": lambda ill: narrow(ill, "head", 4),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_channels_of_networks_change_as_recorded(name: str) -> None:
    ill = with_source(NETWORKS[name])
    found = []
    for title, edit in EDITS.items():
        found += [f"{title}:", *(f"  {line}" for line in done(ill, edit))]
    inner = [one for one in ill.channels.made if one not in ("head", "tail")]
    for one in inner:
        for title, edit in {
            "remove 1": lambda ill, one=one: remove_channels(ill, one, [1]),
            "widen by 1": lambda ill, one=one: widen(ill, one, 1),
        }.items():
            found += [f"{one}, {title}:", *(f"  {line}" for line in done(ill, edit))]
    check_recorded(f"surgery/{name.replace(' ', '_').replace(',', '')}.txt", "\n".join(found) + "\n")


@pytest.mark.parametrize("name", NETWORKS)
def test_channels_are_those_of_their_layers(name: str) -> None:
    """Every axis of a weight has a value for each of its channels, and every tensor as many channels as its type says."""
    ill = with_source(NETWORKS[name])
    for axis in ill.channels.axes:
        tensor = ill.weights.tensors.get(axis.key)
        if tensor is not None:
            assert tensor.shape[axis.axis] == len(axis.channels.expanded), axis.key
    for source, channels in ill.channels.tensors.items():
        kind = ill.inference.type_of(source)
        assert kind is not None
        count = kind.shape[1] if kind.rank > 1 else 1
        assert len(channels.expanded) == count, source


def layered() -> Graph:
    """Links to insert into, layers to split and normalizations to fold, in a template and outside."""
    inside = block(
        replace(layer("a", "convolution", "x", features=8, apply_bias="false", stride="1x1"), position=(16, 320)),
        replace(layer("n", "batch_normalization", "a", "prelu"), position=(32, 640)),
        layer("join", "element_wise", "n x"),
    )
    return Graph(
        [
            replace(layer("in", "input", dims="8x8x3"), position=(0, 0)),
            replace(layer("head", "convolution", "in", features=8, kernel="5x3", dilation="2x1"), position=(160, 33)),
            layer("use", "template", "head", template="block"),
            layer("again", "template", "use", template="block", shared_weights="true"),
            replace(layer("t", "transposed_convolution", "again", features=4, stride="1x1"), position=(640, 0)),
            replace(layer("tn", "batch_normalization", "t", epsilon="0.1"), position=(800, 0)),
            layer("both", "concatenation", "tn again tn"),
            layer("dense", "fully_connected", "both", features=6),
            layer("dn", "batch_normalization", "dense", "relu"),
            layer("last", "fully_connected", "dn", features=3),
            layer("batch", "batch_normalization", "last", track_running_stats="false"),
            layer("out", "output", "batch", analysis_view="tensor"),
        ],
        templates=[inside],
    )


def inserted(name: str, index: int, kernel: int) -> Edit:
    return lambda ill: insert_identity(ill, name, index, kernel)


def test_layers_are_inserted_split_and_folded_as_recorded() -> None:
    ill = with_source(layered())
    edits: dict[str, tuple[Edit, bool]] = {
        f"insert into input {index} of {name} with {kernel}": (inserted(name, index, kernel), True)
        for name, index, kernel in (
            ("head", 0, 3),
            ("both", 1, 5),
            ("both", 2, 1),
            ("both", 3, 3),
            ("use.n", 0, 3),
            ("again.join", 1, 3),
            ("use", 0, 3),
            ("dense", 0, 3),
            ("dn", 0, 3),
            ("last", 0, 7),
            ("in", 0, 3),
            ("nowhere", 0, 3),
        )
    }
    names = [name for name in ill.inference.graph.layers if name != "in"]
    edits |= {f"split {name}": (lambda ill, name=name: split_layer(ill, name), False) for name in names}
    edits |= {f"fold {name}": (lambda ill, name=name: fold_batch_normalization(ill, name), True) for name in names}
    found = []
    for title, (edit, exact) in edits.items():
        found += [f"{title}:", *(f"  {line}" for line in done(ill, edit, exact))]
    check_recorded("surgery/layers.txt", "\n".join(found) + "\n")


def test_the_product_of_the_parts_of_a_split_layer_is_its_kernel_and_they_are_of_one_size() -> None:
    """Both parts have the square roots of the singular values, so that neither has much larger weights."""
    graph = network(layer("m", "convolution", "head", features=5), layer("n", "fully_connected", "m", features=4))
    graph = Graph([one if one.name != "tail" else layer("tail", "fully_connected", "n", features=3) for one in graph])
    ill = with_source(
        Graph([one if one.name != "out" else layer("out", "output", "tail", analysis_view="tensor") for one in graph])
    )
    for name, new in (("m", "convolution_0"), ("n", "fully_connected_0")):
        kernel = ill.weights.tensors[WeightKey(name, "kernel")]
        made = split_layer(ill, name).weights.tensors
        first, second = made[WeightKey(new, "kernel")], made[WeightKey(name, "kernel")]
        matrices = [part.reshape(len(part), -1).astype(np.float64) for part in (second, first)]
        np.testing.assert_allclose(matrices[0] @ matrices[1], kernel.reshape(len(kernel), -1), atol=1e-6)
        columns, rows = (matrices[0] ** 2).sum(axis=0), (matrices[1] ** 2).sum(axis=1)
        np.testing.assert_allclose(columns, rows, rtol=1e-4)
        assert (np.diff(rows) <= 0).all()


def test_the_magnitude_of_folded_weights_is_that_of_the_normalization() -> None:
    """Scale and mean of every channel, by hand."""
    graph = network(layer("m", "batch_normalization", "head", epsilon="0.25"))
    ill = with_source(graph)
    old, made = ill.weights.tensors, fold_batch_normalization(ill, "m").weights.tensors
    for channel in range(8):
        scale, bias, mean, variance = (
            float(old[WeightKey("m", part)][channel]) for part in ("scale", "bias", "mean", "variance")
        )
        factor = scale / (variance + 0.25) ** 0.5
        np.testing.assert_allclose(
            made[WeightKey("head", "kernel")][channel], old[WeightKey("head", "kernel")][channel] * factor, rtol=1e-6
        )
        shift = (float(old[WeightKey("head", "bias")][channel]) - mean) * factor + bias
        assert made[WeightKey("head", "bias")][channel] == pytest.approx(shift, rel=1e-5, abs=1e-6)
    assert WeightKey("m", "scale") not in made


def test_filters_are_removed_from_the_weakest_in_the_order_of_their_channels() -> None:
    """By the sum of magnitudes of the kernels alone; of equal ones the first goes first."""
    graph = network(layer("b", "convolution", "in", features=8), layer("m", "element_wise", "head b"))
    weights = trained(graph)
    for name, sizes in (("head", [4, 1, 9, 1, 2, 3, 8, 7]), ("b", [0, 1, 0, 1, 9, 0, 0, 0])):
        kernel = np.zeros((8, 3, 3, 3), np.float32)
        kernel[:, 0, 0, 0] = sizes
        kernel[::2] *= -1
        kernel[2, 0, 0, 1] = 0.5
        weights.tensors[WeightKey(name, "kernel")] = kernel
        weights.tensors[WeightKey(name, "bias")] = np.arange(8, dtype=np.float32) * 100
    weights.tensors[WeightKey("tail", "kernel")][:, 1] = 1000
    left = []
    for features in range(7, 0, -1):
        made = narrow(patient(graph, weights), "head", features).weights
        left.append([int(value) // 100 for value in made.tensors[WeightKey("head", "bias")]])
    assert left == [
        [0, 2, 3, 4, 5, 6, 7],
        [0, 2, 4, 5, 6, 7],
        [0, 2, 4, 6, 7],
        [2, 4, 6, 7],
        [2, 4, 6],
        [2, 4],
        [4],
    ]


def test_new_filters_have_the_initial_values_of_the_layer() -> None:
    graph = network()
    ill = with_source(graph)
    made = widen(ill, "head", 3).weights.tensors
    kernel = made[WeightKey("head", "kernel")]
    np.testing.assert_array_equal(kernel[:8], ill.weights.tensors[WeightKey("head", "kernel")])
    assert len(np.unique(kernel[8:])) == kernel[8:].size
    assert 0.5 / 27**0.5 < np.abs(kernel[8:]).max() <= 1 / 27**0.5
    bias = made[WeightKey("head", "bias")][8:]
    assert 0 < np.abs(bias).max() <= 1 / 27**0.5
    assert not made[WeightKey("tail", "kernel")][:, 8:].any()


def test_a_template_whose_instances_read_other_numbers_of_channels_is_not_split() -> None:
    inside = block(layer("a", "convolution", "x", features=8))
    graph = Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("use", "template", "in", template="block"),
            layer("again", "template", "use", template="block"),
            layer("out", "output", "again", analysis_view="tensor"),
        ],
        templates=[
            Template(
                "block",
                tuple(
                    one if one.name != "a" else layer("a", "convolution", "x", features=8, kernel="1x1")
                    for one in inside.layers
                ),
            )
        ],
    )
    assert list(done(with_source(graph), lambda ill: split_layer(ill, "use.a"))) == [
        "cannot-split (use.a): 'use.a' reads other numbers of channels in other instances of its template - dissolve the template "
        "first"
    ]


@pytest.mark.parametrize("indices", [[-1], [8], [0, 8], [3, -8], []])
def test_channels_that_a_layer_does_not_have_are_refused(indices: list[int]) -> None:
    assert list(done(with_source(network()), lambda ill: remove_channels(ill, "head", indices))) == [
        "no-such-channel (head): 'head' has the channels 0 to 7 - choose one of them"
    ]


def test_channels_of_a_port_are_those_of_its_tensor() -> None:
    graph = network(layer("s", "split", "head", sizes="6,2"), layer("m", "concatenation", "s:y1 s"))
    ill = with_source(graph)
    kept = [0, 1, 2, 3, 4, 5, 7]
    made = remove_channels(ill, "s:y1", [0])
    assert made.edit.title == "Remove channel 0 of s:y1"
    old, new = (w.tensors[WeightKey("head", "kernel")] for w in (ill.weights, made.weights))
    np.testing.assert_array_equal(new, old[kept])
    assert next(iter(done(ill, lambda ill: remove_channels(ill, "s:y1", [2])))).endswith(
        "has the channels 0 to 1 - choose one of them"
    )


def test_a_number_of_channels_is_within_its_limits() -> None:
    ill = with_source(network())
    for features in (0, -1, 65_537):
        assert list(done(ill, lambda ill, n=features: set_features(ill, "head", n))) == [
            f"bad-parameter (head): {features} is not a number of channels - use 1 to 65536"
        ]
    assert list(done(ill, lambda ill: set_features(ill, "head", 8))) == ["Widen head by 0"]
