"""Several axes become one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators.api import (
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    int64,
    param,
)
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class Flatten(Operator, type="flatten", title="Flatten", category=Category.SHAPE, synonyms=("vector", "unroll")):
    """Turn neighbouring axes into one; by default all behind the batch."""

    inputs = (Port("x", rank=(1, 2, 3, 4, 5, 6)),)

    start_axis: int = param(default=1, min=-8, max=7, doc="First axis that is merged.")
    end_axis: int = param(default=-1, min=-8, max=7, doc="Last axis that is merged.")
    examples = (Example((image(3, 4, 5),)), Example((image(3, 4, 5),), {"start_axis": 2}, "positions only"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        start, end = axis_of(self.start_axis, x), axis_of(self.end_axis, x)
        if start > end:
            raise ShapeError(
                tr("the first axis {start} lies behind the last axis {end}", start=start, end=end),
                remedy=tr("swap them"),
            )
        if start == end:
            return x
        merged = prod(known(x, axis) for axis in range(start, end + 1))
        return x.with_shape(*x.shape[:start], merged, *x.shape[end + 1 :])

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchMethod("flatten", TorchInput(0), (self.start_axis, self.end_axis))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        shape = self.infer(inputs).shape
        if shape == inputs[0].shape:
            return OnnxNode("Identity")
        start = axis_of(self.start_axis, inputs[0])
        behind = (known(inputs[0], axis) for axis in range(axis_of(self.end_axis, inputs[0]) + 1, inputs[0].rank))
        return OnnxNode("Reshape", (OnnxInput(0), int64(*(0,) * start, -1, *behind)))
