"""Random channels of zeros while training."""

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


class Dropout2d(
    Operator,
    type="dropout_2d",
    title="Dropout 2D",
    category=Category.TRAINING,
    synonyms=("spatial dropout", "channel dropout"),
):
    """While training, set whole channels to zero at random and enlarge the others; afterwards it changes nothing."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    probability: float = param(default=0.5, min=0.0, max=1.0, step=0.05, doc="Share of channels that become zero.")
    examples = (Example((image(),), {"probability": 0.1}),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchModule("torch.nn.Dropout2d", {"p": self.probability})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Identity")

    def summary(self) -> str:
        return f"{self.probability:g}"
