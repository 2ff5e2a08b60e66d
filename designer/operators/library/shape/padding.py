"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.convolution._filter import check_border, onnx_pad, torch_pad


class Padding(
    op.Operator,
    type="padding",
    title="Padding",
    category=op.Category.SHAPE,
    synonyms=("pad", "border", "reflect", "replicate", "zero pad"),
):
    """Pad an image with a constant, or by reflection, replication or wrapping."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    mode: str = op.param(
        default="constant",
        choices=("constant", "reflect", "replicate", "circular"),
        doc="Values of the padding.",
    )
    left: int = op.param(default=1, min=0, max=65536, unit="pixels", doc="Columns added on the left.")
    right: int = op.param(default=1, min=0, max=65536, unit="pixels", doc="Columns added on the right.")
    top: int = op.param(default=1, min=0, max=65536, unit="pixels", doc="Rows added at the top.")
    bottom: int = op.param(default=1, min=0, max=65536, unit="pixels", doc="Rows added at the bottom.")
    value: float = op.param(default=0.0, visible_when=("mode", "constant"), doc="Value of constant padding.")
    examples = (
        op.Example((op.image(3, 4, 5),), {"left": 2, "value": 0.5}),
        op.Example((op.image(3, 4, 5),), {"mode": "reflect", "bottom": 3}, "mirror"),
        op.Example((op.image(3, 4, 5),), {"mode": "replicate", "right": 7}, "edge"),
        op.Example((op.image(3, 4, 5),), {"mode": "circular", "top": 0, "left": 5}, "wrapped"),
        op.Example((op.image(3, 4, 5),), {"top": 2}, "zeros"),
    )

    def _pads(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return ((self.top, self.bottom), (self.left, self.right))

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        check_border(self.mode, max(self.top, self.bottom), x.h, "height")
        check_border(self.mode, max(self.left, self.right), x.w, "width")
        return inputs[0].with_shape(x.n, x.c, x.h + self.top + self.bottom, x.w + self.left + self.right)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return torch_pad(op.TorchInput(0), self._pads(), self.mode, self.value if self.mode == "constant" else 0.0)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        value = op.scalar(self.value) if self.mode == "constant" else None
        return onnx_pad(op.OnnxInput(0), self._pads(), self.mode, value)

    def summary(self) -> str:
        return f"{self.mode} {self.left},{self.top},{self.right},{self.bottom}"
