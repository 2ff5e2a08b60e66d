"""Layerwright: design, train and analyze neural networks for images.

This package is the only one that an installation adds. Importing it changes nothing in the importing process; `main` starts
the program. The program's own packages (`app`, `designer`, `resources`, ...) are inside this folder or, in a source tree,
in its root. They are importable in the program's processes only, so they do not conflict with another project's `app`.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

__all__ = ["__version__", "main"]

__version__ = version("layerwright")


def main() -> None:
    """Start the window, or the command named on the command line."""
    import sys

    here = Path(__file__).resolve().parent
    rooms = here if (here / "app").is_dir() else here.parents[2]
    sys.path.insert(0, str(rooms))

    from app.main import main as start

    start()
