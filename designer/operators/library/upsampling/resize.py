"""An image at another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxValue,
    Operator,
    Port,
    ShapeError,
    Size2D,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    param,
)
from designer.operators.library.upsampling._resizing import METHODS, onnx_resized
from designer.texts import tr


class Resize(
    Operator,
    type="resize",
    title="Resize",
    category=Category.UPSAMPLING,
    synonyms=("scale", "interpolate", "downscale", "resample", "thumbnail"),
):
    """Bring an image to a given size, smaller or larger."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    size: Size2D = param(default=Size2D(256, 256), min=1, max=65536, doc="Size of the result, width x height.")
    method: str = param(default="bilinear", choices=METHODS, doc="How values between pixels are found.")
    align_corners: bool = param(
        default=False,
        extension=True,
        visible_when=("method", ("bilinear", "bicubic")),
        doc="Put the centres of the corner pixels on top of each other.",
    )
    antialias: bool = param(
        default=False,
        extension=True,
        visible_when=("method", ("bilinear", "bicubic")),
        doc="Smooth before making smaller, so that fine patterns do not turn into coarse ones.",
    )
    examples = (
        Example((image(2, 8, 9),), {"size": Size2D(5, 4)}),
        Example((image(2, 8, 9),), {"size": Size2D(12, 3), "method": "nearest"}, "nearest"),
        Example((image(2, 8, 9),), {"size": Size2D(5, 4), "antialias": True}, "smoothed"),
        Example((image(2, 8, 9),), {"size": Size2D(5, 4), "antialias": True, "method": "bicubic"}, "smoothed, bicubic"),
        Example((image(2, 8, 9),), {"size": Size2D(1, 3), "antialias": True}, "smoothed, one pixel wide"),
        Example((image(1, 2, 28),), {"size": Size2D(16, 2), "method": "nearest"}, "nearest, between whole factors"),
        Example((image(2, 8, 9),), {"size": Size2D(5, 11), "method": "bicubic", "align_corners": True}, "bicubic"),
        Example((image(2, 8, 9),), {"size": Size2D(5, 4), "method": "bicubic"}, "bicubic, smaller"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        if self._smooths() and self.align_corners:
            raise ShapeError(
                tr("aligned corners and antialias exclude each other"), remedy=tr("switch one of them off")
            )
        return inputs[0].with_shape(x.n, x.c, *self.size.hw)

    def _smooths(self) -> bool:
        return self.antialias and self.method != "nearest"

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs: dict[str, Any] = {"size": self.size.hw, "mode": self.method}
        if self.method != "nearest":
            kwargs["align_corners"] = self.align_corners
        if self._smooths():
            kwargs["antialias"] = True
        if not self._smooths() or self.size.width > 1:
            return TorchCall("torch.nn.functional.interpolate", kwargs=kwargs)
        # torch 2.13 repeats the first row in results that are one pixel wide, and is right for one pixel high.
        kwargs["size"] = (self.size.width, self.size.height)
        turned = TorchMethod("transpose", TorchInput(0), (2, 3))
        return TorchMethod("transpose", TorchCall("torch.nn.functional.interpolate", (turned,), kwargs), (2, 3))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return onnx_resized(self.method, self.align_corners, self.size, inputs[0].image().c, self._smooths())

    def summary(self) -> str:
        return f"{self.method} to {self.size}"
