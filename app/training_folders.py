"""Default folders of training projects and sweeps: next to the document; for samples, in the user's data folder."""

from __future__ import annotations

from pathlib import Path

import samples
from designer.training.trainer import project_folder


def default_project(document: Path | None, name: str) -> Path:
    """The folder of a document's project. Nothing is written next to a sample; `name` is for an unsaved document."""
    if document is not None and samples.includes(document):
        return project_folder(None, f"{document.stem}_sample")
    return project_folder(document, name)


def default_sweep(document: Path) -> Path:
    """The folder of a document's sweep."""
    if samples.includes(document):
        return project_folder(None, f"{document.stem}_sample_sweep")
    return document.with_name(f"{document.stem}_sweep")
