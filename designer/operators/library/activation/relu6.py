"""ReLU6."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Relu6(op.Activation, type="relu6", title="ReLU6", synonyms=()):
    """min(max(x, 0), 6)."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.relu6")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Clip", (op.OnnxInput(0), op.scalar(0.0), op.scalar(6.0)))
