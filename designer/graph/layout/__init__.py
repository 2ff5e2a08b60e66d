"""Automatic layout: layers in columns from left to right, few crossings, straight main paths.

A layered layout (Sugiyama et al. 1981): columns by the longest path, long links as chains of bends through the columns
between, the order within each column by barycenters, and heights by weighted medians that keep the distances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from designer.graph.graph import Graph
from designer.graph.layout.columns import LayeredNetwork, components, network
from designer.graph.layout.coordinates import LayerBox, Spacing, place
from designer.graph.layout.order import order_columns
from designer.graph.model import GRID

__all__ = ["LayerBox", "arrange"]

APART = 64.0  # between unconnected parts


def arrange(
    graph: Graph, boxes: Mapping[str, LayerBox], names: Iterable[str] | None = None
) -> dict[str, tuple[int, int]]:
    """Positions on the grid for `names` (default: all layers). The top left corner of their bounding box stays.

    `boxes` has the size of every layer in `names`. Backward links of a loop are ignored.
    """
    chosen = [n for n in (graph.layers if names is None else dict.fromkeys(names)) if n in graph]
    if not chosen:
        return {}
    left = min(graph[n].position[0] for n in chosen)
    top = min(graph[n].position[1] for n in chosen)
    levels = {name: boxes[name].level for name in chosen}
    result: dict[str, tuple[int, int]] = {}
    below = 0.0
    for members in components(graph, chosen):
        net = network(graph, members, levels)
        order_columns(net)
        places, height = _place(net, boxes)
        for name, (x, y) in places.items():
            result[name] = (left + _on_grid(x), top + _on_grid(y + below))
        below += height + APART
    return result


def _place(net: LayeredNetwork, boxes: Mapping[str, LayerBox]) -> tuple[dict[str, tuple[float, float]], float]:
    """Positions from (0, 0) on, and the total height."""
    places = place(net, boxes, Spacing())
    top = min(y for _, y in places.values())
    shifted = {name: (x, y - top) for name, (x, y) in places.items()}
    return shifted, max(y + boxes[name].height for name, (_, y) in shifted.items())


def _on_grid(value: float) -> int:
    return round(value / GRID) * GRID
