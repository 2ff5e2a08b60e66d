"""Single nodes of ONNX with unequal sizes, other values than the defaults, and values at the borders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx_models import random

Array = NDArray[Any]


@dataclass(frozen=True)
class NodeCase:
    """One node: what it reads from the inputs of the model (`feeds`) and from initializers (`weights`).

    `order` has the names that it reads, empty for those left out; by default all of them. with `open_batch` their first
    size is a symbol. `by_runtime`: the reference implementation of onnx has an error there, or no implementation.
    """

    op: str
    feeds: Mapping[str, Array] = field(default_factory=lambda: {"x": random(2, 3, 4, 5)})
    weights: Mapping[str, Array] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 20
    order: Sequence[str] | None = None
    open_batch: bool = False
    by_runtime: bool = False

    def __str__(self) -> str:
        details = [f"{key}={value}" for key, value in self.attributes.items()]
        shapes = [
            "x".join(map(str, array.shape)) or "scalar" for array in (*self.feeds.values(), *self.weights.values())
        ]
        return "-".join([self.op, *shapes, *details, str(self.opset), *(["open"] if self.open_batch else [])])

    def model(self) -> onnx.ModelProto:
        names = [f"y{number}" for number in range(self.outputs)]
        order = [*self.feeds, *self.weights] if self.order is None else self.order
        node = helper.make_node(self.op, order, names, name="node", **self.attributes)
        entries = []
        for name, array in self.feeds.items():
            shape = ["n", *array.shape[1:]] if self.open_batch else list(array.shape)
            entries.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
        ends = [helper.make_empty_tensor_value_info(name) for name in names]
        constants = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph([node], "one", entries, ends, constants)
        plain = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        return onnx.shape_inference.infer_shapes(plain)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def number(value: float, dtype: Any = np.float32) -> Array:
    return np.array(value, dtype)


def integers(*shape: int, low: int = -5, high: int = 6, dtype: Any = np.int64, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def x(*shape: int, seed: int = 0) -> dict[str, Array]:
    return {"x": random(*shape, seed=seed)}


def positive(*shape: int, seed: int = 0) -> Array:
    return np.abs(random(*shape, seed=seed)) + np.float32(0.25)


def arithmetic() -> Iterator[NodeCase]:
    two = {"a": positive(2, 3, 4), "b": random(4, seed=1)}
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        yield NodeCase(op, two)
    three = {"a": random(2, 3, 4), "b": random(4, seed=1), "c": random(3, 1, seed=2)}
    for op in ("Max", "Min", "Sum", "Mean"):
        yield NodeCase(op, three)
        yield NodeCase(op, x(2, 3))
    small = {
        "a": integers(4, 5, low=0, high=3, dtype=np.int32),
        "b": integers(5, low=0, high=3, dtype=np.int32, seed=1),
    }
    for op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"):
        yield NodeCase(op, small)
    for op in ("And", "Or", "Xor"):
        yield NodeCase(op, {name: array > 0 for name, array in small.items()})
    yield NodeCase("Not", {"a": small["a"] > 0})
    bits = {
        "a": integers(4, 5, low=0, high=200, dtype=np.uint8),
        "b": integers(5, low=0, high=6, dtype=np.uint8, seed=1),
    }
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield NodeCase(op, bits)
    yield NodeCase("BitwiseNot", {"a": bits["a"]})
    for direction in ("LEFT", "RIGHT"):
        yield NodeCase("BitShift", bits, attributes={"direction": direction})
    signed = {"a": ints(-7, 7, -7, 7, -6), "b": ints(3, -3, -3, 3, 4)}
    yield NodeCase("Mod", signed)
    yield NodeCase(
        "Mod",
        {name: array.astype(np.float32) + np.float32(0.5) for name, array in signed.items()},
        attributes={"fmod": 1},
    )
    special = {"x": np.array([1, np.inf, -np.inf, np.nan, 0], np.float32)}
    yield NodeCase("IsNaN", special)
    for positive_, negative in ((1, 1), (1, 0), (0, 1)):
        yield NodeCase("IsInf", special, attributes={"detect_positive": positive_, "detect_negative": negative})
    yield NodeCase("Where", {"c": random(3, 4) > 0, "a": random(2, 3, 4), "b": random(4, seed=1)})
    values = {"x": np.array([-1.75, -0.5, 0, 0.5, 3.75], np.float32)}
    for kind in ("FLOAT", "INT32", "INT64", "BOOL", "INT8", "DOUBLE", "FLOAT16"):
        yield NodeCase("Cast", values, attributes={"to": getattr(TensorProto, kind)})
    yield NodeCase("Cast", {"x": np.abs(values["x"])}, attributes={"to": TensorProto.UINT8})
    yield NodeCase("CastLike", {**values, "like": ints(1)})
    yield NodeCase("CastLike", values, {"like": ints(1)})
    yield from reductions()
    ties = {"x": integers(3, 4, 5, low=0, high=3).astype(np.float32)}
    for op in ("ArgMax", "ArgMin"):
        yield NodeCase(op, ties)
        yield NodeCase(op, ties, attributes={"axis": -1, "keepdims": 0, "select_last_index": 1})
    for axis in (0, -1):
        yield NodeCase("CumSum", x(3, 4), {"axis": number(axis, np.int64)})
    yield NodeCase("CumSum", x(3, 4), {"axis": number(1, np.int64)}, {"exclusive": 1})
    yield NodeCase("CumSum", x(3, 4), {"axis": number(1, np.int64)}, {"reverse": 1})
    yield NodeCase(
        "Einsum", {"a": random(2, 3, 4), "b": random(2, 5, 4, seed=1)}, attributes={"equation": "b i k, b j k -> b j i"}
    )
    yield NodeCase("Hardmax", x(3, 4, 5), attributes={"axis": 1})
    yield NodeCase("Hardmax", x(3, 4))
    yield NodeCase("Hardmax", x(3, 4), opset=11)
    yield NodeCase("Trilu", x(4, 5))
    yield NodeCase("Trilu", x(4, 5), attributes={"upper": 0})
    yield NodeCase("Trilu", x(4, 5), {"k": number(1, np.int64)}, {"upper": 0})
    yield NodeCase("Trilu", x(4, 5), {"k": number(-2, np.int64)})


def reductions() -> Iterator[NodeCase]:
    for op in (
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceProd", "ReduceSumSquare",
        "ReduceLogSum", "ReduceLogSumExp",
    ):  # fmt: skip
        feeds = {"x": positive(2, 3, 4)}
        yield NodeCase(op, feeds, {"axes": ints(-1, 0)}, {"keepdims": 0})
        yield NodeCase(op, feeds, {"axes": ints(1)})
        yield NodeCase(op, feeds, attributes={"keepdims": 0})
        yield NodeCase(op, feeds, attributes={"axes": [2, 1]}, opset=12)
    for op in ("ReduceSum", "ReduceMax", "ReduceL2"):
        yield NodeCase(op, x(2, 3), attributes={"noop_with_empty_axes": 1})
    for op in ("ReduceMean", "ReduceMin", "ReduceProd"):
        yield NodeCase(op, x(2, 3), attributes={"noop_with_empty_axes": 1})
        yield NodeCase(op, x(2, 3), {"axes": ints(0)}, {"noop_with_empty_axes": 1})


def activations() -> Iterator[NodeCase]:
    wide = {"x": np.concatenate([random(2, 3, 5) * np.float32(3), np.zeros((2, 3, 1), np.float32)], 2)}
    for op in (
        "Relu",
        "Selu",
        "Sigmoid",
        "HardSwish",
        "Mish",
        "Softplus",
        "Softsign",
        "Tanh",
        "LeakyRelu",
        "Elu",
        "Celu",
    ):
        yield NodeCase(op, wide)
    for op in ("Abs", "Neg", "Exp", "Reciprocal", "Sign", "Floor", "Round", "Ceil", "Erf", "Sin", "Cos", "Tan", "Atan"):
        yield NodeCase(op, x(3, 4))
    for op in ("Sinh", "Cosh", "Asinh"):
        yield NodeCase(op, x(3, 4))
    for op in ("Log", "Sqrt"):
        yield NodeCase(op, {"x": positive(3, 4)})
    for op in ("Asin", "Acos", "Atanh"):
        yield NodeCase(op, {"x": np.tanh(random(3, 4))})
    halves = {"x": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)}
    yield NodeCase("Round", halves)
    yield NodeCase("LeakyRelu", wide, attributes={"alpha": 0.3})
    yield NodeCase("Elu", wide, attributes={"alpha": 0.3})
    yield NodeCase("Celu", wide, attributes={"alpha": 2.5})
    for approximate in ("none", "tanh"):
        yield NodeCase("Gelu", wide, attributes={"approximate": approximate})
    yield NodeCase("Swish", wide, opset=24)
    yield NodeCase("Swish", wide, attributes={"alpha": 0.3}, opset=24)
    yield NodeCase("HardSigmoid", wide)
    yield NodeCase("HardSigmoid", wide, attributes={"alpha": 1 / 6})
    yield NodeCase("HardSigmoid", wide, attributes={"alpha": 1 / 6, "beta": 0.25})
    yield NodeCase("ThresholdedRelu", wide)
    yield NodeCase("ThresholdedRelu", wide, attributes={"alpha": 0.3})
    yield NodeCase("Shrink", wide, attributes={"lambd": 0.75, "bias": 0.75})
    yield NodeCase("Shrink", wide, attributes={"lambd": 0.75, "bias": 0.25})
    for slope in (random(1), random(3, 1), random(3, 6), random(6), random(1, 1, 6)):
        yield NodeCase("PRelu", wide, {"slope": slope})
    yield NodeCase("PRelu", {**wide, "slope": random(3, 1)})
    for axis in (0, 1, 2):
        yield NodeCase("Hardmax", x(2, 3, 4), attributes={"axis": axis}, opset=11, by_runtime=True)
    yield NodeCase("Hardmax", x(2, 3, 4), opset=11, open_batch=True, by_runtime=True)
    yield NodeCase("PRelu", {"x": np.array([[np.inf, -np.inf, 1, -1]], np.float32), "slope": positive(1, 4)})
    for op in ("Softmax", "LogSoftmax"):
        yield NodeCase(op, x(2, 3, 4))
        yield NodeCase(op, x(2, 3, 4), attributes={"axis": 1})
        yield NodeCase(op, x(2, 3), opset=11)
        yield NodeCase(op, x(2, 3, 4), attributes={"axis": 2}, opset=11)
    for low, high in ((-0.5, 0.75), (0, 6), (0, None), (0.25, None), (None, 0.25), (None, None), (0, 5)):
        bounds = {name: number(value) for name, value in (("low", low), ("high", high)) if value is not None}
        order = ["x", "low" if "low" in bounds else "", *(["high"] if "high" in bounds else [])]
        yield NodeCase("Clip", {"x": wide["x"] * 3}, bounds, order=order)
        attributes = {name: float(value) for name, value in (("min", low), ("max", high)) if value is not None}
        yield NodeCase("Clip", {"x": wide["x"] * 3}, attributes=attributes, opset=10)
    yield NodeCase("Clip", {"x": integers(3, 4)}, {"low": number(-2, np.int64), "high": number(3, np.int64)})
    yield NodeCase("Clip", {"x": random(3, 4), "low": number(-0.5), "high": number(0.25)})
    yield NodeCase("Dropout", x(3, 4), {"ratio": number(0.3)})
    yield NodeCase("Dropout", x(3, 4))
    yield NodeCase("Dropout", x(3, 4), {"ratio": number(0.3), "train": np.array(False)})
    yield NodeCase("Dropout", x(3, 4), attributes={"ratio": 0.3}, opset=10, by_runtime=True)


def pooling() -> Iterator[NodeCase]:
    image = {"x": random(2, 3, 7, 10) - np.float32(2)}
    window = {"kernel_shape": [2, 3]}
    for op in ("MaxPool", "AveragePool"):
        yield NodeCase(op, image, attributes=window)
        yield NodeCase(op, image, attributes={**window, "strides": [1, 2]})
        yield NodeCase(op, image, attributes={**window, "strides": [2, 3], "pads": [1, 0, 1, 0]})
        yield NodeCase(op, image, attributes={**window, "strides": [2, 3], "ceil_mode": 1}, by_runtime=True)
        yield NodeCase(op, {"x": random(2, 3, 11)}, attributes={"kernel_shape": [3], "strides": [2], "pads": [1, 1]})
        yield NodeCase(op, image, attributes={**window, "auto_pad": "VALID", "strides": [3, 2]})
    yield NodeCase("MaxPool", image, attributes={**window, "pads": [0, 1, 1, 2]})
    yield NodeCase("MaxPool", image, attributes={**window, "dilations": [3, 2], "pads": [1, 1, 1, 1]})
    yield NodeCase(
        "MaxPool", {"x": random(2, 3, 11)}, attributes={"kernel_shape": [3], "dilations": [2], "pads": [0, 1]}
    )
    for auto in ("SAME_UPPER", "SAME_LOWER"):
        yield NodeCase("MaxPool", image, attributes={**window, "strides": [2, 3], "auto_pad": auto}, by_runtime=True)
        yield NodeCase(
            "AveragePool",
            image,
            attributes={**window, "strides": [2, 3], "auto_pad": auto, "count_include_pad": 1},
            by_runtime=True,
        )
    for pads in ([1, 0, 1, 0], [0, 1, 1, 2]):
        yield NodeCase("AveragePool", image, attributes={**window, "pads": pads, "count_include_pad": 1})
    for exponent in (1, 2, 3):
        yield NodeCase("LpPool", {"x": positive(2, 3, 7, 10)}, attributes={**window, "p": exponent})
    for shape in ((2, 3, 5), (2, 3, 4, 5), (2, 3, 2, 4, 5)):
        for op in ("GlobalAveragePool", "GlobalMaxPool"):
            yield NodeCase(op, x(*shape), by_runtime=True)
    for exponent in (1, 2):
        for shape in ((2, 3, 5), (2, 3, 4, 5), (2, 3, 2, 4, 5)):
            yield NodeCase("GlobalLpPool", x(*shape), attributes={"p": exponent}, by_runtime=True)


def convolutions() -> Iterator[NodeCase]:
    image, kernel, bias = x(2, 4, 9, 8), random(6, 4, 3, 2, seed=1), random(6, seed=2)
    for more in (
        {}, {"strides": [1, 2]}, {"dilations": [2, 3]}, {"pads": [1, 0, 1, 0]}, {"pads": [0, 1, 2, 3]},
        {"strides": [2, 3], "pads": [1, 1, 0, 2], "dilations": [2, 1]},
    ):  # fmt: skip
        yield NodeCase("Conv", image, {"w": kernel, "b": bias}, more)
        yield NodeCase("Conv", image, {"w": kernel}, more)
        yield NodeCase("Conv", {**image, "w": kernel}, attributes=more)
    for auto in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        yield NodeCase("Conv", image, {"w": kernel}, {"auto_pad": auto, "strides": [2, 3]})
        yield NodeCase("Conv", image, {"w": kernel}, {"auto_pad": auto, "dilations": [2, 3]})
    yield NodeCase("Conv", image, {"w": random(6, 2, 3, 2), "b": bias}, {"group": 2})
    yield NodeCase("Conv", {**image, "w": random(6, 2, 3, 2), "b": bias}, attributes={"group": 2})
    yield NodeCase(
        "Conv", x(2, 4, 9), {"w": random(6, 4, 3), "b": bias}, {"strides": [2], "pads": [1, 2], "dilations": [2]}
    )
    yield NodeCase(
        "Conv",
        x(2, 4, 5, 6, 7),
        {"w": random(6, 4, 1, 2, 3), "b": bias},
        {"strides": [1, 2, 1], "pads": [0, 1, 1, 0, 1, 1]},
    )
    back = random(4, 6, 3, 2, seed=1)
    for more in (
        {}, {"strides": [2, 3]}, {"strides": [2, 3], "pads": [1, 0, 1, 0]}, {"strides": [2, 3], "pads": [0, 1, 1, 0]},
        {"strides": [2, 3], "output_padding": [0, 1]}, {"dilations": [2, 3]}, {"strides": [2, 3], "output_shape": [18, 22]},
        {"strides": [2, 3], "auto_pad": "VALID"}, {"strides": [2, 3], "output_shape": [18, 22], "output_padding": [1, 2]},
    ):  # fmt: skip
        yield NodeCase("ConvTranspose", image, {"w": back, "b": bias}, more, by_runtime="output_shape" in more)
        yield NodeCase("ConvTranspose", image, {"w": back}, more, by_runtime="output_shape" in more)
    yield NodeCase(
        "ConvTranspose", image, {"w": random(4, 3, 3, 2), "b": bias}, {"group": 2, "strides": [1, 2]}, by_runtime=True
    )
    yield NodeCase(
        "ConvTranspose", {**image, "w": random(4, 3, 3, 2)}, attributes={"group": 2, "strides": [1, 2]}, by_runtime=True
    )
    yield NodeCase("ConvTranspose", x(2, 4, 9), {"w": random(4, 6, 3), "b": bias}, {"strides": [2], "pads": [1, 0]})


def products() -> Iterator[NodeCase]:
    for left, right in (
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
        ((4,), (4,)),
    ):
        yield NodeCase("MatMul", {"a": random(*left), "b": random(*right, seed=1)})
        yield NodeCase("MatMul", {"a": random(*left)}, {"b": random(*right, seed=1)})
    a, b, bias = random(3, 4), random(4, 5, seed=1), random(5, seed=2)
    yield NodeCase("Gemm", {"a": a}, {"b": b, "c": bias})
    yield NodeCase("Gemm", {"a": a}, {"b": b})
    yield NodeCase("Gemm", {"a": a}, {"b": b.T.copy(), "c": bias[None]}, {"transB": 1})
    yield NodeCase("Gemm", {"a": a}, {"b": b, "c": bias}, {"alpha": 0.3})
    yield NodeCase("Gemm", {"a": a}, {"b": b, "c": bias[None]}, {"beta": 0.3})
    yield NodeCase("Gemm", {"a": a}, {"b": b, "c": random(3, 1)}, {"alpha": 0.5, "beta": 2.0})
    yield NodeCase("Gemm", {"a": a.T.copy()}, {"b": b.T.copy(), "c": bias}, {"transA": 1, "transB": 1})
    yield NodeCase("Gemm", {"a": a, "b": b, "c": bias})
    yield NodeCase("Gemm", {"a": a, "c": bias}, {"b": b}, order=["a", "b", "c"])
    yield NodeCase("Gemm", {"a": a}, {"b": b, "c": number(0.5)})
    yield NodeCase("Gemm", {"a": random(5, 5)}, {"b": random(5, 5, seed=1), "c": random(5, 1)})


def normalizations() -> Iterator[NodeCase]:
    four = {"scale": random(3), "bias": random(3, seed=1), "mean": random(3, seed=2), "var": positive(3, seed=3)}
    for shape in ((4, 3), (2, 3, 5), (2, 3, 4, 5)):
        yield NodeCase("BatchNormalization", x(*shape), four, {"epsilon": 0.1}, opset=15)
        if len(shape) > 2:
            yield NodeCase("BatchNormalization", {**x(*shape), **four}, attributes={"epsilon": 0.1}, opset=15)
    two = {"scale": random(3), "bias": random(3, seed=1)}
    for shape in ((2, 3, 5), (2, 3, 4, 5)):
        yield NodeCase("InstanceNormalization", x(*shape), two, {"epsilon": 0.1})
        yield NodeCase("InstanceNormalization", {**x(*shape), **two}, attributes={"epsilon": 0.1})
    six = {"scale": random(6), "bias": random(6, seed=1)}
    yield NodeCase("GroupNormalization", x(2, 6, 4, 5), six, {"num_groups": 2, "epsilon": 0.1}, opset=21)
    yield NodeCase(
        "GroupNormalization", {**x(2, 6, 4, 5), **six}, attributes={"num_groups": 3, "epsilon": 0.1}, opset=21
    )
    groups = {"scale": random(2), "bias": random(2, seed=1)}
    yield NodeCase("GroupNormalization", x(2, 6, 4), groups, {"num_groups": 2, "epsilon": 0.1}, opset=18)
    for axis, shape in ((-1, (5,)), (1, (4, 5)), (-2, (4, 5))):
        pair = {"scale": random(*shape), "bias": random(*shape, seed=1)}
        yield NodeCase("LayerNormalization", x(2, 4, 5), pair, {"axis": axis, "epsilon": 0.1})
        yield NodeCase(
            "LayerNormalization", x(2, 4, 5), {"scale": pair["scale"]}, {"axis": axis, "epsilon": 0.1}, outputs=3
        )
        yield NodeCase(
            "RMSNormalization", x(2, 4, 5), {"scale": pair["scale"]}, {"axis": axis, "epsilon": 0.1}, opset=23
        )
    yield NodeCase(
        "LRN", x(2, 6, 4, 5), attributes={"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 2.0}, by_runtime=True
    )
    yield NodeCase("LRN", {"x": random(2, 6, 4, 5) * np.float32(20)}, attributes={"size": 5}, by_runtime=True)
    for exponent in (1, 2):
        yield NodeCase("LpNormalization", x(3, 4, 5), attributes={"p": exponent, "axis": 1}, by_runtime=True)
    yield NodeCase("LpNormalization", x(3, 4, 5))
    yield NodeCase("MeanVarianceNormalization", x(2, 3, 4, 5))
    yield NodeCase("MeanVarianceNormalization", x(2, 3, 4, 5), attributes={"axes": [1, 3]})


def attentions() -> Iterator[NodeCase]:
    def heads(query: int, key: int) -> dict[str, Array]:
        return {"q": random(2, query, 3, 4), "k": random(2, key, 5, 4, seed=1), "v": random(2, key, 5, 6, seed=2)}

    yield NodeCase("Attention", heads(2, 2), opset=23)
    yield NodeCase("Attention", heads(2, 2), attributes={"softcap": 2.0}, opset=23)
    causal = {"is_causal": 1}
    yield NodeCase("Attention", {**heads(2, 2), "mask": random(3, 5, seed=3)}, attributes=causal, opset=23)
    yield NodeCase("Attention", heads(2, 2), attributes={"scale": 0.3}, opset=23)
    yield NodeCase("Attention", heads(2, 2), attributes={"is_causal": 1}, opset=23)
    yield NodeCase("Attention", heads(6, 2), opset=23)
    yield NodeCase("Attention", {**heads(2, 2), "mask": random(3, 5, seed=3)}, opset=23)
    yield NodeCase("Attention", {**heads(2, 2), "mask": np.tri(3, 5, 1) > 0}, opset=23)
    flat = {"q": random(2, 3, 8), "k": random(2, 5, 8, seed=1), "v": random(2, 5, 12, seed=2)}
    yield NodeCase("Attention", flat, attributes={"q_num_heads": 2, "kv_num_heads": 2}, opset=23)
    past = {"pk": random(2, 2, 7, 4, seed=4), "pv": random(2, 2, 7, 6, seed=5)}
    cached = ["q", "k", "v", "", "pk", "pv"]
    yield NodeCase("Attention", {**heads(2, 2), **past}, outputs=3, order=cached, opset=23)
    yield NodeCase("Attention", {**heads(6, 2), **past}, outputs=3, order=cached, opset=23)
    yield NodeCase("Attention", heads(4, 2), attributes={"scale": 0.4}, outputs=3, opset=23)
    shared = {"q": random(2, 3, 24), "k": flat["k"], "v": flat["v"]}
    yield NodeCase("Attention", shared, attributes={"q_num_heads": 6, "kv_num_heads": 2}, opset=23)
    counts = {"q_num_heads": 6, "kv_num_heads": 2, "is_causal": 1, "scale": 0.6}
    yield NodeCase("Attention", shared, attributes=counts, outputs=3, opset=23)
    yield NodeCase("Attention", {**shared, **past}, attributes=counts | {"is_causal": 0}, order=cached, opset=23)


def moves() -> Iterator[NodeCase]:
    cube = x(2, 3, 4)
    for shape, zero in (((4, 6), 0), ((0, -1), 0), ((-1, 4), 0), ((4, 0, -1), 0), ((24,), 0)):
        yield NodeCase("Reshape", cube, {"shape": ints(*shape)}, {"allowzero": zero})
    for shape in ((0, 12), (-1, 12), (0, -1), (1, 2, 6), (0, 2, -1)):
        yield NodeCase("Reshape", {"x": random(1, 3, 4)}, {"shape": ints(*shape)}, open_batch=True)
    yield NodeCase("Transpose", cube)
    yield NodeCase("Transpose", cube, attributes={"perm": [1, 2, 0]})
    yield NodeCase("Squeeze", {"x": random(3, 1, 4, 1)}, opset=13)
    yield NodeCase("Squeeze", {"x": random(3, 1, 4, 1)}, {"axes": ints(-1)})
    yield NodeCase("Squeeze", {"x": random(3, 1, 4, 1)}, attributes={"axes": [1]}, opset=11)
    yield NodeCase("Unsqueeze", cube, {"axes": ints(3, 0)})
    yield NodeCase("Unsqueeze", cube, {"axes": ints(-1, 1)})
    yield NodeCase("Unsqueeze", cube, {"axes": number(1, np.int64)}, by_runtime=True)
    yield NodeCase("Unsqueeze", cube, attributes={"axes": [2, 0]}, opset=11, by_runtime=True)
    yield NodeCase(
        "Concat",
        {"a": random(2, 3, 4), "b": random(2, 3, 1, seed=1), "c": random(2, 3, 2, seed=2)},
        attributes={"axis": -1},
    )
    yield NodeCase("Concat", {"a": random(2, 3), "b": random(4, 3, seed=1)}, attributes={"axis": 0})
    yield NodeCase("Concat", {"a": random(2, 3, 4), "b": random(2, 1, 4)}, attributes={"axis": -2}, open_batch=True)
    yield NodeCase("Concat", {"a": random(2, 3), "b": random(2, 3, seed=1)}, attributes={"axis": -2}, opset=11)
    yield NodeCase("Split", {"x": random(7, 3)}, attributes={"num_outputs": 3}, outputs=3)
    yield NodeCase("Split", x(2, 7), {"sizes": ints(4, 1, 2)}, {"axis": 1}, outputs=3)
    yield NodeCase("Split", x(2, 7), attributes={"axis": -1, "split": [5, 2]}, outputs=2, opset=11)
    yield NodeCase("Split", x(2, 6), attributes={"axis": 1}, outputs=3, opset=11)
    yield NodeCase("Split", x(2, 6), {"sizes": ints(6)}, {"axis": 1})
    for start, target in (
        ((3, 1), (3, 4)),
        ((3, 1), (2, 1, 4)),
        ((3, 4), (1, 4)),
        ((3, 4), (4,)),
        ((1,), (2, 3)),
        ((3, 1), (2, 1, 3, 5)),
        ((3, 4), (1, 1, 3, 1)),
    ):
        yield NodeCase("Expand", x(*start), {"shape": ints(*target)})
    yield NodeCase("Expand", x(3, 1, 1), {"shape": ints(1, 2, 4)}, open_batch=True)
    yield NodeCase("Expand", x(2, 1, 4), {"shape": ints(3, 1)}, open_batch=True)
    for shape, more in (
        ((2, 3, 4), {}),
        ((2, 3, 4), {"start": 1}),
        ((5, 3, 4), {"start": -2, "end": -1}),
        ((4, 3), {"end": 1}),
    ):
        yield NodeCase("Shape", x(*shape), attributes=more)
    yield NodeCase("Size", x(2, 3, 4))
    yield NodeCase("Reshape", x(2, 3, 4), {"shape": ints(2, 3, 4)})
    yield NodeCase("Reshape", x(2, 3, 4), {"shape": ints(0, 0, 0)}, open_batch=True)
    yield NodeCase("Reshape", x(3, 2, 6), {"shape": ints(-1, 12)}, open_batch=True)
    yield NodeCase("Reshape", x(3, 2, 6), {"shape": ints(0, 3, -1, 2)}, open_batch=True)
    for axis in (-1, 0, 1, 2, 3):
        yield NodeCase("Flatten", x(2, 3, 4), attributes={"axis": axis})
    for axis in (1, -3):
        yield NodeCase("Flatten", x(2, 3, 4, 5), attributes={"axis": axis}, open_batch=True)
    yield NodeCase("Transpose", x(2, 3, 4), attributes={"perm": [0, 2, 1]}, open_batch=True)
    yield NodeCase("Squeeze", {"x": random(3, 1, 4, 1)}, {"axes": ints(1, -1)}, open_batch=True)
    yield NodeCase("Unsqueeze", x(2, 3), {"axes": ints(-1, 1)}, open_batch=True)
    yield NodeCase("Split", x(2, 7), {"sizes": ints(4, 1, 2)}, {"axis": 1}, outputs=3, open_batch=True)
    yield NodeCase("Split", x(2, 8), attributes={"axis": 1, "num_outputs": 3}, outputs=3)
    yield NodeCase("Tile", x(2, 3, 4), {"repeats": ints(1, 2, 3)}, open_batch=True)
    yield NodeCase(
        "Pad", x(2, 3, 6, 7), attributes={"pads": [0, 0, 1, 2, 0, 0, 3, 4], "value": 0.5}, opset=9, by_runtime=True
    )
    yield NodeCase(
        "Pad",
        x(2, 3, 4),
        {"pads": ints(2, -1, 1, 0), "axes": ints(-1, 1)},
        order=["x", "pads", "", "axes"],
        by_runtime=True,
        opset=20,
    )
    yield NodeCase("Tile", cube, {"repeats": ints(2, 1, 3)})
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield NodeCase("Pad", x(2, 3, 6, 7), {"pads": ints(0, 0, 1, 2, 0, 0, 3, 4)}, {"mode": mode})
    yield NodeCase("Pad", x(2, 3, 6, 7), {"pads": ints(0, 1, 0, 2, 1, 0, 3, 0), "value": number(0.5)})
    yield NodeCase("Pad", cube, {"pads": ints(1, 0, 2, 0, 3, 0)})
    yield NodeCase("Pad", x(2, 3, 6, 7), {"pads": ints(1, 2, 3, 4), "value": number(0.5), "axes": ints(3, -2)})
    yield NodeCase("Pad", x(2, 3, 6, 7), {"pads": ints(0, 0, -1, 2, 0, 0, 3, -4)}, by_runtime=True)
    for mode in ("DCR", "CRD"):
        yield NodeCase("DepthToSpace", x(2, 18, 2, 4), attributes={"blocksize": 3, "mode": mode})
    yield NodeCase("SpaceToDepth", x(2, 3, 4, 6), attributes={"blocksize": 2})


def selections() -> Iterator[NodeCase]:
    line = x(3, 10)
    yield NodeCase("Slice", line, {"starts": ints(0, 0), "ends": ints(2**63 - 1, 10), "axes": ints(0, 1)})
    yield NodeCase("Slice", line, {"starts": ints(0), "ends": ints(2**31 - 1), "axes": ints(1), "steps": ints(1)})
    yield NodeCase("Slice", line, {"starts": ints(3), "ends": ints(2**63 - 1), "axes": ints(1)}, open_batch=True)
    for start, end, step in (
        (2, 7, 1), (-4, 9, 1), (0, 10**9, 3), (1, -1, 2), (9, 0, -1), (-1, -(10**9), -1), (8, 1, -3), (-2, 2, -2), (0, 10, 1),
        (-(10**9), 4, 1), (7, 10**9, 2), (10**9, -(10**9), -4), (3, -11, -1),
    ):  # fmt: skip
        places = {"starts": ints(start), "ends": ints(end), "axes": ints(-1), "steps": ints(step)}
        yield NodeCase("Slice", line, places)
    yield NodeCase("Slice", line, {"starts": ints(1, 2), "ends": ints(3, 8)})
    yield NodeCase("Slice", line, attributes={"starts": [2, 1], "ends": [8, 3], "axes": [1, 0]}, opset=9)
    cube = x(4, 3, 5)
    for index in (number(2, np.int64), number(-1, np.int64), ints(2, 0, 2), ints(-1, 1), integers(2, 2, low=0, high=3)):
        for axis in (0, 1, -1):
            yield NodeCase("Gather", cube, {"index": index}, {"axis": axis})
    for index in (number(2, np.int64), ints(-3, 0, 2), integers(2, 2, low=-3, high=3, dtype=np.int32)):
        yield NodeCase("Gather", {**cube, "index": index}, attributes={"axis": 1})
    yield NodeCase(
        "Gather", {"index": integers(2, 3, low=0, high=7)}, {"table": random(7, 4)}, order=["table", "index"]
    )
    for dtype in (np.int64, np.int32):
        yield NodeCase(
            "GatherElements", {**cube, "index": integers(4, 2, 5, low=-3, high=3, dtype=dtype)}, attributes={"axis": 1}
        )
        yield NodeCase(
            "GatherElements",
            cube,
            {"index": integers(4, 3, 2, low=0, high=5, dtype=dtype)},
            {"axis": -1},
            by_runtime=True,
        )
    yield NodeCase("TopK", cube, {"k": ints(2)}, outputs=2)
    yield NodeCase("TopK", cube, {"k": ints(3)}, {"axis": 0, "largest": 0}, outputs=2)
    yield NodeCase("TopK", cube, attributes={"k": 2, "axis": 1}, outputs=2, opset=9)
    for axis in (-1, 1, 0):
        yield NodeCase(
            "OneHot",
            {"index": integers(2, 3, low=0, high=4, dtype=np.int32)},
            {"depth": number(4, np.int64), "values": np.array([-0.5, 2.5], np.float32)},
            {"axis": axis},
        )
    where = {"x": random(4, 5), "index": np.array([[3, 0, 1], [0, 2, 2]]), "updates": random(2, 3, seed=1)}
    for axis in (0, 1):
        yield NodeCase("ScatterElements", where, attributes={"axis": axis})
    for reduction in ("add", "mul", "max", "min"):
        yield NodeCase("ScatterElements", where, attributes={"axis": 1, "reduction": reduction})


def resizes() -> Iterator[NodeCase]:
    image, half = x(2, 3, 4, 6), {"coordinate_transformation_mode": "half_pixel"}
    blank = np.zeros(0, np.float32)
    floor = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for attributes in (
        floor,
        {"mode": "linear", **half},
        {"mode": "cubic", **half},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ):
        yield NodeCase("Resize", image, {"roi": blank, "scales": np.array([1, 1, 2, 3], np.float32)}, attributes)
        yield NodeCase("Resize", image, {"sizes": ints(2, 3, 6, 9)}, attributes, order=["x", "", "", "sizes"])
        yield NodeCase(
            "Resize", image, {"scales": np.array([1, 1, 0.5, 1.5], np.float32)}, attributes, order=["x", "", "scales"]
        )
    smooth = {**half, "antialias": 1, "exclude_outside": 1}
    for mode in ({"mode": "linear"}, {"mode": "cubic", "cubic_coeff_a": -0.5}):
        for height, width in ((3, 5), (3, 14), (11, 4)):
            sizes = {"sizes": ints(2, 3, height, width)}
            yield NodeCase("Resize", x(2, 3, 8, 9), sizes, {**mode, **smooth}, order=["x", "", "", "sizes"])
    for mode in ({"mode": "linear"}, {"mode": "cubic"}):  # a larger image is not smoothed
        for height, width in ((11, 14), (16, 18)):
            sizes, attributes = {"sizes": ints(2, 3, height, width)}, {**mode, **half, "antialias": 1}
            yield NodeCase("Resize", x(2, 3, 8, 9), sizes, attributes, order=["x", "", "", "sizes"])
    yield NodeCase("Upsample", image, {"scales": np.array([1, 1, 3, 2], np.float32)}, {"mode": "nearest"}, opset=9)
    yield NodeCase(
        "Resize", x(2, 3, 7, 7), {"scales": np.array([1, 1, 1.5, 1.3], np.float32)}, floor, order=["x", "", "scales"]
    )  # 10 x 9 pixels
    for factors in (
        (1.5, 1.25),
        (0.5, 0.5),
        (1.5, 0.5),
    ):  # of 7 x 8 pixels: factors that are not the ratios of sizes too
        scales = np.array([1, 1, *factors], np.float32)
        yield NodeCase("Resize", x(2, 3, 7, 8), {"scales": scales}, {"mode": "nearest"}, opset=10, by_runtime=True)
    grid = np.random.default_rng(0).uniform(-1.25, 1.25, (2, 3, 5, 2)).astype(np.float32)
    for mode in ("linear", "nearest", "cubic"):
        for border in ("zeros", "border", "reflection"):
            corners = int(border == "border")
            yield NodeCase(
                "GridSample",
                {"x": random(2, 3, 4, 6), "grid": grid},
                attributes={"mode": mode, "padding_mode": border, "align_corners": corners},
                by_runtime=True,
            )
    yield NodeCase("GridSample", {"x": random(2, 3, 4, 6), "grid": grid}, by_runtime=True)


def recurrent() -> Iterator[NodeCase]:
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        outputs = 3 if op == "LSTM" else 2
        for direction in ("forward", "bidirectional"):
            count = 2 if direction == "bidirectional" else 1
            weights = {"w": random(count, gates * 5, 4), "r": random(count, gates * 5, 5, seed=1)}
            attributes = {"hidden_size": 5, "direction": direction, **more}
            yield NodeCase(
                op, x(6, 3, 4), {**weights, "b": random(count, gates * 10, seed=2)}, attributes, outputs=outputs
            )
            zero = {"h": np.zeros((count, 3, 5), np.float32)}
            yield NodeCase(
                op, x(6, 3, 4), {**weights, **zero}, attributes, outputs=outputs, order=["x", "w", "r", "", "", "h"]
            )


def losses() -> Iterator[NodeCase]:
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        for shape in ((5, 4), (2, 4, 3)):
            feeds = {"x": random(*shape), "target": integers(shape[0], *shape[2:], low=0, high=4)}
            for reduction in ("mean", "sum", "none"):
                yield NodeCase(op, feeds, attributes={"reduction": reduction})
                yield NodeCase(op, feeds, {"weight": positive(4)}, {"reduction": reduction})
                yield NodeCase(op, feeds, {"weight": positive(4)}, {"reduction": reduction, "ignore_index": 2})
                yield NodeCase(op, feeds, attributes={"reduction": reduction, "ignore_index": 2})
    feeds = {"x": random(5, 4), "target": integers(5, low=0, high=4, dtype=np.int32)}
    yield NodeCase("SoftmaxCrossEntropyLoss", feeds, outputs=2)


CASES = [
    case
    for group in (
        arithmetic, activations, pooling, convolutions, products, normalizations, attentions, moves, selections, resizes,
        recurrent, losses,
    )
    for case in group()
]  # fmt: skip


def refused() -> Iterator[tuple[NodeCase, str]]:
    """Nodes that the layers of the library cannot express, and why."""
    image = x(2, 3, 7, 10)
    window = {"kernel_shape": [2, 3]}
    yield NodeCase("MaxPool", image, attributes={**window, "storage_order": 1}), "column by column"
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        yield NodeCase(op, x(1, 2, 2, 3, 2, 3), by_runtime=True), "three spatial axes"
    yield (
        NodeCase(
            "Pad", {**x(2, 3, 4), "value": number(0.5)}, {"pads": ints(0, 0, 1, 0, 0, 1)}, order=["x", "pads", "value"]
        ),
        "not a constant number",
    )
    yield NodeCase("ReduceSum", {"x": number(2.5)}), "single number"
    heads = {"q": random(2, 2, 3, 4), "k": random(2, 2, 5, 4, seed=1), "v": random(2, 2, 5, 6, seed=2)}
    past = {"pk": random(2, 2, 7, 4, seed=4), "pv": random(2, 2, 7, 6, seed=5)}
    cached = ["q", "k", "v", "", "pk", "pv"]
    yield (
        NodeCase("Attention", {**heads, **past}, attributes={"is_causal": 1}, outputs=3, order=cached, opset=23),
        "causal and has a cache",
    )
    statistics = {name: positive(3, seed=seed) for seed, name in enumerate(("scale", "bias", "mean", "var"))}
    yield NodeCase("BatchNormalization", image, statistics, {"training_mode": 1}, outputs=3, opset=15), "training mode"
    yield NodeCase("Dropout", image, outputs=2), "mask is used"
    yield NodeCase("Dropout", image, {"ratio": number(0.3), "train": np.array(True)}), "training mode"
    back = {"w": random(3, 2, 2, 3), "b": random(2, seed=2)}
    yield (
        NodeCase("ConvTranspose", image, back, {"output_shape": [12, 12], "strides": [1, 1]}),
        "larger than the filters reach",
    )
    yield (
        NodeCase("Resize", image, {"sizes": ints(14, 20)}, {"axes": [2, 3]}, order=["x", "", "", "sizes"]),
        "chosen axes",
    )
    sizes = {"sizes": ints(2, 3, 14, 20)}
    policy = {"keep_aspect_ratio_policy": "not_larger"}
    yield NodeCase("Resize", image, sizes, policy, order=["x", "", "", "sizes"]), "ratio of the sides"
    yield (
        NodeCase("Resize", image, {"sizes": ints(2, 6, 14, 20)}, order=["x", "", "", "sizes"]),
        "batch or the channels",
    )
    yield (
        NodeCase("Resize", x(3, 7, 10), {"scales": np.array([1, 2, 2], np.float32)}, order=["x", "", "scales"]),
        "not the size of an image",
    )
    yield (
        NodeCase("LSTM", {**x(6, 3, 4), "w": random(1, 20, 4)}, {"r": random(1, 20, 5)}, {"hidden_size": 5}),
        "'w' is not a constant",
    )
    yield NodeCase("MaxPool", image, attributes=window, outputs=2), "positions of its maxima"
    yield NodeCase("AveragePool", image, attributes={**window, "dilations": [2, 1]}), "window is dilated"
    yield NodeCase("AveragePool", image, attributes={**window, "pads": [0, 1, 1, 2]}), "borders are uneven"
    uneven = {**window, "strides": [2, 3], "pads": [0, 1, 1, 2], "ceil_mode": 1}
    yield NodeCase("MaxPool", image, attributes=uneven), "borders are uneven"
    last = {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1}
    yield NodeCase("MaxPool", x(1, 2, 5, 5), attributes=last), "borders are uneven"
    yield NodeCase("MaxPool", x(1, 2, 3, 4, 5), attributes={"kernel_shape": [2, 1, 3]}), "3 spatial axes"
    yield NodeCase("GlobalLpPool", image, attributes={"p": 3}), "neither 1 nor 2"
    yield NodeCase("IsInf", x(3), attributes={"detect_positive": 0, "detect_negative": 0}), "detects nothing"
    floor = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    cubic = {"mode": "cubic", "cubic_coeff_a": -0.5}
    for attributes, scales, opset, why in (
        ({**floor, "nearest_mode": "ceil"}, (1, 1, 2, 2), 20, "other positions"),
        ({"mode": "nearest"}, (1, 1, 2, 2), 20, "other positions"),
        ({"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, (1, 1, 2, 2), 20, "other positions"),
        ({"mode": "cubic", "exclude_outside": 1}, (1, 1, 2, 2), 20, "other positions"),
        (cubic, (1, 1, 2, 2), 20, "cubic coefficient is not -0.75"),
        ({"mode": "linear", "antialias": 1}, (1, 1, 2, 0.5), 20, "repeats the border"),
        ({**cubic, "antialias": 1}, (1, 1, 1, 0.5), 20, "repeats the border"),
        ({"mode": "cubic", "antialias": 1, "exclude_outside": 1}, (1, 1, 1, 0.5), 20, "cubic coefficient is not -0.5"),
        ({"mode": "linear", "antialias": 1, "exclude_outside": 1}, (1, 1, 1.5, 1.2), 20, "other positions"),
        (floor, (1, 2, 2, 2), 20, "height and width only"),
        ({"mode": "linear"}, (1, 1, 0.51, 0.51), 20, "ratios of sizes"),
        (
            {"mode": "linear"},
            (1, 1, 2.05, 1.05),
            20,
            "ratios of sizes",
        ),  # 14 x 10 pixels, at other positions than factors 2 and 1
        (floor, (1, 1, 1.05, 2), 20, "ratios of sizes"),
        ({"mode": "nearest"}, (1, 1, 2, 1.05), 10, "ratios of sizes"),
        ({"mode": "linear"}, (1, 1, 2, 2), 10, "opset 11"),
        ({"mode": "nearest"}, (1, 1, 0.75, 2), 10, "rounded up"),
        ({"mode": "nearest"}, (1, 1, 1, 0.4), 10, "rounded up"),
        ({"mode": "nearest"}, (1, 1, 3 / 7, 0.5), 10, "rounded up"),
        ({"mode": "nearest"}, (1, 1, 1 / 7, 0.6), 10, "rounded up"),
    ):
        order = ["x", "scales"] if opset < 11 else ["x", "", "scales"]
        yield (
            NodeCase("Resize", image, {"scales": np.array(scales, np.float32)}, attributes, opset=opset, order=order),
            why,
        )
    yield NodeCase("Pad", x(2, 3, 4), {"pads": ints(0, 0, 1, 0, 0, 1)}, {"mode": "reflect"}), "mode reflect"
    steps = {"w": random(1, 20, 4), "r": random(1, 20, 5)}
    lstm = {"hidden_size": 5}
    yield NodeCase("DynamicQuantizeLinear", outputs=3), "not an operator"  # parts of its definition are
    yield NodeCase("LSTM", x(6, 3, 4), steps, {**lstm, "direction": "reverse"}), "runs backwards"
    yield NodeCase("LSTM", x(6, 3, 4), steps, {**lstm, "clip": 0.5}), "clips"
    yield NodeCase("LSTM", x(6, 3, 4), steps, {**lstm, "activations": ["Sigmoid", "Relu", "Tanh"]}), "other activations"
    given = ["x", "w", "r", "", "", "h"]
    yield NodeCase("LSTM", x(6, 3, 4), {**steps, "h": random(1, 3, 5)}, lstm, order=given), "initial state"
    yield NodeCase("LSTM", {**x(6, 3, 4), "h": random(1, 3, 5)}, steps, lstm, order=given), "initial state"
    state = {"c": random(1, 3, 5)}
    yield NodeCase("LSTM", x(6, 3, 4), {**steps, **state}, lstm, order=[*given[:5], "", "c"]), "initial state"
    peepholes = {"p": random(1, 15)}
    yield NodeCase("LSTM", x(6, 3, 4), {**steps, **peepholes}, lstm, order=[*given[:5], "", "", "p"]), "peepholes"
    yield NodeCase("LSTM", x(6, 3, 4), steps, {**lstm, "input_forget": 1}), "clips"
    yield NodeCase("LSTM", x(3, 6, 4), steps, {**lstm, "layout": 1}), "the batch first"
    named = {"activations": ["LeakyRelu"], "activation_alpha": [0.5]}
    yield (
        NodeCase("RNN", x(6, 3, 4), {"w": random(1, 5, 4), "r": random(1, 5, 5)}, {**lstm, **named}),
        "other activations",
    )
    lengths = {"lengths": np.array([6, 2, 3], np.int32)}
    yield (
        NodeCase("LSTM", x(6, 3, 4), {**steps, **lengths}, lstm, order=["x", "w", "r", "", "lengths"]),
        "different lengths",
    )
    gru = {"w": random(1, 15, 4), "r": random(1, 15, 5)}
    yield NodeCase("GRU", x(6, 3, 4), gru, lstm), "reset gate"
    index = {"index": integers(2, 3, low=0, high=4)}
    yield NodeCase("OneHot", index, {"depth": number(4, np.int64), "values": ints(0, 1)}), "constant float32"
    yield NodeCase("Reshape", {"x": random(2, 3, 4)}, {"shape": ints(6, 4)}, open_batch=True), "merges the batch"


REFUSED = list(refused())


def kept() -> Iterator[NodeCase]:
    """Nodes that are kept as they are, of opsets in which they mean something else than today, and at borders."""
    image = x(2, 3, 5, 6)
    for op in ("Softmax", "LogSoftmax"):
        yield NodeCase(op, x(2, 3, 4), attributes={"axis": 0}, opset=11, by_runtime=True)
        yield NodeCase(op, x(2, 3, 4), opset=11, by_runtime=True)
    for mode, factor in (("linear", 2.0), ("nearest", 1.7)):
        scales = np.array([1, 1, factor, factor], np.float32)
        yield NodeCase("Upsample", image, {"scales": scales}, {"mode": mode}, opset=9, by_runtime=True)
    scales = np.array([1, 1, 0.5, 2], np.float32)
    yield NodeCase("Resize", image, {"scales": scales}, {"mode": "linear"}, opset=10, by_runtime=True)
    halves = {"x": random(2, 3, 6, 7).astype(np.float16)}
    for bounds in ({"min": -0.5}, {"max": 0.75}, {"min": -0.5, "max": 0.75}):
        yield NodeCase("Clip", halves, attributes=bounds, opset=10)
        yield NodeCase("Clip", {"x": random(3, 4).astype(np.float64)}, attributes=bounds, opset=7)
    for padded in ({"value": 0.5}, {}):
        yield NodeCase("Pad", halves, attributes={"pads": [0, 0, 1, 2, 0, 0, 3, 4], **padded}, opset=10)
    steps = {"w": random(1, 20, 4), "r": random(1, 20, 5), "lengths": np.array([6, 2, 3], np.int32)}
    for opset in (7, 8, 9):
        yield NodeCase(
            "LSTM",
            x(6, 3, 4),
            steps,
            {"hidden_size": 5},
            order=["x", "w", "r", "", "lengths"],
            opset=opset,
            by_runtime=True,
        )
    one_row = {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}
    yield NodeCase("Resize", image, {"sizes": ints(2, 3, 1, 4)}, one_row, order=["x", "", "", "sizes"])


KEPT = list(kept())
