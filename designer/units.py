"""Numbers as text: three significant digits with SI or binary prefixes, counts, percentages, durations, dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, isfinite, log10

_BIG = ("", "k", "M", "G", "T", "P", "E")
_SMALL = ("", "m", "µ", "n")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
MODELLED_SIGN = "~"
UNAVAILABLE_SIGN = "-"


def modelled(amount: float, text: str) -> str:
    """A computed amount as text, with the sign of computed amounts; zero is exact."""
    return f"{MODELLED_SIGN}{text}" if amount else text


def digits(value: float) -> str:
    """Three significant digits: `12.7`, `0.127`, `127`; larger numbers keep all their digits.

    Only numbers that would need more than 15 digits have an exponent: `3.40e+38`.
    """
    size = abs(value)
    if size == 0.0:
        return "0"
    if size >= 1e15 or size < 1e-10:
        return f"{value:.2e}"
    places = 2 if size < 9.995 else 1 if size < 99.95 else 0
    scale = 0.9995
    while size < scale and places < 12:
        places += 1
        scale /= 10
    return f"{value:.{places}f}"


def si(value: float, unit: str) -> str:
    """`si(1.27e10, "FLOP")` is `12.7 GFLOP`. Below 1 only seconds get a smaller prefix."""
    size, step = abs(value), 0
    if unit == "s" and 0.0 < size < 0.9995:
        while size < 0.9995 and step < len(_SMALL) - 1:
            size, step = size * 1000, step + 1
        return f"{digits(size if value > 0 else -size)} {_SMALL[step]}{unit}"
    if unit == "s":
        return f"{digits(value)} s"
    while size >= 999.5 and step < len(_BIG) - 1:
        size, step = size / 1000, step + 1
    return f"{digits(size if value >= 0 else -size)} {_BIG[step]}{unit}".rstrip()


def binary(value: float) -> str:
    """Bytes with binary prefixes: `41.3 MiB`."""
    size, step = abs(value), 0
    while size >= 999.5 and step < len(_BINARY) - 1:
        size, step = size / 1024, step + 1
    return f"{digits(size if value >= 0 else -size)} {_BINARY[step]}"


def quantity(value: float, unit: str) -> str:
    """A value in its base unit as text."""
    if unit == "B":
        return binary(value)
    if unit == "%":
        return f"{digits(value)} %"
    return si(value, unit)


def count(number: int) -> str:
    """A whole number with all its digits in groups: `4,640`."""
    return f"{number:,}"


def short_count(number: int) -> str:
    """`count` up to seven digits, which fit nearly everywhere; `61.1 M` above."""
    return count(number) if number < 10_000_000 else si(number, "")


def dims_text(sizes: Iterable[object], scalar: str = "scalar") -> str:
    """Sizes of dimensions: `3 x 48 x 64`; `scalar` for none."""
    return " x ".join(str(size) for size in sizes) or scalar


def duration(milliseconds: float) -> str:
    """A time with its unit: `12.7 ms`, `1.61 s`."""
    return si(milliseconds / 1e3, "s")


def signed_duration(milliseconds: float) -> str:
    """A difference of times with its sign and unit: `+12.7 ms`, `-1.61 s`."""
    return f"{'+' if milliseconds > 0 else ''}{duration(milliseconds)}"


def percent(share: float) -> str:
    """A share of 1 as `12.7 %`."""
    return quantity(100 * share, "%")


def number(value: float) -> str:
    """A value of a tensor in three significant digits: `1190`, `0.0312`, and with an exponent `4.5e-06`."""
    return f"{value:.0f}" if 999.5 <= abs(value) < 1e6 else f"{value:.3g}"


def numbers(values: Sequence[float]) -> list[str]:
    """Values with the same number of decimals, three significant digits of the largest: `0.788`, `0.400`."""
    largest = max((abs(value) for value in values if isfinite(value)), default=0.0)
    if not 1e-4 <= largest < 1e6:
        return [number(value) for value in values]
    places = max(0, 2 - floor(log10(largest)))
    return [f"{value:.{places}f}" for value in values]
