"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of


class Cumulative(
    op.Operator,
    type="cumulative",
    title="Cumulative",
    category=op.Category.ELEMENT_WISE,
    synonyms=("cumsum", "prefix sum", "running sum", "integral image", "scan"),
):
    """The sum of all values up to each position along an axis."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5, 6), dtypes=op.FLOATS),)

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of the sum.")
    exclusive: bool = op.param(default=False, doc="Leave out the value at the position.")
    reverse: bool = op.param(default=False, doc="Sum from the end.")
    examples = (
        op.Example((op.image(),)),
        op.Example((op.image(),), {"axis": -1, "exclusive": True}, "exclusive"),
        op.Example((op.image(),), {"axis": 2, "reverse": True}, "from the end"),
        op.Example((op.image(),), {"axis": 2, "reverse": True, "exclusive": True}, "both"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis_of(self.axis, inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axis = axis_of(self.axis, inputs[0])
        x: op.TorchExpr = op.TorchInput(0)
        if self.reverse:
            x = op.TorchMethod("flip", x, (axis,))
        if self.exclusive:
            later_axes = (0, 0) * (inputs[0].rank - 1 - axis)
            x = op.TorchCall("torch.nn.functional.pad", (x, (*later_axes, 1, -1)))  # 0 in front, without the last
        x = op.TorchCall("torch.cumsum", (x, axis))
        return op.TorchMethod("flip", x, (axis,)) if self.reverse else x

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        axis = op.OnnxConstant(axis_of(self.axis, inputs[0]), "int64")
        attributes = {"exclusive": int(self.exclusive), "reverse": int(self.reverse)}
        return op.OnnxNode("CumSum", (op.OnnxInput(0), axis), attributes)

    def summary(self) -> str:
        return f"axis {self.axis}"
