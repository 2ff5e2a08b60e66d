"""Mish."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Mish(op.Activation, type="mish", title="Mish", synonyms=()):
    """x * tanh(log(1 + exp(x)))."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.mish")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Mul", (op.OnnxInput(0), op.OnnxNode("Tanh", (op.OnnxNode("Softplus"),))))
