"""Removal of padding from a result."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class CropPadding(
    op.Operator,
    type="crop_padding",
    title="Crop padding",
    category=op.Category.SHAPE,
    synonyms=("unpad", "crop back", "remove padding"),
):
    """Crop at the right and bottom what padding added to an input of the network.

    For a result `multiply` / `divide` times the size of the input, this many rows and columns are cropped per padded one,
    rounded down. At least one row and column remain.
    """

    inputs = (
        op.Port("x", rank=4),
        op.Port("original", rank=4, doc="The image before padding."),
        op.Port("padded", rank=4, doc="The image after padding."),
    )

    multiply: op.Size2D = op.param(
        default=op.Size2D(1, 1), min=0, max=4096, doc="Numerator of the scale of the result."
    )
    divide: op.Size2D = op.param(
        default=op.Size2D(1, 1), min=1, max=4096, doc="Denominator of the scale of the result."
    )
    examples = (
        op.Example((op.image(3, 8, 8), op.image(1, 5, 6), op.image(1, 8, 8))),
        op.Example(
            (op.image(3, 16, 4), op.image(1, 5, 6), op.image(1, 8, 8)),
            {"multiply": op.Size2D(1, 2), "divide": op.Size2D(2, 1)},
            "other scales",
        ),
        op.Example((op.image(3, 2, 2), op.image(1, 1, 1), op.image(1, 8, 8)), name="one pixel remains"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x, original, padded = (kind.image() for kind in inputs)
        if padded.h < original.h or padded.w < original.w:
            raise op.ShapeError(
                tr("the padded image {padded} is smaller than {original}", padded=inputs[2], original=inputs[1]),
                port="padded",
                remedy=tr("connect the image before padding to 'original'"),
            )
        rows = (padded.h - original.h) * self.multiply.height // self.divide.height
        columns = (padded.w - original.w) * self.multiply.width // self.divide.width
        return inputs[0].with_shape(x.n, x.c, max(x.h - rows, 1), max(x.w - columns, 1))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kept: op.TorchExpr = op.TorchInput(0)
        for axis, multiply, divide in zip((2, 3), self.multiply.hw, self.divide.hw, strict=True):
            size, original, padded = (
                op.TorchCall("torch.tensor", (op.TorchMethod("size", op.TorchInput(index), (axis,)),))
                for index in range(3)
            )
            added = op.TorchCall("torch.mul", (op.TorchCall("torch.sub", (padded, original)), multiply))
            length = op.TorchCall("torch.sub", (size, op.TorchCall("torch.floor_divide", (added, divide))))
            kept = op.TorchCall("torch.narrow", (kept, axis, 0, op.TorchCall("torch.clamp", (length,), {"min": 1})))
        return kept

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        size, original, padded = (op.OnnxNode("Shape", (op.OnnxInput(index),), {"start": 2}) for index in range(3))
        added = op.OnnxNode("Mul", (op.OnnxNode("Sub", (padded, original)), op.int64(*self.multiply.hw)))
        length = op.OnnxNode("Sub", (size, op.OnnxNode("Div", (added, op.int64(*self.divide.hw)))))
        ends = op.OnnxNode("Max", (length, op.int64(1)))
        return op.OnnxNode("Slice", (op.OnnxInput(0), op.int64(0, 0), ends, op.int64(2, 3)))

    def summary(self) -> str:
        return "" if self.multiply == self.divide else f"x {self.multiply} / {self.divide}"
