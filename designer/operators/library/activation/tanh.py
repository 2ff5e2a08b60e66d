"""Between -1 and 1."""

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


class Tanh(Activation, type="tanh", title="Tanh", synonyms=("hyperbolic tangent",)):
    """The hyperbolic tangent."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.tanh")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Tanh")
