"""Tables for spreadsheets, which take a cell that begins like a formula for one, also where it is the name of a file."""

from __future__ import annotations

from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_cells(values: Iterable[object]) -> list[object]:
    """A row with an apostrophe before every text that a spreadsheet would work out; numbers stay."""
    return [f"'{value}" if isinstance(value, str) and _is_formula(value) else value for value in values]


def _is_formula(text: str) -> bool:
    if len(text) < 2 or not text.startswith(_FORMULA):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
