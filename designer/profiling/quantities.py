"""Values with their source: measured, modelled, or unavailable with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from designer.units import UNAVAILABLE_SIGN, quantity

LARGEST = 1e100  # magnitude of a value; also excludes NaN


class ValueSource(StrEnum):
    """Where a value comes from. A modelled value follows from measured ones by a stated rule."""

    MEASURED = "measured"
    MODELLED = "modelled"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value, or None with the reason. The unit belongs to the field that holds it."""

    value: float | None
    source: ValueSource
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) != (self.source is ValueSource.UNAVAILABLE):
            raise ValueError("value must be null if source is unavailable, and a number otherwise")
        if self.value is None and not self.reason:
            raise ValueError("an unavailable value needs its reason")
        if self.value is not None and not abs(self.value) <= LARGEST:
            raise ValueError(f"value must be from {-LARGEST:.0e} to {LARGEST:.0e}, not {self.value}")


def measured(value: float, reason: str = "") -> Quantity:
    return Quantity(float(value), ValueSource.MEASURED, reason)


def modelled(value: float, reason: str = "") -> Quantity:
    return Quantity(float(value), ValueSource.MODELLED, reason)


def unavailable(reason: str) -> Quantity:
    return Quantity(None, ValueSource.UNAVAILABLE, reason)


def text(found: Quantity, unit: str) -> str:
    """The value with its unit, such as `12.7 GFLOP`, or `-` if it is unavailable."""
    return UNAVAILABLE_SIGN if found.value is None else quantity(found.value, unit)
