"""Two-dimensional transposed convolution."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from designer.operators import api as op
from designer.operators.library.convolution._filter import onnx_end, onnx_pad
from designer.operators.shapes import divisible
from designer.texts import tr


class TransposedConvolution(
    op.Operator,
    type="transposed_convolution",
    title="Transposed convolution",
    category=op.Category.CONVOLUTION,
    synonyms=("deconvolution", "deconv", "convtranspose2d", "conv_transpose", "up convolution"),
):
    """Distribute each input pixel over a learned filter: the transpose of a convolution, used for upsampling.

    With padding "same", the output size is the input size times the stride.
    """

    inputs = (op.Port("x", rank=4, dtypes=op.FLOATS),)

    features: int = op.param(default=32, min=1, max=65536, doc="Number of output channels.")
    kernel: op.Size2D = op.param(default=op.Size2D(3, 3), min=1, max=1024, doc="Filter size, width x height.")
    stride: op.Size2D = op.param(
        default=op.Size2D(2, 2), min=1, max=1024, doc="Stride (upsampling factor), width x height."
    )
    padding: str = op.param(
        default="same", choices=("same", "valid", "tuple"), doc="How much of the border is cropped."
    )
    padding_tuple: op.Size2D = op.param(
        default=op.Size2D(0, 0),
        min=0,
        max=4096,
        visible_when=("padding", "tuple"),
        doc="Pixels cropped on each side: width left and right, height top and bottom.",
    )
    apply_bias: bool = op.param(default=True, doc="Add a learned bias to each output channel.")
    output_padding: op.Size2D = op.param(
        default=op.Size2D(0, 0),
        min=0,
        max=1023,
        extension=True,
        visible_when=("padding", ("valid", "tuple")),
        doc="Pixels added on the right and bottom; less than the stride or the dilation.",
    )
    dilation: op.Size2D = op.param(
        default=op.Size2D(1, 1),
        min=1,
        max=1024,
        extension=True,
        doc="Distance between filter taps, width x height.",
    )
    groups: int = op.param(
        default=1,
        min=1,
        max=65536,
        extension=True,
        doc="Number of channel groups that are convolved separately.",
    )
    examples = (
        op.Example((op.image(3, 4, 5),), {"features": 4}),
        op.Example(
            (op.image(4, 4, 5),), {"features": 6, "kernel": op.Size2D(4, 2), "groups": 2}, "grouped, even kernel"
        ),
        op.Example(
            (op.image(2, 4, 5),),
            {"features": 2, "kernel": op.Size2D(4, 3), "stride": op.Size2D(1, 1)},
            "same, stride 1",
        ),
        op.Example((op.image(2, 4, 5),), {"features": 2, "kernel": op.Size2D(2, 2), "stride": op.Size2D(3, 3)}, "gaps"),
        op.Example(
            (op.image(2, 4, 4),), {"features": 2, "padding": "valid", "apply_bias": False, "dilation": op.Size2D(2, 1)}
        ),
        op.Example(
            (op.image(2, 4, 4),),
            {"features": 2, "padding": "tuple", "padding_tuple": op.Size2D(1, 0), "output_padding": op.Size2D(1, 1)},
            "own padding",
        ),
        op.Example(
            (op.image(1, 4, 4),),
            {"features": 1, "kernel": op.Size2D(2, 2), "stride": op.Size2D(1, 1), "dilation": op.Size2D(3, 3)},
            "output padding beyond the stride",
        ),
        op.Example(
            (op.image(1, 4, 4),),
            {
                "features": 2,
                "kernel": op.Size2D(2, 2),
                "stride": op.Size2D(1, 2),
                "dilation": op.Size2D(3, 4),
                "padding": "valid",
                "output_padding": op.Size2D(2, 3),
            },
            "output padding beyond the pattern",
        ),
    )

    def _axis(self, kernel: int, stride: int, dilation: int, pad: int, extra: int) -> tuple[int, int, int]:
        """(padding, output_padding, values cropped at the start) along one axis."""
        if self.padding == "valid":
            return 0, extra, 0
        if self.padding == "tuple":
            return pad, extra, 0
        surplus = dilation * (kernel - 1) + 1 - stride
        if surplus < 0:
            return 0, -surplus, 0
        if surplus % 2 and max(stride, dilation) > 1:
            return surplus // 2 + 1, 1, 0
        # Only stride 1 with an even kernel: torch allows no output padding there, so one value is cropped.
        return surplus // 2, 0, surplus % 2

    def _axes(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """`_axis` for height and width."""
        k, s, d, p, e = self.kernel, self.stride, self.dilation, self.padding_tuple, self.output_padding
        return (
            self._axis(k.height, s.height, d.height, p.height, e.height),
            self._axis(k.width, s.width, d.width, p.width, e.width),
        )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x = inputs[0].image()
        divisible("input channels", x.c, self.groups, "groups")
        divisible("features", self.features, self.groups, "groups", port=None)
        sizes = []
        steps = zip((x.h, x.w), self.kernel.hw, self.stride.hw, self.dilation.hw, self._axes(), strict=True)
        for size, kernel, stride, dilation, (pad, extra, cut) in steps:
            if extra and extra >= max(stride, dilation):
                raise op.ShapeError(
                    tr(
                        "output padding {extra} must be smaller than the stride {stride} or the dilation {dilation}",
                        extra=extra,
                        stride=stride,
                        dilation=dilation,
                    ),
                    remedy=tr("use a smaller output padding"),
                )
            # torch rejects an empty result before cropping
            sizes.append((size - 1) * stride - 2 * pad + dilation * (kernel - 1) + extra + 1 - cut)
        if any(size < 1 for size in sizes):
            raise op.ShapeError(
                tr(
                    "kernel {kernel} with padding {padding_tuple} leaves no output for an input of {w}x{h}",
                    kernel=self.kernel,
                    padding_tuple=self.padding_tuple,
                    w=x.w,
                    h=x.h,
                ),
                port="x",
                remedy=tr("use less padding or a larger input"),
            )
        return inputs[0].with_shape(x.n, self.features, *sizes)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        down, across = self._axes()
        kwargs = {
            "in_channels": inputs[0].image().c,
            "out_channels": self.features,
            "kernel_size": self.kernel.hw,
            "stride": self.stride.hw,
            "padding": (down[0], across[0]),
        }
        if down[1] or across[1]:
            kwargs["output_padding"] = (down[1], across[1])
        if self.groups != 1:
            kwargs["groups"] = self.groups
        kwargs["bias"] = self.apply_bias
        if self.dilation != op.Size2D(1, 1):
            kwargs["dilation"] = self.dilation.hw
        module = op.TorchModule("torch.nn.ConvTranspose2d", kwargs)
        if not down[2] and not across[2]:
            return module
        everything = slice(None)
        return op.TorchItem(module, (everything, everything, slice(down[2], None), slice(across[2], None)))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        begins = [pad + cut for pad, _, cut in self._axes()]
        found = [
            onnx_end(pad, extra, stride) for (pad, extra, _), stride in zip(self._axes(), self.stride.hw, strict=True)
        ]
        ends, extras, missing = zip(*found, strict=True)
        attributes = {
            "kernel_shape": self.kernel.hw,
            "strides": self.stride.hw,
            "dilations": self.dilation.hw,
            "group": self.groups,
            "pads": (*begins, *ends),
            "output_padding": extras,
        }
        bias = (op.OnnxWeight("bias"),) if self.apply_bias else ()
        if not any(missing):
            return op.OnnxNode("ConvTranspose", (op.OnnxInput(0), op.OnnxWeight("kernel"), *bias), attributes)
        spread = op.OnnxNode("ConvTranspose", (op.OnnxInput(0), op.OnnxWeight("kernel")), attributes)
        padded = onnx_pad(spread, [(0, count) for count in missing], "zeros")
        if not self.apply_bias:
            return padded
        return op.OnnxNode("Add", (padded, op.OnnxNode("Unsqueeze", (op.OnnxWeight("bias"), op.int64(1, 2)))))

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        shape = (inputs[0].image().c, self.features // self.groups, *self.kernel.hw)
        fan_in = prod(shape[1:])  # torch uses the second dimension here too
        kernel = op.Weight("kernel", shape, "weight", fan_in=fan_in)
        return (kernel, op.Weight("bias", (self.features,), "bias", fan_in=fan_in)) if self.apply_bias else (kernel,)

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return 2 * inputs[0].elements() * (self.features // self.groups) * prod(self.kernel.hw)

    def summary(self) -> str:
        return f"{self.kernel} x {self.stride} · {self.features}"
