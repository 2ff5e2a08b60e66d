"""Tanh."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Tanh(op.Activation, type="tanh", title="Tanh", synonyms=("hyperbolic tangent",)):
    """The hyperbolic tangent."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.tanh")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Tanh")
