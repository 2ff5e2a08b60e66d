"""Sigmoid."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Sigmoid(op.Activation, type="sigmoid", title="Sigmoid", synonyms=("logistic",)):
    """1 / (1 + exp(-x))."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.sigmoid")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Sigmoid")
