"""Which process a process id refers to. The system reuses ids, so an id alone does not name a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def process_mark(pid: int) -> str | None:
    """A text that only this process has: when it started, in a form that changes of the clock do not affect.

    None if there is no such process, or if it has ended and only its exit status remains.
    """
    import psutil

    if pid <= 0:
        return None
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        if sys.platform == "linux":
            return _ticks(pid)
        return f"{process.create_time():.2f}"  # stored by the system when the process starts
    except (psutil.Error, OSError):
        return None


def _ticks(pid: int) -> str:
    """The start of a process in clock ticks since the machine started. psutil converts it to a time of day."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text('ascii').strip()}:{fields[19]}"


def runs_script(pid: int, script: str) -> bool:
    """Whether the process runs the Python file `script`, given by its name."""
    import psutil

    try:
        process = psutil.Process(pid)
        names = [os.path.basename(argument) for argument in process.cmdline()]
        return script in names and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False
