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
        self._looked: tuple[int, ...] | None = None  # the file's marks when it was found to be the same

    def state(self) -> Disk:
        """The file now. It is read again only when its time, size or identity are others than they were."""
        try:
            info = os.stat(self.path)
            marks = (info.st_mtime_ns, info.st_size, info.st_ino, info.st_dev)
            if marks == self._looked:
                return "same"
            if info.st_size > limits.MAX_DOCUMENT_BYTES:
                return "changed"
            data = self.path.read_bytes()
        except (OSError, ValueError):
            return "gone"
        if digest_of(data) != self.digest:
            self._looked = None
            return "changed"
        self._looked = marks
        return "same"

    def accept(self) -> None:
        """The file as it is now counts as known: the person decided to keep what is open."""
        try:
            self.digest = digest_of(self.path.read_bytes())
        except (OSError, ValueError):
            self.digest = ""
        self._looked = None
