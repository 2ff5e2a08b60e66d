"""How figures are written for people: three significant digits, SI or binary units."""

from __future__ import annotations

_SI = ("", "k", "M", "G", "T", "P")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def si(value: float, unit: str = "") -> str:
    """`12_740_000_000, "FLOP"` -> "12.7 GFLOP"; whole numbers below 1000 stay whole."""
    step = 0
    while abs(value) >= 999.5 and step < len(_SI) - 1:
        value /= 1000
        step += 1
    number = str(int(value)) if step == 0 and float(value).is_integer() else _three(value)
    return f"{number} {_SI[step]}{unit}".rstrip()


def binary(count: float) -> str:
    """Bytes: 43_305_000 -> "41.3 MiB"."""
    step = 0
    while abs(count) >= 1023.5 and step < len(_BINARY) - 1:
        count /= 1024
        step += 1
    return f"{int(count) if step == 0 else _three(count)} {_BINARY[step]}"


def _three(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
