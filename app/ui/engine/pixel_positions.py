"""Corresponding pixels of tensors of different sizes, and their values as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from designer.units import numbers

Place = tuple[int, int, int]  # channel, x, y

PADDED = 128  # pixels that an output may be cropped by, next to what `tiling` had padded
STEPS = (1, 2, 3, 4, 6, 8, 16, 32, 64)  # between tensors of a network, either way
SHOWN = 4  # values of a tensor that are listed


def scaled(place: tuple[int, int], here: tuple[int, int], there: tuple[int, int]) -> tuple[int, int]:
    """The pixel of an image of `there` (width, height) at a pixel of one of `here`.

    Images whose sizes differ by whole steps up to a padding keep the step: the padding is at the right and bottom edge.
    """
    x, y = (_along(at, small, large) for at, small, large in zip(place, here, there, strict=True))
    return x, y


def _along(at: int, small: int, large: int) -> int:
    exact = large / small
    wholes = [float(w) for step in STEPS for w in (step, 1 / step)]
    near = min(wholes, key=lambda whole: abs(whole / exact - 1))
    factor = near if abs(large - near * small) < min(PADDED * min(1.0, near), large / 4) else exact
    return min(max(int((at + 0.5) * factor), 0), large - 1)


def reading(name: str, array: NDArray[Any], place: tuple[int, int], here: tuple[int, int], item: int = 0) -> str:
    """Name, pixel and values of a tensor N x C x H x W at a place of another one; empty for other ranks."""
    if array.ndim != 4 or not array.size:
        return ""
    x, y = scaled(place, here, (array.shape[3], array.shape[2]))
    values = array[min(item, len(array) - 1), :, y, x]
    texts = " ".join(numbers([float(v) for v in values[:SHOWN]]))
    more = " …" if len(values) > SHOWN else ""
    return f"{name} ({x}, {y})  {texts}{more}"


def readings(
    tensors: Iterable[tuple[str, NDArray[Any]]], place: tuple[int, int], here: tuple[int, int], item: int = 0
) -> list[str]:
    """The readings of those tensors that have one."""
    return [text for name, array in tensors if (text := reading(name, array, place, here, item))]
