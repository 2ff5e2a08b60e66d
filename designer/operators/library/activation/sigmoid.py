"""Between 0 and 1."""

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


class Sigmoid(Activation, type="sigmoid", title="Sigmoid", synonyms=("logistic",)):
    """1 / (1 + exp(-x))."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.sigmoid")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Sigmoid")
