"""How close two pictures are."""

from __future__ import annotations

from math import inf, log10

import numpy as np
from numpy.typing import NDArray


def psnr(a: NDArray[np.float32], b: NDArray[np.float32], peak: float = 1.0) -> float:
    """Peak signal-to-noise ratio in dB of two arrays of one shape; values are compared clipped to 0..peak.

    Infinity for equal arrays. Raises ValueError when the shapes differ.
    """
    if a.shape != b.shape:
        raise ValueError(f"pictures of one size are needed, not {a.shape} and {b.shape}")
    error = np.mean(np.square(np.clip(a, 0, peak, dtype=np.float64) - np.clip(b, 0, peak, dtype=np.float64)))
    return inf if error == 0.0 else float(10.0 * log10(peak * peak / float(error)))
