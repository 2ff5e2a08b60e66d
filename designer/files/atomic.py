"""Atomic writing: a file always has its complete old or its complete new content."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from designer.files.file_lock import lock
from designer.graph.diagnostics import DiagnosticError
from designer.texts import mark, tr, tr_data

ABANDONED_SECONDS = 2.0  # a new file may not be locked yet
_TEMPORARY = re.compile(r"\.lw-[0-9a-f]{16}\.tmp")


def write_atomic(path: str | os.PathLike[str], data: bytes, *, private: bool = False) -> None:
    """Replace the content of the file at `path`. Raises DiagnosticError ("cannot-save") and keeps the old file on failure.

    Only the owner can access a `private` file.
    """
    with atomic_file(path, private=private) as stream:
        stream.write(data)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, private: bool = False, durable: bool = True) -> Iterator[BinaryIO]:
    """A binary file that replaces `path` when the block succeeds and is removed when it fails.

    Symbolic links are followed and kept. An existing file keeps its permissions. A file that is not `durable` is not
    flushed to the disk: it can be lost with the power, but takes much less time.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        mode = _existing_mode(target)
        if private:
            mode = stat.S_IRUSR | stat.S_IWUSR
        temporary = target.with_name(f".lw-{secrets.token_hex(8)}.tmp")
        descriptor = os.open(
            temporary,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0),
            0o666 if mode is None else 0o600,
        )
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            lock(descriptor)
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, target)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        with contextlib.suppress(OSError):  # already moved to its place
            temporary.unlink()
    if durable:
        _sync_folder(target.parent)


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files in `folder` whose process ended before the save was complete. Never raises."""
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    except OSError:
        return
    for file in files:
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime < ABANDONED_SECONDS:
                continue
            stream = os.open(file.path, os.O_RDWR)
            try:
                abandoned = lock(stream)
            finally:
                os.close(stream)
            if abandoned:
                os.unlink(file.path)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder at `path`, created with its parents if necessary. Raises DiagnosticError ("cannot-save")."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _refused(Path(path), error) from error
    return Path(path)


def _existing_mode(target: Path) -> int | None:
    """The permissions of an existing file; None if there is none. Raises OSError if it must not be replaced."""
    try:
        info = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    return stat.S_IMODE(info.st_mode)


def _sync_folder(folder: Path) -> None:
    """Flush the replacement to disk, so that it survives a power failure, where the system supports it."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_REMEDIES = {
    errno.ENOSPC: mark("free some space on the disk, or save somewhere else"),
    errno.EDQUOT: mark("free some of your quota, or save somewhere else"),
    errno.EACCES: mark("choose a folder and a file that you can write to"),
    errno.EPERM: mark("choose a folder and a file that you can write to"),
    errno.EROFS: mark("choose a folder on a writable disk"),
    errno.ENOENT: mark("choose a folder that exists"),
    errno.ENOTDIR: mark("choose a folder that exists"),
    errno.EEXIST: mark("choose a folder; a file has that name"),
    errno.EISDIR: mark("choose a file name"),
    errno.ENAMETOOLONG: mark("choose a shorter name"),
}
_ELSEWHERE = mark("save somewhere else")


def _refused(path: Path, error: Exception) -> DiagnosticError:
    number = error.errno if isinstance(error, OSError) else None
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DiagnosticError.of(
        "cannot-save",
        tr("{path} cannot be saved: {reason}; nothing on disk was changed", path=path, reason=reason),
        file=str(path),
        remedy=tr_data(_REMEDIES.get(number or 0, _ELSEWHERE)),
    )
