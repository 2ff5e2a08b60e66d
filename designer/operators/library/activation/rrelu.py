"""A random slope below zero."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Activation,
    Example,
    OnnxNode,
    OnnxValue,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchModule,
    image,
    param,
)
from designer.texts import tr


class Rrelu(Activation, type="rrelu", title="RReLU", synonyms=("randomised leaky relu",)):
    """x above zero; below, x times a slope drawn at random while training and the mean of the bounds afterwards."""

    lower: float = param(default=0.125, min=0.0, max=1.0, step=0.01, doc="Smallest slope.")
    upper: float = param(default=0.3333333333333333, min=0.0, max=1.0, step=0.01, doc="Largest slope.")
    examples = (Example((image(),)),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if self.lower > self.upper:
            raise ShapeError(
                tr("the lower bound {lower:g} is above the upper bound {upper:g}", lower=self.lower, upper=self.upper),
                remedy=tr("swap the bounds"),
            )
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule("torch.nn.RReLU", {"lower": self.lower, "upper": self.upper})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("LeakyRelu", attributes={"alpha": (self.lower + self.upper) / 2})
