"""RReLU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class Rrelu(op.Activation, type="rrelu", title="RReLU", synonyms=("randomized leaky relu",)):
    """x if x > 0, otherwise x times a slope: random in training, the mean of the bounds in inference."""

    lower: float = op.param(default=0.125, min=0.0, max=1.0, step=0.01, doc="Smallest slope.")
    upper: float = op.param(default=0.3333333333333333, min=0.0, max=1.0, step=0.01, doc="Largest slope.")

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.lower > self.upper:
            raise op.ShapeError(
                tr(
                    "the lower bound {lower:g} must not exceed the upper bound {upper:g}",
                    lower=self.lower,
                    upper=self.upper,
                ),
                remedy=tr("swap the bounds"),
            )
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchModule("torch.nn.RReLU", {"lower": self.lower, "upper": self.upper})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("LeakyRelu", attributes={"alpha": (self.lower + self.upper) / 2})
