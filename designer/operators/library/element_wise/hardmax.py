"""Hardmax."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of, known


class Hardmax(
    op.Operator,
    type="hardmax",
    title="Hardmax",
    category=op.Category.ELEMENT_WISE,
    synonyms=("winner", "argmax one hot", "hard attention"),
):
    """1 for the first of the largest values along an axis, 0 for the others."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5), dtypes=op.FLOATS),)

    axis: int = op.param(default=-1, min=-8, max=7, doc="Axis of the comparison; 1 is the channels.")
    examples = (op.Example((op.TensorType((op.BATCH, 6)),)), op.Example((op.image(),), {"axis": 1}, "channels"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        known(inputs[0], self.axis)
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axis = axis_of(self.axis, inputs[0])
        found = op.TorchCall("torch.argmax", (op.TorchInput(0), axis))
        chosen = op.TorchCall("torch.nn.functional.one_hot", (found, known(inputs[0], axis)))
        moved = op.TorchMethod("movedim", chosen, (-1, axis))
        return op.TorchMethod("to", moved, (op.TorchName("torch.float32"),))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Hardmax", attributes={"axis": self.axis})

    def summary(self) -> str:
        return f"axis {self.axis}"
