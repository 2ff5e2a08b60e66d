"""Keeps freed memory of tensors in the process, on Linux with glibc.

By default glibc returns the top of the heap to the system as soon as a few tensors are freed, and each layer then waits for fresh pages:
half of the time of networks with tensors of some 10 MiB.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
KEPT = 256 << 20  # bytes
LARGEST = 32 << 20  # the largest threshold that glibc accepts; larger tensors are returned at once


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Whether the memory is kept. Applies to the process, once."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return mallopt is not None and bool(mallopt(M_TRIM_THRESHOLD, KEPT) and mallopt(M_MMAP_THRESHOLD, LARGEST))
