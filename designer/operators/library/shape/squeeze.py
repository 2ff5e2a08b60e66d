"""Squeeze."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axes_of
from designer.texts import tr


class Squeeze(
    op.Operator, type="squeeze", title="Squeeze", category=op.Category.SHAPE, synonyms=("drop axis", "remove dimension")
):
    """Remove axes of size 1."""

    axes: tuple[int, ...] = op.param(default=(2, 3), min=-8, max=7, doc="Axes to remove; each must have size 1.")
    examples = (op.Example((op.image(3, 1, 1),)), op.Example((op.image(1, 4, 5),), {"axes": (-3,)}, "channel"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0]
        gone = axes_of(self.axes, x)
        for axis in gone:
            if x.shape[axis] != 1:
                raise op.ShapeError(
                    tr("axis {axis} of {x} has size {shape}, not 1", axis=axis, x=x, shape=x.shape[axis]),
                    port="x",
                    remedy=tr("choose axes of size 1, or use Reduce or Selector"),
                )
        return x.with_shape(*(size for axis, size in enumerate(x.shape) if axis not in gone))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("squeeze", op.TorchInput(0), (self.axes,)) if self.axes else op.TorchInput(0)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Squeeze", (op.OnnxInput(0), op.int64(*self.axes))) if self.axes else op.OnnxNode("Identity")

    def summary(self) -> str:
        return f"axes {','.join(str(axis) for axis in self.axes)}"
