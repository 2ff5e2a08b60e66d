"""Towards zero by a fixed amount."""

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


class Softshrink(Activation, type="softshrink", title="Softshrink", synonyms=("soft threshold", "shrinkage")):
    """x moved towards zero by `amount`; zero where |x| is smaller."""

    amount: float = param(default=0.5, min=0.0, max=1000.0, step=0.1, doc="How far values move.")
    examples = (Example((image(),)),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.softshrink", kwargs={"lambd": self.amount})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        # Shrink would turn NaN into 0.
        near = OnnxNode("Clip", (OnnxInput(0), scalar(-self.amount), scalar(self.amount)))
        return OnnxNode("Sub", (OnnxInput(0), near))
