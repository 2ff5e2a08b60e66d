"""Numbers as people read them: three significant digits, SI prefixes, `~` for modelled and `-` for unavailable."""

from __future__ import annotations

from designer.profiling.figures import Figure, Origin

_BIG = ("", "k", "M", "G", "T", "P", "E")
_SMALL = ("", "m", "µ", "n")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
MODELLED_SIGN = "~"
UNAVAILABLE_SIGN = "-"


def digits(value: float) -> str:
    """Three significant digits without an exponent: `12.7`, `0.127`, `127`; larger numbers keep all their digits."""
    size = abs(value)
    if size == 0.0:
        return "0"
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


def text(figure: Figure) -> str:
    """A figure as text: `12.7 GFLOP`, `~83.4 %`, or `-` where there is none (show the reason on hover)."""
    if figure.value is None:
        return UNAVAILABLE_SIGN
    sign = MODELLED_SIGN if figure.source is Origin.MODELLED else ""
    return sign + quantity(figure.value, figure.unit)
