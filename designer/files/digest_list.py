"""Lists of SHA-256 digests in the user's data folder: what the user agreed to, and what this program built."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from designer.files.atomic import write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

MAX_BYTES = 1 << 20  # size limit of a list
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def list_path(name: str) -> Path:
    """The list called `name`, one digest per line. Deleting the file empties it."""
    from platformdirs import user_data_path

    return user_data_path("layerwright") / f"{name}.txt"


def is_digest(text: str) -> bool:
    return _DIGEST.match(text) is not None


def read_digests(path: Path) -> frozenset[str]:
    """The digests of a list; none if it cannot be read."""
    try:
        with path.open("rb") as stream:
            lines = stream.read(MAX_BYTES).decode("ascii", "replace").split()
    except OSError:
        return frozenset()
    return frozenset(line for line in lines if is_digest(line))


def add_digests(path: Path, digests: Iterable[str]) -> None:
    """Add digests to a list. Raises DiagnosticError ("cannot-save")."""
    known = read_digests(path)
    fresh = frozenset(digests) - known
    if not fresh:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message = tr("{parent} cannot be created: {strerror}", parent=path.parent, strerror=error.strerror or error)
        raise DiagnosticError.of(
            "cannot-save", message, file=str(path), remedy=tr("check the permissions of your data folder")
        ) from error
    write_atomic(path, "".join(f"{line}\n" for line in sorted(known | fresh)).encode("ascii"), private=True)
