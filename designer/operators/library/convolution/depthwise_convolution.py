"""Convolution of every channel by itself."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxValue,
    Operator,
    Port,
    Size2D,
    TensorType,
    TorchExpr,
    Weight,
    image,
    param,
)
from designer.operators.library.convolution._filter import PADDING, PADDING_MODES, Filter, pads_of


class DepthwiseConvolution(
    Operator,
    type="depthwise_convolution",
    title="Depthwise convolution",
    category=Category.CONVOLUTION,
    synonyms=("depthwise", "dwconv", "channel-wise convolution"),
):
    """Filter every channel by itself: cheap, and channels do not mix. Follow it with a 1x1 convolution to mix them."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    kernel: Size2D = param(default=Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: Size2D = param(default=Size2D(1, 1), min=1, max=1024, doc="Step between filter positions, width x height.")
    padding: str = param(default="same", choices=PADDING, doc="How the border is filled.")
    padding_tuple: Size2D = param(
        default=Size2D(0, 0), min=0, max=4096, visible_when=("padding", "tuple"), doc="Pixels added on each side."
    )
    multiplier: int = param(default=1, min=1, max=1024, doc="Filters for every input channel.")
    apply_bias: bool = param(default=True, doc="Add a learned number to every output channel.")
    dilation: Size2D = param(default=Size2D(1, 1), min=1, max=1024, doc="Distance between the filter's taps.")
    padding_mode: str = param(
        default="zeros",
        choices=PADDING_MODES,
        visible_when=("padding", ("same", "tuple")),
        doc="What the border is filled with.",
    )
    examples = (
        Example((image(3, 6, 7),)),
        Example((image(3, 6, 7),), {"multiplier": 2, "kernel": Size2D(4, 3), "stride": Size2D(2, 2)}, "two a channel"),
        Example((image(3, 6, 7),), {"padding_mode": "circular", "apply_bias": False}, "wrapped border"),
    )

    def _filter(self, channels: int) -> Filter:
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

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return self._filter(inputs[0].image().c).infer(inputs[0])

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        channels = inputs[0].dim(1)
        return self._filter(channels).torch(channels)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        return self._filter(inputs[0].dim(1)).onnx()

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        channels = inputs[0].dim(1)
        return self._filter(channels).weights(channels)

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        channels = inputs[0].dim(1)
        return self._filter(channels).flops(channels, outputs[0])

    def summary(self) -> str:
        return f"{self.kernel}{'' if self.stride == Size2D(1, 1) else f' / {self.stride}'}"
