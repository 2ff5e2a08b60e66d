"""Gaussian error linear unit."""

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


class Gelu(Activation, type="gelu", title="GELU", synonyms=("gaussian error",)):
    """x times the share of a normal distribution below x."""

    approximate: str = param(default="none", choices=("none", "tanh"), doc="Exact, or the approximation with tanh.")
    examples = (Example((image(),)), Example((image(),), {"approximate": "tanh"}, "tanh form"))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.gelu", kwargs={"approximate": self.approximate})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Gelu", attributes={"approximate": self.approximate})

    def summary(self) -> str:
        return "" if self.approximate == "none" else self.approximate
