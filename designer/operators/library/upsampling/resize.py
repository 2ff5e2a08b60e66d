"""Resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.upsampling._resizing import METHODS, onnx_resized
from designer.texts import tr


class Resize(
    op.Operator,
    type="resize",
    title="Resize",
    category=op.Category.UPSAMPLING,
    synonyms=("scale", "interpolate", "downscale", "resample", "thumbnail"),
):
    """Resize an image to a given size."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    size: op.Size2D = op.param(default=op.Size2D(256, 256), min=1, max=65536, doc="Output size, width x height.")
    method: str = op.param(default="bilinear", choices=METHODS, doc="Interpolation method.")
    align_corners: bool = op.param(
        default=False,
        extension=True,
        visible_when=("method", ("bilinear", "bicubic")),
        doc="Align the centers of the corner pixels.",
    )
    antialias: bool = op.param(
        default=False,
        extension=True,
        visible_when=("method", ("bilinear", "bicubic")),
        doc="Smooth before downsampling, to avoid aliasing.",
    )
    examples = (
        op.Example((op.image(2, 8, 9),), {"size": op.Size2D(5, 4)}),
        op.Example((op.image(2, 8, 9),), {"size": op.Size2D(12, 3), "method": "nearest"}, "nearest"),
        op.Example((op.image(2, 8, 9),), {"size": op.Size2D(5, 4), "antialias": True}, "smoothed"),
        op.Example(
            (op.image(2, 8, 9),), {"size": op.Size2D(5, 4), "antialias": True, "method": "bicubic"}, "smoothed, bicubic"
        ),
        op.Example((op.image(2, 8, 9),), {"size": op.Size2D(1, 3), "antialias": True}, "smoothed, one pixel wide"),
        op.Example(
            (op.image(1, 2, 28),), {"size": op.Size2D(16, 2), "method": "nearest"}, "nearest, between whole factors"
        ),
        op.Example(
            (op.image(2, 8, 9),), {"size": op.Size2D(5, 11), "method": "bicubic", "align_corners": True}, "bicubic"
        ),
        op.Example((op.image(2, 8, 9),), {"size": op.Size2D(5, 4), "method": "bicubic"}, "bicubic, smaller"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        if self._smooths() and self.align_corners:
            raise op.ShapeError(tr("align_corners cannot be combined with antialias"), remedy=tr("disable one of them"))
        return inputs[0].with_shape(x.n, x.c, *self.size.hw)

    def _smooths(self) -> bool:
        return self.antialias and self.method != "nearest"

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {"size": self.size.hw, "mode": self.method}
        if self.method != "nearest":
            kwargs["align_corners"] = self.align_corners
        if self._smooths():
            kwargs["antialias"] = True
        if not self._smooths() or self.size.width > 1:
            return op.TorchCall("torch.nn.functional.interpolate", kwargs=kwargs)
        # torch 2.13 repeats the first row in results that are one pixel wide; one pixel high is correct.
        kwargs["size"] = (self.size.width, self.size.height)
        turned = op.TorchMethod("transpose", op.TorchInput(0), (2, 3))
        return op.TorchMethod("transpose", op.TorchCall("torch.nn.functional.interpolate", (turned,), kwargs), (2, 3))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return onnx_resized(self.method, self.align_corners, self.size, inputs[0].image().c, self._smooths())

    def summary(self) -> str:
        return f"{self.method} to {self.size}"
