"""GLU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of, divisible, known


class Glu(op.Activation, type="glu", title="GLU", synonyms=("gated linear unit", "gate")):
    """The first half of an axis times the sigmoid of the second half."""

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis that is halved; 1 is the channels.")
    examples = (op.Example((op.image(4),)), op.Example((op.TensorType((2, 6)),), {"axis": -1}, "table"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis = axis_of(self.axis, inputs[0])
        size = known(inputs[0], axis)
        divisible(f"values along axis {axis}", size, 2, "halves")
        return inputs[0].with_dim(axis, size // 2)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.glu", kwargs={"dim": self.axis})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        halves = op.OnnxNode("Split", (op.OnnxInput(0),), {"axis": self.axis, "num_outputs": 2}, outputs=2)
        return op.OnnxNode("Mul", (op.OnnxItem(halves, 0), op.OnnxNode("Sigmoid", (op.OnnxItem(halves, 1),))))
