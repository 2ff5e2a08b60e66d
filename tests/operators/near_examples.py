"""Inputs and parameters near those of an operator's examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from designer.graph.types import DataType, Size2D, Size3D, TensorType
from designer.operators.api import BATCH, Operator
from designer.operators.params import ParamError


def changed_inputs(inputs: tuple[TensorType, ...]) -> Iterator[tuple[str, tuple[TensorType, ...]]]:
    """Each axis of each input with other sizes, and each input with other element types."""
    for number, kind in enumerate(inputs):
        others: list[tuple[str, TensorType]] = []
        for axis, size in enumerate(kind.shape):
            sizes: list[Any] = [1, 2, size + 1, 40 * size] if isinstance(size, int) else [1, 3]
            others += [(f"{axis}={new}", kind.with_dim(axis, new)) for new in dict.fromkeys(sizes) if new != size]
            if isinstance(size, int):
                others.append((f"{axis}=N", kind.with_dim(axis, BATCH)))
        for dtype in (DataType.FLOAT32, DataType.FLOAT16, DataType.INT64, DataType.BOOL):
            if dtype is not kind.dtype:
                others.append((dtype.value, kind.with_dtype(dtype)))
        for name, other in others:
            yield f"{number + 1}:{name}", (*inputs[:number], other, *inputs[number + 1 :])


def changed_params(cls: type[Operator], params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each parameter of an example with other values, as long as they are within its bounds."""
    for parameter in cls.parameters:
        value = params.get(parameter.name, parameter.default)
        others: list[Any] = []
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [0, value + 1, value * 5 + 3, -value - 9]
        elif isinstance(value, float):
            others = [0.0, -value - 0.5, value * 3 + 1]
        elif isinstance(value, Size2D):
            others = [Size2D(value.width + 1, value.height), Size2D(value.width, value.height * 5 + 3), Size2D(1, 1)]
        elif isinstance(value, Size3D):
            width, height, depth = value.width, value.height, value.channels
            others = [Size3D(width + 1, height, depth + 2), Size3D(width, height * 2 + 1, depth), Size3D(1, 1, 1)]
        elif parameter.kind == "size2d?":
            others = [Size2D(5, 4)]
        elif isinstance(value, tuple):
            others = [(), value + value[:1], value[:-1]]
        elif parameter.info.choices:
            others = list(parameter.info.choices)
        for other in others:
            try:
                parameter.check(other)
            except ParamError:
                continue
            if other != value:
                yield f"{parameter.name}={other}", {**params, parameter.name: other}
