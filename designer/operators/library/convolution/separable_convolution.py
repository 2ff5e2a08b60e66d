"""Depthwise, then pointwise convolution."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxValue,
    OnnxWeight,
    Operator,
    Port,
    Size2D,
    TensorType,
    TorchExpr,
    Weight,
    image,
    param,
)
from designer.operators.library.convolution._filter import PADDING, PADDING_MODES, Filter, pads_of, summary


class SeparableConvolution(
    Operator,
    type="separable_convolution",
    title="Separable convolution",
    category=Category.CONVOLUTION,
    synonyms=("depthwise separable", "sepconv", "mobilenet", "xception"),
):
    """Filter every channel by itself, then mix the channels with a 1x1 convolution: a convolution at a fraction of the work."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    features: int = param(default=32, min=1, max=65536, doc="Number of output channels.")
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
        Example((image(3, 6, 7),), {"features": 5}),
        Example(
            (image(3, 6, 7),),
            {"features": 4, "multiplier": 2, "kernel": Size2D(4, 3), "stride": Size2D(2, 1), "apply_bias": False},
            "two a channel",
        ),
    )

    def _depthwise(self, channels: int) -> Filter:
        kernel, dilation = self.kernel.hw, self.dilation.hw
        pads = pads_of(self.padding, self.padding_tuple.hw, kernel, dilation)
        features = channels * self.multiplier
        return Filter(features, kernel, self.stride.hw, dilation, pads, channels, False, self.padding_mode)

    def _pointwise(self) -> Filter:
        return Filter(self.features, (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), bias=self.apply_bias)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return self._pointwise().infer(self._depthwise(inputs[0].image().c).infer(inputs[0]))

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        channels = inputs[0].dim(1)
        filtered = self._depthwise(channels).torch(channels, name="depthwise")
        return self._pointwise().torch(channels * self.multiplier, filtered, "pointwise")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        filtered = self._depthwise(inputs[0].dim(1)).onnx(kernel=OnnxWeight("depthwise_kernel"))
        return self._pointwise().onnx(filtered, OnnxWeight("pointwise_kernel"))

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        channels = inputs[0].dim(1)
        return (
            *self._depthwise(channels).weights(channels, "depthwise_", "depthwise."),
            *self._pointwise().weights(channels * self.multiplier, "pointwise_", "pointwise."),
        )

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        channels = inputs[0].dim(1)
        filtered = self._depthwise(channels).flops(channels, outputs[0])
        return filtered + self._pointwise().flops(channels * self.multiplier, outputs[0])

    def summary(self) -> str:
        return summary(self.kernel, self.stride, Size2D(1, 1), self.features)
