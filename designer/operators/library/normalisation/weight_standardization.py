"""Convolution with standardised filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Port,
    Size2D,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchParameter,
    image,
    int64,
    param,
    scalar,
)
from designer.operators.library.convolution._filter import PADDING, Filter, FilterOperator, pads_of, summary, torch_pad


class WeightStandardization(
    FilterOperator,
    type="weight_standardization",
    title="Weight-standardized convolution",
    category=Category.NORMALISATION,
    synonyms=("weight standardization", "ws conv", "standardised convolution", "bit"),
):
    """A convolution whose filters are brought to mean 0 and variance 1 before they are used, each by itself."""

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    features: int = param(
        default=32, min=1, max=65536, doc="Number of filters, which is the number of output channels."
    )
    kernel: Size2D = param(default=Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: Size2D = param(default=Size2D(1, 1), min=1, max=1024, doc="Step between filter positions, width x height.")
    padding: str = param(default="same", choices=PADDING, doc="How the border is filled.")
    padding_tuple: Size2D = param(
        default=Size2D(0, 0), min=0, max=4096, visible_when=("padding", "tuple"), doc="Pixels added on each side."
    )
    apply_bias: bool = param(default=True, doc="Add a learned number to every output channel.")
    dilation: Size2D = param(default=Size2D(1, 1), min=1, max=1024, doc="Distance between the filter's taps.")
    groups: int = param(default=1, min=1, max=65536, doc="Split channels into groups that do not see each other.")
    epsilon: float = param(default=1e-5, min=1e-12, max=1.0, doc="Added to the variance, so that nothing divides by 0.")
    examples = (
        Example((image(3, 6, 7),), {"features": 4}),
        Example(
            (image(4, 6, 7),), {"features": 2, "kernel": Size2D(4, 3), "groups": 2, "apply_bias": False}, "grouped"
        ),
    )

    def filter(self, x: TensorType) -> Filter:
        kernel, dilation = self.kernel.hw, self.dilation.hw
        pads = pads_of(self.padding, self.padding_tuple.hw, kernel, dilation)
        return Filter(self.features, kernel, self.stride.hw, dilation, pads, self.groups, self.apply_bias)

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        made = self.filter(inputs[0])
        kernel = made.weights(inputs[0].dim(1))[0]
        bound = kernel.fan_in**-0.5
        raw = TorchParameter("weight", kernel.shape, uniform=bound)
        over = {"dim": (1, 2, 3), "keepdim": True}
        centred = TorchCall("torch.sub", (raw, TorchCall("torch.mean", (raw,), over)))
        variance = TorchCall("torch.mean", (TorchCall("torch.square", (centred,)),), over)
        scale = TorchCall("torch.rsqrt", (TorchCall("torch.add", (variance, self.epsilon)),))
        bias = TorchParameter("bias", (self.features,), uniform=bound) if self.apply_bias else None
        x: TorchExpr = TorchInput(0)
        kwargs: dict[str, Any] = {"stride": made.stride, "dilation": made.dilation, "groups": self.groups}
        if all(before == after for before, after in made.pads):
            kwargs["padding"] = tuple(before for before, _ in made.pads)
        else:
            x = torch_pad(x, made.pads, "zeros")
        return TorchCall("torch.nn.functional.conv2d", (x, TorchCall("torch.mul", (centred, scale)), bias), kwargs)

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        raw, axes = OnnxWeight("kernel"), int64(1, 2, 3)
        centred = OnnxNode("Sub", (raw, OnnxNode("ReduceMean", (raw, axes), {"keepdims": 1})))
        variance = OnnxNode("ReduceMean", (OnnxNode("Mul", (centred, centred)), axes), {"keepdims": 1})
        spread = OnnxNode("Sqrt", (OnnxNode("Add", (variance, scalar(self.epsilon))),))
        return self.filter(inputs[0]).onnx(kernel=OnnxNode("Div", (centred, spread)))

    def summary(self) -> str:
        return summary(self.kernel, self.stride, Size2D(1, 1), self.features)
