"""A new axis of size 1."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    BATCH,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    ShapeError,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    int64,
    param,
)
from designer.texts import tr


class Unsqueeze(
    Operator, type="unsqueeze", title="Unsqueeze", category=Category.SHAPE, synonyms=("add axis", "expand dims")
):
    """Insert an axis of size 1."""

    axis: int = param(default=1, min=-8, max=7, doc="Where the new axis is; negative counts from the end.")
    examples = (Example((TensorType((BATCH, 4)),)), Example((image(3, 4, 5),), {"axis": -1}, "last"))

    def _axis(self, x: TensorType) -> int:
        if not -x.rank - 1 <= self.axis <= x.rank:
            raise ShapeError(
                tr("a new axis {axis} cannot be put into {x} (rank {rank})", axis=self.axis, x=x, rank=x.rank),
                port="x",
                remedy=tr("choose an axis that is not beyond the last one"),
            )
        return self.axis % (x.rank + 1)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        axis = self._axis(inputs[0])
        return inputs[0].with_shape(*inputs[0].shape[:axis], 1, *inputs[0].shape[axis:])

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchMethod("unsqueeze", TorchInput(0), (self.axis,))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return OnnxNode("Unsqueeze", (OnnxInput(0), int64(self.axis)))

    def summary(self) -> str:
        return f"axis {self.axis}"
