"""The reach of a layer: the pixels of its inputs that a pixel of its output depends on, derived from its torch data.

An expression is walked backwards from the output to the inputs with the required pixels along one axis. A function that is
not listed here raises `UnknownReachError`; `Reach.whole` names a function that reads whole images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.operators.torch_data import TorchCall, TorchExpr, TorchInput, TorchItem, TorchMethod, TorchModule, walk
from designer.texts import tr

Positions = NDArray[np.int64]  # of pixels along an axis, sorted and unique
Size = tuple[int, int, int]  # by axis: rows, columns, channels
ROWS, COLUMNS, CHANNELS = 0, 1, -1
ONE = Fraction(1)


class UnknownReachError(Exception):
    """The reach does not follow from the data; the message names the function or layer."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One function along one axis: `step` input pixels per output pixel, and `back` from output to input positions.

    Positions can be outside the image; `border` is the padding there: "zeros", "replicate", "reflect" or "circular". `step` is
    None if the size of the result does not follow from that of the input.
    """

    step: Fraction | None
    back: Callable[[Positions], Positions]
    border: str = "zeros"


@dataclass(frozen=True, slots=True)
class Reach:
    """What an expression reads, by input index: positions, and input pixels per output pixel.

    `steps` omits inputs of one pixel, and results whose size does not follow from that of the input. `whole` is the name of a
    function that reads whole inputs, if there is one. `edges` are the border pixels that the padding repeats, if padding is
    read. `axes` has the axis of the input that is read.
    """

    places: Mapping[int, Positions]
    steps: Mapping[int, Fraction]
    whole: str = ""
    edges: Mapping[int, Positions] = field(default_factory=dict)
    axes: Mapping[int, int] = field(default_factory=dict)


SAME = Rule(ONE, lambda places: places)


def back(expr: Any, axis: int, places: Positions, sizes: Sequence[Size | None]) -> Reach:
    """What `expr` reads for `places` of its output along `axis` (ROWS, COLUMNS or CHANNELS).

    `sizes` are those of the inputs, None for an input that is not an image. Raises UnknownReachError.
    """
    if isinstance(expr, TorchInput):
        return _input(expr.index, axis, places, sizes[expr.index])
    if not isinstance(expr, TorchExpr):
        return Reach({}, {})
    if not any(isinstance(node, TorchInput) for node in walk(expr)):
        return Reach({}, {})  # weights and constants
    if whole := _whole(expr):
        indices = {node.index for node in walk(expr) if isinstance(node, TorchInput)}
        read = {i: np.arange(size[axis]) for i in indices if (size := sizes[i]) is not None}
        return Reach(read, {}, whole, axes=dict.fromkeys(read, axis))
    if isinstance(expr, TorchMethod) and expr.method in ("permute", "transpose"):
        return back(expr.target, _axis_before(expr, axis), places, sizes)
    rule, sources = _rule(expr, axis, sizes)
    read_places = rule.back(places)
    found = []
    for source in sources:
        size = sizes[source.index] if isinstance(source, TorchInput) else None
        inside, edges = _bordered(rule.border, read_places, None if size is None else size[axis])
        part = back(source, axis, inside, sizes)
        if isinstance(source, TorchInput) and edges.size and source.index in part.places:
            part = replace(part, edges={source.index: edges})
        found.append(part)
    return _joined(found, rule.step)


def _input(index: int, axis: int, places: Positions, size: Size | None) -> Reach:
    if size is None:
        return Reach({}, {}, "an input that is not an image")
    if size[axis] == 1:  # broadcast
        return Reach({index: np.zeros(1, np.int64)}, {}, axes={index: axis})
    inside = places[(places >= 0) & (places < size[axis])]
    return Reach({index: inside} if inside.size else {}, {index: ONE}, axes={index: axis})


def obstacle(expr: Any) -> str:
    """Why a crop of the image does not give a crop of the result although the reach is local; "" if it does."""
    for node in walk(expr):
        if isinstance(node, TorchModule | TorchCall) and "circular" in node.kwargs.values():
            return tr("its border wraps around")
        if isinstance(node, TorchMethod) and node.method in ("permute", "transpose"):
            return tr("it changes the order of the axes")
    return ""


def _joined(found: Sequence[Reach], step: Fraction | None) -> Reach:
    places: dict[int, Positions] = {}
    edges: dict[int, Positions] = {}
    axes: dict[int, int] = {}
    for part in found:
        for mine, theirs in ((places, part.places), (edges, part.edges)):
            for index, read in theirs.items():
                mine[index] = np.union1d(mine[index], read) if index in mine else read
        for index, axis in part.axes.items():
            if axes.setdefault(index, axis) != axis:
                raise UnknownReachError(tr("an input read along two axes"))
    steps: dict[int, Fraction] = {}
    for index, inner in ((index, inner) for part in found for index, inner in part.steps.items()):
        if step is not None and steps.setdefault(index, inner * step) != inner * step:
            raise UnknownReachError(tr("an input read at several scales"))
    return Reach(places, steps, next((part.whole for part in found if part.whole), ""), edges, axes)


def _bordered(border: str, places: Positions, size: int | None) -> tuple[Positions, Positions]:
    """The positions inside that padding outside repeats, and the edges there; padding with zeros repeats nothing."""
    none = np.empty(0, np.int64)
    if border == "zeros" or size is None or not places.size:
        return places, none
    edges = np.array(
        [edge for edge, beyond in ((0, places[0] < 0), (size - 1, places[-1] >= size)) if beyond], np.int64
    )
    if border == "circular":
        places = places % size
    elif border == "reflect":
        places = np.abs(places)
        places = np.where(places >= size, 2 * (size - 1) - places, places)
    return np.unique(np.clip(places, 0, size - 1)), edges


def _axis_before(expr: TorchMethod, axis: int) -> int:
    """The axis of a permuted image that becomes `axis`."""
    if expr.method == "transpose":
        one, other = (number % 4 for number in expr.args)
        order = [other if n == one else one if n == other else n for n in range(4)]
    else:
        order = [number % 4 for number in expr.args[0]]
    dim = order[2 + axis] if len(order) == 4 else 0
    if dim == 0:
        raise UnknownReachError(expr.method)
    return dim - 2


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
_ALONG = frozenset(  # these operate along the axes in "dim"
    """cat chunk split stack softmax log_softmax mean sum amax amin linalg.vector_norm nn.functional.softmax
    nn.functional.log_softmax nn.functional.glu nn.functional.normalize""".split()
)
_METHODS = ("pow", "to", "float", "abs")


def _short(path: str) -> str:
    return path.removeprefix("torch.")


def _whole(expr: TorchExpr) -> str:
    """The name of the function if it reads whole images."""
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


def _rule(expr: TorchExpr, axis: int, sizes: Sequence[Size | None]) -> tuple[Rule, list[Any]]:
    """The rule of the outermost function of `expr`, and the expressions that it reads."""
    if isinstance(expr, TorchModule | TorchCall):
        return _call_rule(expr, axis, sizes)
    if isinstance(expr, TorchMethod):
        if expr.method in _METHODS:
            return SAME, [expr.target, *expr.args]
        if expr.method == "repeat" and axis != CHANNELS:
            return _repeat(expr, axis, _extent(expr.target, axis, sizes)), [expr.target]
        if expr.method == "flatten":
            return _blocks(expr, axis)
    if isinstance(expr, TorchItem):
        return _item(expr.index, axis, _extent(expr.value, axis, sizes)), [expr.value]
    raise UnknownReachError(getattr(expr, "method", "") or type(expr).__name__)


def _call_rule(expr: TorchModule | TorchCall, axis: int, sizes: Sequence[Size | None]) -> tuple[Rule, list[Any]]:
    short = _short(expr.path)
    module = isinstance(expr, TorchModule)
    if short in _POINTWISE or (module and short.removeprefix("nn.") in _POINTWISE_MODULES):
        return SAME, _sources(expr)
    if axis == CHANNELS:
        raise UnknownReachError(expr.path)
    if short in _ALONG:
        return SAME, _sources(expr)
    if short in _WINDOWS:
        return _WINDOWS[short](expr, axis, _extent(expr.args[0], axis, sizes)), [expr.args[0]]
    if short == "nn.functional.max_unpool2d":
        factor = _of(expr.kwargs["kernel_size"], axis)
        return Rule(Fraction(1, factor), lambda places: np.unique(places // factor)), list(expr.args)
    if short == "narrow":
        return _narrow(expr, axis, sizes), [expr.args[0]]
    raise UnknownReachError(expr.path)


def _extent(expr: Any, axis: int, sizes: Sequence[Size | None]) -> int | None:
    """The size along an axis if it is known."""
    size = sizes[expr.index] if isinstance(expr, TorchInput) else None
    return None if size is None else size[axis]


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


def _convolution(expr: Any, axis: int, size: int | None) -> Rule:
    k = expr.kwargs
    border = str(k.get("padding_mode", "zeros"))
    return window(
        _of(k["kernel_size"], axis),
        _of(k.get("stride", 1), axis),
        _of(k.get("padding", 0), axis),
        _of(k.get("dilation", 1), axis),
        border,
    )


def _pool(expr: Any, axis: int, size: int | None) -> Rule:
    k = expr.kwargs
    stride = k.get("stride")
    return window(
        _of(k["kernel_size"], axis),
        _of(k["kernel_size"] if stride is None else stride, axis),
        _of(k.get("padding", 0), axis),
        _of(k.get("dilation", 1), axis),
    )


def _filter(expr: Any, axis: int, size: int | None) -> Rule:
    """`conv2d` with a constant filter."""
    shapes = [node.shape for node in walk(expr.args[1]) if hasattr(node, "shape")]
    if len(shapes) != 1 or len(shapes[0]) != 4:
        raise UnknownReachError(expr.path)
    k = expr.kwargs
    kernel = int(shapes[0][2 + axis])
    return window(
        kernel, _of(k.get("stride", 1), axis), _of(k.get("padding", 0), axis), _of(k.get("dilation", 1), axis)
    )


def _transposed(expr: Any, axis: int, size: int | None) -> Rule:
    k = expr.kwargs
    kernel, stride = _of(k["kernel_size"], axis), _of(k.get("stride", 1), axis)
    taps = np.arange(kernel) * _of(k.get("dilation", 1), axis) - _of(k.get("padding", 0), axis)

    def back(places: Positions) -> Positions:
        spread = places[:, None] - taps
        return np.unique(spread[spread % stride == 0] // stride)

    return Rule(Fraction(1, stride), back)


def _interpolate(expr: Any, axis: int, size: int | None) -> Rule:
    k = expr.kwargs
    if k.get("scale_factor") is None and size is not None:
        return _to_size(k, _of(k["size"], axis), size)
    factor, mode = k.get("scale_factor"), k.get("mode", "nearest")
    if factor is None:
        raise UnknownReachError(tr("{path} to a size", path=expr.path))
    scale = Fraction(factor[axis] if isinstance(factor, tuple | list) else factor).limit_denominator(1 << 16)
    up, down = scale.numerator, scale.denominator
    if k.get("align_corners"):
        if size is None:
            raise UnknownReachError(tr("{path} with aligned corners", path=expr.path))
        return _to_size(k, size * up // down, size)
    if mode in ("nearest", "nearest-exact"):  # the same pixels for whole factors
        return Rule(1 / scale, lambda places: np.unique(places * down // up), "replicate")
    return Rule(1 / scale, lambda places: _around((2 * places + 1) * down - up, 2 * up, mode), "replicate")


def _around(at: Positions, unit: int, mode: str) -> Positions:
    """The pixels from which values at `at` / `unit` are interpolated."""
    at = np.maximum(at, 0) if mode == "bilinear" else at
    low, between = at // unit, at % unit != 0
    more = {"bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}[mode]
    return np.unique(np.concatenate([low, *(low[between] + n for n in more)]))


def _to_size(k: Mapping[str, Any], count: int, size: int) -> Rule:
    """`size` pixels resized to `count`: the positions depend on both sizes, so there is no step."""
    mode = k.get("mode", "nearest")

    def smoothed(places: Positions) -> Positions:
        scale = size / count
        support = max(scale, 1.0) * (2 if mode == "bicubic" else 1)
        centers = (places + 0.5) * scale
        ends = zip(centers - support + 0.5, centers + support + 0.5, strict=True)
        return np.unique(np.concatenate([np.arange(max(int(low), 0), min(int(high), size)) for low, high in ends]))

    def corners(places: Positions) -> Positions:
        return _around(places * (size - 1), max(count - 1, 1), mode)

    def nearest(places: Positions) -> Positions:
        return np.unique((places.astype(np.float32) * (np.float32(size) / np.float32(count))).astype(np.int64))

    def centers(places: Positions) -> Positions:
        return _around((2 * places + 1) * size - count, 2 * count, mode)

    found = smoothed if k.get("antialias") else corners if k.get("align_corners") else centers
    return Rule(None, nearest if mode == "nearest" else found, "replicate")


def _narrow(expr: TorchModule | TorchCall, axis: int, sizes: Sequence[Size | None]) -> Rule:
    _, dim, start, _ = expr.args
    if dim != 2 + axis:
        return SAME
    offset = _number(start, sizes)
    return Rule(ONE, lambda places: places + offset)


def _number(expr: Any, sizes: Sequence[Size | None]) -> int:
    """The value of an expression of input sizes."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, TorchMethod) and expr.method == "size" and isinstance(expr.target, TorchInput):
        size = sizes[expr.target.index]
        if size is not None and expr.args[0] in (2, 3):
            return size[expr.args[0] - 2]
    if isinstance(expr, TorchCall):
        values = [_number(arg, sizes) for arg in expr.args]
        if expr.path == "torch.tensor":
            return values[0]
        if expr.path == "torch.sub":
            return values[0] - values[1]
        if expr.path == "torch.floor_divide":
            return values[0] // values[1]
    raise UnknownReachError(getattr(expr, "path", "a number"))


def _repeat(expr: TorchMethod, axis: int, size: int | None) -> Rule:
    counts = expr.args[0]
    if len(counts) == 4 and counts[2 + axis] == 1:
        return SAME
    if len(counts) != 4 or size is None:
        raise UnknownReachError("repeat")
    return Rule(None, lambda places: np.unique(places % size))


def _blocks(expr: TorchMethod, axis: int) -> tuple[Rule, list[Any]]:
    """Images divided into blocks and joined again (`pad_to_multiple`), or with zeros between their pixels (`unpooling`)."""
    along = {(3, 4): COLUMNS, (2, 3): ROWS}.get(expr.args)
    inner = expr.target
    if along is not None and isinstance(inner, TorchCall) and inner.path == "torch.nn.functional.pad":
        apart, numbers = inner.args
        if isinstance(apart, TorchMethod) and apart.method == "unsqueeze" and not any(numbers[:-1]):
            factor = int(numbers[-1]) + 1
            if along != axis:
                return SAME, [apart.target]
            return Rule(Fraction(1, factor), lambda p: p[p % factor == 0] // factor), [apart.target]
    if isinstance(inner, TorchMethod) and inner.method == "movedim":
        inner = inner.target
    if along is not None and isinstance(inner, TorchMethod) and inner.method == "unfold":
        _, size, step = inner.args
        if size == step:
            return SAME, [inner.target]
    raise UnknownReachError(expr.method)


def _shuffle(expr: Any, axis: int, size: int | None) -> Rule:
    factor = int(expr.kwargs["upscale_factor"])
    return Rule(Fraction(1, factor), lambda places: np.unique(places // factor))


def _unshuffle(expr: Any, axis: int, size: int | None) -> Rule:
    factor = int(expr.kwargs["downscale_factor"])
    return window(factor, factor, 0, 1)


def _pad(expr: Any, axis: int, size: int | None) -> Rule:
    numbers = expr.args[1]
    if len(numbers) > 4:
        raise UnknownReachError(expr.path)
    before = int(numbers[2 * (1 - axis)]) if len(numbers) > 2 * (1 - axis) else 0
    mode = str(expr.kwargs.get("mode", "constant"))
    return Rule(ONE, lambda places: places - before, "zeros" if mode == "constant" else mode)


def _item(index: Any, axis: int, size: int | None) -> Rule:
    """One of several results, selected positions, or a slice that ends at a distance from the end."""
    if isinstance(index, int):
        return SAME
    cuts = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(c, slice | list) for c in cuts) or cuts[:1] != (slice(None),):
        raise UnknownReachError(tr("a slice"))
    cut = cuts[2 + axis] if len(cuts) > 2 + axis else slice(None)
    if isinstance(cut, list):
        chosen = np.array(cut, np.int64)
        if size is None and (chosen < 0).any():
            raise UnknownReachError(tr("a negative index"))
        chosen = np.where(chosen < 0, chosen + (size or 0), chosen)
        return Rule(None, lambda places: np.unique(chosen[places[(places >= 0) & (places < len(chosen))]]))
    if cut.step not in (None, 1):
        raise UnknownReachError(tr("a slice"))
    start, stop = cut.start or 0, cut.stop
    if start < 0 or (stop is not None and stop >= 0):
        raise UnknownReachError(tr("a slice with an absolute end"))
    return Rule(ONE, lambda places: places + start)


_WINDOWS: dict[str, Callable[[Any, int, int | None], Rule]] = {
    "nn.Conv2d": _convolution,
    "nn.ConvTranspose2d": _transposed,
    "nn.MaxPool2d": _pool,
    "nn.functional.max_pool2d": _pool,
    "nn.AvgPool2d": _pool,
    "nn.functional.avg_pool2d": _pool,
    "nn.functional.conv2d": _filter,
    "nn.Upsample": _interpolate,
    "nn.functional.interpolate": _interpolate,
    "nn.PixelShuffle": _shuffle,
    "nn.PixelUnshuffle": _unshuffle,
    "nn.functional.pad": _pad,
}
