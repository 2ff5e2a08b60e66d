"""Permutation of axes."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of
from designer.texts import tr


class Permute(
    op.Operator,
    type="permute",
    title="Permute",
    category=op.Category.SHAPE,
    synonyms=("transpose", "swap axes", "nhwc"),
):
    """Permute the axes: 0,2,3,1 converts N x C x H x W to N x H x W x C."""

    axes: tuple[int, ...] = op.param(
        default=(0, 2, 3, 1), min=-8, max=7, doc="The axes in their new order, each exactly once."
    )
    examples = (
        op.Example((op.image(3, 4, 5),)),
        op.Example((op.TensorType((op.BATCH, 4, 5)),), {"axes": (0, -1, 1)}, "matrix"),
    )

    def _order(self, x: op.TensorType) -> tuple[int, ...]:
        order = tuple(axis_of(axis, x) for axis in self.axes)
        if sorted(order) != list(range(x.rank)):
            shown = ",".join(str(axis) for axis in self.axes) or tr("the empty list")
            raise op.ShapeError(
                tr("{shown} must contain each of the {rank} axes of {x} exactly once", shown=shown, rank=x.rank, x=x),
                port="x",
                remedy=tr("list every axis once, starting at 0"),
            )
        return order

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0].with_shape(*(inputs[0].shape[axis] for axis in self._order(inputs[0])))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("permute", op.TorchInput(0), (self.axes,))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Transpose", attributes={"perm": self._order(inputs[0])})

    def summary(self) -> str:
        return ",".join(str(axis) for axis in self.axes)
