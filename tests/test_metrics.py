"""PSNR, SSIM and the worst region against their definitions, written out by hand."""

from __future__ import annotations

from math import exp, inf, log10

import numpy as np
import pytest

from designer import metrics
from designer.metrics import psnr, ssim, worst_region


def pair(height: int = 14, width: int = 17) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.random((1, 2, height, width)).astype(np.float32)
    return a, np.clip(a + rng.normal(0, 0.1, a.shape), 0, 1).astype(np.float32)


def by_hand(x: np.ndarray, y: np.ndarray, side: int) -> float:
    """Window by window, pixel by pixel, in plain Python."""
    weights = [
        [exp(-((i - side // 2) ** 2 + (j - side // 2) ** 2) / (2 * 1.5**2)) for j in range(side)] for i in range(side)
    ]
    total = sum(map(sum, weights))
    values = []
    for channel in range(x.shape[0]):
        for top in range(x.shape[1] - side + 1):
            for left in range(x.shape[2] - side + 1):
                cells = [
                    (weights[i][j] / total, float(x[channel, top + i, left + j]), float(y[channel, top + i, left + j]))
                    for i in range(side)
                    for j in range(side)
                ]
                mx, my = sum(w * p for w, p, _ in cells), sum(w * q for w, _, q in cells)
                vx = sum(w * (p - mx) ** 2 for w, p, _ in cells)
                vy = sum(w * (q - my) ** 2 for w, _, q in cells)
                cov = sum(w * (p - mx) * (q - my) for w, p, q in cells)
                values.append((2 * mx * my + 1e-4) * (2 * cov + 9e-4) / ((mx * mx + my * my + 1e-4) * (vx + vy + 9e-4)))
    return sum(values) / len(values)


@pytest.mark.parametrize(("size", "side"), [((14, 17), 11), ((6, 9), 5)])
def test_ssim(size: tuple[int, int], side: int) -> None:
    a, b = pair(*size)
    assert ssim(a, b) == pytest.approx(by_hand(a[0], b[0], side), abs=1e-9)
    assert ssim(a, a) == pytest.approx(1.0)
    assert ssim(a * 255, b * 255, peak=255.0) == pytest.approx(ssim(a, b), abs=1e-5)
    assert ssim(a + 5, a * 0 + 1) == 1.0  # clipped


def test_the_operator_and_the_metric_agree() -> None:
    from analysis_layers.difference import Difference

    a, b = pair()
    noisy = b + 4 * (b - a)  # beyond 0..1, as noise is
    _, found_psnr, found_ssim = Difference().evaluate([a, noisy])
    assert found_psnr.reshape(-1).tolist() == pytest.approx([psnr(a, noisy)], abs=1e-4)
    assert found_ssim.reshape(-1).tolist() == pytest.approx([ssim(a, noisy)], abs=1e-6)


def test_psnr() -> None:
    a = np.zeros((1, 1, 2, 2), np.float32)
    b = np.array([[[[0.1, 0.1], [0.1, 0.3]]]], np.float32)
    assert psnr(a, b) == pytest.approx(10 * log10(1 / 0.03), abs=1e-5)
    assert psnr(a, a) == inf
    for metric in (psnr, ssim):
        with pytest.raises(ValueError, match="same shape"):
            metric(a, b[..., :1])


def test_the_worst_region() -> None:
    error = np.zeros((20, 30))
    error[12:16, 22:26] = 1
    error[2, 2] = 5
    assert worst_region(error, 4) == (12, 22)
    assert worst_region(error, 100) == (0, 0)


def test_ssim_does_not_depend_on_the_parts_it_is_computed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    a = rng.random((1, 2, 150, 33), np.float32)
    b = np.clip(a + rng.normal(0, 0.1, a.shape), 0, 1).astype(np.float32)
    found = metrics.ssim(a, b)
    for rows in (1, 7, 10_000):
        monkeypatch.setattr(metrics, "ROWS", rows)
        assert metrics.ssim(a, b) == pytest.approx(found, rel=1e-12)


def test_worst_regions_are_in_order_and_do_not_overlap() -> None:
    error = np.zeros((100, 120))
    error[10:20, 30:40] = 2.0
    error[80:90, 100:110] = 5.0
    found = metrics.worst_regions(error, 16, 5)
    assert len(found) == 2  # nothing is wrong elsewhere
    (y, x), (v, u) = found
    assert 74 <= y <= 80
    assert 94 <= x <= 100
    assert 4 <= v <= 10
    assert 24 <= u <= 30
    assert metrics.worst_regions(np.zeros((8, 8)), 16, 5) == []
