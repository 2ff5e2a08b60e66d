"""Sampling of an image at positions."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.shapes import known
from designer.texts import tr

_METHODS = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


class GridSample(
    op.Operator,
    type="grid_sample",
    title="Grid sample",
    category=op.Category.UPSAMPLING,
    synonyms=("warp", "optical flow", "spatial transformer", "remap", "deform"),
):
    """Sample an image at positions: `grid` is N x H x W x 2 with x and y from -1 (left, top) to 1 (right, bottom)."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS), op.Port("grid", rank=4, dtypes=op.FLOATS))

    method: str = op.param(default="bilinear", choices=tuple(_METHODS), doc="Interpolation method.")
    border: str = op.param(default="zeros", choices=("zeros", "border", "reflection"), doc="Values outside the image.")
    align_corners: bool = op.param(default=False, doc="-1 and 1 are the centers of the corner pixels.")
    examples = (
        op.Example((op.image(), op.TensorType((op.BATCH, 5, 6, 2)))),
        op.Example(
            (op.image(), op.TensorType((op.BATCH, 5, 6, 2))), {"border": "border", "align_corners": True}, "border"
        ),
        op.Example((op.image(), op.TensorType((op.BATCH, 5, 6, 2))), {"border": "reflection"}, "reflection"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x, grid = inputs
        if known(grid, 3, "grid") != 2 or grid.shape[0] != x.shape[0]:
            raise op.ShapeError(
                tr("the grid must be N x H x W x 2 with the batch of {x}, not {grid}", x=x, grid=grid),
                port="grid",
                remedy=tr("permute the grid, so that x and y are the last axis"),
            )
        return x.with_shape(x.shape[0], x.shape[1], grid.shape[1], grid.shape[2])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        kwargs = {"mode": self.method, "padding_mode": self.border, "align_corners": self.align_corners}
        return op.TorchCall("torch.nn.functional.grid_sample", (op.TorchInput(0), op.TorchInput(1)), kwargs)

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        attributes = {
            "mode": _METHODS[self.method],
            "padding_mode": self.border,
            "align_corners": int(self.align_corners),
        }
        return op.OnnxNode("GridSample", (op.OnnxInput(0), op.OnnxInput(1)), attributes)

    def summary(self) -> str:
        return self.method
