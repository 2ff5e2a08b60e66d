"""How much two pictures differ: PSNR and SSIM, for each picture of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

WINDOW = 11
SIGMA = 1.5


def psnr(a: Array, b: Array, peak: float = 1.0) -> Array:
    """Decibels, shape (N,); infinite where both are equal."""
    import numpy as np

    error = np.square(a.astype(np.float64) - b).reshape(len(a), -1).mean(axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(10 * np.log10(peak * peak / error), np.float32)


def ssim(a: Array, b: Array, peak: float = 1.0) -> Array:
    """Structural similarity, shape (N,): 1 where both are equal. Gaussian windows of 11 pixels, inside the picture only.

    Pictures smaller than the window get the largest odd window that fits.
    """
    import numpy as np

    side = min(WINDOW, a.shape[-1], a.shape[-2])
    side -= 1 - side % 2
    x, y = a.astype(np.float64), b.astype(np.float64)
    mean_x, mean_y = _windowed(x, side), _windowed(y, side)
    both = mean_x * mean_y
    energy = mean_x**2 + mean_y**2
    covariance = _windowed(x * y, side) - both
    variance = _windowed(x * x + y * y, side) - energy
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    values = (2 * both + c1) * (2 * covariance + c2) / ((energy + c1) * (variance + c2))
    return np.asarray(values.reshape(len(a), -1).mean(axis=1), np.float32)


def _windowed(x: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """Gaussian means over the last two axes, at the places where the whole window is inside."""
    import numpy as np

    curve = np.exp(-0.5 * ((np.arange(side) - side // 2) / SIGMA) ** 2)
    curve /= curve.sum()
    height, width = x.shape[-2] - side + 1, x.shape[-1] - side + 1
    rows = np.zeros((*x.shape[:-1], width))
    for place, share in enumerate(curve):
        rows += share * x[..., place : place + width]
    result = np.zeros((*x.shape[:-2], height, width))
    for place, share in enumerate(curve):
        result += share * rows[..., place : place + height, :]
    return result
