"""Two-dimensional pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.convolution._filter import onnx_pad
from designer.operators.shapes import misfit, window_output
from designer.texts import tr


class Pooling(
    op.Operator,
    type="pooling",
    title="Pooling",
    category=op.Category.POOLING,
    synonyms=("maxpool", "max_pool", "maxpool2d", "avgpool", "average_pool", "avgpool2d", "lp_pool", "downsample"),
):
    """Reduce each window of a channel to its maximum, average or p-norm."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    operation: str = op.param(
        default="max", choices=("max", "average", "lp"), doc="How the values of a window are combined."
    )
    size: op.Size2D = op.param(default=op.Size2D(2, 2), min=1, max=1024, doc="Window size, width x height.")
    stride: op.Size2D = op.param(default=op.Size2D(2, 2), min=1, max=1024, doc="Stride, width x height.")
    padding: op.Size2D = op.param(
        default=op.Size2D(0, 0), min=0, max=512, doc="Padding on each side; at most half the window."
    )
    dilation: op.Size2D = op.param(
        default=op.Size2D(1, 1),
        min=1,
        max=256,
        extension=True,
        visible_when=("operation", "max"),
        doc="Distance between the values of a window, width x height; max pooling only.",
    )
    ceil_mode: bool = op.param(default=False, extension=True, doc="Include the last, incomplete window.")
    count_include_pad: bool = op.param(
        default=True, extension=True, visible_when=("operation", "average"), doc="Include the padding in the average."
    )
    divisor_override: int = op.param(
        default=0,
        min=0,
        max=1_000_000,
        extension=True,
        visible_when=("operation", "average"),
        doc="Divisor of the sum of a window; 0: the number of its values.",
    )
    norm: int = op.param(
        default=2, min=1, max=16, extension=True, visible_when=("operation", "lp"), doc="Exponent p of the p-norm."
    )
    examples = (
        op.Example((op.image(3, 8, 10),)),
        op.Example(
            (op.image(2, 9, 7),),
            {"size": op.Size2D(3, 3), "padding": op.Size2D(1, 1), "ceil_mode": True},
            "incomplete windows",
        ),
        op.Example(
            (op.image(2, 11, 12),),
            {"size": op.Size2D(3, 2), "dilation": op.Size2D(2, 3), "padding": op.Size2D(1, 0)},
            "dilated",
        ),
        op.Example(
            (op.image(2, 10, 9),),
            {"size": op.Size2D(2, 3), "dilation": op.Size2D(3, 2), "ceil_mode": True},
            "all together",
        ),
        op.Example(
            (op.image(2, 8, 9),),
            {"operation": "average", "size": op.Size2D(3, 2), "padding": op.Size2D(1, 0)},
            "average",
        ),
        op.Example(
            (op.image(2, 8, 9),),
            {
                "operation": "average",
                "size": op.Size2D(3, 3),
                "padding": op.Size2D(1, 0),
                "divisor_override": 5,
                "ceil_mode": True,
            },
            "sum over five",
        ),
        op.Example(
            (op.image(2, 8, 9),),
            {"operation": "average", "size": op.Size2D(3, 3), "padding": op.Size2D(1, 1), "count_include_pad": False},
            "average without the border",
        ),
        op.Example(
            (op.image(2, 8, 9),), {"operation": "lp", "size": op.Size2D(2, 3), "padding": op.Size2D(1, 1)}, "2-norm"
        ),
        op.Example((op.image(2, 8, 9),), {"operation": "lp", "norm": 3}, "3-norm"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        if 2 * self.padding.width > self.size.width or 2 * self.padding.height > self.size.height:
            raise op.ShapeError(
                tr("padding {padding} is more than half the window {size}", padding=self.padding, size=self.size),
                remedy=tr("use less padding"),
            )
        ends = (self.padding.width, self.padding.height) if self.ceil_mode else (-1, -1)
        size, stride, spread = self.size, self.stride, self._spread()
        width = window_output(x.w, size.width, stride.width, 2 * self.padding.width, spread.width, ceil=ends[0])
        height = window_output(x.h, size.height, stride.height, 2 * self.padding.height, spread.height, ceil=ends[1])
        if width < 1 or height < 1:
            raise misfit(size, stride, f"{x.w}x{x.h}", "" if spread == op.Size2D(1, 1) else str(spread))
        axes = zip(size.hw, stride.hw, self.padding.hw, spread.hw, (x.h, x.w), (height, width), strict=True)
        if any(_sees_only_padding(*axis) for axis in axes):
            raise op.ShapeError(
                tr(
                    "a window of {size} with dilation {spread} covers only padding in an input of {w}x{h}",
                    size=size,
                    spread=spread,
                    w=x.w,
                    h=x.h,
                ),
                port="x",
                remedy=tr("use less padding, a smaller dilation or a larger input"),
            )
        return inputs[0].with_shape(x.n, x.c, height, width)

    def _spread(self) -> op.Size2D:
        return self.dilation if self.operation == "max" else op.Size2D(1, 1)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        window = {
            "kernel_size": self.size.hw,
            "stride": self.stride.hw,
            "padding": self.padding.hw,
            "ceil_mode": self.ceil_mode,
        }
        if self.operation == "max":
            return op.TorchModule("torch.nn.MaxPool2d", {**window, "dilation": self.dilation.hw})
        if self.operation == "average":
            average = {**window, "count_include_pad": self.count_include_pad}
            if self.divisor_override:
                average["divisor_override"] = self.divisor_override
            return op.TorchModule("torch.nn.AvgPool2d", average)
        # torch's LPPool2d has no padding and keeps the sign of odd powers; a norm does not.
        powers = op.TorchMethod("pow", op.TorchCall("torch.abs", (op.TorchInput(0),)), (self.norm,))
        sums = op.TorchCall("torch.nn.functional.avg_pool2d", (powers,), {**window, "divisor_override": 1})
        return op.TorchMethod("pow", sums, (1 / self.norm,))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        """Avoid ONNX's ceil mode, which counts windows that torch omits: pad the incomplete window."""
        begins, behind = self.padding.hw, self._behind(inputs[0])
        windows = {"kernel_shape": self.size.hw, "strides": self.stride.hw}
        pads = (*begins, *(begin + more for begin, more in zip(begins, behind, strict=True)))
        if self.operation == "max":
            return self._onnx_max(windows, begins, behind, pads)
        if self.operation == "lp":
            return op.OnnxNode("LpPool", attributes={**windows, "pads": pads, "p": self.norm})
        if self.divisor_override:
            return self._onnx_over_divisor(windows, begins, behind)
        if not self.count_include_pad or not any(begins):
            return op.OnnxNode("AveragePool", attributes={**windows, "pads": pads})
        if not any(behind):
            return op.OnnxNode("AveragePool", attributes={**windows, "pads": pads, "count_include_pad": 1})
        # Values that complete a window are not counted, the padding is.
        bordered = onnx_pad(op.OnnxInput(0), [(begin, begin) for begin in begins], "zeros")
        return op.OnnxNode("AveragePool", (bordered,), {**windows, "pads": (0, 0, *behind)})

    def _behind(self, x: op.TensorType) -> tuple[int, ...]:
        """Missing values of the last, incomplete window along height and width."""
        if not self.ceil_mode:
            return (0, 0)
        size, outputs = x.image(), self.infer((x,)).image()
        return tuple(
            max((count - 1) * step + spread * (window - 1) + 1 - length - 2 * pad, 0)
            for length, count, step, window, spread, pad in zip(
                (size.h, size.w),
                (outputs.h, outputs.w),
                self.stride.hw,
                self.size.hw,
                self._spread().hw,
                self.padding.hw,
                strict=True,
            )
        )

    def _onnx_max(
        self, windows: dict[str, Any], begins: Sequence[int], behind: Sequence[int], pads: Sequence[int]
    ) -> op.OnnxValue:
        attributes = {**windows, "dilations": self.dilation.hw}
        if all(pad < size for pad, size in zip(pads, self.size.hw * 2, strict=True)):
            return op.OnnxNode("MaxPool", attributes={**attributes, "pads": pads})
        # ONNX Runtime rejects padding as large as the window.
        border = [(begin, begin + more) for begin, more in zip(begins, behind, strict=True)]
        bordered = onnx_pad(op.OnnxInput(0), border, "constant", op.scalar(float("-inf")))
        return op.OnnxNode("MaxPool", (bordered,), attributes)

    def _onnx_over_divisor(self, windows: dict[str, Any], begins: Sequence[int], behind: Sequence[int]) -> op.OnnxValue:
        """ONNX divides by the number of values only: with zero padding every window is complete and has the same count."""
        whole = onnx_pad(
            op.OnnxInput(0), [(begin, begin + more) for begin, more in zip(begins, behind, strict=True)], "zeros"
        )
        average = op.OnnxNode("AveragePool", (whole,), windows)
        return op.OnnxNode("Mul", (average, op.scalar(self.size.width * self.size.height / self.divisor_override)))

    def summary(self) -> str:
        stride = "" if self.stride == self.size else f" / {self.stride}"
        return f"{self.operation} {self.size}{stride}"


def _sees_only_padding(window: int, stride: int, pad: int, dilation: int, size: int, count: int) -> bool:
    """Whether the taps of a window that starts in the padding skip the whole input."""
    for number, start in enumerate(range(-pad, 0, stride)):
        if number >= count:
            break
        first = start % dilation  # the first tap at or after 0
        if first >= size or (first - start) // dilation >= window:
            return True
    return False
