"""Zero below zero."""

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


class Relu(Activation, type="relu", title="ReLU", synonyms=("rectifier",)):
    """max(x, 0), or `alpha * x` below zero."""

    alpha: float = param(default=0.0, min=-100.0, max=100.0, step=0.01, doc="Slope below zero; 0 is the plain ReLU.")
    examples = (Example((image(),)), Example((image(),), {"alpha": 0.1}, "leaky"))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        if self.alpha == 0:
            return TorchCall("torch.nn.functional.relu")
        return TorchCall("torch.nn.functional.leaky_relu", kwargs={"negative_slope": self.alpha})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        if self.alpha == 0:
            return OnnxNode("Relu")
        return OnnxNode("LeakyRelu", attributes={"alpha": self.alpha})

    def summary(self) -> str:
        return f"{self.alpha:g}" if self.alpha else ""
