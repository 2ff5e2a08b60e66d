"""Arithmetic, comparison, logic, reduction and products."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp
from typing import Any

from designer.graph.types import DataType
from designer.importers.pytorch.conversion import (
    BatchError,
    Constant,
    Conversion,
    Merged,
    Repeated,
    Size,
    TraceNode,
    UnsupportedError,
    Value,
    axes_of,
)
from designer.importers.pytorch.nodes.table import converts
from designer.operators.params import Value as Param

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "maximum": "maximum",
    "minimum": "minimum",
}
_COMPARE = {
    "lt": "less",
    "le": "less_or_equal",
    "gt": "greater",
    "ge": "greater_or_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_REDUCE = {"mean": "mean", "sum": "sum", "amax": "max", "amin": "min", "prod": "product", "logsumexp": "log_sum_exp"}
_TENSORS = (Value, Constant, Repeated)
MAX_MATRIX_RANK = 5
_LARGEST = 3.4028234663852886e38  # of float32


def number(c: Conversion, value: float, dtype: DataType = DataType.FLOAT32) -> Value:
    """A number as a layer without axes."""
    text = repr(float(value)) if dtype.is_float else str(int(value))
    return c.layer("tensor_constant", [], {"shape": (), "dtype": dtype.value, "numbers": text})


def operand(c: Conversion, item: Any) -> Any:
    """A tensor of the document. A constant that is repeated along the batch is broadcast instead."""
    return c.value(item.constant if isinstance(item, Repeated) else item)


def aligned(c: Conversion, *items: Any) -> tuple[list[Value], tuple[Size, ...]]:
    """Tensors whose axes in the document are broadcast as those of the trace, and the shape of the result."""
    values = [operand(c, item) for item in items]
    rank = max(value.rank for value in values)
    padded = [(*(1,) * (rank - value.rank), *value.shape) for value in values]
    shape: list[Size] = []
    for sizes in zip(*padded, strict=True):
        merged = {size for size in sizes if isinstance(size, Merged)}
        if len(merged) > 1 or (merged and any(isinstance(size, int) and size != 1 for size in sizes)):
            raise BatchError("it joins tensors with the batch on different axes")
        shape.append(merged.pop() if merged else max(size for size in sizes if isinstance(size, int)))
    found = []
    for value in values:
        own = [axis for axis, size in enumerate(shape[rank - value.rank :]) if isinstance(size, Merged)]
        if own and own[0] and not isinstance(value.shape[own[0]], Merged):
            extra = shape[rank - value.rank + own[0]]
            assert isinstance(extra, Merged)
            if len(extra.axes()) > 1:
                ones = (1,) * (len(extra.axes()) - 1)
                spread = c.reshaped(value, (*value.shape[: own[0]], *ones, *value.shape[own[0] :]))
                value = Value(spread.source, spread.shape, value.dtype)
        found.append(value)
    return found, tuple(shape)


def with_number(c: Conversion, item: Any, operation: str, value: float) -> Value:
    """A tensor and a number."""
    x = c.value(item)
    scaled = {"add": (1.0, value), "subtract": (1.0, -value), "multiply": (value, 0.0)}.get(operation)
    if operation == "divide" and _power_of_two(value):
        scaled = (1 / value, 0.0)
    if scaled is not None and x.dtype.is_float and 2 <= len(axes_of(x.shape)) <= 5:
        if operation in ("add", "subtract") and (part := c.part(x, "scale_shift")) is not None:
            factor, before = (float(part.params.get(key, usual)) for key, usual in (("scale", "1"), ("shift", "0")))
            if not before and part.params.get("learned", "false") == "false":
                x, scaled = (
                    c.take(part),
                    (factor, scaled[1]),
                )  # a number times the tensor in the same statement of generated code
        return c.layer("scale_shift", [x], {"scale": float(scaled[0]), "shift": float(scaled[1])}, shape=x.shape)
    if operation == "power" and value in (2, 0.5):
        return c.layer("unary", [x], {"function": "square" if value == 2 else "sqrt"}, shape=x.shape)
    return c.layer("element_wise", [x, number(c, value, x.dtype)], {"operation": operation}, shape=x.shape)


def _power_of_two(value: float) -> bool:
    """Whether the reciprocal of a number is exact."""
    return frexp(abs(value))[0] == 0.5


@converts(*_BINARY)
def binary(c: Conversion, node: TraceNode) -> Value:
    one, other = node.get("self"), node.get("other", node.get("exponent"))
    operation = _BINARY[node.op]
    if node.get("rounding_mode"):
        raise UnsupportedError("it rounds")
    target = node.shapes[0][1]
    if isinstance(other, bool | int | float):
        return with_number(c, c.typed(one, target), operation, float(other) * float(node.get("alpha", 1)))
    if isinstance(one, bool | int | float):
        x = c.typed(other, target)
        if node.get("alpha", 1) != 1:
            x = with_number(c, x, "multiply", float(node.get("alpha")))
        return c.layer("element_wise", [number(c, one, x.dtype), x], {"operation": operation}, shape=x.shape)
    if node.get("alpha", 1) != 1:
        other = with_number(c, c.typed(other, target), "multiply", float(node.get("alpha")))
    values, shape = aligned(c, one, other)
    return c.layer("element_wise", [c.typed(v, target) for v in values], {"operation": operation}, shape=shape)


def _same_type(c: Conversion, values: Sequence[Value]) -> list[Value]:
    """Integers become floats where a float meets them, as in torch."""
    floats = {value.dtype for value in values if value.dtype.is_float}
    target = next(iter(floats)) if len(floats) == 1 else None
    if target is None or all(value.dtype is target for value in values):
        return list(values)
    return [v if v.dtype is target else c.layer("cast", [v], {"target": target.value}, shape=v.shape) for v in values]


@converts("rsub")
def rsub(c: Conversion, node: TraceNode) -> Value:
    other = node.get("other")
    if not isinstance(other, int | float) or node.get("alpha", 1) != 1:
        raise UnsupportedError("it subtracts from a tensor")
    x = c.typed(node.get("self"), node.shapes[0][1])
    return c.layer("element_wise", [number(c, other, x.dtype), x], {"operation": "subtract"}, shape=x.shape)


@converts("addcmul")
def addcmul(c: Conversion, node: TraceNode) -> Value:
    values, shape = aligned(c, node.get("tensor1"), node.get("tensor2"))
    product = c.layer("element_wise", values, {"operation": "multiply"}, shape=shape)
    if node.get("value", 1) != 1:
        product = with_number(c, product, "multiply", float(node.get("value")))
    both, shape = aligned(c, node.get("self"), product)
    return c.layer("element_wise", both, {"operation": "add"}, shape=shape)


@converts(*_COMPARE)
def compare(c: Conversion, node: TraceNode) -> Value:
    other = node.get("other")
    operation: Param = _COMPARE[node.op]
    if isinstance(other, bool | int | float):
        x = c.value(node.get("self"))
        if isinstance(other, float) and not x.dtype.is_float:
            x = c.typed(x, DataType.FLOAT32)
        if not x.dtype.is_float and x.dtype is not DataType.BOOL:
            return c.layer("compare", [x, number(c, other, x.dtype)], {"operation": operation}, shape=x.shape)
        return c.layer("compare", [x], {"operation": operation, "value": float(other)}, shape=x.shape)
    values, shape = aligned(c, node.get("self"), other)
    return c.layer("compare", _same_type(c, values), {"operation": operation}, shape=shape)


@converts(
    "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor",
    "__and__", "__or__", "__xor__",
)  # fmt: skip
def logical(c: Conversion, node: TraceNode) -> Value:
    operands = [item for item in (node.get("self"), node.get("other")) if item is not None]
    tensors = [item for item in operands if isinstance(item, _TENSORS)]
    kind = c.value(tensors[0]).dtype
    values, shape = aligned(c, *(item if isinstance(item, _TENSORS) else number(c, item, kind) for item in operands))
    operation = node.op.strip("_").rpartition("_")[2]
    if all(value.dtype is DataType.BOOL for value in values):
        return c.layer("logical", values, {"operation": operation}, shape=shape)
    if node.op.startswith("logical"):
        raise UnsupportedError("its inputs are not boolean")
    return c.layer("bitwise", values, {"operation": operation}, shape=shape)


_NUMBER_CHECKS = {
    "isnan": "nan",
    "isinf": "infinite",
    "isposinf": "positive_infinite",
    "isneginf": "negative_infinite",
}


@converts(*_NUMBER_CHECKS)
def number_check(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    return c.layer("number_check", [x], {"test": _NUMBER_CHECKS[node.op]}, shape=x.shape)


@converts("ones_like", "zeros_like", "full_like")
def filled(c: Conversion, node: TraceNode) -> Constant | Repeated:
    """One value as a constant. Where the batch is open, what is float32 and has it is kept as a call, which follows other sizes."""
    import torch

    shape, dtype = node.shapes[0]
    value = node.get("fill_value", 1 if node.op == "ones_like" else 0)
    sizes = [1 if size is None else size for size in shape if not isinstance(size, Merged)]
    called = dtype is DataType.FLOAT32 and (None in shape or c.batch is None)
    known = dtype is not None and isinstance(value, bool | int | float) and shape.count(None) <= 1
    if called or not known or len(sizes) < len(shape):
        raise UnsupportedError("it has the size of another tensor")
    assert dtype is not None
    made = Constant(torch.full(sizes, value, dtype=getattr(torch, dtype.value)))
    return Repeated(made, shape.index(None)) if None in shape else made


@converts("where")
def where(c: Conversion, node: TraceNode) -> Value:
    target = node.shapes[0][1]
    sides = [
        number(c, side, target or DataType.FLOAT32) if isinstance(side, int | float) else c.typed(side, target)
        for side in (node.get("self"), node.get("other"))
    ]
    values, shape = aligned(c, node.get("condition"), *sides)
    return c.layer("where", values, shape=shape)


@converts("masked_fill")
def masked_fill(c: Conversion, node: TraceNode) -> Value:
    fill = node.get("value")
    x = c.value(node.get("self"))
    if isinstance(fill, Constant) and fill.tensor.numel() == 1:
        fill = fill.tensor.item()
    if not isinstance(fill, int | float):
        raise UnsupportedError("the value is computed while running")
    fill = max(-_LARGEST, min(_LARGEST, float(fill)))  # documents have finite numbers; a softmax is the same
    values, shape = aligned(c, node.get("mask"), number(c, fill, x.dtype), x)
    return c.layer("where", values, shape=shape)


@converts("to", "_to_copy", "type_as", "float", "double", "half", "bool", "long", "int")
def cast(c: Conversion, node: TraceNode) -> Any:
    target = node.shapes[0][1]
    x = node.get("self")
    if target is None:
        raise UnsupportedError("no layer can have its element type")
    if isinstance(x, Constant | Repeated):
        import torch

        constant = x.constant if isinstance(x, Repeated) else x
        made = Constant(constant.tensor.to(getattr(torch, target.value)), constant.name, constant.learned)
        return Repeated(made, x.axis) if isinstance(x, Repeated) else made
    value = c.value(x)
    return value if value.dtype is target else c.layer("cast", [value], {"target": target.value}, shape=value.shape)


@converts("fill", "zero")
def fill(c: Conversion, node: TraceNode) -> Value:
    """A tensor whose values are all overwritten."""
    import torch

    x = node.get("self")
    sizes = (
        list(x.tensor.shape) if isinstance(x, Constant) else [c.value(x).size(axis) for axis in range(c.value(x).rank)]
    )
    dtype = x.tensor.dtype if isinstance(x, Constant) else getattr(torch, c.value(x).dtype.value)
    value = node.get("value", 0)
    if isinstance(value, Constant):
        value = value.tensor.item()
    if not isinstance(value, int | float):
        raise UnsupportedError("the value is computed while running")
    return c.value(Constant(torch.full(sizes, value, dtype=dtype)))


# --- reduction ----------------------------------------------------------------------------------------------------


def reduced(c: Conversion, x: Value, operation: str, dims: Sequence[int], keep: bool) -> Value:
    """A reduction along axes of the trace; all of them if `dims` is empty."""
    places = sorted({x.place(dim) for dim in dims}) if dims else list(range(x.rank))
    axes = tuple(x.axis(place) for place in places)
    kept = [(1 if place in places else size) for place, size in enumerate(x.shape) if keep or place not in places]
    if x.dtype is DataType.BOOL or not x.dtype.is_float:
        raise UnsupportedError(f"it reduces {x.dtype.value}")
    return c.layer("reduce", [x], {"operation": operation, "axes": axes, "keep": keep}, shape=kept)


def _dims(node: TraceNode) -> list[int]:
    dims = node.get("dim")
    return [] if dims is None else [dims] if isinstance(dims, int) else list(dims)


@converts(*_REDUCE)
def reduce(c: Conversion, node: TraceNode) -> Value:
    return reduced(c, c.converted(node), _REDUCE[node.op], _dims(node), bool(node.get("keepdim", False)))


@converts("max", "min")
def extreme(c: Conversion, node: TraceNode) -> Any:
    if isinstance(node.get("other"), _TENSORS):
        values, shape = aligned(c, node.get("self"), node.get("other"))
        return c.layer("element_wise", values, {"operation": f"{node.op}imum"}, shape=shape)
    x, keep = c.value(node.get("self")), bool(node.get("keepdim", False))
    made = reduced(c, x, node.op, _dims(node), keep)
    if not _dims(node):
        return made
    return made, _arg(c, x, node.op, node.get("dim"), keep)


@converts("argmax", "argmin")
def arg_extreme(c: Conversion, node: TraceNode) -> Value:
    if node.get("dim") is None:
        raise UnsupportedError("it works over all axes")
    return _arg(c, c.value(node.get("self")), node.op[3:], node.get("dim"), bool(node.get("keepdim", False)))


def _arg(c: Conversion, x: Value, operation: str, dim: int, keep: bool) -> Value:
    place = x.place(dim)
    shape = [(1 if axis == place else size) for axis, size in enumerate(x.shape) if keep or axis != place]
    params: dict[str, Param] = {"operation": operation, "axis": x.axis(place), "keep": keep}
    return c.layer("arg_extreme", [x], params, shape=shape)


@converts("linalg_vector_norm", "norm")
def norm(c: Conversion, node: TraceNode) -> Value:
    kinds = {2: "norm", 1: "l1_norm"}
    order = node.get("ord", node.get("p", 2))
    if order not in kinds:
        raise UnsupportedError(f"its order is {order}")
    return reduced(c, c.value(node.get("self")), kinds[order], _dims(node), bool(node.get("keepdim", False)))


@converts("var", "std", "var_mean")
def variance(c: Conversion, node: TraceNode) -> Any:
    x = c.value(node.get("self"))
    dims, keep = _dims(node) or list(range(x.rank)), bool(node.get("keepdim", False))
    count = 1
    for dim in dims:
        count *= x.size(x.place(dim))
    correction = node.get("correction")
    unbiased = node.get("unbiased")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    mean = reduced(c, x, "mean", dims, True)
    values, shape = aligned(c, x, mean)
    centered = c.layer("element_wise", values, {"operation": "subtract"}, shape=shape)
    square = c.layer("unary", [centered], {"function": "square"}, shape=shape)
    if count < correction:
        raise UnsupportedError(f"it divides by {count} - {correction}")
    made = reduced(c, square, "sum" if correction else "mean", dims, keep)
    if correction:  # the number of elements follows from other input sizes
        ones = with_number(c, with_number(c, square, "multiply", 0.0), "add", 1.0)
        divisor = with_number(c, reduced(c, ones, "sum", dims, keep), "subtract", float(correction))
        made = c.layer("element_wise", [made, divisor], {"operation": "divide"}, shape=made.shape)
    if node.op == "std":
        made = c.layer("unary", [made], {"function": "sqrt"}, shape=made.shape)
    return (made, mean if keep else reduced(c, x, "mean", dims, False)) if node.op == "var_mean" else made


@converts("cumsum")
def cumulative(c: Conversion, node: TraceNode) -> Value:
    x = c.converted(node)
    return c.layer("cumulative", [x], {"axis": x.axis(node.get("dim"))}, shape=x.shape)


# --- products -----------------------------------------------------------------------------------------------------


def product(c: Conversion, one: Any, other: Any) -> Value:
    """A matrix product, batches broadcast."""
    left, right = operand(c, one), operand(c, other)
    if left.rank < 2 or right.rank < 2:
        raise UnsupportedError("it multiplies vectors")
    if any(isinstance(size, Merged) for size in (*left.shape[-2:], *right.shape[-2:])):
        raise BatchError("it works along the batch")
    ends = (left.shape[-2], right.shape[-1])
    heads, shape = _heads(c, left, right)
    if max(len(axes_of(value.shape)) for value in heads) > MAX_MATRIX_RANK:
        raise UnsupportedError(f"it has more than {MAX_MATRIX_RANK} axes")
    return c.layer("matmul", heads, shape=(*shape, *ends))


def _heads(c: Conversion, left: Value, right: Value) -> tuple[list[Value], tuple[Size, ...]]:
    rank = max(left.rank, right.rank) - 2
    padded = [(*(1,) * (rank + 2 - value.rank), *value.shape[:-2]) for value in (left, right)]
    shape: list[Size] = []
    for one, other in zip(*padded, strict=True):
        if one != other and 1 not in (one, other):
            raise BatchError("it multiplies tensors with the batch on different axes")
        shape.append(other if one == 1 else one)
    return [left, right], tuple(shape)


@converts("matmul", "bmm", "mm")
def matmul(c: Conversion, node: TraceNode) -> Value:
    from designer.importers.pytorch.nodes.learned import fully_connected

    one, other = node.get("self"), node.get("other", node.get("mat2"))
    if (
        isinstance(other, Constant)
        and other.learned
        and other.tensor.ndim == 2
        and other.name
        and not isinstance(one, Constant)
    ):
        return fully_connected(c, one, Constant(other.tensor.t(), other.name), None)
    return product(c, one, other)


@converts("addmm", "baddbmm", "addbmm")
def addmm(c: Conversion, node: TraceNode) -> Value:
    if node.op == "addbmm":
        raise UnsupportedError("it sums over the batch")
    made = product(c, node.get("mat1", node.get("batch1")), node.get("mat2", node.get("batch2")))
    if node.get("alpha", 1) != 1:
        made = with_number(c, made, "multiply", float(node.get("alpha")))
    if node.get("beta", 1) == 0:
        return made
    added = node.get("self")
    if node.get("beta", 1) != 1:
        added = with_number(c, added, "multiply", float(node.get("beta")))
    values, shape = aligned(c, made, added)
    return c.layer("element_wise", values, {"operation": "add"}, shape=shape)


@converts("einsum")
def einsum(c: Conversion, node: TraceNode) -> Value:
    tensors = [c.plain(item) for item in node.get("tensors")]
    return c.layer("einsum", tensors, {"equation": node.get("equation").replace(" ", "")})


@converts("scaled_dot_product_attention")
def attention(c: Conversion, node: TraceNode) -> Value:
    query, key, value = (c.value(node.get(name)) for name in ("query", "key", "value"))
    mask, causal = node.get("attn_mask"), bool(node.get("is_causal", False))
    if node.get("dropout_p"):
        raise UnsupportedError("it drops values at random")
    if node.get("enable_gqa"):
        raise UnsupportedError("its keys have fewer heads")
    scale = node.get("scale")
    plain = query.plain and query.rank == 4
    additive = mask is None or c.value(mask).dtype is DataType.FLOAT32
    if plain and additive:
        inputs = [query, key, value, *([mask] if mask is not None else [])]
        params: dict[str, Param] = {"causal": causal, "scale": float(scale or 0.0)}
        return c.layer("scaled_dot_product_attention", inputs, params)
    if causal or not additive:
        raise UnsupportedError("its mask is not added")
    axes = (*range(query.rank - 2), query.rank - 1, query.rank - 2)
    scores = product(c, query, c.permuted(key, axes))
    scores = with_number(c, scores, "multiply", float(scale or query.size(query.rank - 1) ** -0.5))
    if mask is not None:
        values, shape = aligned(c, scores, mask)
        scores = c.layer("element_wise", values, {"operation": "add"}, shape=shape)
    weights = c.activate(scores, "softmax", {"axis": -1})
    return product(c, weights, value)
