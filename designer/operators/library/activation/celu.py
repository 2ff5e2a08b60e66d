"""Smooth exponential unit."""

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
    param,
)


class Celu(Activation, type="celu", title="CELU", synonyms=()):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""

    alpha: float = param(default=1.0, min=0.001, max=100.0, step=0.1, doc="Minus the limit for very negative values.")
    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.celu", kwargs={"alpha": self.alpha})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Celu", attributes={"alpha": self.alpha})
