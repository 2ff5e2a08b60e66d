"""Generated test images with known content at any size."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from designer.files.settings import PATTERN
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.api import Array
from designer.texts import tr

PATTERNS = ("zone_plate", "gradient", "edges", "noise")


def pattern_name(path: Path | str) -> str | None:
    """The pattern that `pattern:NAME` represents; None for a file. Raises DiagnosticError for an unknown name."""
    text = str(path)
    if not text.startswith(PATTERN):
        return None
    name = text.removeprefix(PATTERN)
    if name not in PATTERNS:
        raise DiagnosticError.of(
            "no-such-pattern",
            tr("there is no test pattern '{name}'", name=name),
            remedy=tr("choose one of {PATTERNS}", PATTERNS=", ".join(PATTERNS)),
        )
    return name


def make_pattern(name: str, channels: int, height: int, width: int) -> Array:
    """1 x C x H x W, 0..1.

    zone_plate: 0.5 + 0.5 cos(pi r^2 / n) with the distance r from the center and the shorter side n: the frequency increases
    from the center to one period in two pixels at half of the shorter side. gradient: 0 to 1 from left to right, from top to
    bottom in the second channel, along the diagonal in the third. edges: squares, a slanted edge and increasingly fine lines.
    noise: uniform values, always the same. Gray patterns repeat in every channel.
    """
    y, x = np.mgrid[:height, :width].astype(np.float64)
    if name == "zone_plate":
        r2 = (x - (width - 1) / 2) ** 2 + (y - (height - 1) / 2) ** 2
        planes = [0.5 + 0.5 * np.cos(np.pi * r2 / min(height, width))]
    elif name == "gradient":
        across, down = x / max(width - 1, 1), y / max(height - 1, 1)
        planes = [across, down, (across + down) / 2]
    elif name == "edges":
        planes = [_edges(x, y, height, width)]
    else:
        bits = np.random.Philox(0).random_raw(channels * height * width)
        planes = list((bits >> np.uint64(11)).astype(np.float64).reshape(channels, height, width) * 2.0**-53)
    stacked = np.stack([planes[i % len(planes)] for i in range(channels)])
    return stacked[None].astype(np.float32)


def _edges(x: Array, y: Array, height: int, width: int) -> Array:
    """Four quarters: a checkerboard, a slanted edge, and increasingly fine vertical and horizontal lines."""
    squares = (x // 8 + y // 8) % 2
    slanted = (x - 0.75 * width > 0.1 * (y - 0.25 * height)).astype(x.dtype)
    upright = (np.sqrt(np.abs(x) * 8 + 1) // 1) % 2
    level = (np.sqrt(np.abs(y - height // 2) * 8 + 1) // 1) % 2
    top = np.where(x < width // 2, squares, slanted)
    result: Array = np.where(y < height // 2, top, np.where(x < width // 2, upright, level))
    return result
