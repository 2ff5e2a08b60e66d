"""Zero below zero, at most 6."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Activation,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    TensorType,
    TorchCall,
    TorchExpr,
    image,
    scalar,
)


class Relu6(Activation, type="relu6", title="ReLU6", synonyms=()):
    """min(max(x, 0), 6)."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.relu6")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Clip", (OnnxInput(0), scalar(0.0), scalar(6.0)))
