"""Layerwright: design, train and analyze neural networks for images.

This package is the only one that an installation adds. Importing it changes nothing in the importing process; `main` starts
the program. The program's own packages (`app`, `designer`, `resources`, ...) are inside this folder or, in a source tree,
in its root. They are importable in the program's processes only, so they do not conflict with another project's `app`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["__version__", "main", "show"]


def __getattr__(name: str) -> str:
    """`__version__`, looked up when it is read: importing the metadata takes 40 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("layerwright")


def rooms() -> Path:
    """The folder that contains the program's own packages."""
    here = Path(__file__).resolve().parent
    return here if (here / "app").is_dir() else here.parents[2]


def show(module: Any, *inputs: Any) -> Any:
    """Open the window on a live torch module, traced with example inputs: `layerwright.show(module, image)`.

    The window runs in a process of its own, which is returned; this process does not import Qt.
    """
    from layerwright.notebook import show as open_window

    return open_window(module, *inputs)


def main() -> None:
    """Start the window, or the command named on the command line."""
    import sys

    sys.path.insert(0, str(rooms()))

    from app.main import main as start

    start()
