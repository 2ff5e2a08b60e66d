"""Log-softmax."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of


class LogSoftmax(op.Activation, type="log_softmax", title="Log-softmax", synonyms=()):
    """The logarithm of the softmax along an axis."""

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of the sum; 1 is the channels.")
    examples = (op.Example((op.image(),)), op.Example((op.TensorType((2, 5)),), {"axis": -1}, "scores"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis_of(self.axis, inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.log_softmax", kwargs={"dim": self.axis})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("LogSoftmax", attributes={"axis": self.axis})

    def summary(self) -> str:
        return "" if self.axis == 1 else f"axis {self.axis}"
