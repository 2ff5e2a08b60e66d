"""Repetition over a batch."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class ExpandBatch(
    op.Operator,
    type="expand_batch",
    title="Expand batch",
    category=op.Category.SHAPE,
    synonyms=("class token", "broadcast to batch", "repeat", "expand as"),
):
    """Repeat a tensor with a batch of 1 for each sample of another tensor, for instance a learned class token."""

    inputs = (op.Port("x", rank=(1, 2, 3, 4, 5, 6), dtypes=op.FLOATS), op.Port("like", rank=(1, 2, 3, 4, 5, 6)))
    examples = (
        op.Example((op.TensorType((1, 3, 4)), op.image())),
        op.Example((op.TensorType((1, 5)), op.TensorType((op.BATCH, 7), op.DataType.INT64)), name="of token ids"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x, like = inputs
        if x.shape[0] != 1:
            raise op.ShapeError(
                tr("the batch of {x} must be 1", x=x),
                port="x",
                remedy=tr("connect a tensor with a batch of 1, such as a Parameter"),
            )
        return x.with_shape(like.shape[0], *x.shape[1:])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        batch = op.TorchMethod("size", op.TorchInput(1), (0,))
        return op.TorchMethod("expand", op.TorchInput(0), (batch, *(-1,) * (inputs[0].rank - 1)))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        batch = op.OnnxNode("Shape", (op.OnnxInput(1),), {"start": 0, "end": 1})
        rest = op.int64(*(1,) * (inputs[0].rank - 1))
        shape = op.OnnxNode("Concat", (batch, rest), {"axis": 0}) if inputs[0].rank > 1 else batch
        return op.OnnxNode("Expand", (op.OnnxInput(0), shape))
