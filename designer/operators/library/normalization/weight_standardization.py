"""Weight-standardized convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators import api as op
from designer.operators.library.convolution._filter import PADDING, Filter, FilterOperator, pads_of, summary, torch_pad


class WeightStandardization(
    FilterOperator,
    type="weight_standardization",
    title="Weight-standardized convolution",
    category=op.Category.NORMALIZATION,
    synonyms=("weight standardization", "ws conv", "standardised convolution", "bit"),
):
    """A convolution whose filters are each normalized to mean 0 and variance 1."""

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    features: int = op.param(default=32, min=1, max=65536, doc="Number of filters (output channels).")
    kernel: op.Size2D = op.param(default=op.Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: op.Size2D = op.param(default=op.Size2D(1, 1), min=1, max=1024, doc="Stride, width x height.")
    padding: str = op.param(default="same", choices=PADDING, doc="Amount of padding: same, valid (none), or explicit.")
    padding_tuple: op.Size2D = op.param(
        default=op.Size2D(0, 0), min=0, max=4096, visible_when=("padding", "tuple"), doc="Padding on each side."
    )
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output channel.")
    dilation: op.Size2D = op.param(default=op.Size2D(1, 1), min=1, max=1024, doc="Distance between filter taps.")
    groups: int = op.param(default=1, min=1, max=65536, doc="Number of channel groups that are convolved separately.")
    epsilon: float = op.param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance to avoid division by 0.")
    examples = (
        op.Example((op.image(3, 6, 7),), {"features": 4}),
        op.Example(
            (op.image(4, 6, 7),),
            {"features": 2, "kernel": op.Size2D(4, 3), "groups": 2, "apply_bias": False},
            "grouped",
        ),
    )

    def filter(self, x: op.TensorType) -> Filter:
        kernel, dilation = self.kernel.hw, self.dilation.hw
        pads = pads_of(self.padding, self.padding_tuple.hw, kernel, dilation)
        return Filter(self.features, kernel, self.stride.hw, dilation, pads, self.groups, self.apply_bias)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        made = self.filter(inputs[0])
        kernel = made.weights(inputs[0].dim(1))[0]
        bound = kernel.fan_in**-0.5
        raw = op.TorchParameter("weight", kernel.shape, uniform=bound)
        over = {"dim": (1, 2, 3), "keepdim": True}
        centered = op.TorchCall("torch.sub", (raw, op.TorchCall("torch.mean", (raw,), over)))
        variance = op.TorchCall("torch.mean", (op.TorchCall("torch.square", (centered,)),), over)
        scale = op.TorchCall("torch.rsqrt", (op.TorchCall("torch.add", (variance, self.epsilon)),))
        bias = op.TorchParameter("bias", (self.features,), uniform=bound) if self.apply_bias else None
        x: op.TorchExpr = op.TorchInput(0)
        kwargs: dict[str, Any] = {"stride": made.stride, "dilation": made.dilation, "groups": self.groups}
        if all(before == after for before, after in made.pads):
            kwargs["padding"] = tuple(before for before, _ in made.pads)
        else:
            x = torch_pad(x, made.pads, "zeros")
        return op.TorchCall(
            "torch.nn.functional.conv2d", (x, op.TorchCall("torch.mul", (centered, scale)), bias), kwargs
        )

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        raw, axes = op.OnnxWeight("kernel"), op.int64(1, 2, 3)
        centered = op.OnnxNode("Sub", (raw, op.OnnxNode("ReduceMean", (raw, axes), {"keepdims": 1})))
        variance = op.OnnxNode("ReduceMean", (op.OnnxNode("Mul", (centered, centered)), axes), {"keepdims": 1})
        spread = op.OnnxNode("Sqrt", (op.OnnxNode("Add", (variance, op.scalar(self.epsilon))),))
        return self.filter(inputs[0]).onnx(kernel=op.OnnxNode("Div", (centered, spread)))

    def summary(self) -> str:
        return summary(self.kernel, self.stride, op.Size2D(1, 1), self.features)
