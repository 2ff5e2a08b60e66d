"""ReLU."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Relu(op.Activation, type="relu", title="ReLU", synonyms=("rectifier",)):
    """max(x, 0), or `alpha * x` for negative x."""

    alpha: float = op.param(
        default=0.0, min=-100.0, max=100.0, step=0.01, doc="Slope for negative x; 0 is the standard ReLU."
    )
    examples = (op.Example((op.image(),)), op.Example((op.image(),), {"alpha": 0.1}, "leaky"))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if self.alpha == 0:
            return op.TorchCall("torch.nn.functional.relu")
        return op.TorchCall("torch.nn.functional.leaky_relu", kwargs={"negative_slope": self.alpha})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.alpha == 0:
            return op.OnnxNode("Relu")
        return op.OnnxNode("LeakyRelu", attributes={"alpha": self.alpha})

    def summary(self) -> str:
        return f"{self.alpha:g}" if self.alpha else ""
