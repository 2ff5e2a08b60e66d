"""Cells of tables, and lists of digests."""

from __future__ import annotations

import json
import stat
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from designer.files.digest_list import add_digests, list_path, read_digests
from designer.files.tables import CSV, JSON, as_cells
from designer.graph.diagnostics import DiagnosticError

A, B, C = ("a" * 64, "b" * 64, "0123456789abcdef" * 4)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n"])
def test_only_texts_that_a_spreadsheet_evaluates_get_an_apostrophe(start: str) -> None:
    assert as_cells([f"{start}x"]) == [f"'{start}x"]
    assert as_cells([f"x{start}", start, "", -1, -1.5, None, True]) == [f"x{start}", start, "", -1, -1.5, None, True]


def test_numbers_as_text_are_unchanged() -> None:
    assert as_cells(["-1.5", "+3", "-inf", "-1e-3", "-1-1"]) == ["-1.5", "+3", "-inf", "-1e-3", "'-1-1"]


def test_digests_are_added_once_in_order_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "list.txt"
    assert read_digests(path) == frozenset()
    add_digests(path, [B, A, B])
    assert path.read_text() == f"{A}\n{B}\n"
    written = path.stat().st_ino
    add_digests(path, [A])
    assert path.stat().st_ino == written, "nothing was new"
    add_digests(path, iter([C]))
    assert read_digests(path) == {A, B, C}
    path.write_text(f"{A}\nxyz\n{B[:-1]}\n{B.upper()}\n{C}0\n  {C}  \n")
    assert read_digests(path) == {A, C}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_only_the_user_can_read_a_list(tmp_path: Path) -> None:
    path = tmp_path / "private" / "list.txt"
    add_digests(path, [A])
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiagnosticError, match="file cannot be created") as caught:
        add_digests(tmp_path / "file" / "list.txt", [A])
    assert caught.value.diagnostics[0].file == str(tmp_path / "file" / "list.txt")


def test_lists_are_in_the_data_folder_under_their_names() -> None:
    assert list_path("built-engines").name == "built-engines.txt"
    assert list_path("a").parent == list_path("b").parent


def test_a_table_is_written_with_its_provenance_next_to_it(tmp_path: Path) -> None:
    path = tmp_path / "deep.table.csv"
    about = {"network": {"sha256": "abc"}, "run": {"date": "2026"}}
    CSV.writer(path)(path, "a,ä\n1,2\n ", about)
    assert path.read_bytes() == "a,ä\n1,2\n ".encode()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["deep.table.csv", "deep.table.csv.provenance.json"]
    written = (tmp_path / "deep.table.csv.provenance.json").read_text()
    assert json.loads(written) == {
        "file": "deep.table.csv",
        "sha256": sha256(path.read_bytes()).hexdigest(),
        "provenance": about,
    }
    assert written.startswith('{\n  "file"')
    assert written.endswith("}\n")
    values = tmp_path / "values.json"
    JSON.writer(values)(values, '{"ä": 1}')
    assert values.read_bytes() == '{"ä": 1}'.encode()
    assert (CSV.write_choices, JSON.write_choices, CSV.title, JSON.title) == (".csv", ".json", "Tables", "Values")
    with pytest.raises(DiagnosticError, match=r"tables cannot be written to '\.txt' files"):
        CSV.writer(tmp_path / "x.txt")
    with pytest.raises(DiagnosticError, match=r"tables cannot be read from '\.csv' files"):
        CSV.reader(path)
