"""Hard tanh."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class HardTanh(op.Activation, type="hard_tanh", title="Hard tanh", synonyms=("hardtanh", "clamp", "clip")):
    """x clipped to a range."""

    min_value: float = op.param(default=-1.0, doc="Lower bound.")
    max_value: float = op.param(default=1.0, doc="Upper bound.")

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self.min_value >= self.max_value:
            raise op.ShapeError(
                tr(
                    "the lower bound {min_value:g} must be less than the upper bound {max_value:g}",
                    min_value=self.min_value,
                    max_value=self.max_value,
                ),
                remedy=tr("swap the bounds"),
            )
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall(
            "torch.nn.functional.hardtanh", kwargs={"min_val": self.min_value, "max_val": self.max_value}
        )

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Clip", (op.OnnxInput(0), op.scalar(self.min_value), op.scalar(self.max_value)))
