"""What operators that drop something while training share."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Dropping(op.Operator):
    """Sets a random share to zero while training, and changes nothing afterwards."""

    probability: float = op.param(default=0.5, min=0.0, max=1.0, step=0.05, doc="Share of values that become zero.")

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Identity")

    def summary(self) -> str:
        return f"{self.probability:g}"
