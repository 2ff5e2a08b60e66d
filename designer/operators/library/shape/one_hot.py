"""One-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr

_LABELS = op.TensorType((op.BATCH, 4), op.DataType.INT64)


class OneHot(
    op.Operator,
    type="one_hot",
    title="One hot",
    category=op.Category.SHAPE,
    synonyms=("one-hot", "class vector", "indicator", "dummy variables"),
):
    """Replace each index by a vector that is `on` at the index and `off` elsewhere.

    Negative indices count from the end. Vectors of indices outside of -depth to depth - 1 are `off` everywhere.
    """

    inputs = (op.Port("index", dtypes=(op.DataType.INT64,)),)

    depth: int = op.param(default=10, min=1, max=1_000_000, doc="Size of the vectors.")
    axis: int = op.param(default=-1, min=-8, max=7, doc="Position of the new axis; negative counts from the end.")
    on: float = op.param(default=1.0, doc="Value at the index.")
    off: float = op.param(default=0.0, doc="Value elsewhere.")
    examples = (
        op.Example((_LABELS,), {"depth": 6}),
        op.Example((_LABELS,), {"depth": 3, "axis": 1, "on": 0.9, "off": 0.1}, "smoothed, as channels"),
    )

    def _axis(self, index: op.TensorType) -> int:
        rank = index.rank + 1
        if not -rank <= self.axis < rank:
            raise op.ShapeError(
                tr("a new axis {axis} cannot be inserted into {index}", axis=self.axis, index=index),
                port="index",
                remedy=tr("choose an axis from {low} to {high}", low=-rank, high=rank - 1),
            )
        return self.axis % rank

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        axis = self._axis(inputs[0])
        shape = inputs[0].shape
        return op.TensorType((*shape[:axis], self.depth, *shape[axis:]))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axis = self._axis(inputs[0])
        numbers = op.TorchParameter(
            "classes", (self.depth,), values=tuple(range(self.depth)), trainable=False, persistent=False, dtype="int64"
        )
        shape = (self.depth, *(1,) * (inputs[0].rank - axis))
        given = op.TorchMethod("unsqueeze", op.TorchInput(0), (axis,))
        from_the_end = op.TorchMethod("add", given, (self.depth,))
        index = op.TorchCall("torch.where", (op.TorchCall("torch.lt", (given, 0)), from_the_end, given))
        same = op.TorchCall("torch.eq", (index, op.TorchMethod("reshape", numbers, (shape,))))
        return op.TorchCall("torch.where", (same, self.on, self.off))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        values = op.OnnxConstant((self.off, self.on))
        return op.OnnxNode("OneHot", (op.OnnxInput(0), op.int64(self.depth), values), {"axis": self._axis(inputs[0])})

    def summary(self) -> str:
        return str(self.depth)
