"""Hard sigmoid."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class HardSigmoid(op.Activation, type="hard_sigmoid", title="Hard sigmoid", synonyms=()):
    """min(max(x + 3, 0), 6) / 6."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.hardsigmoid")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("HardSigmoid", attributes={"alpha": 1 / 6, "beta": 0.5})
