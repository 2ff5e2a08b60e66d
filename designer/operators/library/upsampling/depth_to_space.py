"""Depth to space."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import divisible

MODES = ("channel_dominant", "pixel_dominant")


class DepthToSpace(
    op.Operator,
    type="depth_to_space",
    title="Depth to space",
    category=op.Category.UPSAMPLING,
    synonyms=("pixel_shuffle", "pixelshuffle", "subpixel", "shuffle"),
):
    """Rearrange channels into blocks of pixels: block x block channels become one channel of a larger image.

    "channel dominant": the channels of one block are adjacent (torch's pixel shuffle, ONNX's CRD).
    "pixel dominant": all channels of the block's first pixel come first (ONNX's DCR).
    """

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    block_size: int = op.param(default=2, min=1, max=256, unit="pixels", doc="Block size, the upscaling factor.")
    mode: str = op.param(default="channel_dominant", choices=MODES, doc="Order of the channels.")
    examples = (
        op.Example((op.image(12, 3, 4),)),
        op.Example((op.image(18, 3, 4),), {"block_size": 3, "mode": "pixel_dominant"}, "pixel dominant"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        block = self.block_size
        divisible("channels", x.c, block * block, f"pixels of a block of {block}x{block}")
        return inputs[0].with_shape(x.n, x.c // (block * block), x.h * block, x.w * block)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if self.mode == "channel_dominant":
            return op.TorchModule("torch.nn.PixelShuffle", {"upscale_factor": self.block_size})
        split = op.TorchMethod("unflatten", op.TorchInput(0), (1, (self.block_size, self.block_size, -1)))
        moved = op.TorchMethod("permute", split, (0, 3, 4, 1, 5, 2))
        return op.TorchMethod("flatten", op.TorchMethod("flatten", moved, (4, 5)), (2, 3))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        mode = "CRD" if self.mode == "channel_dominant" else "DCR"
        return op.OnnxNode("DepthToSpace", attributes={"blocksize": self.block_size, "mode": mode})

    def summary(self) -> str:
        return f"{self.block_size}x{self.block_size}"
