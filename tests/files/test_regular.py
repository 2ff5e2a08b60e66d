"""Pipes and devices are refused by name instead of waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from designer.files.array_files import read_header
from designer.files.disk_watch import OnDisk
from designer.files.regular import check_regular
from designer.files.safetensors_file import read_entries
from designer.files.torch_file import read_state_dict
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.images import read_image, read_npy
from designer.runtime.video import VideoReader

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (read_image, "pipe.png"),
        (read_image, "pipe.exr"),
        (read_npy, "pipe.npy"),
        (VideoReader, "pipe.mkv"),
        (read_header, "pipe.npy"),
        (read_entries, "pipe.safetensors"),
        (read_state_dict, "pipe.pt"),
    ],
)
def test_no_reader_waits_for_a_pipe(read, name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DiagnosticError) as caught:
        read(tmp_path / name)
    [found] = caught.value.diagnostics
    assert found.code == "not-a-file"
    assert "a named pipe" in found.message


def test_devices_are_refused_and_files_are_not(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="a device"):
        check_regular(Path("/dev/null"))
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path, tmp_path / "missing"):
        check_regular(path)


def test_a_document_that_became_a_pipe_is_changed_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_bytes(b"<x/>")
    watched = OnDisk(path, "digest")
    path.unlink()
    os.mkfifo(path)
    assert watched.state() == "changed"
    watched.accept()
    assert watched.state() == "same"
