"""A text file that another process appends lines to."""

from __future__ import annotations

from pathlib import Path


class GrowingFile:
    """Reads complete lines as they are appended. An incomplete last line is left for the next `read`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._inode = 0

    def read(self) -> tuple[bool, list[bytes]]:
        """Whether the file is another one than before, and its new lines without their ends. Raises OSError."""
        info = self.path.stat()
        restarted = info.st_ino != self._inode or info.st_size < self._offset
        if restarted:
            self._inode, self._offset = info.st_ino, 0
        if info.st_size == self._offset:
            return restarted, []
        with self.path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read(info.st_size - self._offset)
        end = data.rfind(b"\n") + 1
        self._offset += end
        return restarted, data[:end].splitlines()
