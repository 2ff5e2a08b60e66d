"""The largest or smallest values."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class TopK(
    op.Operator,
    type="top_k",
    title="Top k",
    category=op.Category.SHAPE,
    synonyms=("topk", "largest", "sort", "ranking", "beam", "best"),
):
    """The k largest or smallest values along an axis, in order, and their indices."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5, 6), dtypes=op.FLOATS),)
    outputs = (op.Port("values"), op.Port("indices"))

    k: int = op.param(default=5, min=1, max=1_000_000, doc="Number of values.")
    axis: int = op.param(default=-1, min=-8, max=7, doc="Axis of the search; 1 is the channels.")
    largest: bool = op.param(default=True, doc="The largest values; otherwise the smallest.")
    examples = (
        op.Example((op.TensorType((op.BATCH, 10)),)),
        op.Example((op.image(4),), {"k": 2, "axis": 1, "largest": False}, "smallest channels"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        x = inputs[0]
        size = known(x, self.axis)
        if self.k > size:
            raise op.ShapeError(
                tr("axis {axis} of {x} has {size} values, fewer than {k}", axis=self.axis, x=x, size=size, k=self.k),
                port="x",
                remedy=tr("reduce k"),
            )
        values = x.with_dim(axis_of(self.axis, x), self.k)
        return values, values.with_dtype(op.DataType.INT64)

    def torch(self, inputs: Sequence[op.TensorType]) -> tuple[op.TorchExpr, ...]:
        found = op.TorchCall("torch.topk", (op.TorchInput(0), self.k, self.axis, self.largest))
        return op.TorchItem(found, 0), op.TorchItem(found, 1)

    def onnx(self, inputs: Sequence[op.TensorType]) -> tuple[op.OnnxValue, ...]:
        attributes = {"axis": self.axis, "largest": int(self.largest)}
        node = op.OnnxNode("TopK", (op.OnnxInput(0), op.int64(self.k)), attributes, 2)
        return node, op.OnnxItem(node, 1)

    def summary(self) -> str:
        return f"{self.k} · axis {self.axis}"
