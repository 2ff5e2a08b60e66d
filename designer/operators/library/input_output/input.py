"""The input of a network."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class Input(
    op.Operator,
    type="input",
    title="Input",
    category=op.Category.INPUT_OUTPUT,
    role=op.Role.INPUT,
    synonyms=("image", "source", "placeholder", "data"),
):
    """A picture or tensor that the person feeds.

    A picture's values in 0..1 are multiplied by `scale`, then `shift` is added; a tensor from a file is taken as it is.
    Height and width are padded up to a multiple of `tiling`, and results are cropped back.
    """

    inputs = ()

    dims: op.Size3D = op.param(
        default=op.Size3D(256, 256, 3), min=1, max=65536, doc="Size as width x height x channels."
    )
    scale: float = op.param(default=1.0, doc="Factor for the values of a picture.")
    shift: float = op.param(default=0.0, doc="Added to the values of a picture after scaling.")
    rgba: bool = op.param(default=False, doc="Whether a picture's fourth channel is its opacity.")
    tiling: int = op.param(
        default=0,
        min=0,
        max=4096,
        unit="pixels",
        doc="Height and width are padded up to a multiple of this; 0 and 1 leave them as they are.",
    )
    examples = (
        op.Example((), {"dims": op.Size3D(8, 6, 3)}),
        op.Example((), {"dims": op.Size3D(10, 6, 4), "rgba": True, "tiling": 4}, "padded to a multiple of 4"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        multiple = max(self.tiling, 1)
        width = -(-self.dims.width // multiple) * multiple
        height = -(-self.dims.height // multiple) * multiple
        return op.TensorType((op.BATCH, self.dims.channels, height, width))

    def summary(self) -> str:
        return str(self.dims)
