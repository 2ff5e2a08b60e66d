"""Two-dimensional pooling."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
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
    TorchMethod,
    TorchModule,
    image,
    param,
)
from designer.operators.shapes import misfit, window_output


class Pooling(
    Operator,
    type="pooling",
    title="Pooling",
    category=Category.POOLING,
    synonyms=("maxpool", "max_pool", "maxpool2d", "avgpool", "average_pool", "avgpool2d", "lp_pool", "downsample"),
):
    """Replace every window of a channel by its maximum, its average or its p-norm."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    operation: str = param(default="max", choices=("max", "average", "lp"), doc="What is taken of a window.")
    size: Size2D = param(default=Size2D(2, 2), min=1, max=1024, doc="Window size, width x height.")
    stride: Size2D = param(default=Size2D(2, 2), min=1, max=1024, doc="Step between windows, width x height.")
    padding: Size2D = param(
        default=Size2D(0, 0), min=0, max=512, doc="Pixels added on each side; at most half the window."
    )
    ceil_mode: bool = param(default=False, extension=True, doc="Keep the last, incomplete window.")
    count_include_pad: bool = param(
        default=True, extension=True, visible_when=("operation", "average"), doc="Count the border in the average."
    )
    norm: int = param(
        default=2, min=1, max=16, extension=True, visible_when=("operation", "lp"), doc="p of the p-norm."
    )
    examples = (
        Example((image(3, 8, 10),)),
        Example(
            (image(2, 9, 7),), {"size": Size2D(3, 3), "padding": Size2D(1, 1), "ceil_mode": True}, "incomplete windows"
        ),
        Example((image(2, 8, 9),), {"operation": "average", "size": Size2D(3, 2), "padding": Size2D(1, 0)}, "average"),
        Example(
            (image(2, 8, 9),),
            {"operation": "average", "size": Size2D(3, 3), "padding": Size2D(1, 1), "count_include_pad": False},
            "average without the border",
        ),
        Example((image(2, 8, 9),), {"operation": "lp", "size": Size2D(2, 3), "padding": Size2D(1, 1)}, "2-norm"),
        Example((image(2, 8, 9),), {"operation": "lp", "norm": 3}, "3-norm"),
    )

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        if 2 * self.padding.width > self.size.width or 2 * self.padding.height > self.size.height:
            raise ShapeError(
                f"padding {self.padding} is more than half the window {self.size}", remedy="use less padding"
            )
        ends = (self.padding.width, self.padding.height) if self.ceil_mode else (-1, -1)
        width = window_output(x.w, self.size.width, self.stride.width, 2 * self.padding.width, ceil=ends[0])
        height = window_output(x.h, self.size.height, self.stride.height, 2 * self.padding.height, ceil=ends[1])
        if width < 1 or height < 1:
            raise misfit(self.size, self.stride, f"{x.w}x{x.h}")
        return inputs[0].with_shape(x.n, x.c, height, width)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        window = {
            "kernel_size": self.size.hw,
            "stride": self.stride.hw,
            "padding": self.padding.hw,
            "ceil_mode": self.ceil_mode,
        }
        if self.operation == "max":
            return TorchModule("torch.nn.MaxPool2d", window)
        if self.operation == "average":
            return TorchModule("torch.nn.AvgPool2d", {**window, "count_include_pad": self.count_include_pad})
        # torch's LPPool2d knows no padding and keeps the sign of odd powers; a norm does not.
        powers = TorchMethod("pow", TorchCall("torch.abs", (TorchInput(0),)), (self.norm,))
        sums = TorchCall("torch.nn.functional.avg_pool2d", (powers,), {**window, "divisor_override": 1})
        return TorchMethod("pow", sums, (1 / self.norm,))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        pads = (*self.padding.hw, *self.padding.hw)
        attributes = {
            "kernel_shape": self.size.hw,
            "strides": self.stride.hw,
            "pads": pads,
            "ceil_mode": int(self.ceil_mode),
        }
        if self.operation == "max":
            return OnnxNode("MaxPool", attributes=attributes)
        if self.operation == "average":
            attributes["count_include_pad"] = int(self.count_include_pad)
            return OnnxNode("AveragePool", attributes=attributes)
        return OnnxNode("LpPool", attributes={**attributes, "p": self.norm})

    def summary(self) -> str:
        stride = "" if self.stride == self.size else f" / {self.stride}"
        return f"{self.operation} {self.size}{stride}"
