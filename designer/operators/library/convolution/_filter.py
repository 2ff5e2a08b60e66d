"""Shared parts of one-, two- and three-dimensional convolutions. Tuples are in torch's order: depth, height, width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from designer.operators import api as op
from designer.operators.shapes import divisible, known, misfit, window_output
from designer.texts import tr

ONNX_PAD_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
PADDING = ("same", "valid", "tuple")
PADDING_MODES = tuple(ONNX_PAD_MODES)
_NAMES = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}


def pads_of(
    padding: str, own: tuple[int, ...], kernel: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """(before, after) along each axis; "same" puts the smaller half of dilation * (kernel - 1) before."""
    if padding == "tuple":
        return tuple((pad, pad) for pad in own)
    if padding == "valid":
        return tuple((0, 0) for _ in kernel)
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


@dataclass(frozen=True)
class Filter:
    """The hyperparameters of a convolution, with its shapes, expressions and cost."""

    features: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    groups: int = 1
    bias: bool = True
    mode: str = "zeros"

    def infer(self, x: op.TensorType) -> op.TensorType:
        channels = known(x, 1)
        divisible("input channels", channels, self.groups, "groups")
        divisible("features", self.features, self.groups, "groups", port=None)
        sizes = [known(x, axis) for axis in range(2, x.rank)]
        found: list[int] = []
        names = _NAMES[len(self.kernel)]
        for name, size, k, s, d, pad in zip(
            names, sizes, self.kernel, self.stride, self.dilation, self.pads, strict=True
        ):
            check_border(self.mode, max(pad), size, name)
            found.append(window_output(size, k, s, sum(pad), d))
        if any(size < 1 for size in found):
            spread = _text(self.dilation) if max(self.dilation) > 1 else ""
            raise misfit(_text(self.kernel), _text(self.stride), _text(sizes), spread)
        dims: tuple[op.Dim, ...] = (x.shape[0], self.features, *found)
        return x.with_shape(*dims)

    def torch(self, channels: int, x: op.TorchExpr | None = None, name: str = "") -> op.TorchExpr:
        """nn.Conv1d, Conv2d or Conv3d, after explicit padding if it is asymmetric, which these do not support."""
        source: op.TorchExpr = op.TorchInput(0) if x is None else x
        kwargs: dict[str, Any] = {
            "in_channels": channels,
            "out_channels": self.features,
            "kernel_size": self.kernel,
            "stride": self.stride,
        }
        if all(before == after for before, after in self.pads):
            kwargs["padding"] = tuple(before for before, _ in self.pads)
            if self.mode != "zeros":
                kwargs["padding_mode"] = self.mode
        else:
            source = torch_pad(source, self.pads, self.mode)
        if max(self.dilation) > 1:
            kwargs["dilation"] = self.dilation
        if self.groups != 1:
            kwargs["groups"] = self.groups
        kwargs["bias"] = self.bias
        return op.TorchModule(f"torch.nn.Conv{len(self.kernel)}d", kwargs, (source,), name)

    def onnx(
        self, x: op.OnnxValue | None = None, kernel: op.OnnxValue | None = None, bias: str = "bias"
    ) -> op.OnnxValue:
        source: op.OnnxValue = op.OnnxInput(0) if x is None else x
        pads = self.pads
        if self.mode != "zeros" and any(max(pad) for pad in pads):
            source = onnx_pad(source, pads, self.mode)
            pads = tuple((0, 0) for _ in pads)
        attributes = {
            "kernel_shape": self.kernel,
            "strides": self.stride,
            "dilations": self.dilation,
            "group": self.groups,
            "pads": (*(before for before, _ in pads), *(after for _, after in pads)),
        }
        filters = op.OnnxWeight("kernel") if kernel is None else kernel
        learned = (op.OnnxWeight(bias),) if self.bias else ()
        return op.OnnxNode("Conv", (source, filters, *learned), attributes)

    def weights(self, channels: int, prefix: str = "", torch: str = "") -> tuple[op.Weight, ...]:
        shape = (self.features, channels // self.groups, *self.kernel)
        fan_in = prod(shape[1:])
        kernel = op.Weight(f"{prefix}kernel", shape, f"{torch}weight", fan_in=fan_in)
        if not self.bias:
            return (kernel,)
        return (kernel, op.Weight("bias", (self.features,), f"{torch}bias", fan_in=fan_in))

    def flops(self, channels: int, output: op.TensorType) -> int:
        batch, _, *size = output.concrete()
        return 2 * batch * prod(size) * self.features * (channels // self.groups) * prod(self.kernel)


class FilterOperator(op.Operator):
    """A layer that is one `Filter`."""

    def filter(self, x: op.TensorType) -> Filter:
        """The convolution for the input `x`."""
        raise NotImplementedError

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return self.filter(inputs[0]).infer(inputs[0])

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return self.filter(inputs[0]).torch(inputs[0].dim(1))

    def onnx(self, inputs: Sequence[op.TensorType]) -> op.OnnxValue:
        return self.filter(inputs[0]).onnx()

    def weights(self, inputs: Sequence[op.TensorType]) -> tuple[op.Weight, ...]:
        return self.filter(inputs[0]).weights(inputs[0].dim(1))

    def flops(self, inputs: Sequence[op.TensorType], outputs: Sequence[op.TensorType]) -> int:
        return self.filter(inputs[0]).flops(inputs[0].dim(1), outputs[0])


def check_border(mode: str, pad: int, size: int, name: str) -> None:
    """Raise ShapeError if the input is too small for a border of `pad` in this mode."""
    most = {"reflect": size - 1, "circular": size}.get(mode, pad)
    if pad > most:
        raise op.ShapeError(
            tr(
                "{mode} padding of {pad} requires an input {name} of at least {size}, not {size2}",
                mode=mode,
                pad=pad,
                name=name,
                size=size + pad - most,
                size2=size,
            ),
            port="x",
            remedy=tr("use zeros or replicate, or less padding"),
        )


def torch_pad(x: op.TorchExpr, pads: Sequence[tuple[int, int]], mode: str, value: float = 0.0) -> op.TorchExpr:
    """Padding as torch.nn.functional.pad; `pads` is in the order of the axes (torch expects the last axis first)."""
    flat = tuple(number for pad in reversed(pads) for number in pad)
    kwargs: dict[str, Any] = {"mode": "constant" if mode in ("zeros", "constant") else mode}
    if value:
        kwargs["value"] = value
    return op.TorchCall("torch.nn.functional.pad", (x, flat), kwargs)


def onnx_pad(
    x: op.OnnxValue, pads: Sequence[tuple[int, int]], mode: str, value: op.OnnxValue | None = None
) -> op.OnnxValue:
    """Padding with `pads` for the axes after batch and channels.

    All axes are listed although they are optional: ONNX Runtime's Pad_Fusion merges a Pad without axes into a following
    MaxPool, where padding is minus infinity instead of zero, and its transpose optimizer fails if some are missing.
    """
    numbers = op.int64(0, 0, *(before for before, _ in pads), 0, 0, *(after for _, after in pads))
    axes = op.int64(*range(2 + len(pads)))
    return op.OnnxNode("Pad", (x, numbers, value, axes), {"mode": ONNX_PAD_MODES.get(mode, mode)})


def onnx_end(pad: int, extra: int, stride: int) -> tuple[int, int, int]:
    """(padding at the end, output padding, values to append) of a transposed convolution along one axis.

    ONNX requires output padding less than the stride: the rest is cropped less at the end, or appended.
    """
    if extra < stride:
        return pad, extra, 0
    rest = max(extra - pad, 0)
    return max(pad - extra, 0), rest if rest < stride else 0, 0 if rest < stride else rest


def summary(kernel: object, stride: object, unit: object, features: int) -> str:
    """`3x3 / 2x2 · 64`."""
    return f"{kernel}{'' if stride == unit else f' / {stride}'} · {features}"


def _text(values: Sequence[int]) -> str:
    """Sizes with the width first."""
    return "x".join(str(value) for value in reversed(values))
