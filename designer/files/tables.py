"""Tables and values as text files. Spreadsheets take a cell that begins like a formula for one, also the name of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from designer.files.atomic import write_atomic
from designer.files.formats import Format, FormatTable

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


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


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8. Raises DiagnosticError ("cannot-save")."""
    write_atomic(path, text.encode())


Text = FormatTable[None, Callable[[Path, str], None]]
CSV: Text = FormatTable("tables", (Format("CSV table", (".csv",), write=write_text),))
JSON: Text = FormatTable("values", (Format("JSON values", (".json",), write=write_text),))
