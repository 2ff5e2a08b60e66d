"""Upsampling with a skip connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.upsampling._resizing import METHODS, onnx_enlarged, torch_mode
from designer.texts import tr


class UpscaleConcat(
    op.Operator,
    type="upscale_concat",
    title="Upscale and concatenate",
    category=op.Category.UPSAMPLING,
    synonyms=("unet up", "skip connection", "decoder step", "upsample concat"),
):
    """Upsample the first image by an integer factor and concatenate the second: a decoder step of a U-Net."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS), op.Port("skip", rank=4, dtypes=op.FLOATS))

    factor: op.Size2D = op.param(default=op.Size2D(2, 2), min=1, max=256, doc="Upsampling factor, width x height.")
    method: str = op.param(default="nearest", choices=METHODS, doc="Interpolation method.")
    align_corners: bool = op.param(
        default=False,
        extension=True,
        visible_when=("method", ("bilinear", "bicubic")),
        doc="Align the centers of the corner pixels.",
    )
    examples = (
        op.Example((op.image(3, 4, 5), op.image(2, 8, 10))),
        op.Example(
            (op.image(3, 4, 5), op.image(2, 4, 15)), {"factor": op.Size2D(3, 1), "method": "bilinear"}, "bilinear"
        ),
        op.Example(
            (op.image(3, 4, 5), op.image(2, 8, 15)),
            {"factor": op.Size2D(3, 2), "method": "bilinear", "align_corners": True},
            "corners aligned",
        ),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x, skip = inputs[0].image(), inputs[1].image()
        height, width = x.h * self.factor.height, x.w * self.factor.width
        if (height, width) != (skip.h, skip.w) or x.n != skip.n:
            raise op.ShapeError(
                tr(
                    "the upsampled image is {width}x{height} but must match the skip connection of {w}x{h}",
                    width=width,
                    height=height,
                    w=skip.w,
                    h=skip.h,
                ),
                port="skip",
                remedy=tr("choose another factor, or pad the network's input to a multiple (tiling)"),
            )
        return inputs[0].with_shape(x.n, x.c + skip.c, height, width)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any] = {
            "scale_factor": tuple(float(f) for f in self.factor.hw),
            "mode": torch_mode(self.method, self.factor),
        }
        if self.method != "nearest":
            kwargs["align_corners"] = self.align_corners
        larger = op.TorchCall("torch.nn.functional.interpolate", kwargs=kwargs)
        return op.TorchCall("torch.cat", ((larger, op.TorchInput(1)),), {"dim": 1})

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        larger = onnx_enlarged(self.method, self.align_corners, self.factor)
        return op.OnnxNode("Concat", (larger, op.OnnxInput(1)), {"axis": 1})

    def summary(self) -> str:
        return f"{self.method} {self.factor}"
