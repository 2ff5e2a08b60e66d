"""Clipped to a range."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Activation,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    ShapeError,
    TensorType,
    TorchCall,
    TorchExpr,
    image,
    param,
    scalar,
)
from designer.texts import tr


class HardTanh(Activation, type="hard_tanh", title="Hard tanh", synonyms=("hardtanh", "clamp", "clip")):
    """x between two bounds, the nearer bound outside."""

    min_value: float = param(default=-1.0, doc="Lower bound.")
    max_value: float = param(default=1.0, doc="Upper bound.")
    examples = (Example((image(),)),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if self.min_value >= self.max_value:
            raise ShapeError(
                tr(
                    "the lower bound {min_value:g} is not below the upper bound {max_value:g}",
                    min_value=self.min_value,
                    max_value=self.max_value,
                ),
                remedy=tr("swap the bounds"),
            )
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.hardtanh", kwargs={"min_val": self.min_value, "max_val": self.max_value})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Clip", (OnnxInput(0), scalar(self.min_value), scalar(self.max_value)))
