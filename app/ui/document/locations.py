"""Where documents are: the included samples, which are never written to, and the folder in which a dialog starts."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import samples


def sample_files() -> tuple[Path, ...]:
    """The included sample documents, the one to begin with first."""
    return tuple(samples.documents())


def is_sample(path: Path) -> bool:
    """Whether a document is an included sample; nothing is written next to it."""
    return resolved(path) in _resolved_samples()


def resolved(path: Path) -> Path:
    """The absolute path without links. `Path.resolve` raises RuntimeError where links go round in a circle."""
    return Path(os.path.realpath(path))


@lru_cache(maxsize=1)
def _resolved_samples() -> frozenset[Path]:
    return frozenset(resolved(path) for path in sample_files())


def start_folder(document: Path | None) -> Path:
    """Where a dialog starts that asks for a file: the document's folder, or the user's home."""
    return resolved(document).parent if document is not None and not is_sample(document) else Path.home()
