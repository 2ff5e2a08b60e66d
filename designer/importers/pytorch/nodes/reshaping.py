"""Operators that only move values."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from designer.graph.types import DataType
from designer.importers.pytorch.conversion import (
    BatchError,
    Constant,
    Conversion,
    Merged,
    Repeated,
    TraceNode,
    UnsupportedError,
    Value,
    axes_of,
    is_empty,
    without_values,
)
from designer.importers.pytorch.nodes.table import converts
from designer.operators.params import Value as Param

_FAR = 10**9  # larger than any index


@converts(
    "contiguous", "clone", "detach", "alias", "lift_fresh_copy", "lift_fresh", "alpha_dropout", "identity", "native_dropout",
)  # fmt: skip
def same(c: Conversion, node: TraceNode) -> Any:
    if node.get("train"):
        raise UnsupportedError("it is in training mode")
    return node.get("self", node.get("input"))


@converts("dropout", "feature_dropout")
def dropout(c: Conversion, node: TraceNode) -> Any:
    """It changes nothing when the network runs, but matters for training it further."""
    x = same(c, node)
    if not node.get("p") or not isinstance(x, Value) or not x.plain:
        return x
    if node.op == "feature_dropout" and x.rank != 4:
        return x
    type = "dropout" if node.op == "dropout" else "dropout_2d"
    return c.layer(type, [x], {"probability": float(node.get("p"))})


@converts("flatten")
def flatten(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    start, end = (node.get(name) % max(x.rank, 1) for name in ("start_dim", "end_dim"))
    if not x.plain or start < 1 or start >= end:
        return c.reshaped(x, node.shapes[0][0])
    return c.layer("flatten", [x], {"start_axis": start, "end_axis": node.get("end_dim")})


@converts("view", "reshape", "_unsafe_view", "unflatten", "view_as", "reshape_as")
def reshape(c: Conversion, node: TraceNode) -> Value:
    return c.reshaped(node.get("self"), node.shapes[0][0])


@converts("squeeze")
def squeeze(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    dims = node.get("dim")
    dims = list(range(x.rank)) if dims is None else [dims] if isinstance(dims, int) else list(dims)
    gone = [place for place in map(x.place, dims) if x.shape[place] == 1]
    if not gone:
        return x
    shape = [size for place, size in enumerate(x.shape) if place not in gone]
    return c.layer("squeeze", [x], {"axes": tuple(x.axis(place) for place in gone)}, shape=shape)


@converts("unsqueeze")
def unsqueeze(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    place = node.get("dim") % (x.rank + 1)
    axis = len(axes_of(x.shape[:place]))
    return c.layer("unsqueeze", [x], {"axis": axis}, shape=(*x.shape[:place], 1, *x.shape[place:]))


@converts("permute")
def permute(c: Conversion, node: TraceNode) -> Value:
    return c.permuted(node.get("self"), node.get("dims"))


@converts("transpose", "t", "swapaxes", "swapdims")
def transpose(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    one = node.get("dim0", node.get("axis0", 0)) % max(x.rank, 1)
    other = node.get("dim1", node.get("axis1", 1)) % max(x.rank, 1)
    order = list(range(x.rank))
    if x.rank > 1:
        order[one], order[other] = order[other], order[one]
    return c.permuted(x, order)


@converts("mT", "numpy_T")
def matrix_transpose(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    reversed_ = range(x.rank)[::-1]
    return c.permuted(x, (*range(x.rank - 2), x.rank - 1, x.rank - 2) if node.op == "mT" else reversed_)


@converts("movedim")
def movedim(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    start, end = node.get("source"), node.get("destination")
    starts = [x.place(axis) for axis in _list(start)]
    ends = [x.place(axis) for axis in _list(end)]
    rest = iter(axis for axis in range(x.rank) if axis not in starts)
    order = [starts[ends.index(axis)] if axis in ends else next(rest) for axis in range(x.rank)]
    return c.permuted(x, order)


@converts("expand", "expand_as", "broadcast_to")
def expand(c: Conversion, node: TraceNode) -> Any:
    given = node.get("self")
    wanted = node.shapes[0][0]
    if isinstance(given, Constant) and wanted and wanted[0] is None and None not in wanted[1:]:
        sizes = tuple(size for size in wanted[1:] if isinstance(size, int))
        if given.tensor.ndim < len(wanted) or given.tensor.shape[0] == 1:
            tensor = given.tensor.expand(1, *sizes)
            whole = tensor.shape == given.tensor.shape
            return Repeated(Constant(tensor, given.name if whole else "", given.learned and whole))
    x = c.value(given)
    new = len(wanted) - x.rank
    shape: list[Any] = []
    target: list[int] = []
    for place, size in enumerate(wanted):
        own = x.shape[place - new] if place >= new else 1
        if isinstance(own, Merged):
            shape.append(own)
            target.extend(-1 for _ in own.axes())
        elif size is None:
            raise BatchError("it expands to the batch")
        else:
            shape.append(size)
            target.append(-1 if own == size and place >= new else size if isinstance(size, int) else -1)
    if all(size == -1 for size in target):
        return x
    return c.layer("expand", [x], {"shape": tuple(target)}, shape=shape)


@converts("repeat", "tile")
def repeat(c: Conversion, node: TraceNode) -> Any:
    given = node.get("self")
    repeats = list(node.get("repeats", node.get("dims")))
    if (
        (
            isinstance(given, Constant)
            and repeats
            and not isinstance(repeats[0], int)
            and given.tensor.ndim == len(repeats)
        )
        and given.tensor.shape[0] == 1
        and all(isinstance(number, int) for number in repeats[1:])
    ):
        same = all(number == 1 for number in repeats[1:])
        tensor = given.tensor.repeat(1, *repeats[1:])
        return Repeated(Constant(tensor, given.name if same else "", given.learned and same))
    if not all(isinstance(number, int) for number in repeats):
        raise BatchError("it repeats by the batch")
    x = c.plain(given)
    while x.rank < len(repeats):
        x = c.layer("unsqueeze", [x], {"axis": 0})
    return c.layer("tile", [x], {"repeats": tuple([1] * (x.rank - len(repeats)) + repeats)})


@converts("repeat_interleave")
def repeat_interleave(c: Conversion, node: TraceNode) -> Value:
    x, count = c.value(node.get("self")), node.get("repeats")
    if not isinstance(count, int) or node.get("dim") is None:
        raise UnsupportedError("its counts are a tensor")
    place = x.place(node.get("dim"))
    size = x.size(place)
    axis = x.axis(place) + 1
    made = c.layer("unsqueeze", [x], {"axis": axis}, shape=(*x.shape[: place + 1], 1, *x.shape[place + 1 :]))
    target = [-1] * len(axes_of(made.shape))
    target[axis] = count
    made = c.layer(
        "expand", [made], {"shape": tuple(target)}, shape=(*x.shape[: place + 1], count, *x.shape[place + 1 :])
    )
    return c.reshaped(made, (*x.shape[:place], size * count, *x.shape[place + 1 :]))


@converts("cat", "concat", "concatenate")
def concatenation(c: Conversion, node: TraceNode) -> Value:
    values = [c.value(item) for item in node.get("tensors") if not is_empty(item)]
    part = c.part(values[0], "upsample")
    if part is not None and len(values) == 2 and node.get("dim", 0) == 1:
        operator: Any = c.builder.registry.read(part).operator
        params: dict[str, Param] = {name: getattr(operator, name) for name in ("factor", "method", "align_corners")}
        return c.layer("upscale_concat", [c.take(part), values[1]], params)
    place = values[0].place(node.get("dim", 0))
    if len(values) == 1:
        return values[0]
    heads = {(*value.shape[:place], 0, *value.shape[place + 1 :]) for value in values}
    if len(heads) > 1:
        raise BatchError("it joins tensors with the batch on different axes")
    total = sum(value.size(place) for value in values)
    shape = (*values[0].shape[:place], total, *values[0].shape[place + 1 :])
    return c.layer("concatenation", values, {"axis": values[0].axis(place)}, shape=shape)


@converts("stack")
def stack(c: Conversion, node: TraceNode) -> Value:
    values = [c.value(item) for item in node.get("tensors")]
    if len({value.shape for value in values}) > 1:
        raise BatchError("it joins tensors with the batch on different axes")
    first = values[0]
    place = node.get("dim", 0) % (first.rank + 1)
    shape = (*first.shape[:place], len(values), *first.shape[place:])
    return c.layer("stack", values, {"axis": len(axes_of(first.shape[:place]))}, shape=shape)


@converts("split", "split_with_sizes", "chunk", "tensor_split")
def split(c: Conversion, node: TraceNode) -> tuple[Value | Constant | Repeated | None, ...]:
    x = c.value(node.get("self"))
    place = x.place(node.get("dim", 0))
    sizes = [shape[place] for shape, _ in node.shapes]
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) != len(sizes):
        raise BatchError("it splits the batch")
    parts = iter(_parts(c, x, place, [number for number in numbers if number]))
    return tuple(
        next(parts) if number else without_values(*kind) for number, kind in zip(numbers, node.shapes, strict=True)
    )


def _parts(c: Conversion, x: Value, place: int, numbers: Sequence[int]) -> tuple[Value, ...]:
    """Parts of one axis of the trace, none of size 0."""
    if len(numbers) == 1:
        return (x,)
    even = len(set(numbers)) == 1
    params: dict[str, Param] = {"parts": len(numbers), "axis": x.axis(place)}
    if not even:
        params["sizes"] = tuple(numbers)
    first = c.layer("split", [x], params, shape=(*x.shape[:place], numbers[0], *x.shape[place + 1 :]))
    found = c.outputs(first.source.layer)
    return tuple(
        c.wrap(source, (*x.shape[:place], number, *x.shape[place + 1 :]))
        for source, number in zip(found, numbers, strict=True)
    )


@converts("unbind")
def unbind(c: Conversion, node: TraceNode) -> tuple[Value, ...]:
    x = c.value(node.get("self"))
    place = x.place(node.get("dim", 0))
    return tuple(_selected(c, x, place, index) for index in range(x.size(place)))


@converts("select")
def select(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    place = x.place(node.get("dim"))
    index = node.get("index")
    if not isinstance(index, int):
        raise UnsupportedError("its index is computed while running")
    return _selected(c, x, place, index)


def _selected(c: Conversion, x: Value, place: int, index: int) -> Value:
    params: dict[str, Param] = {"indices": (index,), "axis": x.axis(place), "keep": False}
    return c.layer("selector", [x], params, shape=(*x.shape[:place], *x.shape[place + 1 :]))


def sliced(c: Conversion, x: Value, place: int, start: int, end: int, step: int = 1) -> Value:
    """Indices of one axis of the trace."""
    if step == 1 and start == 0 and end >= _FAR:
        return x
    length = x.size(place)
    kept = range(*slice(start, end, step).indices(length))
    if len(kept) == length and step == 1:
        return x
    if not kept:
        raise UnsupportedError("its result is empty")
    stop = 0 if end >= length else end
    params: dict[str, Param] = {"axis": x.axis(place), "start": max(start, -_FAR), "end": stop, "step": step}
    return c.layer("slice", [x], params, shape=(*x.shape[:place], len(kept), *x.shape[place + 1 :]))


def _whole(item: Any) -> Any:
    """A tensor of one known whole number as that number; anything else as it is."""
    known = isinstance(item, Constant) and item.tensor.numel() == 1 and not item.tensor.is_floating_point()
    return int(item.tensor.item()) if known else item


@converts("slice", "narrow")
def cut(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    place = x.place(node.get("dim", 0))
    start, step, end, length = (
        _whole(node.get(name, usual)) for name, usual in (("start", 0), ("step", 1), ("end", _FAR), ("length", 0))
    )
    if not all(isinstance(number, int) for number in (start, end, step, length)):
        raise BatchError("its bounds depend on the batch")
    if node.op == "narrow":
        end = start + length or _FAR  # -1 and its 1 element are the end
    return sliced(c, x, place, start, end, step)


@converts("roll")
def roll(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    dims = node.get("dims") or ()
    if not dims:
        raise UnsupportedError("it shifts the flattened tensor")
    for shift, dim in zip(_list(node.get("shifts")), _list(dims), strict=True):
        place = x.place(dim)
        if abs(shift) >= x.size(place):  # at another size, it may shift by another remainder
            raise UnsupportedError("it shifts by the whole size or more")
        offset = int(shift)
        if not offset:
            continue
        back = sliced(c, x, place, -offset, _FAR)
        front = sliced(c, x, place, 0, -offset)
        x = c.layer("concatenation", [back, front], {"axis": x.axis(place)}, shape=x.shape)
    return x


def _list(item: Any) -> list[Any]:
    return list(item) if isinstance(item, list | tuple) else [item]


@converts("flip")
def flip(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    return c.layer("flip", [x], {"axes": tuple(x.axis(dim) for dim in node.get("dims"))}, shape=x.shape)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


@converts("pad", "constant_pad_nd", "reflection_pad2d", "replication_pad2d", "reflection_pad1d", "replication_pad1d")
def pad(c: Conversion, node: TraceNode) -> Value:
    mode = node.get("mode", "constant")
    if node.op.startswith(("reflection", "replication")):
        mode = "reflect" if node.op.startswith("reflection") else "replicate"
    flat = list(node.get("pad", node.get("padding")))
    if not all(isinstance(number, int) for number in flat):
        raise BatchError("its borders depend on the batch")
    return padded(c, c.value(node.get("self")), flat, mode, float(node.get("value", 0.0)))


def padded(c: Conversion, x: Value, flat: Sequence[int], mode: str, value: float) -> Value:
    """Borders in torch's order: (before, after) of the last axis first. Negative ones cut."""
    for place, (before, after) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
        axis = x.rank - 1 - place
        if before < 0 or after < 0:
            x = sliced(c, x, axis, max(0, -before), _FAR if after >= 0 else after)
    flat = [max(0, number) for number in flat]
    if not any(flat):
        return x
    shape = list(x.shape)
    for place, (before, after) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
        axis = x.rank - 1 - place
        if before or after:
            shape[axis] = x.size(axis) + before + after
    spatial = x.plain and x.rank == 4 and not any(flat[4:]) and x.dtype is DataType.FLOAT32
    if spatial:
        left, right, top, bottom = (*flat[:4], *(0,) * (4 - len(flat[:4])))
        params: dict[str, Param] = {
            "mode": mode,
            "left": left,
            "right": right,
            "top": top,
            "bottom": bottom,
            "value": value,
        }
        return c.layer("padding", [x], params, shape=shape)
    if mode != "constant":
        raise UnsupportedError(f"it pads other axes than height and width in the mode {mode}")
    low, high = [0] * len(axes_of(x.shape)), [0] * len(axes_of(x.shape))
    for place, pair in enumerate(zip(flat[::2], flat[1::2], strict=True)):
        if any(pair):
            axis = x.axis(x.rank - 1 - place)
            low[axis], high[axis] = pair
    return c.layer("pad_tensor", [x], {"before": tuple(low), "after": tuple(high), "value": value}, shape=shape)


@converts("index", "_unsafe_index", "index_select")
def index(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    if node.op == "index_select":
        place, chosen = x.place(node.get("dim")), node.get("index")
    else:
        given = [(place, item) for place, item in enumerate(node.get("indices")) if item is not None]
        if len(given) != 1:
            raise UnsupportedError("it indexes several axes at once")
        place, chosen = given[0]
    indices = c.plain(chosen)
    if indices.dtype is DataType.BOOL:
        raise UnsupportedError("its mask decides the size of the result")
    if indices.dtype is not DataType.INT64:
        indices = c.layer("cast", [indices], {"target": "int64"}, shape=indices.shape)
    numbers = [indices.size(axis) for axis in range(indices.rank)]
    flat = c.reshaped(indices, (prod(numbers),))
    params: dict[str, Param] = {"axis": x.axis(place), "mode": "slices", "wrap": True}
    made = c.layer("gather", [x, flat], params, shape=(*x.shape[:place], prod(numbers), *x.shape[place + 1 :]))
    return c.reshaped(made, (*x.shape[:place], *numbers, *x.shape[place + 1 :]))


@converts("im2col")
def unfold(c: Conversion, node: TraceNode) -> Value:
    """Windows as columns, picked from the flattened image by constant indices."""
    import torch

    x = c.plain(node.get("self"))
    if x.rank != 4:
        raise UnsupportedError("its input has no batch")
    window = {name: tuple(int(n) for n in node.get(name)) for name in ("kernel_size", "dilation", "padding", "stride")}
    down, right = window["padding"]
    x = padded(c, x, (right, right, down, down), "constant", 0.0)
    channels, height, width = x.size(1), x.size(2), x.size(3)
    places = torch.arange(height * width, dtype=torch.float64).view(1, 1, height, width)
    chosen = torch.nn.functional.unfold(
        places, window["kernel_size"], dilation=window["dilation"], stride=window["stride"]
    )
    count, columns = map(int, chosen.shape[1:])
    flat = c.reshaped(x, (x.shape[0], channels, height * width))
    where = c.value(Constant(chosen.to(torch.int64).reshape(-1)))
    params: dict[str, Param] = {"axis": 2, "mode": "slices"}
    made = c.layer("gather", [flat, where], params, shape=(x.shape[0], channels, count * columns))
    return c.reshaped(made, (x.shape[0], channels * count, columns))


@converts("col2im")
def fold(c: Conversion, node: TraceNode) -> Value:
    """Columns as windows that do not overlap."""
    x = c.plain(node.get("self"))
    height, width = (int(n) for n in node.get("output_size"))
    down, across = (int(n) for n in node.get("kernel_size"))
    plain = list(node.get("stride")) == [down, across] and not any(node.get("padding")) and x.rank == 3
    if not plain or max(node.get("dilation")) > 1 or height % down or width % across:
        raise UnsupportedError("its windows overlap")
    channels = x.size(1) // (down * across)
    blocks = c.reshaped(x, (x.shape[0], channels, down, across, height // down, width // across))
    image = c.permuted(blocks, (0, 1, 4, 2, 5, 3))
    return c.reshaped(image, (x.shape[0], channels, height, width))


_SCATTERED = {"scatter": "none", "scatter_add": "add"}
_COMBINED = {"sum": "add", "prod": "mul", "amin": "min", "amax": "max"}


@converts(*_SCATTERED, "scatter_reduce")
def scatter(c: Conversion, node: TraceNode) -> Value:
    x, places = c.value(node.get("self")), c.value(node.get("index"))
    given = node.get("src", node.get("value"))
    if isinstance(given, bool | int | float):
        same = c.typed(places, x.dtype)
        updates = c.layer("scale_shift", [same], {"scale": 0.0, "shift": float(given)}, shape=same.shape)
    else:
        updates = c.value(given)
    reduction = _SCATTERED.get(node.op) or _COMBINED.get(str(node.get("reduce")))
    if reduction is None or not node.get("include_self", True) or node.get("reduce") not in (None, *_COMBINED):
        raise UnsupportedError("it combines values in another way")
    params: dict[str, Param] = {"axis": x.axis(x.place(node.get("dim"))), "reduction": reduction}
    return c.layer("scatter", [x, places, updates], params, shape=x.shape)


@converts("one_hot")
def one_hot(c: Conversion, node: TraceNode) -> Value:
    index, (shape, dtype) = c.value(node.get("self")), node.shapes[0]
    depth = shape[-1]
    if not isinstance(depth, int):
        raise UnsupportedError("the number of its classes is not known")
    made = c.layer("one_hot", [index], {"depth": depth}, shape=(*index.shape, depth))
    return c.typed(made, dtype)


@converts("gather")
def gather(c: Conversion, node: TraceNode) -> Value:
    x, chosen = c.plain(node.get("self")), c.plain(node.get("index"))
    params: dict[str, Param] = {"axis": x.axis(node.get("dim")), "mode": "elements", "wrap": False}
    return c.layer("gather", [x, chosen], params)


@converts("topk")
def topk(c: Conversion, node: TraceNode) -> tuple[Value, ...]:
    x = c.plain(node.get("self"))
    params: dict[str, Param] = {
        "k": node.get("k"),
        "axis": x.axis(node.get("dim", -1)),
        "largest": bool(node.get("largest", True)),
    }
    first = c.layer("top_k", [x], params)
    return tuple(c.wrap(source) for source in c.outputs(first.source.layer))


@converts("tril", "triu")
def triangle(c: Conversion, node: TraceNode) -> Value:
    x = c.value(node.get("self"))
    params: dict[str, Param] = {"part": "lower" if node.op == "tril" else "upper", "diagonal": node.get("diagonal", 0)}
    return c.layer("triangle", [x], params, shape=x.shape)


@converts("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(c: Conversion, node: TraceNode) -> Value:
    x, groups = c.value(node.get("self")), node.get("groups")
    channels, rest = x.size(1), x.shape[2:]
    made = c.reshaped(x, (x.shape[0], groups, channels // groups, *rest))
    made = c.permuted(made, (0, 2, 1, *range(3, made.rank)))
    return c.reshaped(made, x.shape)


@converts("zeros", "ones", "full", "new_zeros", "new_ones", "new_full")
def filled(c: Conversion, node: TraceNode) -> Any:
    """A constant of the size of the batch."""
    import torch

    shape, dtype = node.shapes[0]
    places = [place for place, size in enumerate(shape) if size is None]
    if dtype is None or len(places) != 1:
        raise BatchError("its size depends on the batch on several axes")
    sizes = [size if isinstance(size, int) else 1 for size in shape]
    fill = node.get("fill_value", 1 if "ones" in node.op else 0)
    return Repeated(Constant(torch.full(sizes, fill, dtype=getattr(torch, dtype.value))), places[0])
