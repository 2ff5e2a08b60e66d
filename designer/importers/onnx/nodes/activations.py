"""Activations and other functions of single values."""

from __future__ import annotations

from collections.abc import Mapping

from designer.graph.model import Source
from designer.graph.types import DataType
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.nodes.table import PATTERNS, converts
from designer.operators.params import Value

_PLAIN: dict[str, tuple[str, dict[str, Value]]] = {
    "Relu": ("relu", {}),
    "Selu": ("selu", {}),
    "Sigmoid": ("sigmoid", {}),
    "HardSwish": ("hard_swish", {}),
    "Mish": ("mish", {}),
    "Softplus": ("softplus", {}),
    "Softsign": ("softsign", {}),
    "Tanh": ("tanh", {}),
}
_UNARY = {
    **{
        name: name.lower()
        for name in ("Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Sign", "Floor", "Round", "Ceil")
    },
    **{name: name.lower() for name in ("Erf", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan")},
    **{name: name.lower() for name in ("Sinh", "Cosh", "Asinh", "Atanh")},
}


def activate(c: Conversion, op: OnnxOp, type: str, params: Mapping[str, Value] | None = None) -> None:
    """The node as a layer that is only an activation."""
    c.one("activation", [op.inputs[0]], activation=(type, params or {}))


@converts(*_PLAIN)
def plain(c: Conversion, op: OnnxOp) -> None:
    activate(c, op, *_PLAIN[op.op_type])


@converts(*_UNARY)
def unary(c: Conversion, op: OnnxOp) -> None:
    c.one("unary", [op.inputs[0]], {"function": _UNARY[op.op_type]})


@converts("LeakyRelu")
def leaky_relu(c: Conversion, op: OnnxOp) -> None:
    activate(c, op, "leaky_relu", {"negative_slope": rounded(op.attribute("alpha", 0.01))})


@converts("Elu", "Celu")
def elu(c: Conversion, op: OnnxOp) -> None:
    activate(c, op, op.op_type.lower(), {"alpha": rounded(op.attribute("alpha", 1.0))})


@converts("Gelu")
def gelu(c: Conversion, op: OnnxOp) -> None:
    activate(c, op, "gelu", {"approximate": op.attribute("approximate", "none")})


@converts("Gelu", "FastGelu", domain="com.microsoft")
def microsoft_gelu(c: Conversion, op: OnnxOp) -> None:
    if len(op.inputs) > 1 and op.inputs[1]:
        raise UnsupportedError("it adds a bias")
    activate(c, op, "gelu", {"approximate": "tanh" if op.op_type == "FastGelu" else "none"})


@converts("Gelu", domain=PATTERNS)
def gelu_pattern(c: Conversion, op: OnnxOp) -> None:
    activate(c, op, "gelu", {"approximate": op.attribute("approximate", "none")})


@converts("Silu", domain=PATTERNS)
def silu_pattern(c: Conversion, op: OnnxOp) -> None:
    activate(c, op, "silu")


@converts("Swish")
def swish(c: Conversion, op: OnnxOp) -> None:
    if op.attribute("alpha", 1.0) == 1.0:
        activate(c, op, "silu")
        return
    (scaled,) = c.add("scale_shift", [op.inputs[0]], {"scale": rounded(op.attribute("alpha"))})
    (gate,) = c.add("activation", [scaled], activation=("sigmoid", {}))
    c.one("element_wise", [op.inputs[0], gate], {"operation": "multiply"})


@converts("HardSigmoid")
def hard_sigmoid(c: Conversion, op: OnnxOp) -> None:
    alpha, beta = op.attribute("alpha", 0.2), op.attribute("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-7 and beta == 0.5:
        activate(c, op, "hard_sigmoid")
        return
    (line,) = c.add("scale_shift", [op.inputs[0]], {"scale": rounded(alpha), "shift": rounded(beta)})
    c.one("unary", [line], {"function": "clip", "low": 0.0, "high": 1.0})


@converts("ThresholdedRelu")
def thresholded_relu(c: Conversion, op: OnnxOp) -> None:
    activate(c, op, "threshold", {"threshold": rounded(op.attribute("alpha", 1.0)), "value": 0.0})


@converts("Shrink")
def shrink(c: Conversion, op: OnnxOp) -> None:
    amount, bias = op.attribute("lambd", 0.5), op.attribute("bias", 0.0)
    if amount != bias or amount < 0:
        raise UnsupportedError("its bias is not its threshold, as in torch.nn.Softshrink")
    activate(c, op, "softshrink", {"amount": rounded(amount)})


@converts("PRelu")
def prelu(c: Conversion, op: OnnxOp) -> None:
    if not c.is_constant(op.inputs[1]):
        _prelu_of(c, op)
        return
    slope = c.weight(op.inputs[1])
    kind = c.type_of(op.inputs[0])
    channels = kind.shape[1] if kind.rank > 1 else 1
    shape = slope.array.shape
    single = slope.array.size == 1
    if not single and not (kind.rank > 1 and shape == (channels, *(1,) * (kind.rank - 2))):
        _prelu_of(c, op)
        return
    c.one(
        "activation",
        [op.inputs[0]],
        activation=("prelu", {"per_channel": not single}),
        weights={"activation_slope": slope.as_array(slope.array.reshape(-1))},
    )


def _prelu_of(c: Conversion, op: OnnxOp) -> None:
    """A slope for each value: max(x, 0) + slope * min(x, 0)."""
    (positive,) = c.add("activation", [op.inputs[0]], activation=("relu", {}))
    (turned,) = c.add("unary", [op.inputs[0]], {"function": "neg"})
    (negative,) = c.add("activation", [turned], activation=("relu", {}))  # -min(x, 0), also where x is infinite
    (scaled,) = c.add("element_wise", [negative, op.inputs[1]], {"operation": "multiply"})
    c.one("element_wise", [positive, scaled], {"operation": "subtract"})


@converts("Softmax", "LogSoftmax")
def softmax(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    axis = op.attribute("axis", -1 if op.opset >= 13 else 1) % max(kind.rank, 1)
    type = "softmax" if op.op_type == "Softmax" else "log_softmax"
    if op.opset < 13 and any(size != 1 for size in kind.shape[axis + 1 :]):
        raise UnsupportedError("opsets before 13 normalize over several axes")
    activate(c, op, type, {"axis": axis - kind.rank})


@converts("Clip")
def clip(c: Conversion, op: OnnxOp) -> None:
    if op.opset < 11:
        low, high = op.attribute("min"), op.attribute("max")
    else:
        given = [name for name in op.inputs[1:3] if name]
        if not all(map(c.is_constant, given)) or c.type_of(op.inputs[0]).dtype is not DataType.FLOAT32:
            _clip_by(c, op)
            return
        low, high = (c.scalar(op.input(index)) if op.input(index) else None for index in (1, 2))
    if low == 0 and high == 6:
        activate(c, op, "relu6")
    elif low is not None and high is not None:
        c.one("unary", [op.inputs[0]], {"function": "clip", "low": rounded(low), "high": rounded(high)})
    elif low == 0:
        activate(c, op, "relu")
    elif low is None and high is None:
        c.one("identity", [op.inputs[0]])
    else:
        bound = low if low is not None else high
        params: dict[str, Value] = {"shape": (), "numbers": repr(rounded(bound))}
        (other,) = c.add("tensor_constant", [], params)
        c.one("element_wise", [op.inputs[0], other], {"operation": "maximum" if low is not None else "minimum"})


def _clip_by(c: Conversion, op: OnnxOp) -> None:
    """Bounds that the network computes, or of integers."""
    made: str | Source = op.inputs[0]
    for index, operation in ((1, "maximum"), (2, "minimum")):
        if op.input(index):
            (made,) = c.add("element_wise", [made, op.input(index)], {"operation": operation})
    c.finish(made if isinstance(made, Source) else c.add("identity", [made])[0])


@converts("Identity")
def identity(c: Conversion, op: OnnxOp) -> None:
    c.one("identity", [op.inputs[0]])


@converts("Dropout")
def dropout(c: Conversion, op: OnnxOp) -> None:
    if len(op.outputs) > 1:
        raise UnsupportedError("its mask is used")
    if op.opset >= 12 and op.input(2) and c.scalar(op.input(2)):
        raise UnsupportedError("it drops values at random (training mode)")
    ratio = op.attribute("ratio", 0.5) if op.opset < 12 else c.scalar(op.input(1)) if op.input(1) else 0.5
    c.one("dropout", [op.inputs[0]], {"probability": rounded(ratio)})


def rounded(value: float) -> float:
    """A float32 number as the shortest decimal that reads back equal."""
    import numpy as np

    return float(str(np.float32(value)))
