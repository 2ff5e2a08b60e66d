"""Shared parts of dropout operators."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Dropping(op.Operator):
    """Sets random values to zero in training; identity in inference."""

    probability: float = op.param(
        default=0.5, min=0.0, max=1.0, step=0.05, doc="Probability of a value to be set to zero."
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Identity")

    def summary(self) -> str:
        return f"{self.probability:g}"
