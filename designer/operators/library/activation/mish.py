"""x times tanh of its softplus."""

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
)


class Mish(Activation, type="mish", title="Mish", synonyms=()):
    """x * tanh(log(1 + exp(x)))."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.mish")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Mul", (OnnxInput(0), OnnxNode("Tanh", (OnnxNode("Softplus"),))))
