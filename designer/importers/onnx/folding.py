"""Values of nodes that depend on constants or on shapes only, computed without a runtime.

Shapes can contain symbols (the batch): arrays of objects. Moving such values around works; arithmetic with them does not,
and such nodes are not folded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.graph.types import Symbol

Array = NDArray[Any]
MAX_ELEMENTS = 2**24  # of a folded value
_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip


CODES = {name: code for code, name in _TYPES.items()}  # element types of ONNX


class NotFoldedError(Exception):
    """The value cannot be computed here."""


def fold(op_type: str, opset: int, attributes: Mapping[str, Any], inputs: Sequence[Array | None]) -> Array:
    """The output of a node. Raises NotFoldedError for operators and values that are not supported."""
    function = _FOLDS.get(op_type)
    if function is None:
        raise NotFoldedError(op_type)
    try:
        with np.errstate(all="ignore"):
            found = function(attributes, opset, *inputs)
    except NotFoldedError:
        raise
    except Exception as error:  # numpy raises many classes for arguments that do not fit
        raise NotFoldedError(str(error)) from error
    return np.asarray(found)


def can_fold(op_type: str) -> bool:
    return op_type in _FOLDS


def is_numeric(array: Array) -> bool:
    """Whether an array has numbers only, no symbols."""
    return array.dtype != object


def _sized(*shape: int) -> tuple[int, ...]:
    if prod(shape) > MAX_ELEMENTS or any(size < 0 for size in shape):
        raise NotFoldedError(f"{prod(shape)} elements")
    return shape


def _ints(array: Array | None) -> tuple[int, ...]:
    if array is None or not is_numeric(array):
        raise NotFoldedError("not known")
    return tuple(int(number) for number in np.atleast_1d(array))


def _axes(attributes: Mapping[str, Any], array: Array | None) -> tuple[int, ...] | None:
    given = attributes.get("axes")
    if given is None and array is None:
        return None
    return tuple(given) if given is not None else _ints(array)


def _cast(attributes: Mapping[str, Any], opset: int, x: Array) -> Array:
    kind = _TYPES.get(int(attributes["to"]))
    if kind is None:
        raise NotFoldedError("element type")
    if not is_numeric(x):
        if kind not in ("int64", "int32"):
            raise NotFoldedError("symbols are integers")
        return x
    return x.astype(kind)


def _concat(attributes: Mapping[str, Any], opset: int, *parts: Array) -> Array:
    _sized(sum(part.size for part in parts))
    return np.concatenate(parts, axis=int(attributes.get("axis", 0)))


def _slice(attributes: Mapping[str, Any], opset: int, x: Array, *rest: Array | None) -> Array:
    if opset < 10:
        starts, ends = tuple(attributes["starts"]), tuple(attributes["ends"])
        axes, steps = attributes.get("axes"), None
    else:
        starts, ends = _ints(rest[0]), _ints(rest[1])
        axes = _ints(rest[2]) if len(rest) > 2 and rest[2] is not None else None
        steps = _ints(rest[3]) if len(rest) > 3 and rest[3] is not None else None
    index: list[slice] = [slice(None)] * x.ndim
    for place, axis in enumerate(axes if axes is not None else range(len(starts))):
        step = steps[place] if steps is not None else 1
        stop: int | None = ends[place]
        if step < 0 and ends[place] < -x.shape[axis]:
            stop = None
        index[axis] = slice(starts[place], stop, step)
    return x[tuple(index)]


def _unsqueeze(attributes: Mapping[str, Any], opset: int, x: Array, axes: Array | None = None) -> Array:
    return np.expand_dims(x, _axes(attributes, axes) or ())


def _squeeze(attributes: Mapping[str, Any], opset: int, x: Array, axes: Array | None = None) -> Array:
    return np.squeeze(x, _axes(attributes, axes))


def _reshape(attributes: Mapping[str, Any], opset: int, x: Array, shape: Array | None = None) -> Array:
    wanted = _ints(shape)
    if not attributes.get("allowzero", 0):
        wanted = tuple(x.shape[place] if size == 0 else size for place, size in enumerate(wanted))
    return x.reshape(wanted)


def _constant_of_shape(attributes: Mapping[str, Any], opset: int, shape: Array) -> Array:
    value = attributes.get("value")
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return np.full(_sized(*_ints(shape)), fill.reshape(-1)[0], fill.dtype)


def _range(attributes: Mapping[str, Any], opset: int, start: Array, limit: Array, delta: Array) -> Array:
    first, last, step = (array.reshape(-1)[0] for array in (start, limit, delta))
    _sized(max(0, int(np.ceil((float(last) - float(first)) / float(step)))))
    return np.arange(first, last, step, dtype=start.dtype)


def _expand(attributes: Mapping[str, Any], opset: int, x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, _sized(*np.broadcast_shapes(x.shape, _ints(shape)))).copy()


def _tile(attributes: Mapping[str, Any], opset: int, x: Array, repeats: Array) -> Array:
    _sized(x.size, *_ints(repeats))
    return np.tile(x, _ints(repeats))


def _reduce(function: Callable[..., Array]) -> Callable[..., Array]:
    def run(attributes: Mapping[str, Any], opset: int, x: Array, axes: Array | None = None) -> Array:
        along = _axes(attributes, axes)
        if not along and attributes.get("noop_with_empty_axes", 0):
            return x
        return function(x, axis=along or None, keepdims=bool(attributes.get("keepdims", 1)), dtype=x.dtype)

    return run


def _plain(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of numbers, such as addition; symbols are refused."""

    def run(attributes: Mapping[str, Any], opset: int, *inputs: Array) -> Array:
        if not all(map(is_numeric, inputs)):
            raise NotFoldedError("arithmetic with a symbol")
        _sized(*np.broadcast_shapes(*(array.shape for array in inputs)))
        return np.asarray(function(*inputs))

    return run


def _equal(attributes: Mapping[str, Any], opset: int, one: Array, other: Array) -> Array:
    """Equality; a symbol is a size, so it differs from numbers below 1, which is what exporters ask."""

    def same(a: Any, b: Any) -> bool:
        numbers = [value for value in (a, b) if not isinstance(value, Symbol)]
        if len(numbers) == 2 or (not numbers and a == b):
            return bool(a == b)
        if numbers and numbers[0] < 1:
            return False
        raise NotFoldedError("comparison with a symbol")

    return np.asarray(np.frompyfunc(same, 2, 1)(one, other), bool)


def _where(attributes: Mapping[str, Any], opset: int, condition: Array, one: Array, other: Array) -> Array:
    if not is_numeric(condition):
        raise NotFoldedError("condition")
    _sized(*np.broadcast_shapes(condition.shape, one.shape, other.shape))
    return np.where(condition, one, other)


def _modulo(attributes: Mapping[str, Any], opset: int, one: Array, other: Array) -> Array:
    function = np.fmod if attributes.get("fmod", 0) else np.mod
    return _plain(function)(attributes, opset, one, other)


def _divide(one: Array, other: Array) -> Array:
    if one.dtype.kind == "f":
        return np.asarray(one / other)
    found = np.abs(one) // np.abs(other) * np.sign(one) * np.sign(other)  # towards zero
    return np.asarray(found, one.dtype)


def _same(function: Callable[[Array], Any]) -> Callable[..., Array]:
    return _plain(lambda x: np.asarray(function(x), x.dtype))


_FOLDS: dict[str, Callable[..., Array]] = {
    "Identity": lambda a, o, x: x,
    "Cast": _cast,
    "Concat": _concat,
    "Gather": lambda a, o, x, index: np.take(x, index, axis=int(a.get("axis", 0))),
    "Slice": _slice,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Flatten": lambda a, o, x: x.reshape(prod(x.shape[: int(a.get("axis", 1))]), -1),
    "Transpose": lambda a, o, x: np.transpose(x, a.get("perm")),
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "Expand": _expand,
    "Tile": _tile,
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Add": _plain(np.add),
    "Sub": _plain(np.subtract),
    "Mul": _plain(np.multiply),
    "Div": _plain(_divide),
    "Mod": _modulo,
    "Neg": _plain(np.negative),
    "Abs": _plain(np.abs),
    "Floor": _same(np.floor),
    "Ceil": _same(np.ceil),
    "Sqrt": _same(np.sqrt),
    "Min": _plain(lambda *values: reduce(np.minimum, values)),  # of any number of values
    "Max": _plain(lambda *values: reduce(np.maximum, values)),
    "Equal": _equal,
    "Less": _plain(np.less),
    "Greater": _plain(np.greater),
    "Not": _plain(np.logical_not),
    "And": _plain(np.logical_and),
    "Or": _plain(np.logical_or),
    "Where": _where,
}
