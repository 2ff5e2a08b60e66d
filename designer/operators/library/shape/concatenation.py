"""Concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axis_of, known
from designer.texts import tr


class Concatenation(
    op.Operator,
    type="concatenation",
    title="Concatenation",
    category=op.Category.SHAPE,
    synonyms=("concat", "cat", "join", "skip connection"),
):
    """Concatenate tensors along an axis; axis 1 is the channels. All other dimensions must be equal."""

    inputs = (op.Port("x", variadic=True),)

    axis: int = op.param(default=1, min=-8, max=7, doc="Axis of concatenation; negative counts from the end.")
    examples = (
        op.Example((op.image(3), op.image(5), op.image(2))),
        op.Example((op.image(3, 4, 5), op.image(3, 4, 2)), {"axis": -1}, "side by side"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        first = inputs[0]
        axis = axis_of(self.axis, first)
        total = 0
        for number, tensor in enumerate(inputs, start=1):
            rest = tensor.shape[:axis] + tensor.shape[axis + 1 :]
            if tensor.rank != first.rank or rest != first.shape[:axis] + first.shape[axis + 1 :]:
                raise op.ShapeError(
                    tr(
                        "input {number} is {tensor} but must match {first} except along axis {axis}",
                        number=number,
                        tensor=tensor,
                        first=first,
                        axis=axis,
                    ),
                    port="x",
                    remedy=tr("crop or resize it"),
                )
            if tensor.dtype != first.dtype:
                raise op.ShapeError(
                    tr(
                        "input {number} is {dtype} but the first input is {first}",
                        number=number,
                        dtype=tensor.dtype.value,
                        first=first.dtype.value,
                    ),
                    port="x",
                    remedy=tr("insert a Convert type layer before one of them"),
                )
            total += known(tensor, axis)
        return first.with_dim(axis, total)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.cat", (tuple(op.TorchInput(i) for i in range(len(inputs))),), {"dim": self.axis})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Concat", tuple(op.OnnxInput(i) for i in range(len(inputs))), {"axis": self.axis})

    def summary(self) -> str:
        return "" if self.axis == 1 else f"axis {self.axis}"
