"""Activations and functions of single values."""

from __future__ import annotations

from designer.importers.pytorch.conversion import Conversion, TraceNode, UnsupportedError, Value
from designer.importers.pytorch.nodes.table import converts
from designer.operators.params import Value as Param

_PLAIN = {
    "relu": "relu",
    "relu6": "relu6",
    "selu": "selu",
    "silu": "silu",
    "mish": "mish",
    "sigmoid": "sigmoid",
    "hardsigmoid": "hard_sigmoid",
    "hardswish": "hard_swish",
    "tanh": "tanh",
    "softsign": "softsign",
}
_UNARY = {
    **{name: name for name in ("abs", "neg", "exp", "log", "sqrt", "reciprocal", "sign", "floor", "ceil", "round")},
    **{name: name for name in ("erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")},
    **{"asinh": "asinh", "atanh": "atanh", "square": "square", "log1p": "log1p"},
}


@converts(*_PLAIN)
def plain(c: Conversion, node: TraceNode) -> Value:
    return c.activate(node.get("self"), _PLAIN[node.op])


@converts(*_UNARY)
def unary(c: Conversion, node: TraceNode) -> Value:
    if node.get("decimals"):
        raise UnsupportedError("it rounds to decimals")
    x = c.value(node.get("self"))
    return c.layer("unary", [x], {"function": _UNARY[node.op]}, shape=x.shape)


@converts("rsqrt")
def rsqrt(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    root = c.layer("unary", [x], {"function": "sqrt"}, shape=x.shape)
    return c.layer("unary", [root], {"function": "reciprocal"}, shape=x.shape)


@converts("hardtanh")
def hard_tanh(c: Conversion, node: TraceNode) -> Value:
    params: dict[str, Param] = {
        "min_value": float(node.get("min_val", -1.0)),
        "max_value": float(node.get("max_val", 1.0)),
    }
    return c.activate(node.get("self"), "hard_tanh", params)


@converts("softshrink")
def softshrink(c: Conversion, node: TraceNode) -> Value:
    return c.activate(node.get("self"), "softshrink", {"amount": float(node.get("lambd", 0.5))})


@converts("rrelu")
def rrelu(c: Conversion, node: TraceNode) -> Value:
    if node.get("training"):
        raise UnsupportedError("it is in training mode")
    return c.activate(node.get("self"), "rrelu", {"lower": float(node.get("lower")), "upper": float(node.get("upper"))})


@converts("clamp", "clamp_min", "clamp_max", "clip")
def clamp(c: Conversion, node: TraceNode) -> Value:
    low, high = node.get("min"), node.get("max")
    x = c.value(node.get("self"))
    for limit in (low, high):
        if limit is not None and not isinstance(limit, int | float):
            raise UnsupportedError("its bounds are tensors")
    if low is not None and high is not None:
        params: dict[str, Param] = {"function": "clip", "low": float(low), "high": float(high)}
        return c.layer("unary", [x], params, shape=x.shape)
    operation, limit = ("maximum", low) if high is None else ("minimum", high)
    number = c.layer("tensor_constant", [], {"shape": (), "dtype": x.dtype.value, "numbers": str(limit)})
    return c.layer("element_wise", [x, number], {"operation": operation}, shape=x.shape)


@converts("leaky_relu")
def leaky_relu(c: Conversion, node: TraceNode) -> Value:
    return c.activate(node.get("self"), "leaky_relu", {"negative_slope": float(node.get("negative_slope", 0.01))})


@converts("elu", "celu")
def elu(c: Conversion, node: TraceNode) -> Value:
    if node.get("scale", 1) != 1 or node.get("input_scale", 1) != 1:
        raise UnsupportedError("it has scales")
    return c.activate(node.get("self"), node.op, {"alpha": float(node.get("alpha", 1.0))})


@converts("gelu")
def gelu(c: Conversion, node: TraceNode) -> Value:
    return c.activate(node.get("self"), "gelu", {"approximate": node.get("approximate", "none")})


@converts("softplus")
def softplus(c: Conversion, node: TraceNode) -> Value:
    params: dict[str, Param] = {"beta": float(node.get("beta", 1)), "threshold": float(node.get("threshold", 20))}
    return c.activate(node.get("self"), "softplus", params)


@converts("threshold")
def threshold(c: Conversion, node: TraceNode) -> Value:
    params: dict[str, Param] = {"threshold": float(node.get("threshold")), "value": float(node.get("value"))}
    return c.activate(node.get("self"), "threshold", params)


@converts("prelu")
def prelu(c: Conversion, node: TraceNode) -> Value:
    x, slope = c.value(node.get("self")), c.weight(node.get("weight"))
    single = slope.tensor.numel() == 1
    if not single and not x.plain:
        raise UnsupportedError("the batch is merged with other axes")
    return c.activate(x, "prelu", {"per_channel": not single}, weights={"activation_slope": slope})


@converts("softmax", "log_softmax", "_softmax", "_log_softmax")
def softmax(c: Conversion, node: TraceNode) -> Value:
    x = c.converted(node)
    axis = x.axis(node.get("dim"))
    return c.activate(x, node.op.lstrip("_"), {"axis": axis})


@converts("glu")
def glu(c: Conversion, node: TraceNode) -> Value:
    x = c.plain(node.get("self"))
    place = x.place(node.get("dim", -1))
    shape = (*x.shape[:place], x.size(place) // 2, *x.shape[place + 1 :])
    return c.activate(x, "glu", {"axis": x.axis(place)}, shape=shape)


@converts("log_sigmoid")
def log_sigmoid(c: Conversion, node: TraceNode) -> Value:
    """-softplus(-x), which unlike log(sigmoid(x)) is finite for every x."""
    x = c.value(node.get("self"))
    turned = c.layer("unary", [x], {"function": "neg"}, shape=x.shape)
    made = c.layer("activation", [turned], activation=("softplus", {}), shape=x.shape)
    return c.layer("unary", [made], {"function": "neg"}, shape=x.shape)
