"""Rules about shapes that several operators share. A broken rule raises a ShapeError that names the rule and the sizes."""

from __future__ import annotations

from collections.abc import Sequence

from designer.graph.types import Dim, ShapeError, TensorType
from designer.texts import tr


def window_output(size: int, kernel: int, stride: int, pads: int, dilation: int = 1, *, ceil: int = -1) -> int:
    """Number of positions of a sliding window over `size` values with a total padding of `pads`; can be less than 1.

    `ceil` is the padding before the first value if the last, incomplete window counts (torch's ceil mode), otherwise -1.
    """
    room = size + pads - dilation * (kernel - 1) - 1
    if ceil < 0:
        return room // stride + 1
    count = (room + stride - 1) // stride + 1
    return count - 1 if (count - 1) * stride >= size + ceil else count


def misfit(kernel: object, stride: object, size: str, dilation: str = "") -> ShapeError:
    """The error for a window that is larger than its padded input. Sizes are given width first."""
    spread = f" and dilation {dilation}" if dilation else ""
    return ShapeError(
        tr(
            "kernel {kernel} with stride {stride}{spread} does not fit an input of {size}",
            kernel=kernel,
            stride=stride,
            spread=spread,
            size=size,
        ),
        port="x",
        remedy=tr("use a smaller kernel, more padding or a larger input"),
    )


def broadcast(first: TensorType, second: TensorType, port: str = "b") -> TensorType:
    """The type of an element-wise result: dimensions are aligned at the end, and each pair must be equal or contain a 1."""
    if first.dtype != second.dtype:
        raise ShapeError(
            tr(
                "element types must be equal, not {first} and {second}",
                first=first.dtype.value,
                second=second.dtype.value,
            ),
            port=port,
            remedy=tr("convert one of the inputs"),
        )
    rank = max(first.rank, second.rank)
    left: tuple[Dim, ...] = (1,) * (rank - first.rank) + first.shape
    right: tuple[Dim, ...] = (1,) * (rank - second.rank) + second.shape
    dims: list[Dim] = []
    for one, other in zip(left, right, strict=True):
        if one != other and one != 1 and other != 1:
            raise ShapeError(
                tr(
                    "shapes {first} and {second} cannot be broadcast: {one} and {other} differ",
                    first=first,
                    second=second,
                    one=one,
                    other=other,
                ),
                port=port,
                remedy=tr("make the dimensions equal, or one of them 1"),
            )
        dims.append(other if one == 1 else one)
    return TensorType(tuple(dims), first.dtype)


def axis_of(axis: int, tensor: TensorType, port: str = "x") -> int:
    """`axis` counted from the front; a negative axis counts from the end."""
    if not -tensor.rank <= axis < tensor.rank:
        raise ShapeError(
            tr("axis {axis} does not exist in {tensor} (rank {rank})", axis=axis, tensor=tensor, rank=tensor.rank),
            port=port,
            remedy=tr("choose an axis from {value} to {rank}", value=-tensor.rank, rank=tensor.rank - 1)
            if tensor.rank
            else tr("use another operator"),
        )
    return axis % tensor.rank


def new_axis(axis: int, tensor: TensorType) -> int:
    """The position of a new axis, counted from the front; a negative axis counts from the end of the result."""
    if not -tensor.rank - 1 <= axis <= tensor.rank:
        raise ShapeError(
            tr("a new axis {axis} cannot be inserted into {x} (rank {rank})", axis=axis, x=tensor, rank=tensor.rank),
            port="x",
            remedy=tr("choose an axis up to the rank"),
        )
    return axis % (tensor.rank + 1)


def axes_of(axes: Sequence[int], tensor: TensorType, port: str = "x") -> tuple[int, ...]:
    """`axes` counted from the front and sorted; each must occur only once."""
    found = tuple(sorted(axis_of(axis, tensor, port) for axis in axes))
    if len(set(found)) != len(found):
        raise ShapeError(
            tr("an axis occurs twice in {axes}", axes=",".join(map(str, axes))),
            port=port,
            remedy=tr("list each axis once"),
        )
    return found


def known(tensor: TensorType, axis: int, port: str = "x") -> int:
    """The size along `axis`. Raises a ShapeError that names the port if the size is symbolic or the axis does not exist."""
    index = axis_of(axis, tensor, port)
    try:
        return tensor.dim(index)
    except ShapeError as error:
        raise ShapeError(error.message, port=port, remedy=error.remedy or tr("use an axis with a known size")) from None


def divisible(what: str, value: int, by: int, name: str, port: str | None = "x") -> None:
    """Raise ShapeError unless `value` is a multiple of `by`: "3 channels cannot be divided into 2 groups"."""
    if value % by:
        number = int(str(value))  # only for the message, which no size depends on (symbolic_size)
        fits = [str(n) for n in range(1, min(number, 64) + 1) if number % n == 0]
        raise ShapeError(
            tr("{value} {what} cannot be divided into {by} {name}", value=value, what=what, by=by, name=name),
            port=port,
            remedy=tr("use a number that divides {value}: {fits}", value=value, fits=", ".join(fits)) if fits else "",
        )


def same_shape(first: TensorType, second: TensorType, port: str) -> None:
    """Raise ShapeError unless both tensors have the same shape and element type."""
    if first.shape != second.shape:
        raise ShapeError(
            tr("both inputs must have the same shape, not {first} and {second}", first=first, second=second),
            port=port,
            remedy=tr("crop, resize or reshape one of them"),
        )
    if first.dtype != second.dtype:
        raise ShapeError(
            tr(
                "both inputs must have the same element type, not {first} and {second}",
                first=first.dtype.value,
                second=second.dtype.value,
            ),
            port=port,
            remedy=tr("convert one of the inputs"),
        )
