"""Cached thumbnails of a grid, computed on demand, a few at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from app.ui.inspector.look import Fit, Look, fit, pixels
from app.ui.widgets import theme
from app.ui.widgets.render import Floats, block_mean, to_image

BATCH = 1 << 19  # values that are made smaller in one go; between two of them the clock is looked at
KEPT = 2048  # tiles, at most
Value = TypeVar("Value", np.float32, np.bool_)


class Tiles:
    """Images of C x H x W, at most `side` pixels wide and high. Until one is computed, the previous one is shown."""

    def __init__(self) -> None:
        self._data: Floats | None = None
        self._gaps: NDArray[np.bool_] | None = None
        self._look = Look()
        self._side = 144
        self._small: OrderedDict[int, Floats] = OrderedDict()  # block means of the present data
        self._fits: dict[int, Fit] = {}
        self._made: OrderedDict[int, QImage] = OrderedDict()  # in the present look
        self._before: dict[int, QImage] = {}

    def __len__(self) -> int:
        return len(self._made)

    def show(self, data: Floats | None, gaps: NDArray[np.bool_] | None = None) -> None:
        """Other values. `gaps` (H x W) marks pixels that hold none."""
        same = self._data is not None and data is not None and data.shape == self._data.shape
        self._data, self._gaps = data, gaps
        self._small.clear()
        self._fits.clear()
        self._restart(same)

    def set_look(self, look: Look) -> None:
        if look.palette != self._look.palette:
            self._fits.clear()
        self._look = look
        self._restart(True)

    def set_side(self, side: int) -> None:
        """The longer side of a tile in device pixels."""
        if side != self._side:
            self._side = side
            self._small.clear()
            self._restart(True)

    def _restart(self, same: bool) -> None:
        self._before = {**self._before, **self._made} if same else {}
        self._made = OrderedDict()

    def picture(self, channel: int) -> QImage | None:
        """The tile as it is by now."""
        made = self._made.get(channel)
        return made if made is not None else self._before.get(channel)

    def missing(self, channels: Iterable[int]) -> list[int]:
        """Those that are not made in the present values and look."""
        return [c for c in channels if c not in self._made]

    def make(self, channels: Sequence[int], until: float = float("inf")) -> bool:
        """Make what is missing until the clock says `until` (`perf_counter`); True when nothing is missing any more."""
        if self._data is None:
            return True
        wanted = self.missing(channels)
        many = max(1, BATCH // max(1, self._data.shape[1] * self._data.shape[2]))
        for start in range(0, len(wanted), many):
            if start and perf_counter() > until:
                return False
            self._make(wanted[start : start + many])
        for cache in (self._small, self._made):
            while len(cache) > KEPT + len(channels):
                cache.popitem(last=False)
        self._before = {c: p for c, p in self._before.items() if c not in self._made}
        return True

    def _make(self, channels: list[int]) -> None:
        assert self._data is not None
        block = max(1, max(self._data.shape[1:]) // max(1, self._side))
        for channel in channels:
            if channel not in self._small:
                self._small[channel] = _fitted(block_mean(self._data[channel], block), self._side)
        gaps = self._gaps if block == 1 else None  # a pixel of several values is not a gap
        if gaps is not None:
            gaps = _fitted(gaps, self._side)
        for channel in channels:
            found = pixels(self._small[channel], self._look, self.fit_of(channel) if self._look.each else None)
            if gaps is not None:
                found[gaps] = np.uint32(theme.color("border").rgb())
            self._made[channel] = to_image(found)

    def fit_of(self, channel: int) -> Fit:
        """The range of one channel alone."""
        assert self._data is not None
        if channel not in self._fits:
            plane = self._data[channel]
            step = max(1, max(plane.shape) // 128)
            values = plane[::step, ::step]
            if self._gaps is not None:
                values = values[~self._gaps[::step, ::step]]
            self._fits[channel] = fit(np.ascontiguousarray(values), self._look.palette)
        return self._fits[channel]


def _fitted(plane: NDArray[Value], side: int) -> NDArray[Value]:
    """At most `side` pixels wide and high, so that a tile is drawn pixel by pixel; what is smaller stays."""
    height, width = plane.shape
    if max(height, width) <= side:
        return plane
    down, across = max(1, height * side // max(height, width)), max(1, width * side // max(height, width))
    result: NDArray[Value] = plane.take(np.arange(down) * height // down, 0).take(
        np.arange(across) * width // across, 1
    )
    return result
