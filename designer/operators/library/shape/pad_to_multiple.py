"""A border up to the next multiple."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    Operator,
    Port,
    TensorType,
    TorchExpr,
    TorchInput,
    TorchMethod,
    image,
    int64,
    param,
)
from designer.operators.library.convolution._filter import ONNX_PAD_MODES, check_border, torch_pad


class PadToMultiple(
    Operator,
    type="pad_to_multiple",
    title="Pad to multiple",
    category=Category.SHAPE,
    synonyms=("align size", "pad to divisible", "tiling"),
):
    """Add pixels at the right and bottom until height and width are multiples of a number."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    multiple: int = param(default=16, min=1, max=4096, unit="pixels", doc="Height and width become multiples of this.")
    mode: str = param(default="replicate", choices=("zeros", "replicate", "reflect"), doc="What is added.")
    examples = (
        Example((image(2, 5, 8),), {"multiple": 4}),
        Example((image(2, 5, 7),), {"multiple": 3, "mode": "reflect"}, "mirror"),
        Example((image(2, 6, 6),), {"multiple": 4, "mode": "zeros"}, "zeros"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        # at any input size the torch form pads by multiple - 1 before it cuts back
        check_border(self.mode, self.multiple - 1, x.h, "height")
        check_border(self.mode, self.multiple - 1, x.w, "width")
        sizes = [-(-size // self.multiple) * self.multiple for size in (x.h, x.w)]
        return inputs[0].with_shape(x.n, x.c, *sizes)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        most, size = self.multiple - 1, self.multiple
        if most == 0:
            return TorchInput(0)
        padded = torch_pad(TorchInput(0), ((0, most), (0, most)), self.mode)
        # whole blocks only: what is behind the last multiple falls off
        columns = TorchMethod("flatten", TorchMethod("unfold", padded, (3, size, size)), (3, 4))
        rows = TorchMethod("movedim", TorchMethod("unfold", columns, (2, size, size)), (4, 3))
        return TorchMethod("flatten", rows, (2, 3))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        sizes = OnnxNode("Neg", (OnnxNode("Shape", attributes={"start": 2}),))
        missing = OnnxNode("Mod", (sizes, int64(self.multiple)))
        pads = OnnxNode("Concat", (int64(*(0,) * 6), missing), {"axis": 0})
        return OnnxNode("Pad", (OnnxInput(0), pads, None, int64(0, 1, 2, 3)), {"mode": ONNX_PAD_MODES[self.mode]})

    def summary(self) -> str:
        return str(self.multiple)
