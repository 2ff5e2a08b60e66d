"""Softshrink."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Softshrink(op.Activation, type="softshrink", title="Softshrink", synonyms=("soft threshold", "shrinkage")):
    """x moved towards 0 by `amount`; 0 if |x| is smaller."""

    amount: float = op.param(default=0.5, min=0.0, max=1000.0, step=0.1, doc="Amount of shrinkage.")

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.nn.functional.softshrink", kwargs={"lambd": self.amount})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        # Shrink would turn NaN into 0.
        near = op.OnnxNode("Clip", (op.OnnxInput(0), op.scalar(-self.amount), op.scalar(self.amount)))
        return op.OnnxNode("Sub", (op.OnnxInput(0), near))
