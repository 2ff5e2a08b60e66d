"""Metrics and numbers as text against a second way to compute them."""

from __future__ import annotations

import random
from math import inf, log10

import numpy as np
import pytest

from designer import metrics, units
from designer.metrics import psnr, result_psnr, ssim, worst_region, worst_regions


def decibels(expected: np.ndarray, made: np.ndarray, peak: float) -> float:
    error = sum((float(a) - float(b)) ** 2 for a, b in zip(expected.ravel(), made.ravel(), strict=True)) / expected.size
    return 10 * log10(peak**2 / error) if error else inf


@pytest.mark.parametrize("peak", [1.0, 4.0, 255.0])
def test_psnr_of_clipped_values(peak: float) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(0.5, 1, (2, 3, 4, 5)).astype(np.float32) * np.float32(peak) for _ in range(2))
    clipped = [np.clip(each.astype(np.float64), 0, peak) for each in (a, b)]
    assert psnr(a, b, peak) == pytest.approx(decibels(*clipped, peak), rel=1e-9)
    assert psnr(a, a, peak) == inf
    assert psnr(a + 9 * np.float32(peak), a * 0 + 5 * np.float32(peak), peak) == inf
    nearly = np.full((1, 1, 2, 2), 0.5, np.float32)
    assert 60 < psnr(nearly, nearly + np.float32(1e-6), peak) < inf
    with pytest.raises(ValueError, match="must have the same shape"):
        psnr(a, b[:1], peak)
    with pytest.raises(ValueError, match="must have the same shape"):
        ssim(a, b[:, :1], peak)


def test_the_psnr_of_a_result_that_is_not_an_image() -> None:
    rng = np.random.default_rng(1)
    for shape in ((7,), (2, 5), (2, 3, 4), (1, 2, 3, 2, 2)):
        expected = rng.normal(3, 2, shape).astype(np.float32)
        made = expected + rng.normal(0, 0.1, shape).astype(np.float32)
        peak = float(expected.max()) - float(expected.min())
        assert result_psnr(expected, made) == pytest.approx(decibels(expected, made, peak), rel=1e-6)
        assert result_psnr(expected, expected) == inf
        constant = np.full(shape, 2.5, np.float32)
        assert result_psnr(constant, constant + 1) == pytest.approx(0.0, abs=1e-6)
    large = np.array([0.0, 40000.0], np.float32)
    assert result_psnr(large, large + 400) == pytest.approx(40.0, rel=1e-5)
    tiny = np.array([0.0, 1.0], np.float32)
    assert result_psnr(tiny, tiny + np.float32(1e-6)) > 115


@pytest.mark.parametrize("rank", [2, 4])
def test_values_of_a_result_that_are_not_finite(rank: int) -> None:
    shape = (1, 4) if rank == 2 else (1, 1, 1, 4)

    def tensor(*values: float) -> np.ndarray:
        return np.array(values, np.float32).reshape(shape)

    expected = tensor(0.0, 0.2, 0.8, 1.0)
    for bad in (np.nan, np.inf, -np.inf):  # as far away as the range permits
        assert result_psnr(expected, tensor(bad, 0.2, 0.8, 1.0)) == pytest.approx(10 * log10(4), abs=1e-5)
        assert result_psnr(expected, tensor(0.0, 0.2, 0.8, bad)) == pytest.approx(10 * log10(4), abs=1e-5)
        assert result_psnr(expected, tensor(0.0, bad, 0.8, 1.0)) == pytest.approx(10 * log10(4 / 0.64), abs=1e-5)
        assert result_psnr(tensor(bad, 0.0, 1.0, 1.0), tensor(5.0, 0.0, 1.0, 0.5)) == pytest.approx(
            10 * log10(4 / 0.25), abs=1e-5
        )
        assert result_psnr(tensor(bad, bad, bad, bad), tensor(1, 2, np.nan, np.inf)) == inf


def test_values_of_an_image_that_are_not_finite_are_black_or_white() -> None:
    expected = np.array([0.2, 0.4, 0.3, 0.6], np.float32).reshape(1, 1, 2, 2)
    made = expected.copy()
    made[0, 0, 0, 0] = np.nan
    assert result_psnr(expected, made) == pytest.approx(10 * log10(4 / 0.8**2), rel=1e-5)
    made[0, 0, 1, 1] = np.inf
    assert result_psnr(expected, made) == pytest.approx(10 * log10(4 / (0.8**2 + 0.6**2)), rel=1e-5)


def similarity(x: np.ndarray, y: np.ndarray, side: int, peak: float) -> list[float]:
    """SSIM of every window of two planes."""
    place = np.arange(side) - side // 2
    curve = np.exp(-(place**2) / (2 * 1.5**2))
    weights = np.outer(curve, curve) / np.outer(curve, curve).sum()
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    found = []
    for top in range(x.shape[0] - side + 1):
        for left in range(x.shape[1] - side + 1):
            a, b = (each[top : top + side, left : left + side] for each in (x, y))
            ma, mb = (weights * a).sum(), (weights * b).sum()
            va, vb = (weights * (a - ma) ** 2).sum(), (weights * (b - mb) ** 2).sum()
            both = (weights * (a - ma) * (b - mb)).sum()
            found.append((2 * ma * mb + c1) * (2 * both + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2)))
    return found


@pytest.mark.parametrize(
    ("height", "width", "side"), [(80, 12, 11), (12, 30, 11), (8, 20, 7), (20, 3, 3), (1, 9, 1), (11, 11, 11)]
)
@pytest.mark.parametrize("peak", [1.0, 10.0])
def test_ssim_of_images_of_any_size(height: int, width: int, side: int, peak: float) -> None:
    rng = np.random.default_rng(height)
    a = rng.random((2, 1, height, width)).astype(np.float32) * np.float32(peak)
    b = (a + rng.normal(0, 0.2 * peak, a.shape)).astype(np.float32)
    planes = [np.clip(each.astype(np.float64), 0, peak) for each in (a, b)]
    values = [value for n in range(2) for value in similarity(planes[0][n, 0], planes[1][n, 0], side, peak)]
    assert ssim(a, b, peak) == pytest.approx(sum(values) / len(values), abs=1e-9)
    assert (metrics.WINDOW, metrics.DEVIATION) == (11, 1.5)


def sums(error: np.ndarray, side: int) -> dict[tuple[int, int], float]:
    height, width = min(side, error.shape[0]), min(side, error.shape[1])
    return {
        (row, column): float(error[row : row + height, column : column + width].sum())
        for row in range(error.shape[0] - height + 1)
        for column in range(error.shape[1] - width + 1)
    }


@pytest.mark.parametrize("seed", range(8))
def test_the_worst_squares_of_a_map(seed: int) -> None:
    source = random.Random(seed)
    height, width, side = source.randint(1, 12), source.randint(1, 15), source.randint(1, 6)
    rng = np.random.default_rng(seed)
    error = rng.random((height, width)) * (rng.random((height, width)) < 0.4)
    before = error.copy()
    all_sums = sums(error, side)
    row, column = worst_region(error, side)
    assert all_sums[row, column] == pytest.approx(max(all_sums.values()))
    apart, expected = dict(all_sums), []
    while len(expected) < 4 and any(value > 0 for value in apart.values()):
        place = max(apart, key=apart.__getitem__)
        expected.append(place)
        apart = {
            (r, c): value for (r, c), value in apart.items() if abs(r - place[0]) >= side or abs(c - place[1]) >= side
        }
    assert worst_regions(error, side, 4) == expected
    np.testing.assert_array_equal(error, before)
    assert worst_regions(error * 0, side, 4) == []


def test_squares_side_by_side_are_both_found() -> None:
    error = np.zeros((4, 12))
    error[:, :4], error[:, 4:8], error[:, 6:10] = 3, 2, 1
    error[0, 11] = 0.5
    assert worst_regions(error, 4, 9) == [(0, 0), (0, 4), (0, 8)]


# --- numbers as text ---------------------------------------------------------------------------------------------


def three_digits(value: float) -> str:
    """Three significant digits without an exponent, and all digits of larger numbers."""
    if not value:
        return "0"
    exponent = int(f"{value:.2e}".partition("e")[2])
    return f"{value:.{max(0, 2 - exponent)}f}"


def amounts() -> list[float]:
    source = random.Random(0)
    found = [source.uniform(1, 10) * 10.0 ** source.randint(-9, 14) for _ in range(400)]
    found += [m * 10.0**e for m in (0.9994, 0.9996, 1.0, 9.994, 9.996, 99.94, 99.96) for e in range(-8, 12)]
    return [sign * value for value in found for sign in (1, -1)]


def test_three_significant_digits_of_any_number() -> None:
    for value in amounts():
        assert units.digits(value) == three_digits(value), value
    assert [units.digits(value) for value in (0.0, -0.0, 1e15, -2.5e16, 1.234e-10, 9.99e-11, 3.4e38)] == [
        "0", "0", "1.00e+15", "-2.50e+16", "0.000000000123", "9.99e-11", "3.40e+38"
    ]  # fmt: skip


def test_prefixes_of_any_number() -> None:
    for value in amounts():
        size, sign = abs(value), "-" if value < 0 else ""
        step = 0
        while step < 6 and size / 1000**step >= 999.5:
            step += 1
        text = f"{sign}{three_digits(size / 1000**step)} {['', 'k', 'M', 'G', 'T', 'P', 'E'][step]}"
        assert units.si(value, "FLOP") == f"{text}FLOP"
        assert units.si(value, "") == text.rstrip()
        step = 0
        while step < 5 and size / 1024**step >= 999.5:
            step += 1
        expected = f"{sign}{three_digits(size / 1024**step)} {['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][step]}"
        assert units.binary(value) == units.quantity(value, "B") == expected
        assert units.quantity(value, "%") == f"{three_digits(value)} %"
        assert units.quantity(value, "FLOP") == units.si(value, "FLOP")
        step = 0
        while step < 3 and size * 1000**step < 0.9995:
            step += 1
        seconds = f"{sign}{units.digits(size * 1000**step)} {['', 'm', 'µ', 'n'][step]}s"
        assert units.si(value, "s") == units.duration(value * 1000) == seconds or step == 3 or size > 1e12
        if 1e-8 < size < 1e9:
            assert units.duration(value * 1000) == seconds
            assert units.signed_duration(value * 1000) == ("" if value < 0 else "+") + seconds
    assert [units.si(0.0, "s"), units.duration(0.0), units.signed_duration(0.0)] == ["0 s"] * 3
    assert [units.si(0.0, "FLOP"), units.binary(0), units.quantity(0, "%")] == ["0 FLOP", "0 B", "0 %"]
    assert units.si(2.5e21, "B/s") == "2500 EB/s"
    assert [units.si(value, "s") for value in (1234.5, 2e-10, -3e-11)] == ["1234 s", "0.200 ns", "-0.0300 ns"]
    assert units.binary(2.0**62) == "4096 PiB"


def test_counts_and_shares() -> None:
    assert [units.short_count(n) for n in (0, 999, 1_234_567, 9_999_999, 10_000_000, 61_100_840)] == [
        "0", "999", "1,234,567", "9,999,999", "10.0 M", "61.1 M"
    ]  # fmt: skip
    assert [units.count(n) for n in (0, -1234, 10**9)] == ["0", "-1,234", "1,000,000,000"]
    assert [units.percent(share) for share in (0.0, 0.127, 1.0, -0.5, 12.0)] == [
        "0 %",
        "12.7 %",
        "100 %",
        "-50.0 %",
        "1200 %",
    ]
    assert [units.modelled(amount, "3 s") for amount in (0, 0.0, 3.0, -1)] == ["3 s", "3 s", "~3 s", "~3 s"]
    assert [units.dims_text(sizes) for sizes in ((3, 4, 5), (7,), ())] == ["3 x 4 x 5", "7", "scalar"]
    assert units.dims_text((), "one value") == "one value"
    assert units.dims_text(n for n in ("N", 3)) == "N x 3"


def test_values_of_tensors() -> None:
    cases = {
        0.0: "0", 999.4: "999", 999.6: "1000", -999.6: "-1000", 1190.4: "1190", 999_999.0: "999999", 1e6: "1e+06",
        -2.5e6: "-2.5e+06", 0.03124: "0.0312", 4.5e-6: "4.5e-06", 12.345: "12.3", -0.5: "-0.5",
    }  # fmt: skip
    assert {value: units.number(value) for value in cases} == cases
    assert units.numbers([0.788, 0.4]) == ["0.788", "0.400"]
    assert units.numbers([-12.34, 1.0, 0.05]) == ["-12.3", "1.0", "0.1"]
    assert units.numbers([1.0, float("nan"), float("-inf")]) == ["1.00", "nan", "-inf"]
    assert units.numbers([0.0, 0.0]) == ["0", "0"]
    assert units.numbers([5e-5, 1e-6]) == ["5e-05", "1e-06"]
    assert units.numbers([2e-4, 1e-6]) == ["0.000200", "0.000001"]
    assert units.numbers([999_999.4, 1.5]) == ["999999", "2"]
    assert units.numbers([123_456.0]) == ["123456"]
    assert units.numbers([1e6, 1.5]) == ["1e+06", "1.5"]
    assert units.numbers([]) == []
    assert units.numbers([float("inf")]) == ["inf"]
    assert units.numbers([0.0123, -0.5]) == ["0.012", "-0.500"]
