"""Numbers as text."""

from __future__ import annotations

import math

import pytest

from designer.profiling.quantities import Quantity, ValueSource, measured, text, unavailable
from designer.units import count, digits, dims_text, duration, number, numbers, percent, quantity, short_count


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (1.2345, "1.23"), (12.345, "12.3"), (123.45, "123"), (9.996, "10.0"), (99.96, "100"), (0.012345, "0.0123"),
     (-3.14159, "-3.14"), (0.9999, "1.00"), (1234.5, "1234"), (123456789012345.0, "123456789012345"), (3.4e38, "3.40e+38"),
     (-1e15, "-1.00e+15"), (1.234e-10, "0.000000000123"), (1.234e-11, "1.23e-11"), (-1e-30, "-1.00e-30"), (math.inf, "inf")],
)  # fmt: skip
def test_three_significant_digits(value, shown):
    assert digits(value) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (12.7e9, "FLOP", "12.7 GFLOP"),
        (41.3 * 2**20, "B", "41.3 MiB"),
        (999.7, "FLOP", "1.00 kFLOP"),
        (1.5e-3, "s", "1.50 ms"),
        (2.5, "s", "2.50 s"),
        (0.0, "s", "0 s"),
        (-0.002, "s", "-2.00 ms"),
        (5e-10, "s", "0.500 ns"),
        (23.1e9, "B/s", "23.1 GB/s"),
        (134.2, "%", "134 %"),
        (1023 * 1024, "B", "0.999 MiB"),
        (468_000, "", "468 k"),
        (0.25, "FLOP/B", "0.250 FLOP/B"),
    ],
)
def test_prefixes(value, unit, shown):
    assert quantity(value, unit) == shown


@pytest.mark.parametrize(
    ("value", "exact", "short"),
    [
        (1, "1", "1"),
        (4_640, "4,640", "4,640"),
        (9_999_999, "9,999,999", "9,999,999"),
        (61_090_496, "61,090,496", "61.1 M"),
    ],
)
def test_counts_keep_their_digits_while_they_fit(value, exact, short):
    assert count(value) == exact
    assert short_count(value) == short


def test_durations_shares_dimensions_and_values():
    assert [duration(ms) for ms in (0.0004, 12.7, 1_610)] == ["400 ns", "12.7 ms", "1.61 s"]
    assert percent(0.127) == "12.7 %"
    assert dims_text((3, 48, 64)) == "3 x 48 x 64"
    assert dims_text(()) == "scalar"
    assert [number(v) for v in (1190.4, 0.03125, 4.5e-06)] == ["1190", "0.0312", "4.5e-06"]


def test_quantities_as_text():
    assert text(measured(1e-3), "s") == "1.00 ms"
    assert text(unavailable("no GPU"), "%") == "-"


def test_a_quantity_says_why_it_is_missing():
    with pytest.raises(ValueError, match="reason"):
        Quantity(None, ValueSource.UNAVAILABLE)
    with pytest.raises(ValueError, match="value must be null"):
        Quantity(None, ValueSource.MEASURED, "x")
    with pytest.raises(ValueError, match="value must be from"):
        measured(math.inf)


def test_values_of_a_pixel_have_the_same_decimals() -> None:
    assert numbers([0.788, 0.4, -0.05]) == ["0.788", "0.400", "-0.050"]
    assert numbers([12.345, 0.5]) == ["12.3", "0.5"]
    assert numbers([-0.00266, 0.0004]) == ["-0.00266", "0.00040"]
    assert numbers([0.0, 1e-7]) == ["0", "1e-07"]
    assert numbers([float("nan"), 0.5]) == ["nan", "0.500"]
    assert numbers([]) == []


def test_a_value_of_0_is_not_an_unavailable_one():
    assert text(measured(0.0), "B") == "0 B"
    assert text(unavailable("none"), "B") == "-"
