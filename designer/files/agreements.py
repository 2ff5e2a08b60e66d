"""Which sources of custom layers the person agreed to run: digests in their own data folder, never in a document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from designer.files.atomic import write_atomic
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.code_text import digest

MAX_BYTES = 1 << 20  # more agreements than anybody reads
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def agreements_path() -> Path:
    """One SHA-256 a line; deleting the file takes all agreements back."""
    from platformdirs import user_data_path

    return user_data_path("layerwright") / "agreed-sources.txt"


def agreed() -> frozenset[str]:
    """The digests of all texts that the person agreed to; what cannot be read agrees to nothing."""
    try:
        with agreements_path().open("rb") as stream:
            lines = stream.read(MAX_BYTES).decode("ascii", "replace").split()
    except OSError:
        return frozenset()
    return frozenset(line for line in lines if is_digest(line))


def is_digest(text: str) -> bool:
    return _DIGEST.match(text) is not None


def agree(texts: Iterable[str]) -> None:
    """Remember that the person agreed to these very texts. Raises DiagnosticError ("cannot-save")."""
    known = agreed()
    fresh = {digest(text) for text in texts} - known
    if not fresh:
        return
    path = agreements_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message = f"{path.parent} could not be made: {error.strerror or error}"
        raise DiagnosticError(
            Diagnostic("cannot-save", message, file=str(path), remedy="check the rights of your data folder")
        ) from error
    write_atomic(path, "".join(f"{line}\n" for line in sorted(known | fresh)).encode("ascii"))
