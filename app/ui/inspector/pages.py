"""How a tensor is laid out to be looked at: channels, filters, a map with two axes, bars or one value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ui.inspector.subject import Kind
from app.ui.widgets.render import Floats
from designer.texts import tr

SMALLEST = 12  # pixels of a part that is cut out
IN_A_ROW = 4  # kernels of a filter in one row before there are several rows


class Form(StrEnum):
    CHANNELS = "channels"  # C x H x W in a grid
    MATRIX = "matrix"  # rows x columns, with axes
    VALUES = "values"  # bars, or one value


@dataclass(frozen=True, slots=True)
class Filters:
    """How the kernels of one filter are laid out in its image: `columns` of height x width, a pixel between them."""

    count: int
    columns: int
    height: int
    width: int

    def at(self, x: int, y: int) -> tuple[int, int, int] | None:
        """(input channel, x and y in its kernel) of a pixel of the image; None between kernels."""
        column, kx = divmod(x, self.width + 1)
        row, ky = divmod(y, self.height + 1)
        number = row * self.columns + column
        return (number, kx, ky) if kx < self.width and ky < self.height and number < self.count else None


@dataclass(frozen=True, slots=True)
class TensorPage:
    """`data` is what is drawn, C x H x W; `values` the same values, C first, without gaps, for statistics."""

    form: Form
    data: Floats
    values: Floats
    items: int = 1  # members of the batch
    gaps: NDArray[np.bool_] | None = None
    filters: Filters | None = None
    axes: tuple[str, str] = ("", "")  # down, across
    offset: tuple[int, int] = (0, 0)  # x and y of the part that is shown, where the rest is zero
    extent: tuple[int, int] | None = None  # width and height of the whole of it

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the tensor, also where only a part of it is shown."""
        return self.extent or (self.data.shape[2], self.data.shape[1])


def by_filter(kernel: NDArray[Any], groups: int = 1) -> NDArray[Any]:
    """The kernel of a transposed convolution (inputs x features per group x H x W) with its axes as in a convolution:
    features x inputs per group x H x W."""
    inputs, features, *size = kernel.shape
    parts = kernel.reshape(groups, inputs // groups, features, *size)
    return parts.swapaxes(1, 2).reshape(groups * features, inputs // groups, *size)


def page_of(tensor: NDArray[Any], kind: Kind, item: int = 0, *, cut: bool = False) -> TensorPage:
    """The page of a tensor of any rank; `item` of the batch where there is one. `cut`: leave out zeros all around."""
    array: Floats = np.asarray(tensor, np.float32)
    if kind is Kind.WEIGHTS:
        return _weights(array)
    if array.ndim <= 1:
        return _values(array.reshape(1, -1))
    items = len(array)
    one = array[min(item, items - 1)]
    if array.ndim == 2:
        return _values(one.reshape(1, -1), items)
    if array.ndim == 3:
        return TensorPage(Form.MATRIX, one[None], one[None], items, axes=(tr("position"), tr("feature")))
    if kind is Kind.OUTPUT and prod(one.shape[:-1]) == 1:  # single values, such as those of analysis layers
        return _values(one.reshape(1, -1), items)
    channels = one.reshape(-1, *one.shape[-2:])
    if cut:
        return _cut(channels, items)
    return TensorPage(Form.CHANNELS, channels, channels, items)


def _cut(channels: Floats, items: int) -> TensorPage:
    """The part with values, and some room around it."""
    height, width = channels.shape[1:]
    (top, bottom), (left, right) = (
        _part((channels != 0).any(axis=axes), length) for axes, length in (((0, 2), height), ((0, 1), width))
    )
    part = np.ascontiguousarray(channels[:, top:bottom, left:right])
    return TensorPage(Form.CHANNELS, part, part, items, offset=(left, top), extent=(width, height))


def _part(used: NDArray[np.bool_], length: int) -> tuple[int, int]:
    at = np.flatnonzero(used)
    if not at.size:
        return 0, length
    room = max(1, (SMALLEST - (int(at[-1]) - int(at[0]) + 1) + 1) // 2)
    return max(0, int(at[0]) - room), min(length, int(at[-1]) + 1 + room)


def _values(row: Floats, items: int = 1) -> TensorPage:
    return TensorPage(Form.VALUES, row[:, None], row[:, None], items)


def _weights(array: Floats) -> TensorPage:
    """Kernels as images, matrices and 1 x 1 kernels as a map, vectors as bars."""
    if array.ndim <= 1:
        return _values(array.reshape(1, -1))
    if array.ndim < 4 or prod(array.shape[2:]) == 1:
        flat = array.reshape(len(array), -1)[None]
        return TensorPage(Form.MATRIX, flat, flat, axes=(tr("filter"), tr("input channel")))
    count, inputs = array.shape[0], prod(array.shape[1:-2])
    height, width = array.shape[-2:]
    columns = inputs if inputs <= IN_A_ROW else ceil(sqrt(inputs))
    rows = -(-inputs // columns)
    filters = Filters(inputs, columns, height, width)
    values = array.reshape(count, inputs, height, width)
    sheet = np.zeros((count, rows, height + 1, columns, width + 1), np.float32)
    gaps = np.ones((rows, height + 1, columns, width + 1), bool)
    for number in range(inputs):
        row, column = divmod(number, columns)
        sheet[:, row, :height, column, :width] = values[:, number]
        gaps[row, :height, column, :width] = False
    down, across = rows * (height + 1), columns * (width + 1)
    data = np.ascontiguousarray(sheet.reshape(count, down, across)[:, :-1, :-1])
    plain = np.ascontiguousarray(values.reshape(count, inputs * height, width))
    return TensorPage(Form.CHANNELS, data, plain, 1, gaps.reshape(down, across)[:-1, :-1], filters)
