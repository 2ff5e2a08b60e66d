"""Numbers as text."""

from __future__ import annotations

import math

import pytest

from designer.profiling.figures import Figure, Origin, measured, modelled, ratio, unavailable
from designer.profiling.units import digits, quantity, text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (1.2345, "1.23"), (12.345, "12.3"), (123.45, "123"), (9.996, "10.0"), (99.96, "100"), (0.012345, "0.0123"),
     (-3.14159, "-3.14"), (0.9999, "1.00"), (1234.5, "1234")],
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


def test_signs_for_modelled_and_unavailable():
    assert text(measured(1e-3, "s")) == "1.00 ms"
    assert text(modelled(83.4, "%")) == "~83.4 %"
    assert text(unavailable("%", "no GPU")) == "-"


def test_a_figure_says_why_it_is_missing():
    with pytest.raises(ValueError, match="reason"):
        Figure(None, "%", Origin.UNAVAILABLE)
    with pytest.raises(ValueError, match="unless"):
        Figure(None, "%", Origin.MEASURED, "x")
    with pytest.raises(ValueError, match="finite"):
        measured(math.inf, "s")


def test_a_ratio_keeps_the_reason_and_never_divides_by_zero():
    missing = ratio(measured(1, "FLOP"), unavailable("s", "not timed"), "FLOP/s", "")
    assert missing.value is None
    assert missing.reason == "not timed"
    assert ratio(measured(1, "FLOP"), measured(0, "s"), "FLOP/s", "").value is None
