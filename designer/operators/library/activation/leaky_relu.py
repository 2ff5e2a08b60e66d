"""Leaky ReLU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class LeakyRelu(op.Activation, type="leaky_relu", title="Leaky ReLU", synonyms=("lrelu",)):
    """x if x > 0, otherwise `negative_slope * x`."""

    negative_slope: float = op.param(default=0.01, min=-100.0, max=100.0, step=0.01, doc="Slope for negative x.")

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.leaky_relu", kwargs={"negative_slope": self.negative_slope})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("LeakyRelu", attributes={"alpha": self.negative_slope})

    def summary(self) -> str:
        return f"{self.negative_slope:g}"
