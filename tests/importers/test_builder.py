"""The builder of documents: names, types, weights, layout, frames."""

from __future__ import annotations

from copy import copy
from dataclasses import fields
from random import Random
from typing import Any

import numpy as np
import pytest

from designer.files.weights import WeightKey
from designer.graph.arrangement import around
from designer.graph.layout import LayerBox
from designer.graph.model import ActivationSpec, Source
from designer.graph.types import ShapeError, Size2D, Size3D
from designer.importers.builder import GraphBuilder
from designer.operators.params import ParamError
from designer.operators.registry import Registry


def builder_with_image(registry: Registry) -> tuple[GraphBuilder, Source]:
    builder = GraphBuilder(registry)
    builder.reserve(["image", "result:1"])
    (image,) = builder.add("input", (), {"dims": Size3D(8, 8, 3)}, name="image", exact=True)
    return builder, image


def test_layers_get_unique_legal_names_and_types(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    (one,) = builder.add("pooling", [image], {"size": Size2D(2, 2)}, name="/block.0/pool:1")
    (two,) = builder.add("pooling", [image], name="/block.0/pool:1")
    assert image.layer == "image"
    assert one.layer.isidentifier()
    assert two.layer == f"{one.layer}_2"
    assert str(builder.types[one]) == "N x 3 x 4 x 4"


def test_a_layer_that_does_not_fit_is_not_added(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    with pytest.raises(ShapeError, match="'kernel' needs the shape 4 x 3 x 3 x 3"):
        builder.add("convolution", [image], {"features": 4, "apply_bias": False})
    with pytest.raises(ParamError, match="no parameter 'feature'"):
        builder.add("convolution", [image], {"feature": 4})
    with pytest.raises(ParamError, match="below the minimum"):
        builder.add("convolution", [image], {"features": 0})
    assert list(builder.layers) == ["image"]
    assert not builder.weights


def test_rollback_removes_layers_with_names_types_and_weights(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    mark = builder.mark()
    kernel = np.ones((4, 3, 3, 3), np.float32)
    params = {"features": 4, "apply_bias": False}
    first = builder.add("convolution", [image], params, name="c", weights={"kernel": kernel})
    builder.rollback(mark)
    assert (list(builder.layers), list(builder.weights), first[0] in builder.types) == (["image"], [], False)
    again = builder.add("convolution", [image], params, name="c", weights={"kernel": kernel})
    assert again == first
    assert list(builder.weights) == [WeightKey("c", "kernel")]


def test_layers_are_laid_out_and_scopes_become_frames(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    source = image
    for number in range(4):
        scope = ("body", f"block{number // 2}")
        (source,) = builder.add("activation", [source], activation=("relu", {}), scope=scope)
    builder.add("output", [source], name="y", exact=True)
    graph, _ = builder.finish()
    columns = [graph[name].position[0] for name in graph.layers]
    assert columns == sorted(set(columns))
    assert [frame.title for frame in graph.frames.values()] == ["body", "body.block0", "body.block1"]


def test_weights_with_their_axes_exchanged_are_not_added(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    params = {"features": 4, "kernel": Size2D(2, 1), "apply_bias": False}
    for shape in ((3, 4, 1, 2), (4, 3, 2, 1), (4, 3, 2), (24,)):
        with pytest.raises(ShapeError, match="'kernel' needs the shape 4 x 3 x 1 x 2"):
            builder.add("convolution", [image], params, weights={"kernel": np.ones(shape, np.float32)})
    builder.add("convolution", [image], params, weights={"kernel": np.ones((4, 3, 1, 2), np.float32)})


def state(builder: GraphBuilder) -> dict[str, Any]:
    """All that a builder knows, copied."""
    return {item.name: copy(getattr(builder, item.name)) for item in fields(builder) if item.name != "registry"}


def convolved(builder: GraphBuilder, x: Source, name: str, **more: Any) -> Source:
    """A convolution of one feature with a PReLU."""
    weights = {"kernel": np.ones((2, 3, 1, 1)), "bias": np.zeros(2), "activation_slope": np.array([0.25])}
    params = {"features": 2, "kernel": Size2D(1, 1)}
    activation = ("prelu", {"per_channel": False})
    (made,) = builder.add("convolution", [x], params, name=name, weights=weights, activation=activation, **more)
    return made


def test_a_rollback_leaves_what_was_there_before(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    convolved(builder, image, "first", origins=["k", "b", "s"], scope=("a",))
    before, mark = state(builder), builder.mark()
    source = convolved(builder, image, "first", origins=["k2", "b2", "s2"], scope=("a", "b"))
    builder.add("split", [source], {"parts": 2, "axis": 1}, name="parts")
    builder.name_weights(source.layer, {"kernel": "another"})
    (plain,) = builder.add("pooling", [image], name="pool", exact=True)
    builder.attach(plain, ("prelu", {"per_channel": False}), {"activation_slope": np.array([0.5])})
    assert state(builder) != before
    builder.rollback(mark)
    assert state(builder) == before
    assert convolved(builder, image, "first").layer == "first_2"


def test_what_is_known_of_a_layer_that_was_added(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    made = convolved(builder, image, "/net/conv.1", origins=["k", "", "s"], scope=("net",), attributes={"note": "x"})
    layer = builder.layers[made.layer]
    assert layer.name == made.layer == "net_conv_1_"
    assert (layer.type, layer.inputs, layer.position, dict(layer.attributes)) == (
        "convolution", (image,), (0, 0), {"note": "x"},
    )  # fmt: skip
    assert dict(layer.params) == {
        "features": "2", "kernel": "1x1", "stride": "1x1", "padding": "same", "padding_tuple": "0x0", "apply_bias": "true",
    }, "the defaults of extensions are not written"  # fmt: skip
    assert layer.activation == ActivationSpec("prelu", {"per_channel": "false", "initial": "0.25"})
    assert builder.scopes == {"image": (), made.layer: ("net",)}
    assert str(builder.types[made]) == "N x 2 x 8 x 8"
    assert builder.outputs(made.layer) == (made,)
    assert {key.tensor: array.dtype for key, array in builder.weights.items()} == dict.fromkeys(
        ("kernel", "bias", "activation_slope"), np.dtype(np.float32)
    )
    parts = builder.add("split", [made], {"parts": 2, "axis": 1})
    assert [(source.layer, source.port) for source in parts] == [("split", ""), ("split", "y1")]
    assert builder.outputs("split") == parts
    assert [str(builder.types[source]) for source in parts] == ["N x 1 x 8 x 8"] * 2
    builder.add("output", [parts[1]], name="y", exact=True)
    builder.finish()
    assert builder.tensors == {"k": (f"{made.layer}.kernel",), "s": (f"{made.layer}.activation_slope",)}


def test_weights_keep_their_rank_and_are_in_the_order_of_c(registry: Registry) -> None:
    builder = GraphBuilder(registry)
    params = {"shape": (), "source": "weights"}
    builder.add("tensor_constant", (), params, name="a", weights={"value": np.array(2.5)})
    builder.add(
        "tensor_constant", (), {**params, "shape": (2, 3)}, name="b", weights={"value": np.ones((3, 2), np.float16).T}
    )
    found = {key.layer: (array.shape, array.dtype, array.flags.c_contiguous) for key, array in builder.weights.items()}
    assert found == {"a": ((), np.float32, True), "b": ((2, 3), np.float32, True)}


def test_names_are_kept_if_they_are_legal_and_free(registry: Registry) -> None:
    builder = GraphBuilder(registry)
    builder.reserve(["result.1", "a,b", ""])

    def add(name: str, exact: bool = False) -> str:
        (made,) = builder.add("tensor_constant", (), {"shape": (1,)}, name=name, exact=exact)
        return made.layer

    assert add("result.1") == "result_1", "a name that is reserved is not an identifier"
    assert add("result.1", exact=True) == "result.1"
    assert add("result.1", exact=True) == "result_1_2"
    assert add("a,b", exact=True) == "a_b"
    assert add("plain", exact=True) == "plain"
    assert add("plain") == "plain_2"
    assert add("plain", exact=True) == "plain_3"
    assert add("") == "tensor_constant"
    assert add("", exact=True) == "tensor_constant_2"
    assert add("import") == "import_"
    (made,) = builder.add("input", (), {"dims": Size3D(8, 8, 3)})
    assert made.layer == "input_"
    (made,) = builder.add("activation", [made], activation=("relu", {}))
    assert made.layer == "activation"
    (made,) = builder.add("element_wise", [made, made], {"operation": "multiply"})
    assert made.layer == "multiply"


@pytest.mark.parametrize(
    ("type", "params", "message"),
    [
        ("no_such_type", {}, "there is no operator 'no_such_type'"),
        ("pooling", {"width": 3}, "has no parameter 'width'"),
        ("pooling", {"size": Size2D(0, 2)}, "minimum"),
        ("opaque", {"op_type": "1x"}, "'1x' is not a valid name of an ONNX operator"),
    ],
)  # fmt: skip
def test_operators_that_cannot_be_are_refused_with_the_reason(
    type: str, params: dict[str, Any], message: str, registry: Registry
) -> None:
    builder, image = builder_with_image(registry)
    before = state(builder)
    with pytest.raises((ParamError, ShapeError), match=message):
        builder.add(type, [image], params)
    assert state(builder) == before


def test_the_reason_says_what_a_tensor_has(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    before = state(builder)
    params = {"features": 4, "kernel": Size2D(1, 1)}
    given = {"kernel": np.ones((4, 3, 1, 1)), "bias": np.ones((2, 2))}
    for weights, shape, has in ((given, "4", "2 x 2"), ({"kernel": given["kernel"]}, "4", "no values")):
        with pytest.raises(ShapeError) as caught:
            builder.add("convolution", [image], params, weights=weights)
        assert caught.value.message == f"the tensor 'bias' needs the shape {shape} but has {has}"
    full = {"kernel": given["kernel"], "bias": np.ones(4)}
    with pytest.raises(ShapeError, match="'activation_slope' needs the shape 4 but has no values"):
        builder.add("convolution", [image], params, weights=full, activation=("prelu", {"per_channel": True}))
    wrong = {**full, "kernel": np.ones((4, 1, 1, 1)), "activation_slope": np.ones(4)}
    with pytest.raises(ShapeError, match="'kernel' needs the shape 4 x 3 x 1 x 1 but has 4 x 1 x 1 x 1"):
        builder.add("convolution", [image], params, weights=wrong, activation=("prelu", {"per_channel": True}))
    assert state(builder) == before


def test_an_activation_changes_the_type_of_the_first_output(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    one, two = builder.add("split", [image], {"parts": 2, "axis": 2}, activation=("glu", {"axis": 3}))
    assert [str(builder.types[source]) for source in (one, two)] == ["N x 3 x 4 x 4", "N x 3 x 4 x 8"]


def test_an_activation_is_attached_to_the_layer_of_its_input(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    weights = {"kernel": np.ones((2, 3, 1, 1)), "bias": np.zeros(2)}
    (conv,) = builder.add(
        "convolution", [image], {"features": 2, "kernel": Size2D(1, 1)}, weights=weights, origins=["k", "b"]
    )
    other = builder.layers[conv.layer]
    with pytest.raises(ShapeError, match="'activation_slope' needs the shape 2"):
        builder.attach(conv, ("prelu", {"per_channel": True}), {})
    assert builder.layers[conv.layer] == other
    assert builder.attach(conv, ("glu", {"axis": 1}), {})
    assert builder.layers[conv.layer].activation == ActivationSpec("glu", {"axis": "1"})
    assert str(builder.types[conv]) == "N x 1 x 8 x 8"
    assert not builder.attach(conv, ("relu", {}), {}), "it has one"
    assert builder.layers[conv.layer].activation == ActivationSpec("glu", {"axis": "1"})
    one, two = builder.add("split", [image], {"parts": 2, "axis": 2})
    assert not builder.attach(two, ("relu", {}), {}), "it is not the first output"
    assert builder.attach(one, ("prelu", {"per_channel": False}), {"activation_slope": np.array([0.5])})
    assert builder.weights[WeightKey("split", "activation_slope")].tolist() == [0.5]
    (last,) = builder.add("convolution", [image], {"features": 2, "kernel": Size2D(1, 1)}, weights=weights, name="last")
    assert builder.attach(last, ("prelu", {"per_channel": True}), {"activation_slope": np.ones(2)})
    assert [key.tensor for key in builder.weights if key.layer == "last"] == ["kernel", "bias", "activation_slope"]
    builder.rollback(builder.mark() - 2)
    assert [key.layer for key in builder.weights] == [conv.layer] * 2


def test_calls_of_a_layer_share_weights_if_all_their_tensors_have_the_same_names(registry: Registry) -> None:
    """Those of an attached activation too, so that a slope without a name is not left out."""
    slope = ("prelu", {"per_channel": False}), {"activation_slope": np.array([0.5])}
    relu: tuple[Any, dict[str, Any]] = ("relu", {}), {}

    def shared(names: list[str], attached: tuple[Any, dict[str, Any]] | None = None, *others: list[str]) -> bool:
        builder, x = builder_with_image(registry)
        for number in range(2):
            weights = {"kernel": np.ones((3, 3, 1, 1)), "bias": np.zeros(3)}
            params = {"features": 3, "kernel": Size2D(1, 1)}
            (x,) = builder.add("convolution", [x], params, name="c", weights=weights, origins=names)
            if attached is not None:
                builder.attach(x, *attached, *([others[number]] if others else []))
        builder.add("output", [x], name="y", exact=True)
        graph, _ = builder.finish()
        return any(layer.params.get("shared_weights") == "true" for layer in graph)

    assert shared(["k", "b"])
    assert shared(["k", "b"], relu)
    assert shared(["k", "b"], slope, ["s"], ["s"])
    assert not shared(["k", "b"], slope, ["s"], ["t"])
    assert not shared(["k", "b"], slope)
    assert not shared(["k", "b"], slope, [""], [""])
    assert not shared(["k", ""], slope, ["s"], ["s"])
    assert not shared(["k", ""])
    assert not shared([])


def test_boxes_are_as_large_as_names_and_ports_and_deeper_for_smaller_images(registry: Registry) -> None:
    builder = GraphBuilder(registry)
    (x,) = builder.add("input", (), {"dims": Size3D(64, 64, 3)}, name="x", exact=True)
    (half,) = builder.add("pooling", [x], {"size": Size2D(2, 2)}, name="pool")
    (small,) = builder.add("pooling", [half], {"size": Size2D(8, 8), "stride": Size2D(8, 8)}, name="small")
    (flat,) = builder.add("flatten", [small], {}, name="flat")
    (wide,) = builder.add("flatten", [half], {}, name="wide")
    builder.add("concatenation", [wide, flat], {"axis": 1}, name="joined")
    builder.add("concatenation", [flat, wide], {"axis": 1}, name="joined_again")
    (one,) = builder.add("tensor_constant", (), {"shape": (1,)}, name="a" * 40)
    builder.add("element_wise", [one] * 7, {"operation": "add"}, name="many")
    builder.add("element_wise", [one] * 3, {"operation": "add"}, name="three")
    assert flat.layer == "flat"
    boxes = builder._boxes(builder.layers)
    ports = {"many": 7, "three": 3, "two": 2}
    entries = {name: tuple(48.0 + 20.0 * number for number in range(count)) for name, count in ports.items()}
    assert boxes == {
        "x": LayerBox(240.0, 120.0, (), {"": 48.0}, 0),
        "pool": LayerBox(240.0, 120.0, (48.0,), {"": 48.0}, 1),
        "small": LayerBox(240.0, 120.0, (48.0,), {"": 48.0}, 4),
        "flat": LayerBox(240.0, 120.0, (48.0,), {"": 48.0}, 4),
        "wide": LayerBox(240.0, 120.0, (48.0,), {"": 48.0}, 1),
        "joined": LayerBox(240.0, 120.0, entries["two"], {"": 48.0}, 4),
        "joined_again": LayerBox(240.0, 120.0, entries["two"], {"": 48.0}, 4),
        "a" * 40: LayerBox(360.0, 120.0, (), {"": 48.0}, 0),
        "many": LayerBox(240.0, 188.0, entries["many"], {"": 48.0}, 0),
        "three": LayerBox(240.0, 120.0, entries["three"], {"": 48.0}, 0),
    }


@pytest.mark.parametrize("seed", range(40))
def test_scopes_have_frames_where_only_their_own_layers_are(seed: int, registry: Registry) -> None:
    """The frames are those of a search through all pairs of scopes and layers."""
    draw = Random(seed)
    names = [f"l{number}" for number in range(draw.randint(2, 12))]
    scopes = {name: tuple(draw.choice("ab") for _ in range(draw.randint(0, 3))) for name in names}
    if seed % 5 == 0:
        scopes = {name: ("all", *scope) for name, scope in scopes.items()}
    places = {name: (draw.randrange(0, 9000, 100), draw.randrange(0, 900, 50)) for name in names}
    boxes = {name: LayerBox(draw.choice([100.0, 250.0, 2500.0]), draw.choice([60.0, 200.0])) for name in names}
    expected = []
    members: dict[tuple[str, ...], list[str]] = {}
    for name, scope in scopes.items():
        for depth in range(1, len(scope) + 1):
            members.setdefault(scope[:depth], []).append(name)
    for scope, inside in members.items():
        if len(inside) in (1, len(names)):
            continue  # a single layer, or the whole network
        left, top, width, height = around({name: places[name] for name in inside}, boxes)
        touched = [
            name
            for name, (x, y) in places.items()
            if x < left + width and x + boxes[name].width > left and y < top + height and y + boxes[name].height > top
        ]
        if sorted(touched) == sorted(inside):
            expected.append((".".join(scope), (left, top, width, height)))
    frames = GraphBuilder(registry)._frames(places, boxes, scopes)
    assert [(frame.title, frame.rect) for frame in frames] == expected
    assert [frame.id for frame in frames] == [f"scope_{number}" for number in range(len(frames))]


def test_a_network_without_scopes_has_no_frames(registry: Registry) -> None:
    box = LayerBox(100.0, 100.0)
    assert GraphBuilder(registry)._frames({"a": (0, 0), "b": (0, 300)}, {"a": box, "b": box}, {"a": (), "b": ()}) == []


def test_the_document_has_the_name_of_the_network(registry: Registry) -> None:
    builder = GraphBuilder(registry, "my network")
    builder.add("input", (), {"dims": Size3D(8, 8, 3)}, name="x", exact=True)
    assert builder.finish()[0].name == "my network"
    assert GraphBuilder(registry).finish()[0].name == "network"


def test_instances_of_templates_have_the_types_of_the_layers_that_they_replace(registry: Registry) -> None:
    builder, x = builder_with_image(registry)
    for scope in ("half.0", "half.1"):
        (x,) = builder.add("pooling", [x], {"size": Size2D(2, 2)}, name="pool", scope=(scope,))
        for _ in range(2):
            (x,) = builder.add("activation", [x], activation=("relu", {}), name="relu", scope=(scope,))
    builder.add("output", [x], name="y", exact=True)
    graph, _ = builder.finish()
    names = [layer.name for layer in graph if layer.type == "template"]
    assert [str(builder.types[Source(name)]) for name in names] == ["N x 3 x 4 x 4", "N x 3 x 2 x 2"]
    heights = [graph[name].position[1] for name in ("image", *names)]
    assert heights == sorted(set(heights)), "smaller images are further down"


@pytest.mark.parametrize(
    ("first", "second", "instances"),
    [
        (("leaky_relu", {"negative_slope": 0.1}), ("leaky_relu", {"negative_slope": 0.1}), 2),
        (("leaky_relu", {"negative_slope": 0.1}), ("leaky_relu", {"negative_slope": 0.2}), 0),
        (("relu", {}), ("tanh", {}), 0),
        (("relu", {}), None, 0),
    ],
)
def test_blocks_with_different_activations_are_not_instances_of_one_template(
    registry: Registry, first: Any, second: Any, instances: int
) -> None:
    builder, x = builder_with_image(registry)
    for number, activation in enumerate((first, second)):
        for name in ("a", "b", "c"):
            size = {"size": Size2D(1, 1), "stride": Size2D(1, 1)}
            (x,) = builder.add("pooling", [x], size, activation=activation, name=name, scope=(f"half.{number}",))
    builder.add("output", [x], name="y", exact=True)
    graph, _ = builder.finish()
    assert sum(layer.type == "template" for layer in graph) == instances
