"""Detects changes of an open document's file by other programs."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Literal

from designer.files import limits

Disk = Literal["same", "changed", "gone"]


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


class OnDisk:
    """The state of a document's file when it was last read or written here."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self.digest = digest
        self._accepted = digest  # digest of a change that the user dismissed
        self._gone = False  # the user was notified that the file was removed
        self._looked: tuple[int, ...] | None = None  # the file's stat values when it was last read
        self._known = False  # whether its content was known then

    def state(self) -> Disk:
        """The state of the file now. It is read again only if its time, size or identity changed."""
        try:
            info = os.stat(self.path)
            marks = (info.st_mtime_ns, info.st_size, info.st_ino, info.st_dev)
            if marks == self._looked:
                return "same" if self._known else "changed"
            found = _digest(self.path, info)
        except (OSError, ValueError):
            return "same" if self._gone else "gone"
        self._looked, self._known, self._gone = marks, found in (self.digest, self._accepted), False
        return "same" if self._known else "changed"

    def accept(self) -> None:
        """Treat the current file as known."""
        self._looked = None
        try:
            self._accepted = _digest(self.path, os.stat(self.path))
        except (OSError, ValueError):
            self._gone = True


def _digest(path: Path, info: os.stat_result) -> str:
    """The digest of the file's bytes; empty if it cannot be a document: too large, or not a regular file."""
    readable = stat.S_ISREG(info.st_mode) and info.st_size <= limits.MAX_DOCUMENT_BYTES
    return digest_of(path.read_bytes()) if readable else ""
