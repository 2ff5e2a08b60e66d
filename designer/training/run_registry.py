"""The runs that were started on this machine: one small file per run in the user's data folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from designer.files.atomic import make_folder, write_atomic

MAX_BYTES = 1 << 16


class KnownRun(Struct, frozen=True):
    """A run, and the document that it trains; empty for a document that was never saved."""

    folder: str
    document: str = ""


def registry_folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("layerwright") / "training-runs"


def remember(folder: Path, document: Path | None) -> None:
    """Add a run, so that it is found after the window was closed. Raises DiagnosticError ("cannot-save")."""
    make_folder(registry_folder())
    record = KnownRun(str(folder), str(document) if document is not None else "")
    write_atomic(_entry(folder), msgspec.json.encode(record))


def forget(folder: Path) -> None:
    """Remove a run from the list; its folder stays."""
    with contextlib.suppress(OSError):
        _entry(folder).unlink()


def known_runs() -> list[KnownRun]:
    """The runs, without entries that cannot be read."""
    found = []
    with contextlib.suppress(OSError), os.scandir(registry_folder()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError, ValueError, RecursionError), open(entry.path, "rb") as stream:
                found.append(msgspec.json.decode(stream.read(MAX_BYTES), type=KnownRun))
    return sorted(found, key=lambda run: run.folder)


def _entry(folder: Path) -> Path:
    return registry_folder() / f"{hashlib.sha256(str(folder).encode('utf-8', 'surrogatepass')).hexdigest()[:24]}.json"
