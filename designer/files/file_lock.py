"""File locks that last as long as their process: an unlocked file was left by an ended one."""

from __future__ import annotations

import os
import sys

_AT = (1 << 31) - 2  # byte that Windows locks (32-bit offsets): far beyond the content that others read


def lock(stream: int) -> bool:
    """Lock a file until `stream` is closed. Returns False if another process holds the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(stream, _AT, os.SEEK_SET)
            msvcrt.locking(stream, msvcrt.LK_NBLCK, 1)
            os.lseek(stream, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
