"""Frozen layers keep their weights in training. Inference, analysis and files do not depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import FROZEN, Layer
from designer.texts import tr


def freeze(graph: Graph, names: Sequence[str]) -> Edit:
    """Freeze layers, or unfreeze them if all of them are frozen."""
    on = not all(graph[name].frozen for name in names)
    edits = {name: (graph[name], _frozen(graph[name], on)) for name in names}
    what = names[0] if len(names) == 1 else f"{len(names)} layers"
    return Edit(tr("Freeze {what}", what=what) if on else tr("Unfreeze {what}", what=what), edits)


def _frozen(layer: Layer, on: bool) -> Layer:
    kept = {key: value for key, value in layer.attributes.items() if key != FROZEN}
    return replace(layer, attributes={**kept, FROZEN: "true"} if on else kept)
