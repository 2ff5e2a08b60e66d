"""What operators that drop something while training share."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import OnnxNode, OnnxValue, Operator, TensorType, param


class Dropping(Operator):
    """Sets a random share to zero while training, and changes nothing afterwards."""

    probability: float = param(default=0.5, min=0.0, max=1.0, step=0.05, doc="Share of values that become zero.")

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Identity")

    def summary(self) -> str:
        return f"{self.probability:g}"
