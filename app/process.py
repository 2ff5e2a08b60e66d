"""Processes of the program: `python -P process.py MODULE ARGUMENT ...` runs one of our modules in a process of its own.

Our packages come first on the path of that process, whatever the working folder, `PYTHONPATH` or other installed projects
hold under the same names.
"""

from __future__ import annotations

import atexit
import gc
import runpy
import sys
from pathlib import Path


def module_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs `module`, for instance `app.engine.worker`."""
    return [sys.executable, "-P", str(Path(__file__).resolve()), module, *arguments]


def leave_memory_at_exit() -> None:
    """At the end of this process leave its memory to the system.

    Otherwise Python looks for what it can delete: 0.4 s if PyTorch was imported, 0.8 s with the parts that trace a module.
    """
    atexit.register(gc.freeze)  # first registered, last called


if __name__ == "__main__":
    leave_memory_at_exit()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
