"""What people read when something does not fit: the rule, the figures, the port."""

from __future__ import annotations

from typing import Any

import pytest
from operator_oracles import COMPUTE, REGISTRY, Case

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import DataType, ShapeError, Size2D, TensorType
from designer.operators.api import BATCH, Port, image
from designer.operators.ports import check_ports
from designer.operators.shapes import axes_of

CASES: list[tuple[str, dict[str, Any], tuple[TensorType, ...], str, str | None]] = [
    ("convolution", {"kernel": Size2D(7, 7), "stride": Size2D(2, 2), "padding": "valid"}, (image(3, 5, 5),),
     "kernel 7x7 with stride 2x2 does not fit an input of 5x5", "x"),
    ("convolution", {"groups": 2}, (image(3),), "3 input channels cannot be divided into 2 groups", "x"),
    ("convolution", {"groups": 3, "features": 4}, (image(3),), "4 features cannot be divided into 3 groups", None),
    ("convolution", {}, (TensorType((3, 4)),), "Convolution needs rank 4 at 'x', not 3 x 4 (rank 2)", "x"),
    ("convolution", {}, (), "Convolution needs its input 'x'", "x"),
    ("convolution", {}, (image(), image()), "Convolution takes 1 input, not 2", None),
    ("convolution", {}, (image().with_dtype(DataType.INT64),), "Convolution needs float32 at 'x', not int64", "x"),
    ("convolution", {"kernel": Size2D(9, 9), "padding_mode": "reflect"}, (image(3, 4, 4),),
     "reflect padding of 4 requires an input height of at least 5, not 4", "x"),
    ("pooling", {"padding": Size2D(2, 0)}, (image(),), "padding 2x0 is more than half the window 2x2", None),
    ("pooling", {"size": Size2D(9, 9)}, (image(3, 5, 4),), "kernel 9x9 with stride 2x2 does not fit an input of 4x5", "x"),
    ("depth_to_space", {}, (image(3),), "3 channels cannot be divided into 4 pixels of a block of 2x2", "x"),
    ("space_to_depth", {}, (image(3, 4, 5),), "an image of 5x4 cannot be divided into blocks of 2x2", "x"),
    ("concatenation", {}, (image(3, 4, 4), image(3, 4, 5)),
     "input 2 is N x 3 x 4 x 5 but must match N x 3 x 4 x 4 except along axis 1", "x"),
    ("element_wise", {}, (image(3), image(2)), "shapes N x 3 x 8 x 8 and N x 2 x 8 x 8 cannot be broadcast: 3 and 2 differ", "b"),
    ("transposed_convolution", {"padding": "valid", "output_padding": Size2D(2, 0)}, (image(),),
     "output padding 2 must be smaller than the stride 2 or the dilation 1", None),
    ("upsample", {"factor": Size2D(256, 256)}, (image(3, 65536, 65536),),
     "the output N x 3 x 16777216 x 16777216 is too large", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params", "inputs", "sentence", "port"), CASES)
def test_sentence_and_port(
    name: str, params: dict[str, Any], inputs: tuple[TensorType, ...], sentence: str, port: str | None
) -> None:
    with pytest.raises(ShapeError) as caught:
        REGISTRY.operators[name](**params).infer_checked(inputs)
    assert caught.value.message == sentence
    assert caught.value.port == port


def test_activation_layer_needs_an_activation() -> None:
    layer = Layer("act", "activation", inputs=(Source("in"),))
    graph = Graph([Layer("in", "input"), layer])
    found = Inference(graph, REGISTRY).diagnostics()
    assert [d.code for d in found] == ["no-activation"]
    assert found[0].layer == "act"
    assert "relu" in found[0].remedy
    graph = Graph(
        [Layer("in", "input"), Layer("act", "activation", inputs=(Source("in"),), activation=ActivationSpec("relu"))]
    )
    assert not Inference(graph, REGISTRY).diagnostics()


def test_parameter_bounds_become_findings() -> None:
    for text, rule in (("0", "below the minimum of 1"), ("many", "not a whole number"), ("70000", "above the maximum")):
        read = REGISTRY.read(Layer("c", "convolution", params={"features": text}))
        assert read.operator is None
        assert rule in read.diagnostics[0].message
        assert read.diagnostics[0].parameter == "features"


@pytest.mark.parametrize(
    ("kind", "params", "tensor", "words"),
    [
        ("convolution", {}, TensorType((3, 4)), "Reshape"),
        ("embedding", {}, image(3), "Convert type"),
        ("reshape", {"shape": (7, -1)}, image(3), "omit the batch"),
        ("permute", {"axes": (0, 0, 1, 2)}, image(3), "once"),
    ],
)
def test_a_broken_rule_says_what_to_do(kind: str, params: dict[str, Any], tensor: TensorType, words: str) -> None:
    with pytest.raises(ShapeError) as caught:
        REGISTRY.operators[kind](**params).infer_checked([tensor])
    assert words in caught.value.remedy


@pytest.mark.parametrize(
    "case", [case for case in COMPUTE if case.subject.type not in ("custom", "opaque")], ids=lambda case: case.name
)
def test_what_is_accepted_with_an_open_dimension_can_be_written(case: Case) -> None:
    """The batch can be any axis after a permutation: what `infer` accepts has source, ONNX nodes and weights."""
    for size in {dim for kind in case.types for dim in kind.shape if isinstance(dim, int)}:
        for number, kind in enumerate(case.types):
            types = list(case.types)
            types[number] = kind.with_shape(*(BATCH if dim == size else dim for dim in kind.shape))
            try:
                outputs = case.operator.infer_checked(types)
            except ShapeError:
                continue
            case.operator.torch(types)
            case.operator.onnx(types)
            case.operator.weights(types)
            case.operator.flops(types, outputs)


def test_inputs_behind_the_ports_are_those_of_the_last_port() -> None:
    ports = (Port("image", rank=4), Port("rows", rank=2, variadic=True))
    image_, row = TensorType((BATCH, 3, 4, 5)), TensorType((BATCH, 7))
    check_ports("It", ports, [image_, row, row, row])
    with pytest.raises(ShapeError, match="It needs rank 2 at 'rows', not N x 3 x 4 x 5"):
        check_ports("It", ports, [image_, row, row, image_])
    with pytest.raises(ShapeError, match="It needs rank 4 at 'image', not N x 7"):
        check_ports("It", ports, [row, row])


def test_layers_that_differ_in_the_parameters_of_their_activation_are_read_apart() -> None:
    read = [
        REGISTRY.read(Layer(name, "identity", activation=ActivationSpec("elu", {"alpha": alpha})))
        for name, alpha in (("a", "0.5"), ("b", "2.0"), ("c", "0.5"))
    ]
    assert [item.activation.values()["alpha"] for item in read if item.activation is not None] == [0.5, 2.0, 0.5]


@pytest.mark.parametrize(
    ("ports", "given", "sentence"),
    [
        ("x", 0, "It needs its input 'x'"),
        ("x", 2, "It takes 1 input, not 2"),
        ("x y?", 0, "It needs its input 'x'"),
        ("x y?", 3, "It takes 2 inputs, not 3"),
        ("x y z?", 1, "It needs its input 'y'"),
        ("x y z?", 5, "It takes 3 inputs, not 5"),
        ("x? y?", 3, "It takes 2 inputs, not 3"),
        ("", 1, "It takes 0 inputs, not 1"),
        ("x y*", 1, "It needs its input 'y'"),
    ],
)
def test_the_number_of_inputs(ports: str, given: int, sentence: str) -> None:
    """Open ports that are optional (`?`) count among those that there are; one of any number is marked `*`."""
    declared = [
        Port(text.rstrip("?*"), optional=text.endswith("?"), variadic=text.endswith("*")) for text in ports.split()
    ]
    with pytest.raises(ShapeError) as caught:
        check_ports("It", declared, [image()] * given)
    assert caught.value.message == sentence
    assert (caught.value.code, caught.value.port) == (
        ("missing-input", sentence.split("'")[1]) if "needs" in sentence else ("shape-mismatch", None)
    )
    check_ports("It", declared, [image()] * len(declared))


def test_an_empty_tensor_is_refused_at_its_port() -> None:
    ports = (Port("a"), Port("b", variadic=True))
    for place, port in enumerate("abb"):
        inputs = [image()] * 3
        inputs[place] = TensorType((BATCH, 3, 0, 8))
        with pytest.raises(ShapeError, match=f"It gets an empty tensor of N x 3 x 0 x 8 at '{port}'") as caught:
            check_ports("It", ports, inputs)
        assert caught.value.port == port


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_border_is_accepted_where_torch_can_pad(mode: str, size: int) -> None:
    torch = pytest.importorskip("torch")
    for pad in range(1, 7):
        try:
            torch.nn.functional.pad(
                torch.zeros(1, 1, size, 9), (0, 0, pad, pad), "constant" if mode == "zeros" else mode
            )
            fits = True
        except RuntimeError:
            fits = False
        layer = REGISTRY.operators["convolution"](kernel=Size2D(1, 2 * pad + 1), padding_mode=mode)
        if fits:
            assert layer.infer_checked((image(1, size, 9),))[0].dim(2) == size
            continue
        with pytest.raises(ShapeError, match=f"{mode} padding of {pad} requires an input height"):
            layer.infer_checked((image(1, size, 9),))


@pytest.mark.parametrize(("height", "fits"), [(8, True), (9, False)])
def test_all_dimensions_of_a_weight_count_for_its_size(height: int, fits: bool) -> None:
    layer = REGISTRY.operators["convolution"](kernel=Size2D(8, height), features=2**16)
    if fits:
        layer.infer_checked((image(2**16),))
        return
    with pytest.raises(ShapeError) as caught:
        layer.infer_checked((image(2**16),))
    assert caught.value.message == "the weight 'kernel' of 65536 x 65536 x 9 x 8 is too large"


@pytest.mark.parametrize(
    ("axes", "found"),
    [
        ((1, 2), (1, 2)), ((2, 1), (1, 2)), ((-1, 1), (1, 3)), ((1, -3), None), ((-3, 1), None), ((-1, 3), None), ((2, 2), None),
    ],
)  # fmt: skip
def test_an_axis_is_the_same_from_both_ends(axes: tuple[int, ...], found: tuple[int, ...] | None) -> None:
    if found is not None:
        assert axes_of(axes, image()) == found
        return
    with pytest.raises(ShapeError, match="an axis occurs twice in"):
        axes_of(axes, image())
