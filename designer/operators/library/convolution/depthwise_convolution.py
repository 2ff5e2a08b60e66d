"""Depthwise convolution."""

from __future__ import annotations

from designer.operators import api as op
from designer.operators.library.convolution._filter import PADDING, PADDING_MODES, Filter, FilterOperator, pads_of
from designer.operators.shapes import known


class DepthwiseConvolution(
    FilterOperator,
    type="depthwise_convolution",
    title="Depthwise convolution",
    category=op.Category.CONVOLUTION,
    synonyms=("depthwise", "dwconv", "channel-wise convolution"),
):
    """Filter each channel separately: cheap, without mixing channels. Add a 1x1 convolution to mix them."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    kernel: op.Size2D = op.param(default=op.Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: op.Size2D = op.param(default=op.Size2D(1, 1), min=1, max=1024, doc="Stride, width x height.")
    padding: str = op.param(default="same", choices=PADDING, doc="Amount of padding: same, valid (none), or explicit.")
    padding_tuple: op.Size2D = op.param(
        default=op.Size2D(0, 0), min=0, max=4096, visible_when=("padding", "tuple"), doc="Padding on each side."
    )
    multiplier: int = op.param(default=1, min=1, max=1024, doc="Number of filters per input channel.")
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output channel.")
    dilation: op.Size2D = op.param(default=op.Size2D(1, 1), min=1, max=1024, doc="Distance between filter taps.")
    padding_mode: str = op.param(
        default="zeros",
        choices=PADDING_MODES,
        visible_when=("padding", ("same", "tuple")),
        doc="Values of the padding.",
    )
    examples = (
        op.Example((op.image(3, 6, 7),)),
        op.Example(
            (op.image(3, 6, 7),),
            {"multiplier": 2, "kernel": op.Size2D(4, 3), "stride": op.Size2D(2, 2)},
            "two a channel",
        ),
        op.Example((op.image(3, 6, 7),), {"padding_mode": "circular", "apply_bias": False}, "wrapped border"),
    )

    def filter(self, x: op.TensorType) -> Filter:
        channels = known(x, 1)
        kernel, dilation = self.kernel.hw, self.dilation.hw
        return Filter(
            channels * self.multiplier,
            kernel,
            self.stride.hw,
            dilation,
            pads_of(self.padding, self.padding_tuple.hw, kernel, dilation),
            channels,
            self.apply_bias,
            self.padding_mode,
        )

    def summary(self) -> str:
        return f"{self.kernel}{'' if self.stride == op.Size2D(1, 1) else f' / {self.stride}'}"
