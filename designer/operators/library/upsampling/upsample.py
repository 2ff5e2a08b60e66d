"""Upsampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.upsampling._resizing import METHODS, onnx_enlarged, onnx_resized, torch_mode


class Upsample(
    op.Operator,
    type="upsample",
    title="Upsample",
    category=op.Category.UPSAMPLING,
    synonyms=("upscale", "enlarge", "interpolate", "unpool", "upsampling"),
):
    """Upsample an image by an integer factor or to a fixed size."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    factor: op.Size2D = op.param(default=op.Size2D(2, 2), min=1, max=256, doc="Upsampling factor, width x height.")
    fixed_upscale: op.Size2D | None = op.param(
        default=None, min=1, max=65536, doc="Output size, width x height; empty: use the factor."
    )
    method: str = op.param(default="nearest", choices=METHODS, doc="Interpolation method.")
    align_corners: bool = op.param(
        default=False,
        extension=True,
        visible_when=("method", ("bilinear", "bicubic")),
        doc="Align the centers of the corner pixels.",
    )
    examples = (
        op.Example((op.image(3, 4, 5),)),
        op.Example((op.image(2, 4, 5),), {"factor": op.Size2D(3, 2), "method": "bilinear"}, "bilinear"),
        op.Example((op.image(2, 4, 5),), {"method": "bilinear", "align_corners": True}, "corners aligned"),
        op.Example((op.image(2, 4, 5),), {"method": "bicubic"}, "bicubic"),
        op.Example((op.image(1, 1, 5),), {"factor": op.Size2D(41, 1)}, "by much"),
        op.Example((op.image(2, 4, 5),), {"fixed_upscale": op.Size2D(11, 8)}, "fixed size"),
        op.Example(
            (op.image(2, 4, 5),), {"fixed_upscale": op.Size2D(11, 8), "method": "bilinear"}, "fixed size, bilinear"
        ),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        if self.fixed_upscale is not None:
            return inputs[0].with_shape(x.n, x.c, *self.fixed_upscale.hw)
        return inputs[0].with_shape(x.n, x.c, x.h * self.factor.height, x.w * self.factor.width)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs: dict[str, Any]
        if self.fixed_upscale is not None:
            kwargs = {"size": self.fixed_upscale.hw, "mode": self.method}
        else:
            kwargs = {
                "scale_factor": tuple(float(f) for f in self.factor.hw),
                "mode": torch_mode(self.method, self.factor),
            }
        if self.method != "nearest":
            kwargs["align_corners"] = self.align_corners
        return op.TorchModule("torch.nn.Upsample", kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        if self.fixed_upscale is not None:
            return onnx_resized(self.method, self.align_corners, self.fixed_upscale, inputs[0].image().c)
        return onnx_enlarged(self.method, self.align_corners, self.factor)

    def summary(self) -> str:
        size = f"to {self.fixed_upscale}" if self.fixed_upscale is not None else str(self.factor)
        return f"{self.method} {size}"
