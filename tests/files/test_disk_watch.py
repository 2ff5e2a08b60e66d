"""The state of an open document's file, step by step, as other programs change it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from designer.files import limits
from designer.files.disk_watch import OnDisk, digest_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "net.xml"
    path.write_bytes(b"mine")
    return path


def states(watch: OnDisk) -> tuple[str, str]:
    """Asked twice: a state holds until the file or the decision of the user changes."""
    return watch.state(), watch.state()


def write(path: Path, data: bytes) -> None:
    """Replace the file, as most editors do."""
    other = path.with_name("other")
    other.write_bytes(data)
    os.replace(other, path)


def test_a_file_goes_through_every_state(path: Path) -> None:
    watch = OnDisk(path, digest_of(b"mine"))
    assert states(watch) == ("same", "same")
    write(path, b"theirs")
    assert states(watch) == ("changed", "changed")
    write(path, b"mine")  # written back
    assert states(watch) == ("same", "same")
    write(path, b"theirs")
    assert states(watch) == ("changed", "changed")
    watch.accept()
    assert states(watch) == ("same", "same")
    write(path, b"mine")  # the version that was opened is known too
    assert states(watch) == ("same", "same")
    write(path, b"theirs")  # and the accepted one still is
    assert states(watch) == ("same", "same")
    write(path, b"others")
    assert states(watch) == ("changed", "changed")
    path.unlink()
    assert states(watch) == ("gone", "gone")
    watch.accept()
    assert states(watch) == ("same", "same")
    write(path, b"others")
    assert states(watch) == ("changed", "changed")
    write(path, b"mine")
    assert states(watch) == ("same", "same")
    path.unlink()  # it was there again, so its end is news
    assert states(watch) == ("gone", "gone")
    path.mkdir()
    assert states(watch) == ("changed", "changed")


@pytest.mark.skipif(os.name != "posix", reason="identities of files")
def test_a_replaced_file_of_the_same_size_and_time_is_read_again(path: Path) -> None:
    watch = OnDisk(path, digest_of(b"mine"))
    assert watch.state() == "same"
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"your")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    assert states(watch) == ("changed", "changed")


def test_a_file_that_only_looks_changed_is_not(path: Path) -> None:
    watch = OnDisk(path, digest_of(b"mine"))
    assert watch.state() == "same"
    for time in (1, 2):
        os.utime(path, (time, time))
        assert states(watch) == ("same", "same")


def test_a_file_too_large_for_a_document_is_changed_without_being_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = OnDisk(path, digest_of(b"mine"))
    monkeypatch.setattr(limits, "MAX_DOCUMENT_BYTES", 4)
    assert states(watch) == ("same", "same")
    write(path, b"mine!")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
        assert states(watch) == ("changed", "changed")
        watch.accept()
        assert states(watch) == ("same", "same")
    write(path, b"yours")
    assert states(watch)[0] == "same"  # too large again
    write(path, b"your")
    assert states(watch) == ("changed", "changed")
