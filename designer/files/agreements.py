"""Approved sources of custom layers: SHA-256 digests in the user's data folder, never in a document."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path

from designer.files.atomic import write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.code_text import digest
from designer.operators.library.development.custom import Custom
from designer.operators.registry import Registry
from designer.texts import tr

MAX_BYTES = 1 << 20  # size limit of the list
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def agreements_path() -> Path:
    """The list of approvals, one SHA-256 per line. Deleting the file revokes all of them."""
    from platformdirs import user_data_path

    return user_data_path("layerwright") / "agreed-sources.txt"


def agreed() -> frozenset[str]:
    """The digests of all approved sources; empty if the list cannot be read."""
    try:
        with agreements_path().open("rb") as stream:
            lines = stream.read(MAX_BYTES).decode("ascii", "replace").split()
    except OSError:
        return frozenset()
    return frozenset(line for line in lines if is_digest(line))


def is_digest(text: str) -> bool:
    return _DIGEST.match(text) is not None


def not_agreed(graph: Graph, registry: Registry, known: Collection[str] | None = None) -> dict[str, str]:
    """What layers of `graph` and its templates would run and is not in `known` (by default: never agreed to) -> a layer.

    Each text is a source with the call that makes the layer (`Custom.agreement`).
    """
    allowed = agreed() if known is None else known
    found: dict[str, str] = {}
    inside = (layer for template in graph.templates.values() for layer in template.layers)
    for layer in chain(graph, inside):
        operator = registry.read(layer).operator  # None where it breaks a rule: then it cannot run
        if isinstance(operator, Custom) and digest(text := operator.agreement) not in allowed:
            found.setdefault(text, layer.name)
    return found


def agree(texts: Iterable[str]) -> None:
    """Record that the user approved exactly these sources. Raises DiagnosticError ("cannot-save")."""
    known = agreed()
    fresh = {digest(text) for text in texts} - known
    if not fresh:
        return
    path = agreements_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message = tr("{parent} cannot be created: {strerror}", parent=path.parent, strerror=error.strerror or error)
        raise DiagnosticError.of(
            "cannot-save", message, file=str(path), remedy=tr("check the permissions of your data folder")
        ) from error
    write_atomic(path, "".join(f"{line}\n" for line in sorted(known | fresh)).encode("ascii"), private=True)
