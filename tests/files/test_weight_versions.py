"""Weights that edits and imports have made, until they are files of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from designer.files import weight_versions
from designer.files.weight_versions import import_path, is_version, keep_next_to, version_path
from designer.graph.diagnostics import DiagnosticError


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    weight_versions.weight_versions().mkdir(parents=True)
    return weight_versions.weight_versions()


def test_an_edit_of_an_edit_is_named_after_the_first_weights(data: Path) -> None:
    first = version_path(data, Path("net.safetensors"))
    second = version_path(data, first)
    assert first != second
    for path in (first, second):
        assert path.parent == data
        assert path.name.startswith("net edited ")
        assert path.name.count("edited") == 1
        assert path.suffix == ".safetensors"
        assert is_version(path)


def test_an_import_is_named_after_any_text(data: Path) -> None:
    path = import_path("a/../b: " + "x" * 100)
    assert path.parent == data
    assert path.name.startswith("a_.._b__xxx")
    assert len(path.name) < 100


def test_kept_weights_get_a_free_name_next_to_the_document(data: Path, tmp_path: Path) -> None:
    version = data / "net edited 1.safetensors"
    version.write_bytes(b"weights")
    kept = [keep_next_to(tmp_path / "net.xml", version) for _ in range(3)]
    assert [path.name for path in kept] == ["net.safetensors", "net-2.safetensors", "net-3.safetensors"]
    assert all(path.read_bytes() == b"weights" and not is_version(path) for path in kept)


def test_weights_that_cannot_be_kept_leave_no_file(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        keep_next_to(tmp_path / "net.xml", data / "gone.safetensors")
    assert [d.code for d in caught.value.diagnostics] == ["cannot-save"]
    assert not (tmp_path / "net.safetensors").exists()
