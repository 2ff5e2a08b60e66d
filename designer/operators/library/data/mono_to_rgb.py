"""Mono to RGB."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class MonoToRgb(
    op.Operator,
    type="mono_to_rgb",
    title="Mono to RGB",
    category=op.Category.DATA,
    synonyms=("gray to rgb", "grayscale", "repeat channel"),
):
    """Repeat a single channel three times, to use a gray image as a color image."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)
    examples = (op.Example((op.image(1, 4, 5),)),)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        if x.c != 1:
            raise op.ShapeError(
                tr("the input must have one channel, not {c}", c=x.c),
                port="x",
                remedy=tr("select one with a Selector layer"),
            )
        return inputs[0].with_dim(1, 3)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchMethod("expand", op.TorchInput(0), (-1, 3, -1, -1))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return op.OnnxNode("Expand", (op.OnnxInput(0), op.int64(1, 3, 1, 1)))
