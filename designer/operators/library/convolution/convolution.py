"""Two-dimensional convolution."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators.api import (
    FLOATS,
    Category,
    Example,
    OnnxInput,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    Operator,
    Port,
    ShapeError,
    Size2D,
    TensorType,
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchModule,
    Weight,
    image,
    int64,
    param,
)
from designer.operators.shapes import divisible, misfit, window_output

ONNX_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class Convolution(
    Operator,
    type="convolution",
    title="Convolution",
    category=Category.CONVOLUTION,
    synonyms=("conv", "conv2d", "filter"),
):
    """Slide learned filters over an image: every output channel is one filter's response.

    With padding "same" the output is the input's size divided by the stride, rounded up, at every input size: the padding
    is dilation * (kernel - 1) in all, the smaller half at the left and top.
    """

    inputs = (Port("x", rank=4, dtypes=FLOATS),)

    features: int = param(
        default=32, min=1, max=65536, doc="Number of filters, which is the number of output channels."
    )
    kernel: Size2D = param(default=Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: Size2D = param(default=Size2D(1, 1), min=1, max=1024, doc="Step between filter positions, width x height.")
    padding: str = param(default="same", choices=("same", "valid", "tuple"), doc="How the border is filled.")
    padding_tuple: Size2D = param(
        default=Size2D(0, 0),
        min=0,
        max=4096,
        visible_when=("padding", "tuple"),
        doc="Pixels added on each side: width left and right, height top and bottom.",
    )
    apply_bias: bool = param(default=True, doc="Add a learned number to every output channel.")
    dilation: Size2D = param(
        default=Size2D(1, 1), min=1, max=1024, extension=True, doc="Distance between the filter's taps, width x height."
    )
    groups: int = param(
        default=1,
        min=1,
        max=65536,
        extension=True,
        doc="Split channels into this many groups that do not see each other.",
    )
    padding_mode: str = param(
        default="zeros",
        choices=("zeros", "reflect", "replicate", "circular"),
        extension=True,
        visible_when=("padding", ("same", "tuple")),
        doc="What the border is filled with.",
    )
    examples = (
        Example((image(3, 8, 10),), {"features": 4}),
        Example(
            (image(4, 9, 7),), {"features": 6, "kernel": Size2D(5, 3), "stride": Size2D(2, 1), "groups": 2}, "grouped"
        ),
        Example(
            (image(2, 9, 9),), {"features": 3, "kernel": Size2D(2, 4), "stride": Size2D(2, 2)}, "even kernel, same"
        ),
        Example((image(3, 9, 9),), {"features": 3, "padding": "valid", "dilation": Size2D(2, 3), "apply_bias": False}),
        Example((image(2, 6, 6),), {"features": 3, "padding": "tuple", "padding_tuple": Size2D(2, 1)}, "own padding"),
        Example(
            (image(2, 6, 7),), {"features": 2, "kernel": Size2D(5, 5), "padding_mode": "reflect"}, "mirrored border"
        ),
        Example(
            (image(2, 6, 7),), {"features": 2, "kernel": Size2D(4, 3), "padding_mode": "circular"}, "wrapped border"
        ),
        Example((image(2, 6, 7),), {"features": 2, "kernel": Size2D(4, 3), "padding_mode": "replicate"}, "edge border"),
    )

    def pads(self) -> tuple[int, int, int, int]:
        """Pixels added at left, right, top and bottom."""
        if self.padding == "valid":
            return (0, 0, 0, 0)
        if self.padding == "tuple":
            side, above = self.padding_tuple.width, self.padding_tuple.height
            return (side, side, above, above)
        across = self.dilation.width * (self.kernel.width - 1)
        down = self.dilation.height * (self.kernel.height - 1)
        return (across // 2, across - across // 2, down // 2, down - down // 2)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x = inputs[0].image()
        divisible("input channels", x.c, self.groups, "groups")
        divisible("features", self.features, self.groups, "groups", port=None)
        left, right, top, bottom = self.pads()
        self._check_border(x.w, max(left, right), "width")
        self._check_border(x.h, max(top, bottom), "height")
        width = window_output(x.w, self.kernel.width, self.stride.width, left + right, self.dilation.width)
        height = window_output(x.h, self.kernel.height, self.stride.height, top + bottom, self.dilation.height)
        if width < 1 or height < 1:
            raise misfit(self.kernel, self.stride, x.w, x.h, self.dilation)
        return inputs[0].with_shape(x.n, self.features, height, width)

    def _check_border(self, size: int, pad: int, name: str) -> None:
        most = {"reflect": size - 1, "circular": size}.get(self.padding_mode, pad)
        if pad > most:
            raise ShapeError(
                f"a {self.padding_mode} border of {pad} needs an input {name} of at least {size + pad - most}, not {size}",
                port="x",
                remedy="use zeros or replicate, or a smaller kernel",
            )

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        left, right, top, bottom = self.pads()
        x: TorchExpr = TorchInput(0)
        kwargs = {
            "in_channels": inputs[0].image().c,
            "out_channels": self.features,
            "kernel_size": self.kernel.hw,
            "stride": self.stride.hw,
        }
        if (left, top) != (right, bottom):
            mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
            x = TorchCall("torch.nn.functional.pad", (x, (left, right, top, bottom)), {"mode": mode})
        else:
            kwargs["padding"] = (top, left)
            if self.padding_mode != "zeros":
                kwargs["padding_mode"] = self.padding_mode
        if self.dilation != Size2D(1, 1):
            kwargs["dilation"] = self.dilation.hw
        if self.groups != 1:
            kwargs["groups"] = self.groups
        kwargs["bias"] = self.apply_bias
        return TorchModule("torch.nn.Conv2d", kwargs, (x,))

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue:
        left, right, top, bottom = self.pads()
        x: OnnxValue = OnnxInput(0)
        pads = (top, left, bottom, right)
        if self.padding_mode != "zeros" and any(pads):
            onnx_pads = int64(0, 0, top, left, 0, 0, bottom, right)
            x = OnnxNode("Pad", (x, onnx_pads), {"mode": ONNX_PAD_MODES[self.padding_mode]})
            pads = (0, 0, 0, 0)
        attributes = {
            "kernel_shape": self.kernel.hw,
            "strides": self.stride.hw,
            "dilations": self.dilation.hw,
            "group": self.groups,
            "pads": pads,
        }
        bias = (OnnxWeight("bias"),) if self.apply_bias else ()
        return OnnxNode("Conv", (x, OnnxWeight("kernel"), *bias), attributes)

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        shape = (self.features, inputs[0].image().c // self.groups, *self.kernel.hw)
        fan_in = prod(shape[1:])
        kernel = Weight("kernel", shape, "weight", fan_in=fan_in)
        return (kernel, Weight("bias", (self.features,), "bias", fan_in=fan_in)) if self.apply_bias else (kernel,)

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        y = outputs[0].image()
        return 2 * y.c * y.h * y.w * (inputs[0].image().c // self.groups) * prod(self.kernel.hw)

    def summary(self) -> str:
        stride = "" if self.stride == Size2D(1, 1) else f" / {self.stride}"
        return f"{self.kernel}{stride} · {self.features}"
