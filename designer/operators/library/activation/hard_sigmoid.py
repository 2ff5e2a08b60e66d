"""A sigmoid of straight lines."""

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


class HardSigmoid(Activation, type="hard_sigmoid", title="Hard sigmoid", synonyms=()):
    """min(max(x + 3, 0), 6) / 6."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.hardsigmoid")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("HardSigmoid", attributes={"alpha": 1 / 6, "beta": 0.5})
