"""Image gradient."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.data._filtering import BORDERS, check_borders, onnx_filtered, torch_filtered

_DERIVATIVES = {
    "sobel": ((-0.125, 0.0, 0.125), (-0.25, 0.0, 0.25), (-0.125, 0.0, 0.125)),
    "scharr": ((-0.09375, 0.0, 0.09375), (-0.3125, 0.0, 0.3125), (-0.09375, 0.0, 0.09375)),
    "prewitt": ((-1 / 6, 0.0, 1 / 6), (-1 / 6, 0.0, 1 / 6), (-1 / 6, 0.0, 1 / 6)),
    "central": ((0.0, 0.0, 0.0), (-0.5, 0.0, 0.5), (0.0, 0.0, 0.0)),
}


class ImageGradient(
    op.Operator,
    type="image_gradient",
    title="Image gradient",
    category=op.Category.DATA,
    synonyms=("sobel", "edges", "derivative", "scharr", "prewitt"),
):
    """Derivatives of each channel per pixel to the right (dx) and down (dy)."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)
    outputs = (op.Port("dx"), op.Port("dy"))

    kind: str = op.param(default="sobel", choices=tuple(_DERIVATIVES), doc="Derivative filter.")
    border: str = op.param(default="replicate", choices=BORDERS, doc="Padding outside the image.")
    examples = (
        op.Example((op.image(3, 5, 6),)),
        op.Example((op.image(2, 5, 6),), {"kind": "scharr", "border": "reflect"}, "scharr"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> tuple[op.TensorType, ...]:
        check_borders(inputs[0], self.border, 3, 3)
        return (inputs[0], inputs[0])

    def _filters(self) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
        across = _DERIVATIVES[self.kind]
        return across, tuple(zip(*across, strict=True))

    def torch(self, inputs: Sequence[op.TensorType]) -> tuple[op.TorchExpr, ...]:
        channels = inputs[0].dim(1)
        names = zip(("across", "down"), self._filters(), strict=True)
        return tuple(torch_filtered(op.TorchInput(0), rows, channels, name, self.border) for name, rows in names)

    def onnx(self, inputs: Sequence[op.TensorType]) -> tuple[op.OnnxValue, ...]:
        channels = inputs[0].dim(1)
        return tuple(onnx_filtered(op.OnnxInput(0), rows, channels, self.border) for rows in self._filters())

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return 2 * 2 * 9 * inputs[0].elements()

    def summary(self) -> str:
        return self.kind
