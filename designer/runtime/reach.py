"""How far a layer reaches: which pixels of its inputs one pixel of its output depends on, read from its torch data.

An expression is walked backwards with the wanted pixels along one axis, from the output to the inputs. Functions that are not
known here reach nobody knows how far (`UnknownReachError`), and those that read the whole picture say so (`Found.whole`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.operators.torch_data import TorchCall, TorchExpr, TorchInput, TorchItem, TorchMethod, TorchModule, walk

Places = NDArray[np.int64]  # pixels along an axis, sorted, each once
ONE = Fraction(1)


class UnknownReachError(Exception):
    """How far something reaches does not follow from its data; the message names it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One function along one axis: `step` input pixels an output pixel, and the places that it reads for places.

    Places may lie outside; `border` says what is there: "zeros", "replicate", "reflect" or "circular".
    """

    step: Fraction
    back: Callable[[Places], Places]
    border: str = "zeros"


@dataclass(frozen=True, slots=True)
class Found:
    """What an expression reads, by input index: places, and pixels of the input per output pixel (`steps`; none for inputs
    of one pixel). `whole` is a function that reads whole inputs, if there is one."""

    places: Mapping[int, Places]
    steps: Mapping[int, Fraction]
    whole: str = ""


SAME = Rule(ONE, lambda places: places)


def back(expr: Any, axis: int, places: Places, sizes: Sequence[int | None]) -> Found:
    """What `expr` reads for `places` of its output. `axis` is 0 for rows, 1 for columns; `sizes` are those of the inputs
    along it, None for an input that is no picture. Raises UnknownReachError."""
    if isinstance(expr, TorchInput):
        return _input(expr.index, places, sizes[expr.index])
    if not isinstance(expr, TorchExpr):
        return Found({}, {})
    if not any(isinstance(node, TorchInput) for node in walk(expr)):
        return Found({}, {})  # weights and constants
    if whole := _whole(expr):
        indices = {node.index for node in walk(expr) if isinstance(node, TorchInput)}
        return Found({i: np.arange(size) for i in indices if (size := sizes[i]) is not None}, {}, whole)
    rule, sources = _rule(expr, axis)
    read = rule.back(places)
    found = []
    for source in sources:
        size = sizes[source.index] if isinstance(source, TorchInput) else None
        found.append(back(source, axis, _bordered(rule.border, read, size), sizes))
    return _joined(found, rule.step)


def _input(index: int, places: Places, size: int | None) -> Found:
    if size is None:
        return Found({}, {}, "an input that is no picture")
    if size == 1:  # one value for all places
        return Found({index: np.zeros(1, np.int64)}, {})
    inside = places[(places >= 0) & (places < size)]
    return Found({index: inside} if inside.size else {}, {index: ONE})


def obstacle(expr: Any) -> str:
    """Why a piece of a picture gives something else than a piece of the result, although what it reads is near; or ""."""
    for node in walk(expr):
        if isinstance(node, TorchModule | TorchCall) and "circular" in node.kwargs.values():
            return "its border wraps around"
        if isinstance(node, TorchItem) and not isinstance(node.index, int):
            return "it cuts off a border"
    return ""


def _joined(found: Sequence[Found], step: Fraction) -> Found:
    places: dict[int, Places] = {}
    for part in found:
        for index, read in part.places.items():
            places[index] = np.union1d(places[index], read) if index in places else read
    steps: dict[int, Fraction] = {}
    for index, inner in ((index, inner) for part in found for index, inner in part.steps.items()):
        if steps.setdefault(index, inner * step) != inner * step:
            raise UnknownReachError("an input read at several scales")
    return Found(places, steps, next((part.whole for part in found if part.whole), ""))


def _bordered(border: str, places: Places, size: int | None) -> Places:
    """The real places behind those that lie outside; outside a border of zeros there is nothing."""
    if border == "zeros" or size is None:
        return places
    if border == "circular":
        places = places % size
    elif border == "reflect":
        places = np.abs(places)
        places = np.where(places >= size, 2 * (size - 1) - places, places)
    return np.unique(np.clip(places, 0, size - 1))


# --- the functions ------------------------------------------------------------------------------------------------

_GLOBAL = (
    "torch.nn.AdaptiveAvgPool2d",
    "torch.nn.AdaptiveMaxPool2d",
    "torch.nn.InstanceNorm2d",
    "torch.nn.GroupNorm",
    "torch.nn.Linear",
    "torch.nn.MultiheadAttention",
    "torch.nn.TransformerEncoderLayer",
    "torch.nn.LSTM",
    "torch.nn.GRU",
    "torch.nn.RNN",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.matmul",
)
_POINTWISE_MODULES = ("BatchNorm2d", "Dropout", "Dropout2d", "PReLU", "RReLU", "LocalResponseNorm")
_POINTWISE = frozenset(
    """abs add ceil clamp cos div eq erf exp floor full_like ge gt le lerp log lt maximum minimum mul ne neg ones_like pow
    reciprocal round rsqrt sigmoid sign sin sqrt square sub tanh where zeros_like nn.functional.celu nn.functional.elu
    nn.functional.gelu nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.leaky_relu
    nn.functional.mish nn.functional.relu nn.functional.relu6 nn.functional.selu nn.functional.silu
    nn.functional.softplus nn.functional.softshrink nn.functional.softsign nn.functional.threshold
    nn.functional.dropout""".split()
)
_ALONG = frozenset(  # these work along the axes in "dim"
    """cat chunk split stack softmax log_softmax mean sum amax amin linalg.vector_norm nn.functional.softmax
    nn.functional.log_softmax nn.functional.glu nn.functional.normalize""".split()
)
_METHODS = ("pow", "to", "float", "abs")


def _short(path: str) -> str:
    return path.removeprefix("torch.")


def _whole(expr: TorchExpr) -> str:
    """The name of the function, where it reads whole pictures."""
    if isinstance(expr, TorchModule | TorchCall):
        if expr.path in _GLOBAL:
            return expr.path
        if _short(expr.path) in _ALONG and _dims(expr) & {2, 3, -1, -2}:
            return expr.path
    return ""


def _dims(expr: TorchModule | TorchCall) -> set[int]:
    given = expr.kwargs.get("dim", expr.args[1] if len(expr.args) > 1 and isinstance(expr, TorchCall) else None)
    if given is None:
        return {2, 3}
    return set(given) if isinstance(given, tuple | list) else {given}


def _rule(expr: TorchExpr, axis: int) -> tuple[Rule, list[Any]]:
    """The rule of the outermost function of `expr`, and the expressions that it reads."""
    if isinstance(expr, TorchModule | TorchCall):
        short = _short(expr.path)
        module = isinstance(expr, TorchModule)
        if short in _POINTWISE or (module and short.removeprefix("nn.") in _POINTWISE_MODULES):
            return SAME, _sources(expr)
        if short in _ALONG:
            return SAME, _sources(expr)
        if short in _WINDOWS:
            return _WINDOWS[short](expr, axis), [expr.args[0]]
    if isinstance(expr, TorchMethod) and expr.method in _METHODS:
        return SAME, [expr.target, *expr.args]
    if isinstance(expr, TorchItem):
        return _item(expr.index, axis), [expr.value]
    raise UnknownReachError(getattr(expr, "path", "") or getattr(expr, "method", "") or type(expr).__name__)


def _sources(expr: TorchModule | TorchCall) -> list[Any]:
    found: list[Any] = []
    for value in (*expr.args, *(() if isinstance(expr, TorchModule) else expr.kwargs.values())):
        found.extend(value if isinstance(value, tuple | list) else (value,))
    return found


def _of(value: Any, axis: int) -> int:
    return int(value[axis] if isinstance(value, tuple | list) else value)


def window(kernel: int, stride: int, pad: int, dilation: int, border: str = "zeros") -> Rule:
    taps = np.arange(kernel) * dilation - pad
    return Rule(Fraction(stride), lambda places: np.unique(places[:, None] * stride + taps), border)


def _convolution(expr: Any, axis: int) -> Rule:
    k = expr.kwargs
    border = str(k.get("padding_mode", "zeros"))
    return window(
        _of(k["kernel_size"], axis),
        _of(k.get("stride", 1), axis),
        _of(k.get("padding", 0), axis),
        _of(k.get("dilation", 1), axis),
        border,
    )


def _pool(expr: Any, axis: int) -> Rule:
    k = expr.kwargs
    stride = k.get("stride")
    return window(
        _of(k["kernel_size"], axis),
        _of(k["kernel_size"] if stride is None else stride, axis),
        _of(k.get("padding", 0), axis),
        _of(k.get("dilation", 1), axis),
    )


def _filter(expr: Any, axis: int) -> Rule:
    """`conv2d` with a constant filter."""
    shapes = [node.shape for node in walk(expr.args[1]) if hasattr(node, "shape")]
    if len(shapes) != 1 or len(shapes[0]) != 4:
        raise UnknownReachError(expr.path)
    k = expr.kwargs
    kernel = int(shapes[0][2 + axis])
    return window(
        kernel, _of(k.get("stride", 1), axis), _of(k.get("padding", 0), axis), _of(k.get("dilation", 1), axis)
    )


def _transposed(expr: Any, axis: int) -> Rule:
    k = expr.kwargs
    kernel, stride = _of(k["kernel_size"], axis), _of(k.get("stride", 1), axis)
    taps = np.arange(kernel) * _of(k.get("dilation", 1), axis) - _of(k.get("padding", 0), axis)

    def back(places: Places) -> Places:
        spread = places[:, None] - taps
        return np.unique(spread[spread % stride == 0] // stride)

    return Rule(Fraction(1, stride), back)


def _interpolate(expr: Any, axis: int) -> Rule:
    k = expr.kwargs
    factor, mode = k.get("scale_factor"), k.get("mode", "nearest")
    if factor is None or k.get("align_corners") or k.get("antialias"):
        raise UnknownReachError(f"{expr.path} to a size")
    scale = Fraction(factor[axis] if isinstance(factor, tuple | list) else factor).limit_denominator(1 << 16)
    up, down = scale.numerator, scale.denominator
    if mode == "nearest":
        return Rule(1 / scale, lambda places: np.unique(places * down // up), "replicate")
    more = {"bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}.get(mode)
    if more is None:
        raise UnknownReachError(f"{expr.path} {mode}")

    def back(places: Places) -> Places:
        twice = (2 * places + 1) * down - up  # the place between the pixels, times 2 * up
        twice = np.maximum(twice, 0) if mode == "bilinear" else twice
        low, between = twice // (2 * up), twice % (2 * up) != 0
        return np.unique(np.concatenate([low, *(low[between] + n for n in more)]))

    return Rule(1 / scale, back, "replicate")


def _shuffle(expr: Any, axis: int) -> Rule:
    factor = int(expr.kwargs["upscale_factor"])
    return Rule(Fraction(1, factor), lambda places: np.unique(places // factor))


def _unshuffle(expr: Any, axis: int) -> Rule:
    factor = int(expr.kwargs["downscale_factor"])
    return window(factor, factor, 0, 1)


def _pad(expr: Any, axis: int) -> Rule:
    numbers = expr.args[1]
    if len(numbers) > 4:
        raise UnknownReachError(expr.path)
    before = int(numbers[2 * (1 - axis)]) if len(numbers) > 2 * (1 - axis) else 0
    mode = str(expr.kwargs.get("mode", "constant"))
    return Rule(ONE, lambda places: places - before, "zeros" if mode == "constant" else mode)


def _item(index: Any, axis: int) -> Rule:
    """One of several results, or a cut that ends at a distance from the end."""
    if isinstance(index, int):
        return SAME
    cuts = index if isinstance(index, tuple) else (index,)
    cut = cuts[2 + axis] if len(cuts) > 2 + axis else slice(None)
    if not all(isinstance(c, slice) for c in cuts) or cuts[:1] != (slice(None),) or cut.step not in (None, 1):
        raise UnknownReachError("a slice")
    start, stop = cut.start or 0, cut.stop
    if start < 0 or (stop is not None and stop >= 0):
        raise UnknownReachError("a slice to a place")
    return Rule(ONE, lambda places: places + start)


_WINDOWS: dict[str, Callable[[Any, int], Rule]] = {
    "nn.Conv2d": _convolution,
    "nn.ConvTranspose2d": _transposed,
    "nn.MaxPool2d": _pool,
    "nn.AvgPool2d": _pool,
    "nn.functional.avg_pool2d": _pool,
    "nn.functional.conv2d": _filter,
    "nn.Upsample": _interpolate,
    "nn.functional.interpolate": _interpolate,
    "nn.PixelShuffle": _shuffle,
    "nn.PixelUnshuffle": _unshuffle,
    "nn.functional.pad": _pad,
}
