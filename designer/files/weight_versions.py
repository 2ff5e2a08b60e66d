"""Versions of weights that edits have made. They are files in the user's data folder until the user saves them elsewhere."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

_MARK = " edited "


def weight_versions() -> Path:
    """The folder of the versions. Nothing deletes them while a document could name them."""
    from platformdirs import user_data_path

    return user_data_path("layerwright") / "weight-versions"


def version_path(folder: Path, weights: Path) -> Path:
    """A new file in `folder` for an edit of the weights in `weights`."""
    return folder / f"{weights.stem.partition(_MARK)[0]}{_MARK}{uuid4().hex[:8]}.safetensors"


def is_version(weights: Path) -> bool:
    """Whether `weights` is a version that was not saved elsewhere."""
    return weights.parent == weight_versions()
