"""Convolution with computed filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from designer.operators import api as op
from designer.operators.library.convolution._filter import onnx_end, onnx_pad, torch_pad
from designer.operators.shapes import divisible, known, window_output
from designer.texts import tr


class DynamicConvolution(
    op.Operator,
    type="dynamic_convolution",
    title="Dynamic convolution",
    category=op.Category.CONVOLUTION,
    synonyms=("hypernetwork", "kernel prediction", "functional conv", "conv with input kernel", "correlation"),
):
    """Apply filters that another layer computes, of one, two or three axes; also transposed.

    The kernel is O x I/groups x axes, transposed I x O/groups x axes. Lists have a number for each axis, outermost first;
    empty lists are ones for stride and dilation, and zeros for the others.
    """

    inputs = (
        op.Port("x", rank=(3, 4, 5), dtypes=op.FLOATS),
        op.Port("kernel", rank=(3, 4, 5), dtypes=op.FLOATS),
        op.Port("bias", rank=1, dtypes=op.FLOATS, optional=True),
    )

    stride: tuple[int, ...] = op.param(default=(), min=1, max=1024, doc="Stride of each axis.")
    before: tuple[int, ...] = op.param(
        default=(), min=0, max=4096, doc="Zeros added (transposed: values cut) before each axis."
    )
    after: tuple[int, ...] = op.param(
        default=(), min=0, max=4096, doc="Zeros added (transposed: values cut) after each axis."
    )
    dilation: tuple[int, ...] = op.param(default=(), min=1, max=1024, doc="Distance between filter taps.")
    groups: int = op.param(default=1, min=1, max=65536, doc="Number of channel groups that are convolved separately.")
    transposed: bool = op.param(default=False, doc="Distribute values over the filters, for upsampling.")
    output_padding: tuple[int, ...] = op.param(
        default=(), min=0, max=1023, visible_when=("transposed", True), doc="Values added at the end of each axis."
    )
    examples = (
        op.Example((op.TensorType((2, 3, 7, 8)), op.TensorType((4, 3, 3, 3)))),
        op.Example(
            (op.TensorType((2, 4, 9)), op.TensorType((6, 2, 3)), op.TensorType((6,))),
            {"stride": (2,), "before": (1,), "after": (2,), "groups": 2},
            "one axis, with bias",
        ),
        op.Example(
            (op.TensorType((2, 4, 5, 6)), op.TensorType((4, 3, 3, 2))),
            {"transposed": True, "stride": (2, 1), "before": (1, 0), "after": (0, 0)},
            "transposed",
        ),
    )

    def faults(self) -> Iterable[op.Fault]:
        if not self.transposed and self.output_padding:
            yield op.Fault("output_padding", tr("only a transposed convolution has output padding"))

    def _lists(self, axes: int) -> tuple[tuple[int, ...], ...]:
        """Stride, before, after, dilation and output padding, one number for each axis."""
        given = (self.stride, self.before, self.after, self.dilation, self.output_padding)
        found = tuple(numbers or (default,) * axes for numbers, default in zip(given, (1, 0, 0, 1, 0), strict=True))
        if any(len(numbers) != axes for numbers in found):
            raise op.ShapeError(
                tr("each list must have {axes} numbers", axes=axes), remedy=tr("enter a number for each axis")
            )
        return found

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        x, kernel = inputs[:2]
        if kernel.rank != x.rank:
            raise op.ShapeError(
                tr("the kernel {kernel} must have the rank of {x}", kernel=kernel, x=x),
                port="kernel",
                remedy=tr("reshape the kernel"),
            )
        sizes = [known(kernel, axis, "kernel") for axis in range(kernel.rank)]
        channels = known(x, 1)
        features = sizes[1] * self.groups if self.transposed else sizes[0]
        divisible("input channels", channels, self.groups, "groups")
        divisible("features", features, self.groups, "groups", port="kernel")
        if (sizes[0] if self.transposed else sizes[1] * self.groups) != channels:
            raise op.ShapeError(
                tr("the kernel {kernel} does not fit the {channels} channels of x", kernel=kernel, channels=channels),
                port="kernel",
                remedy=tr("make the channels equal"),
            )
        if len(inputs) == 3 and inputs[2].shape != (features,):
            raise op.ShapeError(
                tr("the bias {bias} must have {features} values", bias=inputs[2], features=features),
                port="bias",
                remedy=tr("make it a vector of one number a feature"),
            )
        dims: list[op.Dim] = [x.shape[0], features]
        lists = zip(*self._lists(x.rank - 2), strict=True)
        for axis, (stride, before, after, dilation, extra) in enumerate(lists, 2):
            size, k = known(x, axis), sizes[axis]
            if self.transposed:
                if extra >= max(stride, dilation):
                    raise op.ShapeError(
                        tr("output padding must be less than the stride or the dilation"), remedy=tr("reduce it")
                    )
                length = (size - 1) * stride + dilation * (k - 1) + 1 + extra - before - after
            else:
                length = window_output(size, k, stride, before + after, dilation)
            if length < 1:
                raise op.ShapeError(
                    tr("the kernel {kernel} does not fit {x}", kernel=kernel, x=x),
                    port="kernel",
                    remedy=tr("use a smaller kernel or a larger input"),
                )
            dims.append(length)
        return x.with_shape(*dims)

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        axes = inputs[0].rank - 2
        stride, before, after, dilation, extra = self._lists(axes)
        x: op.TorchExpr = op.TorchInput(0)
        bias = op.TorchInput(2) if len(inputs) == 3 else None
        kwargs = {"bias": bias, "stride": stride, "dilation": dilation, "groups": self.groups}
        if not self.transposed:
            if before == after:
                kwargs["padding"] = before
            else:
                x = torch_pad(x, tuple(zip(before, after, strict=True)), "constant")
            return op.TorchCall(f"torch.nn.functional.conv{axes}d", (x, op.TorchInput(1)), kwargs)
        kwargs["output_padding"] = extra
        made: op.TorchExpr = op.TorchCall(f"torch.nn.functional.conv_transpose{axes}d", (x, op.TorchInput(1)), kwargs)
        if any(before) or any(after):
            made = torch_pad(made, [(-start, -end) for start, end in zip(before, after, strict=True)], "constant")
        return made

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        stride, before, after, dilation, extra = self._lists(inputs[0].rank - 2)
        attributes: dict[str, object] = {
            "strides": stride,
            "pads": (*before, *after),
            "dilations": dilation,
            "group": self.groups,
        }
        reads = tuple(op.OnnxInput(index) for index in range(len(inputs)))
        if not self.transposed:
            return op.OnnxNode("Conv", reads, attributes)
        ends, extras, missing = zip(*map(onnx_end, after, extra, stride), strict=True)
        attributes["pads"] = (*before, *ends)
        if any(extras):
            attributes["output_padding"] = extras
        if not any(missing):
            return op.OnnxNode("ConvTranspose", reads, attributes)
        padded = onnx_pad(op.OnnxNode("ConvTranspose", reads[:2], attributes), [(0, n) for n in missing], "zeros")
        if len(reads) == 2:
            return padded
        axes = op.int64(*range(1, inputs[0].rank - 1))
        return op.OnnxNode("Add", (padded, op.OnnxNode("Unsqueeze", (reads[2], axes))))

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        kernel = prod(inputs[1].concrete()[1:])
        moved = inputs[0] if self.transposed else outputs[0]
        shape = moved.concrete()
        return 2 * prod((shape[0], *shape[2:])) * shape[1] * kernel

    def summary(self) -> str:
        return "transposed" if self.transposed else ""
