"""SELU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Selu(op.Activation, type="selu", title="SELU", synonyms=()):
    """A scaled ELU that preserves mean 0 and variance 1."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.selu")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Selu")
