"""Rules about shapes that several operators share; every broken rule is a ShapeError that names it and the figures."""

from __future__ import annotations

from collections.abc import Sequence

from designer.graph.types import Dim, ShapeError, TensorType
from designer.texts import tr


def window_output(size: int, kernel: int, stride: int, pads: int, dilation: int = 1, *, ceil: int = -1) -> int:
    """Positions of a sliding window over `size` values with `pads` in all; may be below 1.

    `ceil` is the padding before the first value when the last, incomplete window counts (torch's ceil mode), else -1.
    """
    room = size + pads - dilation * (kernel - 1) - 1
    if ceil < 0:
        return room // stride + 1
    count = (room + stride - 1) // stride + 1
    return count - 1 if (count - 1) * stride >= size + ceil else count


def misfit(kernel: object, stride: object, size: str, dilation: str = "") -> ShapeError:
    """The error for a window that is larger than its padded input; all are shown width first."""
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
    """The type of an element-wise result: dimensions are aligned at the end and must be equal or 1."""
    if first.dtype != second.dtype:
        raise ShapeError(
            tr(
                "element types must be equal, not {value} and {value2}",
                value=first.dtype.value,
                value2=second.dtype.value,
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
                    "shapes {first} and {second} do not go together: {one} against {other}",
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
    """`axis` counted from the front; negative ones count from the end."""
    if not -tensor.rank <= axis < tensor.rank:
        raise ShapeError(
            tr("axis {axis} does not exist in {tensor} (rank {rank})", axis=axis, tensor=tensor, rank=tensor.rank),
            port=port,
            remedy=tr("choose an axis from {value} to {rank}", value=-tensor.rank, rank=tensor.rank - 1)
            if tensor.rank
            else tr("use another operator"),
        )
    return axis % tensor.rank


def axes_of(axes: Sequence[int], tensor: TensorType, port: str = "x") -> tuple[int, ...]:
    """`axes` counted from the front and sorted; none may be named twice."""
    found = tuple(sorted(axis_of(axis, tensor, port) for axis in axes))
    if len(set(found)) != len(found):
        raise ShapeError(
            tr("an axis is named twice in {map}", map=",".join(map(str, axes))),
            port=port,
            remedy=tr("name each axis once"),
        )
    return found


def known(tensor: TensorType, axis: int, port: str = "x") -> int:
    """The size along `axis` as a number; ShapeError naming the port where it is symbolic or does not exist."""
    index = axis_of(axis, tensor, port)
    try:
        return tensor.dim(index)
    except ShapeError as error:
        raise ShapeError(error.message, port=port, remedy=error.remedy or "use an axis with a known size") from None


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
                "both inputs must have the same element type, not {value} and {value2}",
                value=first.dtype.value,
                value2=second.dtype.value,
            ),
            port=port,
            remedy=tr("convert one of the inputs"),
        )
