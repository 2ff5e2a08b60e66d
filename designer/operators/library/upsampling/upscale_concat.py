"""Enlarge, then join with a skip connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    ShapeError,
    Size2D,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    image,
    param,
)
from designer.operators.library.upsampling._resizing import METHODS, onnx_enlarged, torch_mode
from designer.texts import tr


class UpscaleConcat(
    Operator,
    type="upscale_concat",
    title="Upscale and concatenate",
    category=Category.UPSAMPLING,
    synonyms=("unet up", "skip connection", "decoder step", "upsample concat"),
):
    """Enlarge the first image by a whole factor and put the channels of the second behind it: a step of a U-Net's decoder."""

    inputs = (Port("x", rank=4, dtypes=FLOATS), Port("skip", rank=4, dtypes=FLOATS))

    factor: Size2D = param(default=Size2D(2, 2), min=1, max=256, doc="Enlargement, width x height.")
    method: str = param(default="nearest", choices=METHODS, doc="How values between pixels are found.")
    align_corners: bool = param(
        default=False,
        extension=True,
        visible_when=("method", ("bilinear", "bicubic")),
        doc="Put the centres of the corner pixels on top of each other.",
    )
    examples = (
        Example((image(3, 4, 5), image(2, 8, 10))),
        Example((image(3, 4, 5), image(2, 4, 15)), {"factor": Size2D(3, 1), "method": "bilinear"}, "bilinear"),
        Example(
            (image(3, 4, 5), image(2, 8, 15)),
            {"factor": Size2D(3, 2), "method": "bilinear", "align_corners": True},
            "corners aligned",
        ),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, skip = inputs[0].image(), inputs[1].image()
        height, width = x.h * self.factor.height, x.w * self.factor.width
        if (height, width) != (skip.h, skip.w) or x.n != skip.n:
            raise ShapeError(
                tr(
                    "the enlarged image of {width}x{height} does not fit the skip connection of {w}x{h}",
                    width=width,
                    height=height,
                    w=skip.w,
                    h=skip.h,
                ),
                port="skip",
                remedy=tr("choose another factor, or pad the network's input to a multiple (tiling)"),
            )
        return inputs[0].with_shape(x.n, x.c + skip.c, height, width)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        kwargs: dict[str, Any] = {
            "scale_factor": tuple(float(f) for f in self.factor.hw),
            "mode": torch_mode(self.method, self.factor),
        }
        if self.method != "nearest":
            kwargs["align_corners"] = self.align_corners
        larger = TorchCall("torch.nn.functional.interpolate", kwargs=kwargs)
        return TorchCall("torch.cat", ((larger, TorchInput(1)),), {"dim": 1})

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        larger = onnx_enlarged(self.method, self.align_corners, self.factor)
        return OnnxNode("Concat", (larger, OnnxInput(1)), {"axis": 1})

    def summary(self) -> str:
        return f"{self.method} {self.factor}"
