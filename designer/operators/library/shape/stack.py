"""Stack."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import new_axis, same_shape


class Stack(
    op.Operator, type="stack", title="Stack", category=op.Category.SHAPE, synonyms=("new axis", "join", "batch up")
):
    """Stack tensors of the same shape along a new axis."""

    inputs = (op.Port("x", variadic=True),)

    axis: int = op.param(default=1, min=-8, max=7, doc="Position of the new axis; negative counts from the end.")
    examples = (
        op.Example((op.image(3), op.image(3), op.image(3))),
        op.Example((op.TensorType((op.BATCH, 4)), op.TensorType((op.BATCH, 4))), {"axis": -1}, "last"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        first = inputs[0]
        for other in inputs[1:]:
            same_shape(first, other, "x")
        axis = new_axis(self.axis, first)
        return first.with_shape(*first.shape[:axis], len(inputs), *first.shape[axis:])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.stack", (tuple(op.TorchInput(i) for i in range(len(inputs))),), {"dim": self.axis})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        axis = new_axis(self.axis, inputs[0])
        parts = tuple(op.OnnxNode("Unsqueeze", (op.OnnxInput(i), op.int64(axis))) for i in range(len(inputs)))
        return op.OnnxNode("Concat", parts, {"axis": axis})

    def summary(self) -> str:
        return f"axis {self.axis}"
