"""Axes in another order."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    Operator,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    param,
)
from designer.operators.shapes import axis_of
from designer.texts import tr


class Permute(
    Operator, type="permute", title="Permute", category=Category.SHAPE, synonyms=("transpose", "swap axes", "nhwc")
):
    """Put the axes into another order: 0,2,3,1 makes N x H x W x C of N x C x H x W."""

    axes: tuple[int, ...] = param(
        default=(0, 2, 3, 1), min=-8, max=7, doc="The axes in their new order, each one once."
    )
    examples = (Example((image(3, 4, 5),)), Example((TensorType((BATCH, 4, 5)),), {"axes": (0, -1, 1)}, "matrix"))

    def _order(self, x: TensorType) -> tuple[int, ...]:
        order = tuple(axis_of(axis, x) for axis in self.axes)
        if sorted(order) != list(range(x.rank)):
            shown = ",".join(str(axis) for axis in self.axes)
            raise ShapeError(
                tr("{shown} does not name each of the {rank} axes of {x} once", shown=shown, rank=x.rank, x=x),
                port="x",
                remedy=tr("name every axis once, from 0"),
            )
        return order

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0].with_shape(*(inputs[0].shape[axis] for axis in self._order(inputs[0])))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchMethod("permute", TorchInput(0), (self.axes,))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Transpose", attributes={"perm": self._order(inputs[0])})

    def summary(self) -> str:
        return ",".join(str(axis) for axis in self.axes)
