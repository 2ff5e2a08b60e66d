"""Paths that a person typed, or that a document names."""

from __future__ import annotations

import os
from pathlib import Path


def typed_path(text: str) -> Path:
    """What was typed, with ~ as the home folder. `Path.expanduser` raises where ~name is nobody's: here that is a name."""
    return Path(os.path.expanduser(text.strip()))


def taken(path: Path) -> bool:
    """Whether a file is there that writing would replace; never raises, whatever was typed."""
    return os.path.lexists(path) and not os.path.isdir(path)
