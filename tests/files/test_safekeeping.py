"""Saving an open document: the files, the state of the disk and the journal."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from designer.files.document import read_document, write_document
from designer.files.file_lock import lock
from designer.files.safekeeping import Safekeeping
from designer.files.settings import Settings, read_settings, settings_path
from designer.graph import commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import Layer


def history() -> History:
    return History(Graph([Layer("a", "identity"), Layer("b", "identity")], name="n"))


def change(made: History, name: str = "c") -> None:
    made.commit(commands.add_layer(made.graph, Layer(name, "identity")))


def test_a_file_is_locked_once_until_its_stream_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"text")
    first, second = (os.open(path, os.O_RDWR) for _ in range(2))
    assert lock(first)
    assert not lock(second), "not even for the same process"
    os.close(second)
    path.read_bytes()
    other = os.open(path, os.O_RDWR)
    assert not lock(other), "another stream that was closed does not unlock it"
    os.close(first)
    assert lock(other)
    os.close(other)


def journals(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "journal"
    return sorted(folder.iterdir()) if folder.exists() else []


def test_a_document_is_saved_with_the_settings_of_its_layers(tmp_path: Path) -> None:
    made = history()
    keeping = Safekeeping(made, folder=tmp_path / "journal")
    assert (keeping.on_disk, keeping.disk_state()) == (None, "same")
    change(made)
    assert len(journals(tmp_path)) == 1
    path = tmp_path / "net.xml"
    settings = Settings(threads=3, input_files={"a": "/x.png", "gone": "/y.png"})
    assert keeping.save(path, settings) == ()
    assert path.read_bytes() == write_document(made.graph)
    assert read_settings(settings_path(path)).settings == Settings(threads=3, input_files={"a": "/x.png"})
    assert journals(tmp_path) == []
    assert keeping.on_disk is not None
    assert (keeping.on_disk.path, keeping.on_disk.digest) == (path, sha256(path.read_bytes()).hexdigest())
    assert keeping.disk_state() == "same"
    path.write_bytes(path.read_bytes() + b"\n")
    assert keeping.disk_state() == "changed"
    path.unlink()
    assert keeping.disk_state() == "gone"
    other = tmp_path / "other.xml"
    assert keeping.save(other) == ()
    assert not settings_path(other).exists()
    assert (keeping.on_disk.path, keeping.disk_state()) == (other, "same")
    keeping.close()


def test_a_document_that_cannot_be_saved_keeps_its_file_and_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    made = history()
    path.write_bytes(b"before")
    keeping = Safekeeping(made, path, sha256(b"before").hexdigest(), folder=tmp_path / "journal")
    change(made)
    before = journals(tmp_path)
    for target, code in ((tmp_path / "net.txt", "unknown-format"), (tmp_path / "none" / "net.xml", "cannot-save")):
        with pytest.raises(DiagnosticError) as caught:
            keeping.save(target, Settings())
        assert caught.value.diagnostics[0].code == code
    assert path.read_bytes() == b"before"
    assert not settings_path(path).exists()
    assert journals(tmp_path) == before != []
    assert keeping.on_disk is not None
    assert (keeping.on_disk.path, keeping.disk_state()) == (path, "same")
    keeping.close()


def test_what_is_on_disk_can_be_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    made = history()
    keeping = Safekeeping(made, path, "old", folder=tmp_path / "journal")
    change(made)
    path.write_bytes(write_document(made.graph))
    assert keeping.disk_state() == "changed"
    digest = sha256(path.read_bytes()).hexdigest()
    keeping.took_over(path, digest)
    assert keeping.disk_state() == "same"
    assert journals(tmp_path) == []
    change(made, "d")
    assert len(journals(tmp_path)) == 1
    assert read_document(path).digest == digest
    keeping.close()


def test_a_closed_document_has_no_journal_and_records_nothing(tmp_path: Path) -> None:
    made = history()
    keeping = Safekeeping(made, folder=tmp_path / "journal")
    change(made)
    keeping.close()
    assert journals(tmp_path) == []
    change(made, "d")
    assert journals(tmp_path) == []
    keeping.close()
