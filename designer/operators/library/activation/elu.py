"""ELU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Elu(op.Activation, type="elu", title="ELU"):
    """x if x > 0, otherwise `alpha * (exp(x) - 1)`."""

    alpha: float = op.param(
        default=1.0, min=-100.0, max=100.0, step=0.1, doc="Negative of the limit for very negative values."
    )

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.elu", kwargs={"alpha": self.alpha})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Elu", attributes={"alpha": self.alpha})
