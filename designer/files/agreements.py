"""Approved sources of custom layers: SHA-256 digests in the user's data folder, never in a document."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path

from designer.files.digest_list import add_digests, list_path, read_digests
from designer.graph.graph import Graph
from designer.operators.code_text import digest
from designer.operators.library.development.custom import Custom
from designer.operators.registry import Registry


def agreements_path() -> Path:
    """The list of approvals. Deleting the file revokes all of them."""
    return list_path("agreed-sources")


def agreed() -> frozenset[str]:
    """The digests of all approved sources; empty if the list cannot be read."""
    return read_digests(agreements_path())


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
    add_digests(agreements_path(), (digest(text) for text in texts))
