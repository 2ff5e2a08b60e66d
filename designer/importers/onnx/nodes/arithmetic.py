"""Arithmetic, comparison, logic and reduction."""

from __future__ import annotations

from math import prod

from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.nodes.reshaping import numbers_of, reshaped
from designer.importers.onnx.nodes.table import converts

_BINARY = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Pow": "power"}
_MANY = {"Max": "maximum", "Min": "minimum", "Sum": "add", "Mean": "add"}
_COMPARE = {
    "Less": "less",
    "LessOrEqual": "less_or_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_or_equal",
    "Equal": "equal",
}
_REDUCE = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceL2": "norm",
    "ReduceL1": "l1_norm",
    "ReduceProd": "product",
    "ReduceSumSquare": "sum_of_squares",
    "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
}
_CASTS = {
    1: "float32",
    6: "int32",
    7: "int64",
    9: "bool",
    2: "uint8",
    3: "int8",
    5: "int16",
    11: "float64",
    10: "float16",
}


@converts(*_BINARY)
def binary(c: Conversion, op: OnnxOp) -> None:
    c.one("element_wise", op.inputs[:2], {"operation": _BINARY[op.op_type]})


@converts(*_MANY)
def many(c: Conversion, op: OnnxOp) -> None:
    if len(op.inputs) == 1:
        c.one("identity", op.inputs)
        return
    (made,) = c.add("element_wise", op.inputs, {"operation": _MANY[op.op_type]})
    if op.op_type == "Mean":
        (made,) = c.add("scale_shift", [made], {"scale": 1 / len(op.inputs)})
    c.finish(made)


@converts(*_COMPARE)
def compare(c: Conversion, op: OnnxOp) -> None:
    c.one("compare", op.inputs, {"operation": _COMPARE[op.op_type]})


@converts("And", "Or", "Xor")
def logical(c: Conversion, op: OnnxOp) -> None:
    c.one("logical", op.inputs, {"operation": op.op_type.lower()})


@converts("Not")
def negation(c: Conversion, op: OnnxOp) -> None:
    c.one("logical", op.inputs, {"operation": "not"})


@converts("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
def bitwise(c: Conversion, op: OnnxOp) -> None:
    c.one("bitwise", op.inputs, {"operation": op.op_type.removeprefix("Bitwise").lower()})


@converts("BitShift")
def bit_shift(c: Conversion, op: OnnxOp) -> None:
    c.one("bitwise", op.inputs, {"operation": f"shift_{op.attribute('direction').lower()}"})


@converts("Mod")
def modulo(c: Conversion, op: OnnxOp) -> None:
    c.one("modulo", op.inputs, {"sign": "dividend" if op.attribute("fmod", 0) else "divisor"})


@converts("IsNaN", "IsInf")
def special(c: Conversion, op: OnnxOp) -> None:
    if op.op_type == "IsNaN":
        c.one("number_check", op.inputs, {"test": "nan"})
        return
    positive, negative = op.attribute("detect_positive", 1), op.attribute("detect_negative", 1)
    if not positive and not negative:
        raise UnsupportedError("it detects nothing")
    test = "infinite" if positive and negative else "positive_infinite" if positive else "negative_infinite"
    c.one("number_check", op.inputs, {"test": test})


@converts("Where")
def where(c: Conversion, op: OnnxOp) -> None:
    c.one("where", op.inputs)


@converts("Cast", "CastLike")
def cast(c: Conversion, op: OnnxOp) -> None:
    if op.op_type == "CastLike":
        target = c.type_of(op.inputs[1]).dtype.value
    else:
        target = _CASTS.get(int(op.attribute("to")), "")
    if c.type_of(op.inputs[0]).dtype.value == target:
        c.one("identity", op.inputs[:1])
        return
    c.one("cast", op.inputs[:1], {"target": target})


@converts(*_REDUCE)
def reduce(c: Conversion, op: OnnxOp) -> None:
    rank = c.type_of(op.inputs[0]).rank
    axes = op.attribute("axes")
    if axes is None and op.input(1):
        axes = c.ints(op.input(1)) if c.known(op.input(1)) is not None else _declared_axes(c, op)
    keeps = op.attribute("noop_with_empty_axes", 0)  # without effect where there are axes
    if not axes and keeps:
        if op.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
            c.one("identity", op.inputs[:1])
            return
        raise UnsupportedError("it reduces no axis")
    if rank == 0:
        raise UnsupportedError("its input is a single number")
    along = tuple(sorted(axis % rank for axis in axes)) if axes else ()
    c.one(
        "reduce",
        op.inputs[:1],
        {"operation": _REDUCE[op.op_type], "axes": along, "keep": bool(op.attribute("keepdims", 1))},
    )


def _declared_axes(c: Conversion, op: OnnxOp) -> tuple[int, ...]:
    """The axes that are reduced if the result has the type that the file declares.

    Raises UnsupportedError if several sets of axes lead to that type.
    """
    declared, before = c.declared.get(op.outputs[0]), c.type_of(op.inputs[0]).shape
    if declared is None or not op.attribute("keepdims", 1) or len(declared.shape) != len(before) or 1 in before:
        raise UnsupportedError(f"the axes '{op.input(1)}' are computed while running")
    axes = tuple(axis for axis, size in enumerate(declared.shape) if size == 1)
    if not axes or any(size != before[axis] for axis, size in enumerate(declared.shape) if axis not in axes):
        raise UnsupportedError(f"the axes '{op.input(1)}' are computed while running")
    return axes


@converts("ArgMax", "ArgMin")
def arg_extreme(c: Conversion, op: OnnxOp) -> None:
    c.one(
        "arg_extreme",
        op.inputs,
        {
            "operation": op.op_type.removeprefix("Arg").lower(),
            "axis": op.attribute("axis", 0),
            "keep": bool(op.attribute("keepdims", 1)),
            "last": bool(op.attribute("select_last_index", 0)),
        },
    )


@converts("CumSum")
def cumulative(c: Conversion, op: OnnxOp) -> None:
    c.one(
        "cumulative",
        op.inputs[:1],
        {
            "axis": int(c.scalar(op.inputs[1])),
            "exclusive": bool(op.attribute("exclusive", 0)),
            "reverse": bool(op.attribute("reverse", 0)),
        },
    )


@converts("Einsum")
def einsum(c: Conversion, op: OnnxOp) -> None:
    c.one("einsum", op.inputs, {"equation": op.attribute("equation").replace(" ", "")})


@converts("MatMul")
def matmul(c: Conversion, op: OnnxOp) -> None:
    from designer.importers.onnx.nodes.learned import matrix_product

    matrix_product(c, op)


@converts("Hardmax")
def hardmax(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    axis = op.attribute("axis", -1 if op.opset >= 13 else 1) % max(kind.rank, 1)
    if op.opset < 13 and any(size != 1 for size in kind.shape[axis + 1 :]):  # one position of all axes from `axis` on
        front = kind.shape[0] if axis == 1 else prod(numbers_of(kind.shape[:axis]))
        flat = reshaped(c, op.inputs[0], [front, prod(numbers_of(kind.shape[axis:]))])
        c.finish(reshaped(c, c.add("hardmax", [flat], {"axis": -1})[0], list(kind.shape)))
        return
    c.one("hardmax", op.inputs, {"axis": axis - kind.rank})


@converts("Trilu")
def trilu(c: Conversion, op: OnnxOp) -> None:
    offset = int(c.scalar(op.inputs[1])) if op.input(1) else 0
    c.one("triangle", op.inputs[:1], {"part": "upper" if op.attribute("upper", 1) else "lower", "diagonal": offset})
