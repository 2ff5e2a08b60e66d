"""Cells of tables, and lists of digests."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from designer.files.digest_list import add_digests, list_path, read_digests
from designer.files.tables import as_cells
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
