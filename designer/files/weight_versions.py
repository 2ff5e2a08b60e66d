"""Weights that edits and imports have made. They are files in the user's data folder until the user saves them elsewhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from uuid import uuid4

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

MOST = 10_000  # numbers that a free name is searched with

_MARK = " edited "


def weight_versions() -> Path:
    """The folder of the versions. Nothing deletes them while a document could name them."""
    from platformdirs import user_data_path

    return user_data_path("layerwright") / "weight-versions"


def version_path(folder: Path, weights: Path) -> Path:
    """A new file in `folder` for an edit of the weights in `weights`."""
    return folder / f"{weights.stem.partition(_MARK)[0]}{_MARK}{uuid4().hex[:8]}.safetensors"


def import_path(stem: str) -> Path:
    """A new file for the weights of the imported model `stem`, which is any text."""
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in stem)[:60]
    return weight_versions() / f"{name} imported {uuid4().hex[:8]}.safetensors"


def keep_next_to(document: Path, version: Path) -> Path:
    """Make the version a file of the user, next to their document and under a name that is free; the new file.

    Raises DiagnosticError ("cannot-save").
    """
    names = (f"{document.stem}{number}.safetensors" for number in ("", *(f"-{n}" for n in range(2, MOST))))
    target = next(path for name in names if not os.path.lexists(path := document.with_name(name)))
    try:
        try:
            os.link(version, target)  # takes no space; both names stay valid
        except OSError:  # another file system
            shutil.copyfile(version, target)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise DiagnosticError.of(
            "cannot-save",
            tr("the weights cannot be written to {target}: {reason}", target=target, reason=error.strerror or error),
            file=str(target),
            remedy=tr("free some space, or choose another folder"),
        ) from error
    return target


def is_version(weights: Path) -> bool:
    """Whether `weights` is a version that was not saved elsewhere."""
    return weights.parent == weight_versions()
