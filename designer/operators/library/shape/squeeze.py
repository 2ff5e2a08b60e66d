"""Axes of size 1 go."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    int64,
    param,
)
from designer.operators.shapes import axes_of
from designer.texts import tr


class Squeeze(
    Operator, type="squeeze", title="Squeeze", category=Category.SHAPE, synonyms=("drop axis", "remove dimension")
):
    """Drop axes of size 1."""

    axes: tuple[int, ...] = param(default=(2, 3), min=-8, max=7, doc="The axes that go; each has size 1.")
    examples = (Example((image(3, 1, 1),)), Example((image(1, 4, 5),), {"axes": (-3,)}, "channel"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0]
        gone = axes_of(self.axes, x)
        for axis in gone:
            if x.shape[axis] != 1:
                raise ShapeError(
                    tr("axis {axis} of {x} has size {shape}, not 1", axis=axis, x=x, shape=x.shape[axis]),
                    port="x",
                    remedy=tr("name axes of size 1, or use Reduce or Selector"),
                )
        return x.with_shape(*(size for axis, size in enumerate(x.shape) if axis not in gone))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchMethod("squeeze", TorchInput(0), (self.axes,)) if self.axes else TorchInput(0)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Squeeze", (OnnxInput(0), int64(*self.axes))) if self.axes else OnnxNode("Identity")

    def summary(self) -> str:
        return f"axes {','.join(str(axis) for axis in self.axes)}"
