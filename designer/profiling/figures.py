"""Every number that profiling shows: its value, its unit, and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from designer.units import MODELLED_SIGN, UNAVAILABLE_SIGN, quantity


class Origin(StrEnum):
    """How a figure came about. A modelled figure follows from measured ones by a stated rule."""

    MEASURED = "measured"
    MODELLED = "modelled"
    UNAVAILABLE = "unavailable"


UNITS = ("s", "FLOP", "B", "FLOP/s", "B/s", "%", "FLOP/B", "")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value in the base unit (s, FLOP, B, FLOP/s, B/s, %, FLOP/B) or None, with the reason why it is missing or modelled."""

    value: float | None
    unit: str
    source: Origin
    reason: str = ""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"the unit {self.unit!r} is not one of {', '.join(u or 'none' for u in UNITS)}")
        if (self.value is None) != (self.source is Origin.UNAVAILABLE):
            raise ValueError("a figure has a value unless it is unavailable")
        if self.value is None and not self.reason:
            raise ValueError("an unavailable figure needs its reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a figure must be finite, not {self.value}")


def measured(value: float, unit: str, reason: str = "") -> Figure:
    return Figure(float(value), unit, Origin.MEASURED, reason)


def modelled(value: float, unit: str, reason: str = "") -> Figure:
    return Figure(float(value), unit, Origin.MODELLED, reason)


def unavailable(unit: str, reason: str) -> Figure:
    return Figure(None, unit, Origin.UNAVAILABLE, reason)


def ratio(top: Figure, bottom: Figure, unit: str, reason: str, *, factor: float = 1.0) -> Figure:
    """`factor * top / bottom`, modelled; unavailable, with the first reason found, where one of them is."""
    if top.value is None or bottom.value is None:
        return unavailable(unit, top.reason if top.value is None else bottom.reason)
    if bottom.value <= 0.0:
        return unavailable(unit, "the time was too short to measure" if bottom.unit == "s" else "nothing to divide by")
    return modelled(factor * top.value / bottom.value, unit, reason)


def text(figure: Figure) -> str:
    """A figure as text: `12.7 GFLOP`, `~83.4 %`, or `-` where there is none (show the reason on hover)."""
    if figure.value is None:
        return UNAVAILABLE_SIGN
    sign = MODELLED_SIGN if figure.source is Origin.MODELLED else ""
    return sign + quantity(figure.value, figure.unit)
