"""Exponential below zero."""

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


class Elu(Activation, type="elu", title="ELU", synonyms=()):
    """x above zero, `alpha * (exp(x) - 1)` below."""

    alpha: float = param(default=1.0, min=-100.0, max=100.0, step=0.1, doc="Minus the limit for very negative values.")
    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.elu", kwargs={"alpha": self.alpha})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Elu", attributes={"alpha": self.alpha})
