"""Whether the file of an open document is still the one that was read or written here."""

from __future__ import annotations

import os
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
            found = "" if info.st_size > limits.MAX_DOCUMENT_BYTES else digest_of(self.path.read_bytes())
        except (OSError, ValueError):
            return "same" if self._gone else "gone"
        self._looked, self._known, self._gone = marks, found in (self.digest, self._accepted), False
        return "same" if self._known else "changed"

    def accept(self, digest: str = "") -> None:
        """The file counts as known: as it is now, or as the bytes with this digest."""
        self._looked = None
        try:
            self._accepted = digest or digest_of(self.path.read_bytes())
        except (OSError, ValueError):
            self._gone = True
