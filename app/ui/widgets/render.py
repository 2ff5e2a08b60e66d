"""Rendering of float tensors as images: uint8 conversion, signed color maps and block means, all vectorized."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

Floats = NDArray[np.float32]
Pixels = NDArray[np.uint32]  # H x W, one 0xffRRGGBB per pixel
Bytes = NDArray[np.uint8]

# Color maps as anchors (r, g, b in 0..1) spread evenly over the range. They represent values and do not depend on the theme.
_SIGNED = {
    "green / red": ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    "orange / blue": ((0.25, 0.55, 1.0), (0.0, 0.0, 0.0), (1.0, 0.62, 0.1)),
    "gray": ((0.0, 0.0, 0.0), (0.5, 0.5, 0.5), (1.0, 1.0, 1.0)),
    "viridis": (
        (0.267, 0.005, 0.329),
        (0.283, 0.141, 0.458),
        (0.254, 0.265, 0.530),
        (0.207, 0.372, 0.553),
        (0.164, 0.471, 0.558),
        (0.128, 0.567, 0.551),
        (0.135, 0.659, 0.518),
        (0.267, 0.749, 0.441),
        (0.478, 0.821, 0.318),
        (0.741, 0.873, 0.150),
        (0.993, 0.906, 0.144),
    ),
}
PALETTES = tuple(_SIGNED)
SAMPLED = 6  # samples per side from which the mean of a large block is computed


@lru_cache(maxsize=8)
def palette(name: str) -> Pixels:
    """256 colors for values -1..1; entry 128 is zero."""
    anchors = np.array(_SIGNED[name], np.float64)
    at = 0.5 + 0.5 * np.clip((np.arange(256) - 128) / 127, -1, 1)
    places = np.linspace(0, 1, len(anchors))
    table: Pixels = np.full(256, 0xFF000000, np.uint32)
    for k in range(3):
        table |= np.rint(np.interp(at, places, anchors[:, k]) * 255).astype(np.uint32) << np.uint32(16 - 8 * k)
    table.setflags(write=False)
    return table


DECADES = 3  # shown by a logarithmic scale on either side of zero
_FINE = 32767  # steps on either side of zero of a logarithmic palette


@lru_cache(maxsize=8)
def _log_palette(name: str) -> Pixels:
    """Like `palette`, for 2 x _FINE + 1 values with most colors near zero."""
    at = (np.arange(2 * _FINE + 2) - (_FINE + 1)) / _FINE
    steps = np.sign(at) * np.log1p(np.abs(at) * 10.0**DECADES) / np.log1p(10.0**DECADES)
    table: Pixels = palette(name).take(np.clip(np.rint(steps * 127) + 128, 1, 255).astype(np.uint8))
    table.setflags(write=False)
    return table


LARGEST = 1e38  # factors that float32 has


def signed_pixels(values: Floats, name: str, gain: float = 1.0, shift: float = 0.0, *, log: bool = False) -> Pixels:
    """Colors of (value + shift) * gain, where -1..1 covers the whole map. NaN is shown as zero."""
    steps = _FINE if log else 127
    zero = steps + 1.5
    kind = np.float32 if abs(gain * steps) < LARGEST else np.float64  # for a channel of tiny values
    scaled = np.multiply(values, kind(gain * steps), dtype=kind)
    scaled += kind(shift * gain * steps + zero)
    np.clip(scaled, 1.0, 2.0 * steps + 1.0, out=scaled)
    if np.isnan(scaled.sum()):
        np.nan_to_num(scaled, copy=False, nan=zero)
    if log:
        result: Pixels = _log_palette(name).take(scaled.astype(np.uint16))
    else:
        result = palette(name).take(scaled.astype(np.uint8))
    return result


def picture_pixels(image: Floats) -> Pixels:
    """Colors of a C x H x W image in 0..1: gray for one or two channels, otherwise the first three as RGB."""
    channels, height, width = image.shape
    quads = np.empty((height, width, 4), np.uint8)
    if channels < 3:
        quads[..., :3] = to_bytes(image[0])[..., None]
    else:
        for channel in range(3):
            quads[..., 2 - channel] = to_bytes(image[channel])
    quads[..., 3] = 255
    result: Pixels = quads.view(np.uint32)[..., 0]
    return result


def to_bytes(plane: Floats) -> Bytes:
    """Convert 0..1 to 0..255, rounded and clipped. NaN becomes 0."""
    scaled = np.multiply(plane, np.float32(255.0), dtype=np.float32)
    scaled += np.float32(0.5)
    np.clip(scaled, 0.0, 255.0, out=scaled)
    with np.errstate(invalid="ignore"):
        return scaled.astype(np.uint8)


@lru_cache(maxsize=8)
def class_colors(count: int) -> Pixels:
    """A color for each of `count` classes: black for class 0, usually the background, then hues at steps of the golden ratio."""
    colors = (QColor.fromHsvF((0.08 + 0.618034 * k) % 1.0, 0.75 - 0.2 * (k % 2), 0.95) for k in range(1, count))
    return np.array([0xFF000000, *(color.rgb() for color in colors)], np.uint32)


def classes(values: Floats) -> NDArray[np.intp]:
    """The class with the largest value at each pixel of C x H x W; of one channel, 1 where it is above 0.5."""
    found: NDArray[np.intp] = values.argmax(0) if len(values) > 1 else (values[0] > 0.5).astype(np.intp)
    return found


def class_pixels(values: Floats) -> Pixels:
    """The colors of the classes of C x H x W."""
    result: Pixels = class_colors(max(len(values), 2))[classes(values)]
    return result


def are_probabilities(values: Floats) -> bool:
    """Whether the channels of C x H x W are the probabilities of two or more classes: none negative, and their sum is 1."""
    if len(values) < 2:
        return False
    few = values[:, :: max(1, values.shape[1] // 16), :: max(1, values.shape[2] // 16)]  # enough for most other images
    return all(bool((v >= 0).all()) and bool((np.abs(v.sum(0) - 1) < 1e-3).all()) for v in (few, values))


def to_image(pixels: Pixels) -> QImage:
    """A QImage that shares the array's memory and keeps the array alive."""
    rows = np.ascontiguousarray(pixels)
    height, width = rows.shape
    image = QImage(rows.data, width, height, width * 4, QImage.Format.Format_RGB32)
    image._pixels = rows  # type: ignore[attr-defined]
    return image


def block_mean(values: Floats, block: int) -> Floats:
    """Mean over block x block pixels of the last two axes; incomplete blocks at the right and bottom edge are dropped.

    An axis shorter than a block is one block. Large blocks use only SAMPLED x SAMPLED evenly spaced pixels, so that
    previews of large images are cheap.
    """
    if block <= 1:
        return values
    down, across = (max(1, min(block, length)) for length in values.shape[-2:])
    height, width = values.shape[-2] // down, values.shape[-1] // across
    cut = values[..., : height * down, : width * across]
    taken_down, taken_across = _sampled(down), _sampled(across)
    rows = cut[..., taken_down[0] :: down, :].astype(np.float32)
    for k in taken_down[1:]:
        rows += cut[..., k::down, :]
    result: Floats = rows[..., taken_across[0] :: across].copy()
    for k in taken_across[1:]:
        result += rows[..., k::across]
    result *= np.float32(1.0 / (len(taken_down) * len(taken_across)))
    return result


def _sampled(length: int) -> list[int]:
    """The positions along a side of a block from which its mean is computed."""
    return [k * length // SAMPLED for k in range(SAMPLED)] if length > SAMPLED else list(range(length))


def as_channels(tensor: NDArray[Any], batch: int = 0) -> Floats | None:
    """A tensor as C x H x W for the inspector's grid; None for N x F and smaller, which are shown as bars."""
    values: Floats = np.asarray(tensor, np.float32)
    if values.ndim < 3:
        return None
    if values.ndim == 3:  # N x T x F: each batch member is one image
        return values
    item: Floats = values[min(batch, values.shape[0] - 1)]
    return item.reshape(-1, *item.shape[-2:])
