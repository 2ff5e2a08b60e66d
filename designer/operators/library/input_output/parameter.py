"""Learned tensors."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr
from designer.units import dims_text


class LearnedTensor(
    op.Operator,
    type="parameter",
    title="Parameter",
    category=op.Category.INPUT_OUTPUT,
    synonyms=("learned tensor", "weight", "trainable constant"),
):
    """A learned tensor. Element-wise operators broadcast its dimensions of 1, for instance over the batch."""

    inputs = ()

    shape: tuple[int, ...] = op.param(
        default=(1, 1, 1, 1), min=1, max=1_000_000, doc="Shape, outermost dimension first."
    )
    initial: float = op.param(default=0.0, doc="Initial value of all elements.")
    examples = (
        op.Example((), {"shape": (1, 3, 1, 1), "initial": 0.5}),
        op.Example((), {"shape": (7,)}, "vector"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if not self.shape:
            raise op.ShapeError(
                tr("a parameter must have a shape"), remedy=tr("enter its dimensions, for instance 1,3,1,1")
            )
        return op.TensorType(self.shape)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchParameter("value", self.shape, values=self.initial)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Identity", (op.OnnxWeight("value"),))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        return (op.Weight("value", self.shape, "value", init=f"constant:{self.initial!r}"),)

    def summary(self) -> str:
        return dims_text(self.shape)
