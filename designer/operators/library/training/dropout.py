"""Random zeros while training."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    TensorType,
    TorchExpr,
    TorchModule,
    image,
    param,
)


class Dropout(
    Operator,
    type="dropout",
    title="Dropout",
    category=Category.TRAINING,
    synonyms=("regularisation", "regularization", "drop"),
):
    """While training, set values to zero at random and enlarge the others; afterwards it changes nothing."""

    inputs = (Port("x", dtypes=FLOATS),)

    probability: float = param(default=0.5, min=0.0, max=1.0, step=0.05, doc="Share of values that become zero.")
    examples = (Example((image(),), {"probability": 0.1}),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule("torch.nn.Dropout", {"p": self.probability})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Identity")

    def summary(self) -> str:
        return f"{self.probability:g}"
