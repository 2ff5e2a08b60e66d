"""Unsqueeze."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import new_axis


class Unsqueeze(
    op.Operator, type="unsqueeze", title="Unsqueeze", category=op.Category.SHAPE, synonyms=("add axis", "expand dims")
):
    """Insert an axis of size 1."""

    axis: int = op.param(default=1, min=-8, max=7, doc="Position of the new axis; negative counts from the end.")
    examples = (op.Example((op.TensorType((op.BATCH, 4)),)), op.Example((op.image(3, 4, 5),), {"axis": -1}, "last"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis = new_axis(self.axis, inputs[0])
        return inputs[0].with_shape(*inputs[0].shape[:axis], 1, *inputs[0].shape[axis:])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("unsqueeze", op.TorchInput(0), (self.axis,))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Unsqueeze", (op.OnnxInput(0), op.int64(self.axis)))

    def summary(self) -> str:
        return f"axis {self.axis}"
