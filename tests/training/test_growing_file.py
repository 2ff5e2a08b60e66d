"""Lines of a file that another process appends to."""

from __future__ import annotations

from pathlib import Path

import pytest

from designer.training.growing_file import GrowingFile


def test_a_growing_file_gives_each_line_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nth")
    file = GrowingFile(path)
    assert file.read() == (True, [b"one", b"two"])
    assert file.read() == (False, [])
    with path.open("ab") as stream:
        stream.write(b"ree\n\nfive\r\nsix")
    assert file.read() == (False, [b"three", b"", b"five"])
    path.write_bytes(b"new\n")
    assert file.read() == (True, [b"new"])
    other = tmp_path / "other"
    other.write_bytes(b"new\nmore\nlines\n")
    other.replace(path)
    assert file.read() == (True, [b"new", b"more", b"lines"])
    path.unlink()
    with pytest.raises(OSError, match="No such file"):
        file.read()
