"""Softplus."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op

_STRAIGHT = 20.0  # beyond this, log(1 + exp(x)) is x in fp32


class Softplus(op.Activation, type="softplus", title="Softplus", synonyms=("smooth relu",)):
    """log(1 + exp(beta * x)) / beta, or x if beta * x is above the threshold."""

    beta: float = op.param(default=1.0, min=0.001, max=100.0, step=0.1, doc="Sharpness of the transition at 0.")
    threshold: float = op.param(
        default=20.0, min=0.0, max=80.0, extension=True, doc="The result is x if beta * x is above this."
    )
    examples = (
        op.Example((op.image(),)),
        op.Example((op.image(),), {"beta": 3.0}, "sharper"),
        op.Example((op.image(),), {"beta": 2.0, "threshold": 0.5}, "straight early"),
    )

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.softplus", kwargs={"beta": self.beta, "threshold": self.threshold})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        x = op.OnnxInput(0)
        scaled = x if self.beta == 1 else op.OnnxNode("Mul", (x, op.scalar(self.beta)))
        soft: op.OnnxValue = op.OnnxNode("Softplus", (scaled,))
        if self.beta != 1:
            soft = op.OnnxNode("Div", (soft, op.scalar(self.beta)))
        if self.threshold >= _STRAIGHT:
            return soft
        return op.OnnxNode("Where", (op.OnnxNode("Greater", (scaled, op.scalar(self.threshold))), x, soft))
