"""Cropping."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr

END = 2**31 - 1  # larger than any axis


class Crop(op.Operator, type="crop", title="Crop", category=op.Category.SHAPE, synonyms=("cut", "centre crop", "trim")):
    """Crop the sides of an image, or crop it to the centered size of a second image if one is connected."""

    inputs = (op.Port("x", rank=4), op.Port("reference", rank=4, optional=True, doc="An image of the target size."))

    left: int = op.param(default=0, min=0, max=65536, unit="pixels", doc="Columns cropped on the left.")
    right: int = op.param(default=0, min=0, max=65536, unit="pixels", doc="Columns cropped on the right.")
    top: int = op.param(default=0, min=0, max=65536, unit="pixels", doc="Rows cropped at the top.")
    bottom: int = op.param(default=0, min=0, max=65536, unit="pixels", doc="Rows cropped at the bottom.")
    examples = (
        op.Example((op.image(3, 6, 7),), {"left": 1, "bottom": 2}),
        op.Example((op.image(3, 6, 7), op.image(5, 3, 4)), name="to the size of another"),
    )

    def _cuts(self, inputs: Sequence[op.TensorType]) -> tuple[int, int, int, int]:
        """Pixels cropped at top, bottom, left and right; with a reference the smaller half at top and left."""
        x = inputs[0].image()
        if len(inputs) == 1:
            return (self.top, self.bottom, self.left, self.right)
        wanted = inputs[1].image()
        rows, columns = x.h - wanted.h, x.w - wanted.w
        return (rows // 2, rows - rows // 2, columns // 2, columns - columns // 2)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        top, bottom, left, right = self._cuts(inputs)
        height, width = x.h - top - bottom, x.w - left - right
        if any(cut < 0 for cut in (top, left, bottom, right)):
            raise op.ShapeError(
                tr("the reference {reference} is larger than {x}", reference=inputs[1], x=inputs[0]),
                port="reference",
                remedy=tr("connect the larger one to 'x', or resize one of them"),
            )
        if height < 1 or width < 1:
            raise op.ShapeError(
                tr("no pixels of the {w}x{h} image are left", w=x.w, h=x.h), port="x", remedy=tr("crop less")
            )
        return inputs[0].with_shape(x.n, x.c, height, width)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if len(inputs) == 2:
            return self._torch_center()
        top, bottom, left, right = self._cuts(inputs)
        everything = slice(None)
        return op.TorchItem(
            op.TorchInput(0), (everything, everything, slice(top, -bottom or None), slice(left, -right or None))
        )

    def _torch_center(self) -> op.TorchExpr:
        """The center at any size of either image: offsets are computed at run time."""
        center: op.TorchExpr = op.TorchInput(0)
        for axis in (2, 3):
            size, wanted = (op.TorchMethod("size", op.TorchInput(index), (axis,)) for index in (0, 1))
            more = op.TorchCall("torch.sub", (op.TorchCall("torch.tensor", (size,)), wanted))
            start = op.TorchCall("torch.floor_divide", (more, 2))
            center = op.TorchCall("torch.narrow", (center, axis, start, wanted))
        return center

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if len(inputs) == 2:
            size, wanted = (op.OnnxNode("Shape", (op.OnnxInput(index),), {"start": 2}) for index in (0, 1))
            starts = op.OnnxNode("Div", (op.OnnxNode("Sub", (size, wanted)), op.int64(2)))
            return op.OnnxNode("Slice", (op.OnnxInput(0), starts, op.OnnxNode("Add", (starts, wanted)), op.int64(2, 3)))
        top, bottom, left, right = self._cuts(inputs)
        ends = op.int64(*(-cut if cut else END for cut in (bottom, right)))
        return op.OnnxNode("Slice", (op.OnnxInput(0), op.int64(top, left), ends, op.int64(2, 3)))

    def summary(self) -> str:
        return f"{self.left},{self.top},{self.right},{self.bottom}" if any(self.values().values()) else "to size"
