"""Document locations: the included samples, which are never overwritten, and the start folder of dialogs."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import samples


def sample_files() -> tuple[Path, ...]:
    """The included sample documents, the default one first."""
    return tuple(samples.documents())


def is_sample(path: Path) -> bool:
    """Whether a document is an included sample, next to which no files are written."""
    return resolved(path) in _resolved_samples()


def resolved(path: Path) -> Path:
    """The absolute path with links resolved. Unlike `Path.resolve`, does not raise RuntimeError for cyclic links."""
    return Path(os.path.realpath(path))


@lru_cache(maxsize=1)
def _resolved_samples() -> frozenset[Path]:
    return frozenset(resolved(path) for path in sample_files())


def start_folder(document: Path | None) -> Path:
    """The start folder of a file dialog: the document's folder, or the user's home."""
    return resolved(document).parent if document is not None and not is_sample(document) else Path.home()
