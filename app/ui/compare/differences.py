"""Amplified differences of two images. The gain only changes a table, so that a slider can be dragged over it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.reports.comparison import ImageArray
from app.ui.widgets.render import Pixels, palette

ZERO = 32768
SCALE = 32767.0
Levels = NDArray[np.uint16]


def levels(mine: ImageArray, other: ImageArray) -> Levels:
    """`mine` - `other` of the first member, values clipped to 0..1, as C x H x W levels around ZERO."""
    found = np.empty(mine.shape[1:], np.uint16)
    for channel in range(mine.shape[1]):
        error = np.clip(mine[0, channel], 0, 1)
        error -= np.clip(other[0, channel], 0, 1)
        np.multiply(error, np.float32(SCALE), out=error)
        error += np.float32(ZERO + 0.5)
        with np.errstate(invalid="ignore"):
            found[channel] = error.astype(np.uint16)
    return found


def mean_levels(found: Levels) -> Levels:
    """H x W: the mean of the channels."""
    mean: Levels = (found.sum(0, dtype=np.uint32) // len(found)).astype(np.uint16)
    return mean


def absolute_pixels(found: Levels, gain: float) -> Pixels:
    """|difference| x gain in the channels' own colors."""
    error = np.abs(np.arange(2 * ZERO) - ZERO) * (gain * 255.0 / SCALE) + 0.5
    table = np.clip(error, 0, 255).astype(np.uint8)
    height, width = found.shape[1:]
    quads = np.empty((height, width, 4), np.uint8)
    for channel in range(3):
        source = channel if len(found) > 2 else 0
        quads[..., 2 - channel] = table.take(found[source])
    quads[..., 3] = 255
    result: Pixels = quads.view(np.uint32)[..., 0]
    return result


def signed_pixels(found: Levels, gain: float, colours: str = "green / red") -> Pixels:
    """Difference x gain, H x W levels, from -1 to 1 over a color map."""
    places = np.clip((np.arange(2 * ZERO) - ZERO) * (gain / SCALE) * 127.0 + 128.5, 1, 255).astype(np.uint8)
    result: Pixels = palette(colours).take(places).take(found)
    return result
