"""The logarithm of the softmax along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Activation,
    Example,
    OnnxNode,
    OnnxValue,
    TensorType,
    TorchCall,
    TorchExpr,
    image,
    param,
)
from designer.operators.shapes import axis_of


class LogSoftmax(Activation, type="log_softmax", title="Log-softmax", synonyms=()):
    """The logarithm of the softmax along an axis."""

    axis: int = param(default=1, min=-8, max=7, doc="The axis that adds up; 1 is the channels.")
    examples = (Example((image(),)), Example((TensorType((2, 5)),), {"axis": -1}, "scores"))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        axis_of(self.axis, inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.log_softmax", kwargs={"dim": self.axis})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("LogSoftmax", attributes={"axis": self.axis})

    def summary(self) -> str:
        return "" if self.axis == 1 else f"axis {self.axis}"
