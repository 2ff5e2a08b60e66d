"""A fixed value below a threshold."""

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


class Threshold(Activation, type="threshold", title="Threshold", synonyms=()):
    """x where it is above the threshold, `value` elsewhere."""

    threshold: float = param(default=0.0, doc="Values up to this are replaced.")
    value: float = param(default=0.0, doc="What replaces them.")
    examples = (Example((image(),), {"threshold": 0.1, "value": -1.0}),)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchCall("torch.nn.functional.threshold", kwargs={"threshold": self.threshold, "value": self.value})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        replaced = OnnxNode("LessOrEqual", (OnnxInput(0), scalar(self.threshold)))  # not so for NaN, which stays
        return OnnxNode("Where", (replaced, scalar(self.value), OnnxInput(0)))
