"""Threshold."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Threshold(op.Activation, type="threshold", title="Threshold"):
    """x if x is above the threshold, otherwise `value`."""

    threshold: float = op.param(default=0.0, doc="Values up to this are replaced.")
    value: float = op.param(default=0.0, doc="Replacement value.")
    examples = (op.Example((op.image(),), {"threshold": 0.1, "value": -1.0}),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.threshold", kwargs={"threshold": self.threshold, "value": self.value})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        replaced = op.OnnxNode("LessOrEqual", (op.OnnxInput(0), op.scalar(self.threshold)))  # preserves NaN
        return op.OnnxNode("Where", (replaced, op.scalar(self.value), op.OnnxInput(0)))
