"""Paths typed by the user or stored in a document."""

from __future__ import annotations

import os
from pathlib import Path


def typed_path(text: str) -> Path:
    """The typed path with ~ expanded. Unlike `Path.expanduser`, does not raise for ~name of an unknown user."""
    return Path(os.path.expanduser(text.strip()))


def taken(path: Path) -> bool:
    """Whether writing would overwrite an existing file. Never raises."""
    return os.path.lexists(path) and not os.path.isdir(path)
