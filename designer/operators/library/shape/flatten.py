"""Flatten."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators import api as op
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class Flatten(op.Operator, type="flatten", title="Flatten", category=op.Category.SHAPE, synonyms=("vector", "unroll")):
    """Merge adjacent axes into one; by default all after the batch."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5, 6)),)

    start_axis: int = op.param(default=1, min=-8, max=7, doc="First merged axis.")
    end_axis: int = op.param(default=-1, min=-8, max=7, doc="Last merged axis.")
    examples = (op.Example((op.image(3, 4, 5),)), op.Example((op.image(3, 4, 5),), {"start_axis": 2}, "positions only"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        start, end = axis_of(self.start_axis, x), axis_of(self.end_axis, x)
        if start > end:
            raise op.ShapeError(
                tr("the first axis {start} is after the last axis {end}", start=start, end=end),
                remedy=tr("swap them"),
            )
        if start == end:
            return x
        merged = prod(known(x, axis) for axis in range(start, end + 1))
        return x.with_shape(*x.shape[:start], merged, *x.shape[end + 1 :])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("flatten", op.TorchInput(0), (self.start_axis, self.end_axis))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        shape = self.infer(inputs).shape
        if shape == inputs[0].shape:
            return op.OnnxNode("Identity")
        start = axis_of(self.start_axis, inputs[0])
        behind = (known(inputs[0], axis) for axis in range(axis_of(self.end_axis, inputs[0]) + 1, inputs[0].rank))
        return op.OnnxNode("Reshape", (op.OnnxInput(0), op.int64(*(0,) * start, -1, *behind)))
