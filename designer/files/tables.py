"""Tables and values as text files. Cells that a spreadsheet would evaluate as formulas are escaped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from designer.files.atomic import write_atomic
from designer.files.formats import Format, FormatTable

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


def as_cells(values: Iterable[object]) -> list[object]:
    """A row with an apostrophe before every text that a spreadsheet would evaluate; numbers are unchanged."""
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


def write_table(path: Path, text: str, made_from: Mapping[str, Mapping[str, str]]) -> None:
    """Write a table, and its provenance as `<name>.provenance.json` next to it.

    `pandas.read_csv` reads the table without options. The provenance file contains the table's SHA-256.
    """
    data = text.encode()
    about = {"file": path.name, "sha256": sha256(data).hexdigest(), "provenance": made_from}
    write_text(path.with_name(f"{path.name}.provenance.json"), f"{json.dumps(about, indent=2)}\n")
    write_atomic(path, data)


Text = FormatTable[None, Callable[[Path, str], None]]
CSV: FormatTable[None, Callable[[Path, str, Mapping[str, Mapping[str, str]]], None]] = FormatTable(
    "tables", (Format("CSV table", (".csv",), write=write_table),)
)
JSON: Text = FormatTable("values", (Format("JSON values", (".json",), write=write_text),))
