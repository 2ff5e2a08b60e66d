"""Softsign."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Softsign(op.Activation, type="softsign", title="Softsign", synonyms=()):
    """x / (1 + |x|), between -1 and 1."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.softsign")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Softsign")
