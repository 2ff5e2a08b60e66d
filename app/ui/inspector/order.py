"""Order of channels: by number, by a statistic, or by similarity."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from app.ui.widgets.background import Background
from app.ui.widgets.render import Floats

SIDE = 32  # pixels of a channel's side that similarity looks at
INLINE = 1 << 20  # values up to which sorting is done at once; above it belongs in a thread


class Order(StrEnum):
    INDEX = "index"
    ENERGY = "energy"
    MEAN = "mean"
    ZEROS = "zeros"
    SIMILARITY = "similarity"


def order_of(data: Floats, order: Order) -> list[int]:
    """The channels of C x H x W: largest first, or along a chain of the most alike ones.

    Energy is the mean square. Values that are not finite count as 0.
    """
    if order is Order.INDEX:
        return list(range(len(data)))
    if order is Order.SIMILARITY:
        return similar(data)
    keys = np.array([_key(plane, order) for plane in data])
    return [int(c) for c in np.argsort(-keys, kind="stable")]


def _key(plane: Floats, order: Order) -> float:
    flat = plane.reshape(-1)
    if order is Order.ZEROS:
        return 1.0 - np.count_nonzero(flat) / max(1, flat.size)
    total = float(np.dot(flat, flat)) if order is Order.ENERGY else float(flat.sum(dtype=np.float64))
    if not np.isfinite(total):
        flat = np.nan_to_num(flat, nan=0.0, posinf=0.0, neginf=0.0).astype(np.float64)
        total = float(np.dot(flat, flat) if order is Order.ENERGY else flat.sum())
    return total / max(1, flat.size)


def similar(data: Floats) -> list[int]:
    """A chain from the strongest channel on: next comes the one left that correlates best with the present one.

    Signs count: a channel and its negative are far apart.
    """
    height, width = data.shape[1:]
    down, across = max(1, -(-height // SIDE)), max(1, -(-width // SIDE))
    small = np.nan_to_num(data[:, ::down, ::across].reshape(len(data), -1), posinf=0.0, neginf=0.0).astype(np.float32)
    energy = np.einsum("ci,ci->c", small, small)
    small -= small.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(small, axis=1)
    alike: NDArray[np.floating[Any]] = (small @ small.T) / np.maximum(np.outer(norms, norms), np.float32(1e-30))
    left = np.ones(len(data), bool)
    chain = [int(np.argmax(energy))]
    left[chain[0]] = False
    for _ in range(len(data) - 1):
        near = np.where(left, alike[chain[-1]], -np.inf)
        chain.append(int(np.argmax(near)))
        left[chain[-1]] = False
    return chain


class Sorter(QObject):
    """Sorts channels: few at once, many in a thread. `sorted` brings the order of what was asked for last."""

    sorted = Signal(object)  # list of channels

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._background = Background(self)
        self._background.done.connect(self._done)
        self._background.failed.connect(lambda found: self._next())
        self._wish: tuple[Floats, Order] | None = None
        self._number = 0  # of the last request: other results are dropped

    def sort(self, data: Floats, order: Order) -> None:
        self._number += 1
        if order is Order.INDEX or data.size <= INLINE:
            self._wish = None
            self.sorted.emit(order_of(data, order))
            return
        self._wish = (data, order)
        if not self._background.running:
            self._next()

    def wait(self) -> None:
        """Until the thread is through; the order comes later, from the event loop."""
        self._background.wait()

    def _next(self) -> None:
        if self._wish is not None:
            (data, order), self._wish = self._wish, None
            number = self._number
            self._background.start(lambda: (number, order_of(data, order)))

    def _done(self, answer: object) -> None:
        if self._wish is not None:  # something else is wanted by now
            self._next()
        elif isinstance(answer, tuple) and answer[0] == self._number:
            self.sorted.emit(answer[1])
