"""Reversed axes."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import axes_of, known


class Flip(
    op.Operator,
    type="flip",
    title="Flip",
    category=op.Category.SHAPE,
    synonyms=("reverse", "mirror", "test-time augmentation", "fliplr", "flipud"),
):
    """Reverse the order of the values along axes; axis 3 mirrors an image left to right."""

    axes: tuple[int, ...] = op.param(default=(3,), min=-8, max=7, doc="Axes to reverse; 2 is the height, 3 the width.")
    examples = (op.Example((op.image(),)), op.Example((op.image(),), {"axes": (1, -2)}, "channels and height"))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        for axis in axes_of(self.axes, inputs[0]):
            known(inputs[0], axis)
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchCall("torch.flip", (op.TorchInput(0), axes_of(self.axes, inputs[0])))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        axes = axes_of(self.axes, inputs[0])
        if not axes:
            return op.OnnxNode("Identity")
        last = op.int64(*(-1 for _ in axes))
        end = op.int64(*(-(2**31) for _ in axes))
        return op.OnnxNode("Slice", (op.OnnxInput(0), last, end, op.int64(*axes), last))

    def summary(self) -> str:
        return f"axes {','.join(map(str, self.axes))}"
