"""Rules of single operators, each with the nearest inputs that it accepts and that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from designer.files.weights import WeightKey, Weights, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.types import DataType, ShapeError, TensorType
from designer.operators.api import BATCH, image
from designer.operators.code_text import CodeError
from designer.operators.inlining import inline, inlined_source
from designer.operators.library.development.custom import Custom, declared
from designer.operators.library.development.opaque import attributes_of
from designer.operators.library.input_output.tensor_constant import numbers_of
from designer.operators.registry import load
from designer.operators.torch_program import build_program

REGISTRY = load(entry_points=False)
HEADS = tuple(TensorType((BATCH, 2, length, 4)) for length in (5, 6, 6))  # query, key and value


def typed(*shape: Any, dtype: DataType = DataType.FLOAT32) -> TensorType:
    return TensorType(shape, dtype)


REFUSED: list[tuple[str, dict[str, Any], tuple[TensorType, ...], str]] = [
    ("expand_batch", {}, (typed(2, 5), typed(2, 7)), "the batch of 2 x 5 must be 1"),
    ("expand_batch", {}, (typed(BATCH, 5), typed(BATCH, 7)), "the batch of N x 5 must be 1"),
    ("scaled_dot_product_attention", {"causal": True}, (*HEADS, typed(5, 6)), "causal cannot be combined with a mask"),
    ("scaled_dot_product_attention", {}, (*(h.with_shape(BATCH, 1, *h.shape[2:]) for h in HEADS), typed(BATCH, 3, 5, 6)), "does not fit scores of N x 1 x 5 x 6"),
    ("scaled_dot_product_attention", {}, (*HEADS, typed(6, 5)), "cannot be broadcast"),
    ("element_wise", {"operation": "divide"}, (image().with_dtype(DataType.INT64),) * 2, "needs floating-point numbers"),
    *(
        ("element_wise", {"operation": name}, (image().with_dtype(DataType.INT16),) * count, f"{name} does not exist for int16")
        for name in ("minimum", "maximum")
        for count in (2, 3)
    ),
    ("unary", {"function": "clip", "low": 2.0, "high": 1.0}, (image(),), "lower bound 2 must not exceed"),
    ("local_contrast_normalization", {"size": 4}, (image(),), "the size must be odd, not 4"),
    ("ssim_loss", {"window": 6}, (image(), image()), "the window must be odd, not 6"),
    ("ssim_loss", {"window": 9}, (image(3, 9, 8), image(3, 9, 8)), "9"),
    ("pad_tensor", {"before": (0, 0, -3, 0), "after": (0, 0, -2, 0)}, (image(3, 5, 9),), "nothing is left of axis 2"),
    ("pad_tensor", {"before": (0, 0, -5, 0), "after": (0, 0, 2, 0)}, (image(3, 5, 9),), "nothing is left of axis 2"),
    ("pad_tensor", {"before": (0, 0), "after": (0, 0)}, (image(3, 5, 9),), "2 amounts do not fit"),
    ("bilinear", {}, (typed(BATCH, 3), typed(BATCH, BATCH)), "dimension 1 of N x N must be a known number"),
    ("bilinear", {}, (typed(BATCH, BATCH), typed(BATCH, 3)), "dimension 1 of N x N must be a known number"),
    ("parameter", {"shape": ()}, (), "a parameter must have a shape"),
    *(
        ("compare", {"value": 1.0}, (typed(2, 3, dtype=dtype),), "integers are compared with another tensor, not with a number")
        for dtype in (DataType.INT64, DataType.INT32, DataType.INT16, DataType.INT8, DataType.UINT8)
    ),
    *(
        ("scatter", {"axis": axis}, (typed(3, 4, 5), typed(*shape, dtype=DataType.INT64), typed(*shape)), "must have the same shape, within 3 x 4 x 5")
        for axis, shape in ((-1, (3, 5, 5)), (2, (4, 4, 5)), (-2, (3, 4, 6)), (0, (3, 5, 5)), (1, (3, 4)))
    ),
    *(
        (kind, {"border": border, **params}, (image(3, *sides),), f"{border} padding of {pad} requires an input {side} of at least {least}, not {1 if pad == 1 else 2}")
        for kind, params, border, pad, least, size in (
            ("image_gradient", {}, "reflect", 1, 2, 1),
            ("gaussian_blur", {"size": 5}, "reflect", 2, 3, 2),
            ("gaussian_blur", {"size": 7}, "circular", 3, 3, 2),
        )
        for side, sides in (("height", (size, 9)), ("width", (9, size)))
    ),
    *(
        ("expand", {"shape": shape}, (x, like), "only a first dimension of 1 can be expanded to the batch of")
        for shape, x, like in (
            ((-1, 2, -1), typed(1, 1, 4), typed()), ((-1, 2, -1), typed(3, 1, 4), image()), ((), typed(), image()),
            ((5, 2, -1), typed(1, 1, 4), image()),
        )
    ),
    ("concatenation", {}, (typed(2, 3, dtype=DataType.INT64), typed(2, 3, dtype=DataType.INT32)), "input 2 is int32 but the first input is int64"),
    ("concatenation", {}, (typed(2, 3), typed(2, 3, dtype=DataType.FLOAT64)), "input 2 is float64 but the first input is float32"),
    ("concatenation", {}, (image(), image(), image().with_dtype(DataType.INT64)), "input 3 is int64 but the first input is float32"),
    ("pooling", {"size": (3, 2), "padding": (2, 0)}, (image(),), "padding 2x0 is more than half the window 3x2"),
    ("pooling", {"size": (2, 3), "padding": (0, 2)}, (image(),), "padding 0x2 is more than half the window 2x3"),
    *(
        ("dynamic_convolution", {"transposed": True, "stride": (2, 1), "dilation": (1, 3), "output_padding": extra},
         (typed(2, 4, 5, 6), typed(4, 3, 3, 2)), "output padding must be less than the stride or the dilation")
        for extra in ((2, 0), (0, 3))
    ),
    *(
        (kind, {"axis": axis}, (typed(2, 3, 4),) * count, f"a new axis {axis} cannot be inserted into 2 x 3 x 4 (rank 3)")
        for kind, count in (("unsqueeze", 1), ("stack", 2))
        for axis in (-5, 4)
    ),
    *(
        ("selector", {"axis": 1, "indices": (0, index)}, (typed(2, 3, 4),), f"index {index} is out of range for axis 1 of size 3")
        for index in (-4, 3)
    ),
    ("selector", {"axis": 1, "indices": ()}, (typed(2, 3, 4),), "no index is selected"),
    ("identity", {}, (typed(2**19, 2**19 + 1),), "the output 524288 x 524289 is too large"),
]  # fmt: skip
ACCEPTED: list[tuple[str, dict[str, Any], tuple[TensorType, ...], TensorType | None]] = [
    ("expand_batch", {}, (typed(1, 5), typed(2, 7)), typed(2, 5)),
    ("expand_batch", {}, (typed(1, 5), typed(BATCH, 7)), typed(BATCH, 5)),
    ("scaled_dot_product_attention", {"causal": True}, HEADS, typed(BATCH, 2, 5, 4)),
    ("scaled_dot_product_attention", {}, (*HEADS, typed(5, 6)), typed(BATCH, 2, 5, 4)),
    ("element_wise", {"operation": "add"}, (image().with_dtype(DataType.INT64),) * 2, None),
    ("element_wise", {"operation": "add"}, (image().with_dtype(DataType.INT16),) * 2, None),
    ("element_wise", {"operation": "maximum"}, (image().with_dtype(DataType.INT32),) * 2, None),
    ("unary", {"function": "clip", "low": 1.0, "high": 1.0}, (image(),), image()),
    ("unary", {"function": "abs", "low": 2.0, "high": 1.0}, (image(),), image()),
    ("ssim_loss", {"window": 9}, (image(3, 9, 10), image(3, 9, 10)), None),
    ("resize", {"method": "nearest", "antialias": True, "align_corners": True}, (image(),), None),
    ("pad_tensor", {"before": (0, 0, -3, 0), "after": (0, 0, -1, 2)}, (image(3, 5, 9),), image(3, 1, 11)),
    ("pooling", {"size": (3, 2), "padding": (1, 1)}, (image(),), None),
    *(  # along the axis there may be more indices than values
        (
            "scatter",
            {"axis": axis},
            (typed(3, 4, 5), typed(*shape, dtype=DataType.INT64), typed(*shape)),
            typed(3, 4, 5),
        )
        for axis, shape in (
            (-1, (3, 4, 9)),
            (2, (3, 4, 9)),
            (-2, (3, 9, 5)),
            (1, (2, 9, 1)),
            (-3, (9, 4, 5)),
            (0, (9, 1, 1)),
        )
    ),
    *(
        (kind, {"border": border, **params}, (image(3, *sides),), image(3, *sides))
        for kind, params, border, size in (
            ("image_gradient", {}, "reflect", 2),
            ("image_gradient", {}, "circular", 1),
            ("image_gradient", {}, "zeros", 1),
            ("gaussian_blur", {"size": 5}, "reflect", 3),
            ("gaussian_blur", {"size": 7}, "circular", 3),
            ("gaussian_blur", {"size": 9}, "replicate", 1),
        )
        for sides in ((size, 9), (9, size))
    ),
    (
        "dynamic_convolution",
        {"transposed": True, "stride": (2, 1), "dilation": (1, 3), "output_padding": (1, 2)},
        (typed(2, 4, 5, 6), typed(4, 3, 3, 2)),
        typed(2, 3, 12, 11),
    ),
    ("unsqueeze", {"axis": -4}, (typed(2, 3, 4),), typed(1, 2, 3, 4)),
    ("unsqueeze", {"axis": 3}, (typed(2, 3, 4),), typed(2, 3, 4, 1)),
    ("unsqueeze", {"axis": -1}, (typed(2, 3, 4),), typed(2, 3, 4, 1)),
    ("stack", {"axis": -4}, (typed(2, 3, 4),) * 5, typed(5, 2, 3, 4)),
    ("stack", {"axis": 3}, (typed(2, 3, 4),) * 5, typed(2, 3, 4, 5)),
    ("selector", {"axis": 1, "indices": (-3, 2)}, (typed(2, 3, 4),), typed(2, 2, 4)),
    ("identity", {}, (typed(2**19, 2**19),), typed(2**19, 2**19)),
]


def operator(name: str, params: dict[str, Any]) -> Any:
    cls = REGISTRY.operators[name]
    sizes = {
        key: type(getattr(cls(), key))(*value)
        for key, value in params.items()
        if key in ("size", "padding") and isinstance(value, tuple)
    }
    return cls(**{**params, **sizes})


@pytest.mark.parametrize(("name", "params", "inputs", "message"), REFUSED)
def test_what_is_refused(name: str, params: dict[str, Any], inputs: tuple[TensorType, ...], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        operator(name, params).infer_checked(inputs)
    assert message in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(("name", "params", "inputs", "expected"), ACCEPTED)
def test_what_is_just_accepted(
    name: str, params: dict[str, Any], inputs: tuple[TensorType, ...], expected: TensorType | None
) -> None:
    found = operator(name, params).infer_checked(inputs)
    assert expected is None or found[0] == expected


NUMBERS = [
    ({"shape": (2, 3), "numbers": "1,2,3,4,5"}, "5 values do not fill the shape 2 x 3"),
    ({"shape": (2, 3), "numbers": "1,2,3,4,5,6,7"}, "7 values do not fill the shape 2 x 3"),
    ({"shape": (2, 3), "numbers": "1,2,3,4,5,6"}, None),
    ({"shape": (2, 3), "numbers": "7"}, None),
    ({"shape": (), "numbers": "1,2"}, "2 values do not fill the shape scalar"),
    ({"shape": (), "numbers": "1"}, None),
    *(
        ({"dtype": dtype, "numbers": str(number + beyond)}, f"not numbers of the type {dtype}" if beyond else None)
        for dtype, low, high in (
            ("int8", -128, 127), ("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1), ("uint16", 0, 2**16 - 1),
            ("int32", -(2**31), 2**31 - 1), ("int64", -(2**63), 2**63 - 1), ("uint64", 0, 2**64 - 1),
        )
        for number, beyond in ((low, 0), (high, 0), (low, -1), (high, 1))
    ),
    ({"dtype": "int64", "numbers": "1.5"}, "not numbers of the type int64"),
    ({"dtype": "bool", "numbers": "true"}, "not numbers of the type bool"),
    ({"dtype": "bool", "numbers": "2"}, None),
    ({"dtype": "float16", "numbers": "-1e3"}, None),
    ({"numbers": ""}, "not numbers of the type float32"),
    ({"numbers": "1,,2"}, "not numbers of the type float32"),
    ({"source": "weights", "numbers": "x"}, None),
    ({"source": "weights", "dtype": "float16"}, "weights are float32, not float16"),
    ({"source": "weights", "dtype": "int64"}, "weights are float32, not int64"),
]  # fmt: skip


@pytest.mark.parametrize(("params", "message"), NUMBERS)
def test_the_numbers_of_a_constant_tensor(params: dict[str, Any], message: str | None) -> None:
    faults = list(operator("tensor_constant", params).faults())
    assert len(faults) == (message is not None)
    for fault in faults:
        assert message is not None
        assert message in fault.message
        assert fault.parameter == ("dtype" if params.get("source") == "weights" else "numbers")
        assert "enter" in fault.remedy


def test_the_inputs_of_a_ctc_loss_have_one_batch() -> None:
    ctc = operator("ctc_loss", {})
    x, target = typed(BATCH, 12, 5), typed(BATCH, 12, dtype=DataType.INT64)
    lengths = typed(BATCH, dtype=DataType.INT64)
    ctc.infer_checked((x, target, lengths, lengths))
    with pytest.raises(ShapeError, match="a target of 13 symbols requires at least as many steps, not 12"):
        ctc.infer_checked((x, target.with_shape(BATCH, 13)))
    with pytest.raises(ShapeError, match=r"symbols is 3 int64 but must have the batch size of x") as caught:
        ctc.infer_checked((x, target, lengths, lengths.with_shape(3)))
    assert caught.value.port == "symbols"
    operator("ctc_loss", {"blank": 4}).infer_checked((x, target))
    with pytest.raises(ShapeError, match="the blank 5 is not one of the 5 classes"):
        operator("ctc_loss", {"blank": 5}).infer_checked((x, target))


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("bij,bjk->bik", None),
        ("ij->", None),
        ("ij->ii", "must be different"),
        ("ij->ik", "occur in the inputs"),
        ("ij,jk", "is not an equation"),
        ("->i", None),
    ],
)
def test_equations(equation: str, message: str | None) -> None:
    found = [fault.message for fault in operator("einsum", {"equation": equation}).faults()]
    if message is not None:
        assert any(message in text for text in found)
    elif equation != "->i":
        assert found == []


def test_every_faulty_parameter_of_a_custom_layer_is_reported() -> None:
    fine = "class Gain(nn.Module):\n    def forward(self, x):\n        return x\n"
    wrong = Custom(source="class (", class_name="Gain", arguments="f(", tensors="a 3y")
    assert [fault.parameter for fault in wrong.faults()] == ["source", "arguments", "tensors"]
    assert [f.parameter for f in Custom(source=fine, class_name="Gain", tensors="a 3y").faults()] == ["tensors"]
    assert list(Custom(source=fine, class_name="Gain").faults()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 3\n\na 4", "line 3 of the tensors repeats 'a'"),
        ("a 3 learned", "line 1 of the tensors: 'learned' is not valid"),
        ("a 3 buffer x", "line 1 of the tensors: 'buffer x' is not valid"),
        ("a 3x0", "line 1 of the tensors: '3x0' is not a shape"),
        ("a 3x", "line 1 of the tensors: '3x' is not a shape"),
        ("a-b 3", "line 1 of the tensors: 'a-b' is not a valid name"),
    ],
)
def test_declared_tensors_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(CodeError, match=message):
        declared(text)


def test_declared_tensors() -> None:
    found = declared("conv.weight 8x3x5x7\nconv.bias 8\nnorm.running_mean 8 buffer\nnorm.weight 8\n0.scalar\n")
    assert [(w.name, w.shape, w.init, w.fan_in, w.trainable) for w in found] == [
        ("conv.weight", (8, 3, 5, 7), "kaiming", 105, True),
        ("conv.bias", (8,), "zeros", 1, True),
        ("norm.running_mean", (8,), "zeros", 1, False),
        ("norm.weight", (8,), "ones", 1, True),
        ("0.scalar", (), "ones", 1, True),
    ]


@pytest.mark.parametrize(
    ("scale", "size", "scaled"),
    [
        (0.1, 10, 1),
        (0.3, 10, 3),
        (0.29, 100, 29),
        (0.3, 9, 2),
        (1.1, 10, 11),
        (0.5, 7, 3),
        (2.3, 100, 230),
        (1e-3, 1000, 1),
    ],
)
def test_a_custom_layer_scales_by_the_decimal_number(scale: float, size: int, scaled: int) -> None:
    layer = Custom(result="scaled", scale=scale, channels=2)
    assert layer.infer_checked((image(3, size, 2 * size),))[0].shape[:3] == (BATCH, 2, scaled)
    assert Custom(result="scaled", scale=scale).infer_checked((image(3, 5, size),))[0].shape[1:4:2] == (3, scaled)


def test_attributes_of_an_opaque_node() -> None:
    assert attributes_of("axis = -1\n\npads=[1, 2]\nmode='edge'\nscale=0.5\nnames=['a', 'b']") == {
        "axis": -1,
        "pads": (1, 2),
        "mode": "edge",
        "scale": 0.5,
        "names": ("a", "b"),
    }
    for text, message in (
        ("a=1\na=2", "line 2 of the attributes repeats 'a'"),
        ("a=[1, 'x']", "line 1 of the attributes: the value of 'a' is not a number or a text"),
        ("a=None", "line 1 of the attributes: the value of 'a' is not a number or a text"),
        ("a=True", "line 1 of the attributes: the value of 'a' is not a number or a text"),
        ("b=1\na=[1, False]", "line 2 of the attributes: the value of 'a' is not a number or a text"),
        ("\na", "line 2 of the attributes is not name=value"),
        ("2a=1", "line 1 of the attributes is not name=value"),
    ):
        with pytest.raises(CodeError, match=message):
            attributes_of(text)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int8", -128, 127), ("uint8", 0, 255), ("int16", -(2**15), 2**15 - 1), ("int64", -(2**63), 2**63 - 1)],
)
def test_the_ends_of_integer_types(dtype: str, low: int, high: int) -> None:
    assert numbers_of(f"{low},{high}", dtype) == (low, high)
    for number in (low - 1, high + 1):
        with pytest.raises(OverflowError):
            numbers_of(str(number), dtype)
    assert numbers_of("0,2,-1", "bool") == (False, True, True)


def offset_twice() -> Graph:
    """`x + p + p`: two instances that share the learned tensor p."""
    part = Template(
        "part",
        (
            Layer("x", "template_input", params={"index": "0"}),
            Layer("p", "parameter", params={"shape": "1,3,1,1"}),
            Layer("sum", "element_wise", inputs=(Source("x"), Source("p")), params={"operation": "add"}),
            Layer("y", "template_output", inputs=(Source("sum"),), params={"index": "0"}),
        ),
    )
    shared = {"template": "part", "shared_weights": "true"}
    return Graph(
        [
            Layer("in", "input", params={"dims": "5x4x3", "tiling": "0"}),
            Layer("a", "template", inputs=(Source("in"),), params=shared),
            Layer("b", "template", inputs=(Source("a"),), params=shared),
            Layer("out", "output", inputs=(Source("b"),)),
        ],
        templates=[part],
    )


def test_a_learned_tensor_that_instances_share_is_one_attribute() -> None:
    from designer.runtime.api import RunOptions
    from designer.runtime.session import Session

    graph = offset_twice()
    flat = Inference(inline(graph, REGISTRY), REGISTRY)
    order = [name for name in flat.graph.order()[0] if name != "in"]
    program = build_program(flat, order, [Source("in")], [Source("out")])
    assert [attribute.layer for attribute in program.attributes] == ["a.p"]
    assert len(program.weights) == 1
    needed = required_weights(Inference(graph, REGISTRY))
    assert list(needed) == [WeightKey("part.p", "value")]
    value = np.array([1.0, 2.0, -4.0], np.float32).reshape(1, 3, 1, 1)
    weights = Weights({WeightKey("part.p", "value"): value})
    x = np.zeros((1, 3, 4, 5), np.float32)
    for engine in ("torch", "onnxruntime"):
        session = Session(graph, REGISTRY, weights, RunOptions(engine, threads=1))
        session.set_input("in", x, is_image=False)
        np.testing.assert_array_equal(session.run().outputs["out"], x + 2 * value)


def test_sources_of_instances_whose_template_is_missing_are_kept() -> None:
    graph = offset_twice()
    assert inlined_source(graph, Source("a", "y")) == Source("a")
    assert inlined_source(graph, Source("a", "none")) == Source("a", "none")
    assert inlined_source(graph, Source("in", "y")) == Source("in", "y")
    assert inlined_source(graph, Source("gone", "y")) == Source("gone", "y")
    lost = Graph([Layer("a", "template", params={"template": "none"})])
    assert inlined_source(lost, Source("a", "y")) == Source("a", "y")


def test_another_type_keeps_the_parameters_that_it_accepts() -> None:
    from designer.operators.fixes import fixes

    params = {"features": "many", "kernel": "5x3", "strange": "1"}
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "9x7x3"}),
            Layer("c", "conv2d", inputs=(Source("in"),), params=params),
            Layer("out", "output", inputs=(Source("c"),)),
        ]
    )
    inference = Inference(graph, REGISTRY)
    finding = next(d for d in inference.diagnostics() if d.code == "unknown-operator")
    fix = next(f for f in fixes(graph, REGISTRY, inference, finding) if f.title == "Change its type to 'convolution'")
    after = fix.edit.layers["c"][1]
    assert after is not None
    assert (after.type, after.params["kernel"], after.params["features"]) == ("convolution", "5x3", "32")
    assert "strange" not in after.params
