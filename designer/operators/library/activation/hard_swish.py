"""A swish of straight lines."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Activation,
    Example,
    OnnxNode,
    OnnxValue,
    TensorType,
    TorchCall,
    TorchExpr,
    image,
)


class HardSwish(Activation, type="hard_swish", title="Hard swish", synonyms=("hardswish",)):
    """x * min(max(x + 3, 0), 6) / 6."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.hardswish")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("HardSwish")
