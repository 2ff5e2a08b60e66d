"""Hard swish."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class HardSwish(op.Activation, type="hard_swish", title="Hard swish", synonyms=("hardswish",)):
    """x * min(max(x + 3, 0), 6) / 6."""

    examples = (op.Example((op.image(),)),)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.hardswish")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("HardSwish")
