"""A learned tensor."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchParameter,
    Weight,
    param,
)
from designer.texts import tr
from designer.units import dims_text


class LearnedTensor(
    Operator,
    type="parameter",
    title="Parameter",
    category=Category.INPUT_OUTPUT,
    synonyms=("learned tensor", "weight", "trainable constant"),
):
    """A tensor that training learns. Element-wise operators repeat its dimensions of 1, for instance for every picture."""

    inputs = ()

    shape: tuple[int, ...] = param(default=(1, 1, 1, 1), min=1, max=1_000_000, doc="Dimensions, the first one first.")
    initial: float = param(default=0.0, doc="The value of all elements before training.")
    examples = (
        Example((), {"shape": (1, 3, 1, 1), "initial": 0.5}),
        Example((), {"shape": (7,)}, "vector"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if not self.shape:
            raise ShapeError(tr("a parameter needs a shape"), remedy=tr("write its dimensions, for instance 1,3,1,1"))
        return TensorType(self.shape)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchParameter("value", self.shape, values=self.initial)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Identity", (OnnxWeight("value"),))

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        return (Weight("value", self.shape, "value", init=f"constant:{self.initial!r}"),)

    def summary(self) -> str:
        return dims_text(self.shape)
