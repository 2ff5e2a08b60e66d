"""GELU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Gelu(op.Activation, type="gelu", title="GELU", synonyms=("gaussian error",)):
    """x times the cumulative distribution function of the standard normal distribution."""

    approximate: str = op.param(default="none", choices=("none", "tanh"), doc="none (exact) or the tanh approximation.")
    examples = (op.Example((op.image(),)), op.Example((op.image(),), {"approximate": "tanh"}, "tanh form"))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.gelu", kwargs={"approximate": self.approximate})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Gelu", attributes={"approximate": self.approximate})

    def summary(self) -> str:
        return "" if self.approximate == "none" else self.approximate
