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

_STRAIGHT = 20.0  # beyond this, log(1 + exp(x)) is x in fp32


class Softplus(Activation, type="softplus", title="Softplus", synonyms=("smooth relu",)):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""

    beta: float = param(default=1.0, min=0.001, max=100.0, step=0.1, doc="Sharpness of the bend at zero.")
    threshold: float = param(
        default=20.0, min=0.0, max=80.0, extension=True, doc="Where beta * x is above this, the result is x."
    )
    examples = (
        Example((image(),)),
        Example((image(),), {"beta": 3.0}, "sharper"),
        Example((image(),), {"beta": 2.0, "threshold": 0.5}, "straight early"),
    )

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.softplus", kwargs={"beta": self.beta, "threshold": self.threshold})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        x = OnnxInput(0)
        scaled = x if self.beta == 1 else OnnxNode("Mul", (x, scalar(self.beta)))
        soft: OnnxValue = OnnxNode("Softplus", (scaled,))
        if self.beta != 1:
            soft = OnnxNode("Div", (soft, scalar(self.beta)))
        if self.threshold >= _STRAIGHT:
            return soft
        return OnnxNode("Where", (OnnxNode("Greater", (scaled, scalar(self.threshold))), x, soft))
