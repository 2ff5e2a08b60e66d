"""x times its sigmoid."""

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


class Silu(Activation, type="silu", title="SiLU", synonyms=("swish",)):
    """x * sigmoid(x), also called swish."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.silu")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Mul", (OnnxInput(0), OnnxNode("Sigmoid")))
