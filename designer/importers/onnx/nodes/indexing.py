"""Selection of values by position."""

from __future__ import annotations

import numpy as np

from designer.graph.model import Source
from designer.graph.types import DataType
from designer.importers.onnx.conversion import Array, Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.folding import CODES, NotFoldedError, fold
from designer.importers.onnx.nodes.reshaping import numbers_of, reshaped
from designer.importers.onnx.nodes.table import converts
from designer.operators.params import Value

_FAR = 10**9  # beyond every axis


@converts("Slice")
def cut(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    if op.opset < 10:
        starts, ends = list(op.attribute("starts")), list(op.attribute("ends"))
        axes, steps = op.attribute("axes"), None
    else:
        starts, ends = list(c.ints(op.inputs[1])), list(c.ints(op.inputs[2]))
        axes = c.ints(op.input(3)) if op.input(3) else None
        steps = c.ints(op.input(4)) if op.input(4) else None
    axes = [axis % kind.rank for axis in axes] if axes is not None else list(range(len(starts)))
    made: str | Source = op.inputs[0]
    for place, axis in enumerate(axes):
        step = steps[place] if steps is not None else 1
        made = _sliced(c, made, axis, starts[place], ends[place], step)
    c.finish(made if isinstance(made, Source) else c.add("identity", [made])[0])


def _sliced(c: Conversion, x: str | Source, axis: int, start: int, end: int, step: int) -> str | Source:
    kind = c.type_of(x) if isinstance(x, str) else c.builder.types[x]
    if step == 1 and start == 0 and end >= 2**31 - 1:
        return x
    length = kind.dim(axis)
    stop = end if end >= -length or step > 0 else -length - 1
    kept = range(*slice(start, None if step < 0 and stop < -length else stop, step).indices(length))
    if not kept:
        raise UnsupportedError("its result is empty")
    if len(kept) == length and step == 1:
        return x
    if step < 0:
        params: dict[str, Value] = {"axis": axis, "start": kept[-1], "end": kept[0] + 1, "step": 1}
        if (kept[0] + 1 - kept[-1]) != length:
            (x,) = c.add("slice", [x], params)
        (x,) = c.add("flip", [x], {"axes": (axis,)})
        if step < -1:
            (x,) = c.add("slice", [x], {"axis": axis, "start": 0, "end": 0, "step": -step})
        return x
    stop = 0 if kept[-1] + step >= length and end >= length else min(stop, _FAR)
    return c.add("slice", [x], {"axis": axis, "start": max(start, -length), "end": stop, "step": step})[0]


@converts("Gather")
def gather(c: Conversion, op: OnnxOp) -> None:
    x, index = op.inputs[:2]
    kind, picked = c.type_of(x), c.type_of(index)
    axis = op.attribute("axis", 0) % max(kind.rank, 1)
    if c.is_constant(x) and kind.rank == 2 and axis == 0 and not c.is_constant(index) and kind.shape[0] != 1:
        table = c.weight(x)
        params: dict[str, Value] = {"vocabulary": table.array.shape[0], "features": table.array.shape[1]}
        c.one("embedding", [index], params, weights={"table": table})
        return
    numbers = c.constant(index)
    if numbers is not None and picked.rank <= 1 and numbers.size <= 256:
        indices = tuple(int(number) for number in numbers.reshape(-1))
        c.one("selector", [x], {"indices": indices, "axis": axis, "keep": picked.rank == 1})
        return
    wanted: str | Source = index
    if picked.dtype is not DataType.INT64:
        (wanted,) = c.add("cast", [index], {"target": "int64"})
    if picked.rank != 1:
        wanted = reshaped(c, wanted, [-1]) if picked.rank else c.add("unsqueeze", [wanted], {"axis": 0})[0]
    (made,) = c.add("gather", [x, wanted], {"axis": axis, "mode": "slices", "wrap": _wraps(numbers)})
    if picked.rank != 1:
        shape = [*kind.shape[:axis], *picked.shape, *kind.shape[axis + 1 :]]
        made = reshaped(c, made, shape) if picked.rank else c.add("squeeze", [made], {"axes": (axis,)})[0]
    c.finish(made)


def _wraps(numbers: Array | None) -> bool:
    """Whether indices may count from the end: computed ones may."""
    return numbers is None or bool(np.any(numbers < 0))


@converts("GatherElements")
def gather_elements(c: Conversion, op: OnnxOp) -> None:
    wraps = _wraps(c.constant(op.inputs[1]))
    wanted: str | Source = op.inputs[1]
    if c.type_of(op.inputs[1]).dtype is not DataType.INT64:
        (wanted,) = c.add("cast", [wanted], {"target": "int64"})
    c.one("gather", [op.inputs[0], wanted], {"axis": op.attribute("axis", 0), "mode": "elements", "wrap": wraps})


@converts("TopK")
def top_k(c: Conversion, op: OnnxOp) -> None:
    axis = op.attribute("axis", -1)
    if op.opset < 10:
        count = op.attribute("k")
    elif c.known(op.inputs[1]) is None and op.outputs[0] in c.declared:
        count = c.declared[op.outputs[0]].dim(axis)
    else:
        count = int(c.scalar(op.inputs[1]))
    params: dict[str, Value] = {
        "k": count,
        "axis": axis,
        "largest": bool(op.attribute("largest", 1)),
    }
    made = c.add("top_k", op.inputs[:1], params)
    for output, source in zip(op.outputs, made, strict=False):
        c.put(output, source)


@converts("OneHot")
def one_hot(c: Conversion, op: OnnxOp) -> None:
    depth = int(c.scalar(op.inputs[1]))
    values = c.constant(op.inputs[2])
    if values is None or values.dtype != np.float32:
        raise UnsupportedError("its values are not constant float32 numbers")
    wanted: str | Source = op.inputs[0]
    if c.type_of(op.inputs[0]).dtype is not DataType.INT64:
        (wanted,) = c.add("cast", [wanted], {"target": "int64"})
    off, on = (float(number) for number in values)
    c.one("one_hot", [wanted], {"depth": depth, "axis": op.attribute("axis", -1), "on": on, "off": off})


@converts("ScatterElements", "Scatter")
def scatter(c: Conversion, op: OnnxOp) -> None:
    params: dict[str, Value] = {"axis": op.attribute("axis", 0), "reduction": op.attribute("reduction", "none")}
    c.one("scatter", op.inputs, params)


@converts("ConstantOfShape", "Range", "EyeLike")
def generated(c: Conversion, op: OnnxOp) -> None:
    """Values that depend on shapes only."""
    if op.op_type == "EyeLike":
        kind = c.type_of(op.inputs[0])
        wanted = op.attribute("dtype", CODES.get(kind.dtype.value, 0))
        dtype = next((name for name, code in CODES.items() if code == wanted), None)
        if dtype is None:
            raise UnsupportedError("its element type is not known")
        c.arrays[op.outputs[0]] = np.eye(kind.dim(0), kind.dim(1), op.attribute("k", 0), dtype)
        return
    try:
        values = [c.known(name) for name in op.inputs]
        if op.op_type == "ConstantOfShape" and values[0] is None:
            values = [np.array(numbers_of(c.target(op, 0)), np.int64)]
        if any(value is None for value in values):
            raise NotFoldedError("it depends on values")
        c.arrays[op.outputs[0]] = fold(op.op_type, op.opset, op.attributes, values)
    except NotFoldedError as error:
        raise UnsupportedError(f"its size is computed while running: {error}") from None
