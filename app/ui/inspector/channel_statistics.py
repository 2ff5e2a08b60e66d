"""Statistics of channels: range, spread, share of zeros, and whether a channel is dead or saturated."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal

from app.ui.widgets.render import Floats
from designer.texts import mark, tr, tr_data
from designer.units import number, percent

BINS = 64
FLOAT32 = (1e-30, 1e30)  # ranges of values whose histogram neither overflows nor vanishes in float32
SATURATED = 0.5  # from this share of the values at one end of the range on
ALMOST = 0.9995  # shares from here on would be rounded to 100 %
SLICE = 0.008  # seconds of work at a time: the window stays fluid
NAMED = 12  # channels that are named of those with a flag
REST = 120  # ms without new values before the work begins


@dataclass(frozen=True)
class ChannelStatistics:
    """`counts` is a histogram with BINS bins from `low` to `high`, of finite values only; `broken` counts the others."""

    low: float
    high: float
    mean: float
    deviation: float
    zeros: float  # share of values that are exactly 0
    broken: int  # values that are not finite
    flag: str  # "", "not finite", "dead" (several values, all equal) or "saturated"
    counts: NDArray[np.int64]

    def text(self) -> str:
        parts = [
            f"{number(self.low)} … {number(self.high)}",
            tr("mean {mean}", mean=number(self.mean)),
            tr("deviation {deviation}", deviation=number(self.deviation)),
            tr("zeros {share}", share=percent(self.zeros) if not ALMOST <= self.zeros < 1 else "> 99.9 %"),
        ]
        return "   ".join([*parts, tr_data(self.flag)] if self.flag else parts)


def channel_statistics(plane: Floats) -> ChannelStatistics:
    """Statistics over all values of one channel (H x W).

    Saturated: at least half of the values, and more than one, equal the maximum or the minimum, unless that is 0, which ReLU
    produces. A single value, such as a global mean, is neither dead nor saturated.
    """
    values = plane.reshape(-1)
    finite = values if np.isfinite(values.sum(dtype=np.float64)) else values[np.isfinite(values)]
    broken = values.size - finite.size
    if not finite.size:
        return ChannelStatistics(0.0, 0.0, 0.0, 0.0, 0.0, broken, mark("not finite"), np.zeros(BINS, np.int64))
    low, high = float(finite.min()), float(finite.max())
    mean = float(finite.mean(dtype=np.float64))
    deviation = float(finite.std(dtype=np.float64))
    zeros = 1.0 - np.count_nonzero(finite) / finite.size
    if high > low:
        fits = FLOAT32[0] < high - low < FLOAT32[1]
        exact = finite if fits else finite.astype(np.float64)
        scaled = (exact - exact.dtype.type(low)) * exact.dtype.type(BINS / (high - low))
        counts = np.bincount(np.clip(scaled, 0, BINS - 1).astype(np.intp), minlength=BINS)
    else:
        counts = np.zeros(BINS, np.int64)
        counts[BINS // 2] = finite.size
    ends = max((np.count_nonzero(finite == end) for end in (low, high) if end), default=0)
    flag = mark("dead") if low == high else mark("saturated") if ends >= max(2, SATURATED * finite.size) else ""
    flag = flag if values.size > 1 else ""
    return ChannelStatistics(low, high, mean, deviation, zeros, broken, mark("not finite") if broken else flag, counts)


class TensorStatistics(QObject):
    """Statistics of all channels of a tensor, computed in small slices when no new values arrive."""

    changed = Signal()  # more of them are known

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._data: Floats | None = None
        self._known: dict[int, ChannelStatistics] = {}
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self._work)
        self._next = QTimer(self, singleShot=True, interval=0, timeout=self._work)

    def show_data(self, data: Floats | None) -> None:
        """Forget the last tensor; None: there is none."""
        self._data = data
        self._known.clear()
        self._next.stop()
        if data is None:
            self._rest.stop()
        else:
            self._rest.start()

    def of(self, channel: int) -> ChannelStatistics:
        """Statistics of one channel, computed now unless they are known."""
        assert self._data is not None
        if channel not in self._known:
            self._known[channel] = channel_statistics(self._data[channel])
        return self._known[channel]

    def flag(self, channel: int) -> str:
        """Why a channel is marked, translated; empty while nothing is known."""
        known = self._known.get(channel)
        return tr_data(known.flag) if known is not None else ""

    def range(self, channel: int) -> tuple[float, float] | None:
        """Minimum and maximum of all finite values of a channel; None while they are not known."""
        known = self._known.get(channel)
        return (known.low, known.high) if known is not None else None

    @property
    def complete(self) -> bool:
        return self._data is not None and len(self._known) == len(self._data)

    def flagged(self) -> dict[str, int]:
        """How many channels have each flag."""
        found: dict[str, int] = {}
        for statistics in self._known.values():
            if statistics.flag:
                found[statistics.flag] = found.get(statistics.flag, 0) + 1
        return found

    def flagged_texts(self) -> list[str]:
        """How many channels have each flag, and which."""
        found: dict[str, list[int]] = {}
        for channel in sorted(self._known):
            if self._known[channel].flag:
                found.setdefault(self._known[channel].flag, []).append(channel)
        return [
            f"{len(c)} {tr_data(flag)} ({', '.join(map(str, c[:NAMED]))}{' …' if len(c) > NAMED else ''})"
            for flag, c in sorted(found.items())
        ]

    def _work(self) -> None:
        if self._data is None:
            return
        until = perf_counter() + SLICE
        for channel in range(len(self._data)):
            if channel not in self._known:
                self.of(channel)
                if perf_counter() > until:
                    break
        self.changed.emit()
        if not self.complete:
            self._next.start()
