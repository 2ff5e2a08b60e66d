"""Saving when the disk is full, the folder is read-only, or the process is killed: the old file stays whole."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from designer.files import atomic
from designer.files.atomic import atomic_file, make_folder, write_atomic
from designer.graph.diagnostics import DiagnosticError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "network.xml"
    path.write_bytes(b"the old one")
    return path


def refusal(path: Path, data: bytes = b"new") -> str:
    with pytest.raises(DiagnosticError) as caught:
        write_atomic(path, data)
    finding = caught.value.diagnostics[0]
    assert finding.code == "cannot-save"
    assert finding.file == str(path)
    assert str(path) in finding.message
    return finding.remedy


def test_a_file_is_replaced_and_nothing_is_left_beside_it(saved: Path) -> None:
    write_atomic(saved, b"new")
    assert saved.read_bytes() == b"new"
    assert os.listdir(saved.parent) == ["network.xml"]


def fail(number: int) -> Callable[..., None]:
    def raiser(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return raiser


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
@pytest.mark.parametrize(
    ("number", "word"), [(errno.ENOSPC, "space"), (errno.EROFS, "writable"), (errno.EACCES, "can write")]
)
def test_a_refusal_of_the_system_leaves_the_old_file_whole(
    saved: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, word: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, call, fail(number))
        assert word in refusal(saved)
    assert saved.read_bytes() == b"the old one"
    assert os.listdir(saved.parent) == ["network.xml"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_while_writing(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes go to a device that is always full: the real error of a real write."""
    real = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = real(path, flags, mode)
        device = real("/dev/full", os.O_WRONLY)
        os.dup2(device, descriptor)
        os.close(device)
        return descriptor

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "open", full)
        assert "space" in refusal(saved, b"x" * 100_000)
    assert saved.read_bytes() == b"the old one"
    assert os.listdir(saved.parent) == ["network.xml"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(saved: Path) -> None:
    saved.parent.chmod(0o555)
    try:
        assert "can write" in refusal(saved)
    finally:
        saved.parent.chmod(0o755)
    assert saved.read_bytes() == b"the old one"


def test_a_read_only_file_is_not_replaced(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic.os, "access", lambda *_: False)  # root has access to everything
    assert "can write" in refusal(saved)
    assert saved.read_bytes() == b"the old one"


def test_a_folder_in_the_way_and_a_folder_that_is_missing(tmp_path: Path) -> None:
    assert "file name" in refusal(tmp_path)
    assert "exists" in refusal(tmp_path / "none" / "x.xml")
    assert "else" in refusal(tmp_path / "a\0b")


def test_an_error_of_the_writer_leaves_the_old_file_whole(saved: Path) -> None:
    def write() -> None:
        with atomic_file(saved) as stream:
            stream.write(b"half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write()
    assert saved.read_bytes() == b"the old one"
    assert os.listdir(saved.parent) == ["network.xml"]


@pytest.mark.skipif(os.name != "posix", reason="links and rights of POSIX")
def test_links_and_rights_are_kept(saved: Path) -> None:
    saved.chmod(0o640)
    link = saved.with_name("link.xml")
    link.symlink_to(saved.name)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert saved.read_bytes() == b"new"
    assert saved.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_process_killed_while_saving_leaves_one_whole_file(saved: Path) -> None:
    program = (
        "import sys\n"
        "from designer.files.atomic import write_atomic\n"
        "number = 0\n"
        "while True:\n"
        "    number += 1\n"
        "    write_atomic(sys.argv[1], (b'%09d\\n' % number) * 50_000)\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(saved)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(5):  # it is in the midst of saving again and again now
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    lines = saved.read_bytes().splitlines()
    assert len(lines) == 50_000
    assert len(set(lines)) == 1


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_a_private_file_is_never_shown_to_others(saved: Path) -> None:
    saved.chmod(0o600)
    umask = os.umask(0)
    try:
        with atomic_file(saved) as stream:
            stream.write(b"new")
            assert [path.stat().st_mode & 0o777 for path in saved.parent.iterdir()] == [0o600, 0o600]
        assert saved.stat().st_mode & 0o777 == 0o600
        write_atomic(saved.with_name("agreed.txt"), b"", private=True)
    finally:
        os.umask(umask)
    assert saved.with_name("agreed.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space on the disk, or save somewhere else"),
        (errno.EDQUOT, "free some of your quota, or save somewhere else"),
        (errno.EACCES, "choose a folder and a file that you can write to"),
        (errno.EPERM, "choose a folder and a file that you can write to"),
        (errno.EROFS, "choose a folder on a writable disk"),
        (errno.ENOENT, "choose a folder that exists"),
        (errno.ENOTDIR, "choose a folder that exists"),
        (errno.EEXIST, "choose a folder; a file has that name"),
        (errno.EISDIR, "choose a file name"),
        (errno.ENAMETOOLONG, "choose a shorter name"),
        (errno.EIO, "save somewhere else"),
    ],
)
def test_every_refusal_has_its_remedy(saved: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "replace", fail(number))
        assert refusal(saved) == remedy
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", fail(number))
        with pytest.raises(DiagnosticError) as caught:
            make_folder(saved.parent / "folder")
    assert caught.value.diagnostics[0].remedy == remedy
    assert os.strerror(number) in caught.value.diagnostics[0].message


def test_a_file_that_can_only_be_read_is_not_replaced(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic.os, "access", lambda _, mode: not mode & os.W_OK)
    assert "can write" in refusal(saved)
    assert saved.read_bytes() == b"the old one"


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_a_private_file_becomes_private_where_others_could_read_it(saved: Path) -> None:
    saved.chmod(0o644)
    write_atomic(saved, b"new", private=True)
    assert saved.stat().st_mode & 0o777 == 0o600
    saved.chmod(0o640)
    write_atomic(saved, b"newer")
    assert saved.stat().st_mode & 0o777 == 0o640


def test_only_old_files_of_ended_saves_are_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(atomic.time, "time", lambda: now)
    ages = {"0" * 16: -5.0, "1" * 16: 0.0, "2" * 16: 1.5, "3" * 16: 2.0, "4" * 16: 3.0, "5" * 16: 1e5}
    for name, age in ages.items():
        file = tmp_path / f".lw-{name}.tmp"
        file.write_bytes(b"half")
        os.utime(file, (now - age, now - age))
    others = [".lw-0.tmp", ".lw-zzzzzzzzzzzzzzzz.tmp", f".lw-{'4' * 16}.tmp.bak", f"x.lw-{'4' * 16}.tmp"]
    for name in others:
        (tmp_path / name).write_bytes(b"of others")
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / f".lw-{'a' * 16}.tmp").mkdir()
    os.utime(tmp_path / f".lw-{'a' * 16}.tmp", (1, 1))
    with atomic_file(tmp_path / "living.xml") as stream:
        stream.write(b"whole")
        (living,) = [
            p for p in tmp_path.glob(".lw-*.tmp") if p.is_file() and p.name[4:20] not in ages and p.name not in others
        ]
        os.utime(living, (1, 1))
        atomic.remove_abandoned(tmp_path)
        left = {p.name[4:20] for p in tmp_path.glob(".lw-*.tmp") if p.name[4:20] in ages}
        assert left == {"0" * 16, "1" * 16, "2" * 16}
        assert living.exists()
    assert (tmp_path / "living.xml").read_bytes() == b"whole"
    assert all((tmp_path / name).exists() for name in others)
    assert (tmp_path / f".lw-{'a' * 16}.tmp").is_dir()
    atomic.remove_abandoned(tmp_path / "missing")
    atomic.remove_abandoned(tmp_path / "living.xml")


@pytest.mark.parametrize("durable", [True, False])
def test_only_a_durable_file_is_flushed_to_the_disk(
    saved: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    flushed: list[bool] = []
    real = os.fsync

    def fsync(stream: int) -> None:
        flushed.append(os.path.isdir(f"/proc/self/fd/{stream}"))
        real(stream)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    with atomic_file(saved, durable=durable) as stream:
        stream.write(b"new")
        assert flushed == []
    assert saved.read_bytes() == b"new"
    assert len(flushed) == (2 if durable and os.name == "posix" else int(durable))  # the file, then its folder
    if flushed and os.path.isdir("/proc/self/fd"):
        assert flushed == [False, True]
