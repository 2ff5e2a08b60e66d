"""Files that are locked for as long as their process lives: what is not locked was left behind."""

from __future__ import annotations

import os
import sys

_AT = (1 << 31) - 2  # where Windows locks, whose C runtime counts in 32 bits: far behind what others read of such files


def lock(stream: int) -> bool:
    """Lock a file for this process until `stream` is closed; False when another one has it."""
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
