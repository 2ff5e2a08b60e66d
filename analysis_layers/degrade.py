"""Image degradations: photon noise, JPEG quantization, blur."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

FEW = 16.0  # up to this mean, the Poisson distribution is inverted exactly

# Quantization tables of luminance and chrominance from the JPEG standard (ITU-T T.81, tables K.1 and K.2), row by row.
_LUMA_STEPS = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)


def poisson(x: Array, scale: float, uniform: Array, normal: Array) -> Array:
    """Photon counts (Poisson) with the mean x / scale^2, times scale^2. Negative values count as 0.

    Small means invert the distribution at `uniform`; large ones use `normal` with the next term of the Cornish-Fisher
    expansion, then round. Both fields are broadcast over the channels.
    """
    import numpy as np

    if scale == 0.0:
        return x
    mean = np.maximum(x, 0).astype(np.float64) / scale**2
    z = np.broadcast_to(normal, x.shape).astype(np.float64)
    counts = np.maximum(np.rint(mean + np.sqrt(mean) * z + (z * z - 1) / 6), 0)
    few = mean <= FEW
    if few.any():
        small, chance = mean[few], np.broadcast_to(uniform, x.shape)[few].astype(np.float64)
        term = np.exp(-small)
        reached, found = term.copy(), np.zeros_like(small)
        for count in range(1, 80):  # beyond 80, probabilities are below the precision of float32
            above = chance >= reached
            if not above.any():
                break
            found += above
            term *= small / count
            reached += term
        counts[few] = found
    return (counts * scale**2).astype(np.float32)


_CHROMA_STEPS = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)
_TO_YCBCR = (  # JFIF 1.02; Cb and Cr around 0
    (0.299, 0.587, 0.114),
    (-0.299 / 1.772, -0.587 / 1.772, 0.5),
    (0.5, -0.587 / 1.402, -0.114 / 1.402),
)
_TO_RGB = ((1.0, 0.0, 1.402), (1.0, -0.114 * 1.772 / 0.587, -0.299 * 1.402 / 0.587), (1.0, 1.772, 0.0))


def jpeg(x: Array, scale: float, *, halved: bool) -> Array:
    """Quantize the DCT of 8 x 8 blocks with steps of 10 * scale * table / 255, as a JPEG file does.

    N x 3 x H x W is converted to YCbCr; `halved` takes means of 2 x 2 pixels of Cb and Cr (4:2:0), interpolated afterwards as
    libjpeg does. Other numbers of channels are quantized one by one with the table of the luminance.
    """
    import numpy as np

    if scale == 0.0:
        return x
    if x.ndim != 4 or x.shape[1] != 3:
        return _quantized(x, scale, _LUMA_STEPS, 128 / 255)
    planes = np.einsum("ij,njhw->nihw", np.asarray(_TO_YCBCR, np.float32), x)
    planes[:, :1] = _quantized(planes[:, :1], scale, _LUMA_STEPS, 128 / 255)
    chroma = planes[:, 1:]
    if halved:
        height, width = chroma.shape[2:]
        even = np.pad(chroma, ((0, 0), (0, 0), (0, height % 2), (0, width % 2)), mode="edge")
        small = even.reshape(len(x), 2, (height + 1) // 2, 2, (width + 1) // 2, 2).mean((3, 5))
        large = _doubled(_doubled(_quantized(small, scale, _CHROMA_STEPS)).swapaxes(2, 3)).swapaxes(2, 3)
        planes[:, 1:] = large[:, :, :height, :width]
    else:
        planes[:, 1:] = _quantized(chroma, scale, _CHROMA_STEPS)
    result: Array = np.einsum("ij,njhw->nihw", np.asarray(_TO_RGB, np.float32), planes)
    return result


def _doubled(x: Array) -> Array:
    """Twice as long in the last axis, each value three quarters of the nearest and a quarter of the next nearest one."""
    import numpy as np

    wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 1)], mode="edge")
    left, right = (0.75 * x + 0.25 * neighbor for neighbor in (wide[..., :-2], wide[..., 2:]))
    return np.stack([left, right], axis=-1).reshape(*x.shape[:-1], -1)


def _quantized(x: Array, scale: float, table: tuple[tuple[int, ...], ...], level: float = 0.0) -> Array:
    """The DCT of 8 x 8 blocks of the last two axes, rounded to steps; `level` is subtracted before and added after."""
    import numpy as np

    height, width = x.shape[-2:]
    rows, columns = -(-height // 8), -(-width // 8)
    edges = [(0, 0)] * (x.ndim - 2) + [(0, rows * 8 - height), (0, columns * 8 - width)]
    blocks = np.pad(x, edges, mode="edge").reshape(*x.shape[:-2], rows, 8, columns, 8).swapaxes(-3, -2)
    place = np.arange(8)
    wave = np.cos((2 * place[None] + 1) * place[:, None] * np.pi / 16) * np.where(place, 0.5, 0.125**0.5)[:, None]
    wave = wave.astype(np.float32)
    steps = np.asarray(table, np.float32) * np.float32(10 * scale / 255)
    frequencies = wave @ (blocks - np.float32(level)) @ wave.T
    rounded = np.rint(frequencies / steps) * steps
    result = (wave.T @ rounded @ wave + np.float32(level)).swapaxes(-3, -2)
    result = result.reshape(*x.shape[:-2], rows * 8, columns * 8)
    return np.ascontiguousarray(result[..., :height, :width], dtype=np.float32)


def blur(x: Array, deviation: float) -> Array:
    """Gaussian blur over the last two axes, truncated at three standard deviations; edges are replicated."""
    import numpy as np

    reach = ceil(3 * deviation)
    if reach == 0:
        return x
    curve = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
    curve = (curve / curve.sum()).astype(np.float32)
    for axis in (-1, -2):
        edges = [(0, 0)] * x.ndim
        edges[axis] = (reach, reach)
        wide, size = np.pad(x, edges, mode="edge"), x.shape[axis]
        x = np.zeros_like(x)
        for place, share in enumerate(curve):
            cut = wide[..., place : place + size] if axis == -1 else wide[..., place : place + size, :]
            x += share * cut
    return x
