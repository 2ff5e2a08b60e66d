"""Whether the file of an open document is still the one that was read or written here."""

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
    """What a document's file was when it was read or written here."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self.digest = digest
        self._accepted = digest  # of what the person was told about and decided to let be
        self._gone = False  # the person was told that there is no file any more
        self._looked: tuple[int, ...] | None = None  # the file's marks when it was read last
        self._known = False  # whether it was known then

    def state(self) -> Disk:
        """The file now. It is read again only when its time, size or identity are others than they were."""
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

    def accept(self, digest: str = "") -> None:
        """The file counts as known: as it is now, or as the bytes with this digest."""
        self._looked = None
        try:
            self._accepted = digest or _digest(self.path, os.stat(self.path))
        except (OSError, ValueError):
            self._gone = True


def _digest(path: Path, info: os.stat_result) -> str:
    """Of the file's bytes; empty for what cannot be a document: too large, or a pipe, which would be waited for."""
    readable = stat.S_ISREG(info.st_mode) and info.st_size <= limits.MAX_DOCUMENT_BYTES
    return digest_of(path.read_bytes()) if readable else ""
