"""Where an image changes."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxValue,
    Operator,
    Port,
    TensorType,
    TorchExpr,
    TorchInput,
    image,
    param,
)
from designer.operators.library.data._filtering import BORDERS, check_borders, onnx_filtered, torch_filtered

_DERIVATIVES = {
    "sobel": ((-0.125, 0.0, 0.125), (-0.25, 0.0, 0.25), (-0.125, 0.0, 0.125)),
    "scharr": ((-0.09375, 0.0, 0.09375), (-0.3125, 0.0, 0.3125), (-0.09375, 0.0, 0.09375)),
    "prewitt": ((-1 / 6, 0.0, 1 / 6), (-1 / 6, 0.0, 1 / 6), (-1 / 6, 0.0, 1 / 6)),
    "central": ((0.0, 0.0, 0.0), (-0.5, 0.0, 0.5), (0.0, 0.0, 0.0)),
}


class ImageGradient(
    Operator,
    type="image_gradient",
    title="Image gradient",
    category=Category.DATA,
    synonyms=("sobel", "edges", "derivative", "scharr", "prewitt"),
):
    """The change of every channel for one pixel to the right (dx) and one pixel down (dy)."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)
    outputs = (Port("dx"), Port("dy"))

    kind: str = param(default="sobel", choices=tuple(_DERIVATIVES), doc="Which neighbours count.")
    border: str = param(default="replicate", choices=BORDERS, doc="What lies outside the image.")
    examples = (
        Example((image(3, 5, 6),)),
        Example((image(2, 5, 6),), {"kind": "scharr", "border": "reflect"}, "scharr"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        check_borders(inputs[0], self.border, 3, 3)
        return (inputs[0], inputs[0])

    def _filters(self) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
        across = _DERIVATIVES[self.kind]
        return across, tuple(zip(*across, strict=True))

    def torch(self, inputs: Sequence[TensorType]) -> tuple[TorchExpr, ...]:
        channels = inputs[0].dim(1)
        names = zip(("across", "down"), self._filters(), strict=True)
        return tuple(torch_filtered(TorchInput(0), rows, channels, name, self.border) for name, rows in names)

    def onnx(self, inputs: Sequence[TensorType]) -> tuple[OnnxValue, ...]:
        channels = inputs[0].dim(1)
        return tuple(onnx_filtered(OnnxInput(0), rows, channels, self.border) for rows in self._filters())

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        return 2 * 2 * 9 * inputs[0].elements()

    def summary(self) -> str:
        return self.kind
