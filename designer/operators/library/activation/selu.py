"""Self-normalising exponential unit."""

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


class Selu(Activation, type="selu", title="SELU", synonyms=()):
    """A scaled ELU whose outputs keep mean 0 and variance 1."""

    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.selu")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Selu")
