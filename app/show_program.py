"""Opens the window on an exported program: `layerwright.show` runs this in a process of its own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main(name: str) -> int:
    """Run the window on the program, whose module is the caller's own, until it is closed; the exit status.

    The folder of the program is deleted then: `layerwright.show` made it.
    """
    from app.main import run_window

    try:
        return run_window([Path(name)], trusted=True)
    finally:
        shutil.rmtree(Path(name).parent, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
