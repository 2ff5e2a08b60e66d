"""Image quality metrics. All PSNR and SSIM values of the program come from here; inputs are clipped to 0..peak."""

from __future__ import annotations

from math import inf, log10

import numpy as np
from numpy.typing import NDArray

WINDOW = 11  # of SSIM, in pixels, with Gaussian weights of this deviation
DEVIATION = 1.5
ROWS = 64  # computed at once


def psnr(a: NDArray[np.float32], b: NDArray[np.float32], peak: float = 1.0) -> float:
    """Peak signal-to-noise ratio in dB of two arrays of the same shape, clipped to 0..peak.

    Infinity for equal arrays. Raises ValueError if the shapes differ.
    """
    x, y = _clipped(a, b, peak)
    error = np.mean(np.square(x - y))
    return inf if error == 0.0 else float(10.0 * log10(peak * peak / float(error)))


def result_psnr(expected: NDArray[np.float32], made: NDArray[np.float32]) -> float:
    """PSNR in dB of a result of a network; the peak is 1 for images, which are clipped, else the range of `expected`.

    NaN and infinite values are the worst possible ones. Where `expected` has them, there is nothing to compare.
    """
    known = np.isfinite(expected)
    expected = np.where(known, expected, np.float32(0))
    values = expected[known] if expected.ndim != 4 and known.any() else np.array((0, 1), np.float32)
    low, high = float(values.min()), float(values.max())
    middle, peak = (low + high) / 2, (high - low) or 1.0
    made = np.where(np.isfinite(made), made, np.where(expected < middle, np.float32(high), np.float32(low)))
    made = np.where(known, made, expected)
    if expected.ndim == 4:
        return psnr(expected, made)
    error = float(np.square(made - expected, dtype=np.float64).mean())
    return 10 * log10(peak * peak / error) if error else inf


def ssim(a: NDArray[np.float32], b: NDArray[np.float32], peak: float = 1.0) -> float:
    """Mean structural similarity (Wang et al. 2004) of N x C x H x W images, clipped to 0..peak; 1 for equal ones.

    Gaussian windows inside the image, each channel separately; smaller images use the largest odd window that fits. Raises
    ValueError if the shapes differ.
    """
    x, y = _clipped(a, b, peak)
    side = min(WINDOW, *x.shape[-2:])
    side -= 1 - side % 2
    curve = np.exp(-0.5 * ((np.arange(side) - side // 2) / DEVIATION) ** 2)
    curve /= curve.sum()
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    height, width = x.shape[-2:]
    total, count = 0.0, 0
    for one, other in zip(x.reshape(-1, height, width), y.reshape(-1, height, width), strict=True):
        for top in range(0, height - side + 1, ROWS):  # parts that fit into the processor's cache
            part = slice(top, min(top + ROWS + side - 1, height))
            found = _similarity(one[part], other[part], curve, c1, c2)
            total += float(found.sum())
            count += found.size
    return total / count


def _similarity(
    x: NDArray[np.float64], y: NDArray[np.float64], curve: NDArray[np.float64], c1: float, c2: float
) -> NDArray[np.float64]:
    mean_x, mean_y = _windowed(x, curve), _windowed(y, curve)
    both, energy = mean_x * mean_y, mean_x**2 + mean_y**2
    covariance = _windowed(x * y, curve) - both
    variance = _windowed(x * x + y * y, curve) - energy
    result: NDArray[np.float64] = ((2 * both + c1) * (2 * covariance + c2)) / ((energy + c1) * (variance + c2))
    return result


def worst_region(error: NDArray[np.float64], side: int) -> tuple[int, int]:
    """Row and column of the start of the square of `side` pixels with the largest sum of `error` (H x W, not negative).

    A square larger than the map starts at 0.
    """
    sums = _sums_of_squares(error, side)
    row, column = divmod(int(np.argmax(sums)), sums.shape[1])
    return row, column


def worst_regions(error: NDArray[np.float64], side: int, count: int) -> list[tuple[int, int]]:
    """Up to `count` squares as in `worst_region` that do not overlap, worst first, without squares of zero error."""
    sums = _sums_of_squares(error, side)
    found: list[tuple[int, int]] = []
    while len(found) < count:
        row, column = divmod(int(np.argmax(sums)), sums.shape[1])
        if sums[row, column] < 0 or not error[row : row + side, column : column + side].any():
            break
        found.append((row, column))
        sums[max(row - side + 1, 0) : row + side, max(column - side + 1, 0) : column + side] = -1  # they overlap it
    return found


def _sums_of_squares(error: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """The sum of `error` in the square of `side` pixels that starts at each place, as far as it is inside of the map."""
    height, width = min(side, error.shape[0]), min(side, error.shape[1])
    sums = np.zeros((error.shape[0] + 1, error.shape[1] + 1))
    sums[1:, 1:] = error.cumsum(0).cumsum(1)
    squares: NDArray[np.float64] = (
        sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width] + sums[:-height, :-width]
    )
    return squares


def _clipped(
    a: NDArray[np.float32], b: NDArray[np.float32], peak: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if a.shape != b.shape:
        raise ValueError(f"the images must have the same shape, not {a.shape} and {b.shape}")
    return np.clip(a, 0, peak, dtype=np.float64), np.clip(b, 0, peak, dtype=np.float64)


def _windowed(x: NDArray[np.float64], curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted means over the last two axes, at positions where the whole window is inside."""
    height, width = x.shape[-2] - len(curve) + 1, x.shape[-1] - len(curve) + 1
    rows = sum(share * x[..., place : place + width] for place, share in enumerate(curve))
    result: NDArray[np.float64] = sum(share * rows[..., place : place + height, :] for place, share in enumerate(curve))
    return result
