"""SiLU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Silu(op.Activation, type="silu", title="SiLU", synonyms=("swish",)):
    """x * sigmoid(x), also called swish."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.silu")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Mul", (op.OnnxInput(0), op.OnnxNode("Sigmoid")))
