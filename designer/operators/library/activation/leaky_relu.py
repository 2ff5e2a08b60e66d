"""A small slope below zero."""

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


class LeakyRelu(Activation, type="leaky_relu", title="Leaky ReLU", synonyms=("lrelu",)):
    """x above zero, `negative_slope * x` below."""

    negative_slope: float = param(default=0.01, min=-100.0, max=100.0, step=0.01, doc="Slope below zero.")
    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.leaky_relu", kwargs={"negative_slope": self.negative_slope})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("LeakyRelu", attributes={"alpha": self.negative_slope})

    def summary(self) -> str:
        return f"{self.negative_slope:g}"
