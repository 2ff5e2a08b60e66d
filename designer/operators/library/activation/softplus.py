"""A smooth ReLU."""

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
    param,
    scalar,
)


class Softplus(Activation, type="softplus", title="Softplus", synonyms=("smooth relu",)):
    """log(1 + exp(beta * x)) / beta."""

    beta: float = param(default=1.0, min=0.001, max=100.0, step=0.1, doc="Sharpness of the bend at zero.")
    examples = (Example((image(),)), Example((image(),), {"beta": 3.0}, "sharper"))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.softplus", kwargs={"beta": self.beta})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        if self.beta == 1:
            return OnnxNode("Softplus")
        soft = OnnxNode("Softplus", (OnnxNode("Mul", (OnnxInput(0), scalar(self.beta))),))
        return OnnxNode("Div", (soft, scalar(self.beta)))
