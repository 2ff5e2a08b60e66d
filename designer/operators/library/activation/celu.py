"""CELU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Celu(op.Activation, type="celu", title="CELU"):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""

    alpha: float = op.param(
        default=1.0, min=0.001, max=100.0, step=0.1, doc="Negative of the limit for very negative values."
    )

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.celu", kwargs={"alpha": self.alpha})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Celu", attributes={"alpha": self.alpha})
