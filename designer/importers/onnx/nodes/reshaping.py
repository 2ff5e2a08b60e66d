"""Operators that only move values."""

from __future__ import annotations

from math import prod

from designer.graph.model import Source
from designer.graph.types import Dim, Symbol
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.nodes.table import PATTERNS, converts
from designer.operators.params import Value


@converts("Reshape")
def reshape(c: Conversion, op: OnnxOp) -> None:
    wanted = list(c.target(op, 1))
    before = c.type_of(op.inputs[0]).shape
    if not op.attribute("allowzero", 0):
        wanted = [before[place] if item == 0 else item for place, item in enumerate(wanted)]
    c.finish(reshaped(c, op.inputs[0], wanted))


def reshaped(c: Conversion, x: str | Source, wanted: list[Dim]) -> Source:
    """A layer that reshapes; sizes of the batch stay open where the batch stays the first axis."""
    kind = c.type_of(x) if isinstance(x, str) else c.builder.types[x]
    before = kind.shape
    if tuple(wanted) == before:
        return c.add("identity", [x])[0]
    batched = bool(before) and isinstance(before[0], Symbol)
    if not batched:
        return _fixed(c, x, wanted)
    rest = numbers_of(before[1:])
    first, tail = (wanted[0], wanted[1:]) if wanted else (1, [])
    sizes = numbers_of(tail)
    keeps = first == before[0] or first == 1 or (first == -1 and prod(sizes) == prod(rest))
    if -1 in sizes:
        keeps = keeps and first != -1 and prod(rest) % prod(size for size in sizes if size > 0) == 0
    elif first == 1:
        keeps = prod(sizes) == prod(rest)
    if not keeps:
        raise UnsupportedError("it merges the batch with other axes")
    if not sizes:
        raise UnsupportedError("it removes all axes but the batch")
    if len(before) == 1:
        raise UnsupportedError("it splits the batch")
    return c.add("reshape", [x], {"shape": tuple(sizes)})[0]


def _fixed(c: Conversion, x: str | Source, wanted: list[Dim]) -> Source:
    if any(isinstance(size, Symbol) for size in wanted):
        raise UnsupportedError("its size depends on the batch of another tensor")
    params: dict[str, Value] = {"shape": tuple(numbers_of(wanted)), "keep_batch": False}
    return c.add("reshape", [x], params)[0]


def numbers_of(dims: list[Dim] | tuple[Dim, ...]) -> list[int]:
    """Sizes without symbols. Raises UnsupportedError if there is one."""
    found = [dim for dim in dims if isinstance(dim, int)]
    if len(found) != len(dims):
        raise UnsupportedError("the batch is not the first axis")
    return found


@converts("Flatten")
def flatten(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    axis = op.attribute("axis", 1)
    axis = axis + kind.rank if axis < 0 else axis
    if axis == 1 and kind.rank > 1:
        c.one("flatten", op.inputs, {"start_axis": 1, "end_axis": -1})
        return
    front = kind.shape[:axis]
    if any(isinstance(size, Symbol) for size in kind.shape):
        raise UnsupportedError("it merges the batch with other axes")
    c.finish(reshaped(c, op.inputs[0], [prod(numbers_of(front)), -1]))


@converts("Transpose")
def transpose(c: Conversion, op: OnnxOp) -> None:
    rank = c.type_of(op.inputs[0]).rank
    c.one("permute", op.inputs, {"axes": tuple(op.attribute("perm", range(rank)[::-1]))})


@converts("Squeeze")
def squeeze(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    axes = op.attribute("axes")
    if axes is None and op.input(1):
        if c.known(op.input(1)) is None:
            c.finish(reshaped(c, op.inputs[0], list(c.target(op, 1))))
            return
        axes = c.ints(op.input(1))
    if axes is None:
        if c.opened and any(isinstance(size, Symbol) for size in kind.shape):
            raise UnsupportedError("it removes the batch of 1 too")
        axes = [axis for axis, size in enumerate(kind.shape) if size == 1]
    c.one("squeeze", op.inputs[:1], {"axes": tuple(axes)})


@converts("Unsqueeze")
def unsqueeze(c: Conversion, op: OnnxOp) -> None:
    axes = op.attribute("axes")
    if axes is None and c.known(op.inputs[1]) is None:
        c.finish(reshaped(c, op.inputs[0], list(c.target(op, 1))))
        return
    axes = list(axes) if axes is not None else list(c.ints(op.inputs[1]))
    rank = c.type_of(op.inputs[0]).rank + len(axes)
    made: str | Source = op.inputs[0]
    for axis in sorted(axis % rank for axis in axes):
        (made,) = c.add("unsqueeze", [made], {"axis": axis})
    c.finish(made if isinstance(made, Source) else c.add("identity", [made])[0])


@converts("Concat")
def concatenation(c: Conversion, op: OnnxOp) -> None:
    axis = op.attribute("axis", 1)
    types = [c.type_of(name) for name in op.inputs]
    batch = next((kind.shape[0] for kind in types if kind.shape and isinstance(kind.shape[0], Symbol)), None)
    if batch is not None and axis % types[0].rank != 0 and any(kind.shape[0] == 1 for kind in types):
        raise UnsupportedError("it joins a batch with a tensor of batch 1")
    c.one("concatenation", op.inputs, {"axis": axis})


@converts("Split")
def split(c: Conversion, op: OnnxOp) -> None:
    axis = op.attribute("axis", 0)
    sizes = op.attribute("split")
    if sizes is None and op.input(1):
        sizes = c.ints(op.input(1))
    length = c.type_of(op.inputs[0]).dim(axis)
    outputs = op.nodes[0].outputs if op.nodes else op.outputs  # also those that nothing reads
    parts = op.attribute("num_outputs") or len(outputs)
    if sizes is None:
        each = -(-length // parts)
        sizes = [each] * (parts - 1) + [length - each * (parts - 1)]
    if len(sizes) == 1:
        c.one("identity", op.inputs[:1])
        return
    made = c.add("split", op.inputs[:1], {"parts": len(sizes), "sizes": tuple(sizes), "axis": axis})
    for output, source in zip(op.outputs, made, strict=False):
        c.put(output, source)


@converts("Expand")
def expand(c: Conversion, op: OnnxOp) -> None:
    given = c.target(op, 1)
    kind = c.type_of(op.inputs[0])
    new = max(0, len(given) - kind.rank)
    wanted = (*(1,) * (kind.rank - len(given)), *given)
    if wanted and isinstance(wanted[0], Symbol) and not new and kind.shape[0] == 1 and c.batch is not None:
        (wide,) = c.add("expand_batch", [op.inputs[0], c.batch])
        kind = c.builder.types[wide]
        if all(target in (own, 1) for own, target in zip(kind.shape, wanted, strict=True)):
            c.finish(wide)
            return
        raise UnsupportedError("it expands the batch and other axes")
    shape: list[int] = []
    for place, target in enumerate(wanted):
        own = kind.shape[place - new] if place >= new else None
        if own is not None and (target in (own, 1)):
            shape.append(-1)
        elif isinstance(target, Symbol):
            raise UnsupportedError("it expands to the batch")
        else:
            shape.append(target)
    if all(size == -1 for size in shape):
        c.one("identity", op.inputs[:1])
        return
    c.one("expand", op.inputs[:1], {"shape": tuple(shape)})


@converts("Tile")
def tile(c: Conversion, op: OnnxOp) -> None:
    if c.known(op.inputs[1]) is None and op.outputs[0] in c.declared:
        sizes = zip(numbers_of(c.declared[op.outputs[0]].shape), numbers_of(c.type_of(op.inputs[0]).shape), strict=True)
        repeats = tuple(wanted // size for wanted, size in sizes)
    else:
        repeats = c.ints(op.inputs[1])
    c.one("tile", op.inputs[:1], {"repeats": repeats})


@converts("Pad")
def pad(c: Conversion, op: OnnxOp) -> None:
    kind = c.type_of(op.inputs[0])
    flat = list(op.attribute("pads") or c.ints(op.inputs[1]))
    value = op.attribute("value", 0.0) if op.opset < 11 else c.scalar(op.input(2)) if op.input(2) else 0.0
    axes = [axis % kind.rank for axis in c.ints(op.input(3))] if op.input(3) else list(range(kind.rank))
    before, after = [0] * kind.rank, [0] * kind.rank
    for place, axis in enumerate(axes):
        before[axis], after[axis] = flat[place], flat[len(axes) + place]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}[
        op.attribute("mode", "constant")
    ]
    spatial = kind.rank == 4 and not any((*before[:2], *after[:2]))
    if spatial and min(*before, *after) >= 0 and kind.dtype.value == "float32":
        params: dict[str, Value] = {
            "mode": mode,
            "left": before[3],
            "right": after[3],
            "top": before[2],
            "bottom": after[2],
            "value": float(value),
        }
        c.one("padding", op.inputs[:1], params)
        return
    if mode != "constant":
        raise UnsupportedError(f"it pads other axes than height and width in the mode {mode}")
    c.one("pad_tensor", op.inputs[:1], {"before": tuple(before), "after": tuple(after), "value": float(value)})


@converts("DepthToSpace", "SpaceToDepth")
def blocks(c: Conversion, op: OnnxOp) -> None:
    type = "depth_to_space" if op.op_type == "DepthToSpace" else "space_to_depth"
    channel = op.op_type == "DepthToSpace" and op.attribute("mode", "DCR") == "CRD"
    mode = "channel_dominant" if channel else "pixel_dominant"
    c.one(type, op.inputs, {"block_size": op.attribute("blocksize"), "mode": mode})


@converts("PixelShuffle", "PixelUnshuffle", domain=PATTERNS)
def pixel_shuffle(c: Conversion, op: OnnxOp) -> None:
    """Blocks to channels or back, written as reshapes around a permutation."""
    kind = c.type_of(op.inputs[0])
    factor, sizes = op.attribute("factor"), op.attribute("sizes")
    if kind.rank != 4:
        raise UnsupportedError("its input is not an image")
    channels, height, width = (kind.dim(axis) for axis in (1, 2, 3))
    if op.op_type == "PixelShuffle":
        result = (channels // factor**2, height * factor, width * factor)
        plain = sizes == (result[0], factor, factor, height, width)
        type = "depth_to_space"
    else:
        result = (channels * factor**2, height // factor, width // factor)
        plain = sizes == (channels, result[1], factor, result[2])
        type = "space_to_depth"
    if not plain or any(wanted not in (-1, size) for wanted, size in zip(op.attribute("to")[1:], result, strict=True)):
        raise UnsupportedError("its sizes are not those of blocks")
    c.one(type, op.inputs, {"block_size": factor, "mode": "channel_dominant"})


@converts("Shape")
def shape(c: Conversion, op: OnnxOp) -> None:
    import numpy as np

    dims = list(c.type_of(op.inputs[0]).shape)
    start, end = op.attribute("start", 0), op.attribute("end")
    chosen = dims[start:end] if end is not None else dims[start:]
    symbolic = any(isinstance(dim, Symbol) for dim in chosen)
    c.arrays[op.outputs[0]] = np.array(chosen, object if symbolic else np.int64)
    c.deferred[op.outputs[0]] = op


@converts("Size")
def total(c: Conversion, op: OnnxOp) -> None:
    import numpy as np

    c.arrays[op.outputs[0]] = np.array(prod(numbers_of(c.type_of(op.inputs[0]).shape)), np.int64)
