"""Padding to a multiple."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.convolution._filter import ONNX_PAD_MODES, check_border, torch_pad


class PadToMultiple(
    op.Operator,
    type="pad_to_multiple",
    title="Pad to multiple",
    category=op.Category.SHAPE,
    synonyms=("align size", "pad to divisible", "tiling"),
):
    """Pad on the right and bottom until height and width are multiples of a number."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    multiple: int = op.param(
        default=16, min=1, max=4096, unit="pixels", doc="Height and width are padded to a multiple of this."
    )
    mode: str = op.param(default="replicate", choices=("zeros", "replicate", "reflect"), doc="Values of the padding.")
    examples = (
        op.Example((op.image(2, 5, 8),), {"multiple": 4}),
        op.Example((op.image(2, 5, 7),), {"multiple": 3, "mode": "reflect"}, "mirror"),
        op.Example((op.image(2, 6, 6),), {"multiple": 4, "mode": "zeros"}, "zeros"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        # for any input size, the torch code pads by multiple - 1 before it crops
        check_border(self.mode, self.multiple - 1, x.h, "height")
        check_border(self.mode, self.multiple - 1, x.w, "width")
        sizes = [-(-size // self.multiple) * self.multiple for size in (x.h, x.w)]
        return inputs[0].with_shape(x.n, x.c, *sizes)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        most, size = self.multiple - 1, self.multiple
        if most == 0:
            return op.TorchInput(0)
        padded = torch_pad(op.TorchInput(0), ((0, most), (0, most)), self.mode)
        # whole blocks only: the rest is cropped
        columns = op.TorchMethod("flatten", op.TorchMethod("unfold", padded, (3, size, size)), (3, 4))
        rows = op.TorchMethod("movedim", op.TorchMethod("unfold", columns, (2, size, size)), (4, 3))
        return op.TorchMethod("flatten", rows, (2, 3))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        sizes = op.OnnxNode("Neg", (op.OnnxNode("Shape", attributes={"start": 2}),))
        missing = op.OnnxNode("Mod", (sizes, op.int64(self.multiple)))
        pads = op.OnnxNode("Concat", (op.int64(*(0,) * 6), missing), {"axis": 0})
        return op.OnnxNode(
            "Pad", (op.OnnxInput(0), pads, None, op.int64(0, 1, 2, 3)), {"mode": ONNX_PAD_MODES[self.mode]}
        )

    def summary(self) -> str:
        return str(self.multiple)
