"""Gaussian blur."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp

from designer.operators import api as op
from designer.operators.library.data._filtering import BORDERS, check_borders, onnx_filtered, torch_filtered
from designer.texts import tr


class GaussianBlur(
    op.Operator,
    type="gaussian_blur",
    title="Gaussian blur",
    category=op.Category.DATA,
    synonyms=("blur", "smooth", "low pass", "soften"),
):
    """Convolve each channel with a Gaussian."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    sigma: float = op.param(
        default=1.0, min=0.05, max=100.0, step=0.1, unit="pixels", doc="Standard deviation of the Gaussian."
    )
    size: int = op.param(default=0, min=0, max=255, unit="pixels", doc="Filter size, odd; 0: four sigma on each side.")
    border: str = op.param(default="replicate", choices=BORDERS, doc="Padding outside the image.")
    examples = (
        op.Example((op.image(3, 9, 10),)),
        op.Example((op.image(2, 6, 7),), {"sigma": 2.0, "size": 5, "border": "reflect"}, "own window"),
    )

    def _size(self) -> int:
        return self.size or min(2 * ceil(4 * self.sigma) + 1, 255)

    def _curve(self) -> tuple[float, ...]:
        half = self._size() // 2
        values = [exp(-0.5 * (place / self.sigma) ** 2) for place in range(-half, half + 1)]
        return tuple(value / sum(values) for value in values)

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        if self._size() % 2 == 0:
            raise op.ShapeError(
                tr("the size must be odd, not {size}", size=self.size), remedy=tr("use {size}", size=self.size + 1)
            )
        check_borders(inputs[0], self.border, self._size(), self._size())
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        channels, curve = inputs[0].dim(1), self._curve()
        rows = torch_filtered(op.TorchInput(0), (curve,), channels, "row", self.border)
        return torch_filtered(rows, tuple((value,) for value in curve), channels, "column", self.border)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        channels, curve = inputs[0].dim(1), self._curve()
        rows = onnx_filtered(op.OnnxInput(0), (curve,), channels, self.border)
        return onnx_filtered(rows, tuple((value,) for value in curve), channels, self.border)

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return 2 * 2 * self._size() * inputs[0].elements()

    def summary(self) -> str:
        return f"sigma {self.sigma:g}"
