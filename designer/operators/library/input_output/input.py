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
    synonyms=("image", "source", "placeholder", "data", "target"),
):
    """An image or tensor as input of the network.

    Image values in 0..1 are multiplied by `scale`, then `shift` is added; tensors from files are used unchanged.
    Height and width are padded to a multiple of `tiling`, and results are cropped back.
    """

    inputs = ()

    dims: op.Size3D = op.param(
        default=op.Size3D(256, 256, 3), min=1, max=65536, doc="Size as width x height x channels."
    )
    scale: float = op.param(default=1.0, doc="Factor for image values.")
    shift: float = op.param(default=0.0, doc="Offset added to image values after scaling.")
    rgba: bool = op.param(default=False, doc="Use the fourth channel of an image as alpha.")
    tiling: int = op.param(
        default=0,
        min=0,
        max=4096,
        unit="pixels",
        doc="Height and width are padded to a multiple of this; 0 and 1: no padding.",
    )
    batch: int = op.param(
        default=0, min=0, max=65536, extension=True, doc="Number of images that are fed together; 0: any."
    )
    examples = (
        op.Example((), {"dims": op.Size3D(8, 6, 3)}),
        op.Example((), {"dims": op.Size3D(10, 6, 4), "rgba": True, "tiling": 4}, "padded to a multiple of 4"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        multiple = max(self.tiling, 1)
        width = -(-self.dims.width // multiple) * multiple
        height = -(-self.dims.height // multiple) * multiple
        return op.TensorType((self.batch or op.BATCH, self.dims.channels, height, width))

    def summary(self) -> str:
        return str(self.dims)
