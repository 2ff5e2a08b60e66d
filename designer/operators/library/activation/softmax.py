"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from designer.operators import api as op
from designer.operators.shapes import axis_of


class Softmax(op.Activation, type="softmax", title="Softmax", synonyms=("probabilities",)):
    """exp(x) divided by its sum along an axis."""

    function: ClassVar[str] = "torch.nn.functional.softmax"
    node: ClassVar[str] = "Softmax"

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of the sum; 1 is the channels.")
    examples = (op.Example((op.image(),)), op.Example((op.TensorType((2, 5)),), {"axis": -1}, "scores"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis_of(self.axis, inputs[0])
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall(self.function, kwargs={"dim": self.axis})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode(self.node, attributes={"axis": self.axis})

    def summary(self) -> str:
        return "" if self.axis == 1 else f"axis {self.axis}"


class LogSoftmax(Softmax, type="log_softmax", title="Log-softmax"):
    """The logarithm of the softmax along an axis."""

    function = "torch.nn.functional.log_softmax"
    node = "LogSoftmax"
