"""Space to depth."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.upsampling.depth_to_space import MODES
from designer.texts import tr


class SpaceToDepth(
    op.Operator,
    type="space_to_depth",
    title="Space to depth",
    category=op.Category.UPSAMPLING,
    synonyms=("pixel_unshuffle", "pixelunshuffle", "inverse pixel shuffle", "focus"),
):
    """Rearrange blocks of pixels into channels: the inverse of depth to space.

    "channel dominant": the pixels of one channel's block are adjacent (torch's pixel unshuffle).
    "pixel dominant": all channels of the block's first pixel come first (ONNX's SpaceToDepth).
    """

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    block_size: int = op.param(default=2, min=1, max=256, unit="pixels", doc="Block size, the downscaling factor.")
    mode: str = op.param(default="channel_dominant", choices=MODES, doc="Order of the channels.")
    examples = (
        op.Example((op.image(3, 6, 8),)),
        op.Example((op.image(2, 6, 9),), {"block_size": 3, "mode": "pixel_dominant"}, "pixel dominant"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        block = self.block_size
        if x.h % block or x.w % block:
            raise op.ShapeError(
                tr("an image of {w}x{h} cannot be divided into blocks of {block}x{block}", w=x.w, h=x.h, block=block),
                port="x",
                remedy=tr("pad the image to a multiple of the block, for instance with the input's tiling"),
            )
        return inputs[0].with_shape(x.n, x.c * block * block, x.h // block, x.w // block)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        if self.mode == "channel_dominant":
            return op.TorchModule("torch.nn.PixelUnshuffle", {"downscale_factor": self.block_size})
        rows = op.TorchMethod("unflatten", op.TorchInput(0), (2, (-1, self.block_size)))
        blocks = op.TorchMethod("unflatten", rows, (4, (-1, self.block_size)))
        return op.TorchMethod("flatten", op.TorchMethod("permute", blocks, (0, 3, 5, 1, 2, 4)), (1, 3))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        block = self.block_size
        if self.mode == "pixel_dominant":
            return op.OnnxNode("SpaceToDepth", attributes={"blocksize": block})
        channels = inputs[0].image().c
        batch = op.OnnxNode("Shape", attributes={"start": 0, "end": 1})
        rows, columns = (
            op.OnnxNode("Div", (op.OnnxNode("Shape", attributes={"start": axis, "end": axis + 1}), op.int64(block)))
            for axis in (2, 3)
        )
        apart = op.OnnxNode(
            "Concat", (batch, op.int64(channels), rows, op.int64(block), columns, op.int64(block)), {"axis": 0}
        )
        joined = op.OnnxNode("Concat", (batch, op.int64(channels * block * block), rows, columns), {"axis": 0})
        split = op.OnnxNode("Reshape", (op.OnnxInput(0), apart))
        moved = op.OnnxNode("Transpose", (split,), {"perm": (0, 1, 3, 5, 2, 4)})
        return op.OnnxNode("Reshape", (moved, joined))

    def summary(self) -> str:
        return f"{self.block_size}x{self.block_size}"
