"""Depthwise, then pointwise convolution."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op
from designer.operators.library.convolution._filter import PADDING, PADDING_MODES, Filter, pads_of, summary


class SeparableConvolution(
    op.Operator,
    type="separable_convolution",
    title="Separable convolution",
    category=op.Category.CONVOLUTION,
    synonyms=("depthwise separable", "sepconv", "mobilenet", "xception"),
):
    """Filter each channel separately, then mix the channels with a 1x1 convolution: less work than a convolution."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    features: int = op.param(default=32, min=1, max=65536, doc="Number of output channels.")
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
        op.Example((op.image(3, 6, 7),), {"features": 5}),
        op.Example(
            (op.image(3, 6, 7),),
            {"features": 4, "multiplier": 2, "kernel": op.Size2D(4, 3), "stride": op.Size2D(2, 1), "apply_bias": False},
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

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return self._pointwise().infer(self._depthwise(inputs[0].image().c).infer(inputs[0]))

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        channels = inputs[0].dim(1)
        filtered = self._depthwise(channels).torch(channels, name="depthwise")
        return self._pointwise().torch(channels * self.multiplier, filtered, "pointwise")

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        filtered = self._depthwise(inputs[0].dim(1)).onnx(kernel=op.OnnxWeight("depthwise_kernel"))
        return self._pointwise().onnx(filtered, op.OnnxWeight("pointwise_kernel"))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        channels = inputs[0].dim(1)
        return (
            *self._depthwise(channels).weights(channels, "depthwise_", "depthwise."),
            *self._pointwise().weights(channels * self.multiplier, "pointwise_", "pointwise."),
        )

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        channels = inputs[0].dim(1)
        filtered = self._depthwise(channels).flops(channels, outputs[0])
        return filtered + self._pointwise().flops(channels * self.multiplier, outputs[0])

    def summary(self) -> str:
        return summary(self.kernel, self.stride, op.Size2D(1, 1), self.features)
