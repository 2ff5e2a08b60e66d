"""Towards zero by a fixed amount."""

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


class Softshrink(Activation, type="softshrink", title="Softshrink", synonyms=("soft threshold", "shrinkage")):
    """x moved towards zero by `amount`; zero where |x| is smaller."""

    amount: float = param(default=0.5, min=0.0, max=1000.0, step=0.1, doc="How far values move.")
    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.softshrink", kwargs={"lambd": self.amount})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Shrink", attributes={"lambd": self.amount, "bias": self.amount})
