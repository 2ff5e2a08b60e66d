"""Counts of values that are NaN or infinite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The number of NaN and infinite values of a tensor."""

    nan: int
    inf: int
    total: int

    @property
    def kind(self) -> Literal["nan", "inf"]:
        return "nan" if self.nan else "inf"

    @property
    def share(self) -> float:
        return (self.nan + self.inf) / self.total


def nonfinite(array: NDArray[Any]) -> NonFinite | None:
    """The number of NaN and infinite values of a tensor; None if it has none (checked in a single pass)."""
    if array.dtype.kind != "f" or array.size == 0:
        return None
    flat = array.reshape(-1) if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.dot(flat, flat)):  # otherwise a value is not finite, or the sum overflowed
            return None
    nan, finite = int(np.isnan(flat).sum()), int(np.isfinite(flat).sum())
    return NonFinite(nan, flat.size - finite - nan, flat.size) if finite < flat.size else None
