"""Ends and bounds of all links, without creating items for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import hypot

import numpy as np
from PySide6.QtCore import QRectF

from app.ui.canvas.layer_index import LayerIndex
from app.ui.canvas.links import LinkItem
from app.ui.canvas.obstacles import CROWD, DETOUR, LONG
from app.ui.canvas.rect_index import RectIndex
from designer.graph.model import Source
from designer.graph.routes import Points

Key = tuple[str, int]  # the consumer and the index of its input
BOW = 220.0  # how far a backward link extends beyond its ends
BULGE = 0.3  # how far the curve between two points can extend beyond them, of their distance
SLACK = 64.0  # nodes can grow by this much before the bounds of their links are updated
ROOM = 4  # layers that are not measured yet may be this many times as many: their estimated sizes are generous
End = tuple[float, float]


class LinkEntry:
    """One link, with its item if it has one."""

    __slots__ = ("item", "key", "source")

    def __init__(self, key: Key, source: Source) -> None:
        self.key = key
        self.source = source
        self.item: LinkItem | None = None


class LinkIndex:
    """All links between layers that exist."""

    def __init__(self, layers: LayerIndex, points: Callable[[Key], Points] = lambda key: ()) -> None:
        self._layers = layers
        self.points = points  # the reroute points of a link
        self._edges: dict[Key, LinkEntry] = {}
        self._out: dict[str, set[Key]] = {}
        self._in: dict[str, set[Key]] = {}
        self._index: RectIndex[Key] = RectIndex()
        self._long: set[LinkItem] = set()  # items that may have to be routed around nodes

    def __iter__(self) -> Iterator[LinkEntry]:
        return iter(self._edges.values())

    def __len__(self) -> int:
        return len(self._edges)

    def get(self, key: Key) -> LinkEntry | None:
        return self._edges.get(key)

    def put(self, key: Key, source: Source) -> LinkEntry:
        """Add a link between layers that exist; call `fit` afterwards."""
        edge = self._edges[key] = LinkEntry(key, source)
        self._out.setdefault(source.layer, set()).add(key)
        self._in.setdefault(key[0], set()).add(key)
        return edge

    def drop(self, edge: LinkEntry) -> None:
        """Remove a link, whose item must be removed already."""
        del self._edges[edge.key]
        self._out[edge.source.layer].discard(edge.key)
        self._in[edge.key[0]].discard(edge.key)
        self._index.drop(edge.key)

    def of(self, name: str) -> list[LinkEntry]:
        """The links into and out of a layer."""
        return [self._edges[key] for key in sorted(self.into(name) | self.leaving(name))]

    def into(self, name: str) -> set[Key]:
        """The links that end at a layer."""
        return self._in.get(name, set())

    def leaving(self, name: str) -> set[Key]:
        """The links that start at a layer."""
        return self._out.get(name, set())

    def fit(self, edges: Iterable[LinkEntry]) -> None:
        """Update the bounds of links: areas that certainly contain them, computed without their items."""
        edges = list(edges)
        if not edges:
            return
        source = self._layers.bounds([edge.source.layer for edge in edges])
        target = self._layers.bounds([edge.key[0] for edge in edges])
        gap = target[:, 0] - source[:, 2]
        areas = np.hstack([np.minimum(source, target)[:, :2], np.maximum(source, target)[:, 2:]])
        areas[gap < 0] += (-BOW, 0, BOW, 0)  # backwards
        areas[gap + 16 >= LONG] += (0, -DETOUR, 0, DETOUR)  # around nodes in between
        keys = [edge.key for edge in edges]
        for row, points in enumerate(map(self.points, keys)):
            for x, y in points:
                left, top, right, bottom = areas[row]
                areas[row] = min(left, x), min(top, y), max(right, x), max(bottom, y)
            if points:
                left, top, right, bottom = areas[row]
                bulge = BULGE * hypot(right - left, bottom - top)
                areas[row] += (-bulge, -bulge, bulge, bulge)
        areas += (-SLACK, -SLACK, SLACK, SLACK)
        self._index.put_all(keys, areas)

    def near(self, area: QRectF) -> list[LinkEntry]:
        """The links that may cross an area."""
        keys = self._index.within(area.left(), area.top(), area.right(), area.bottom())
        return [self._edges[key] for key in keys]

    def count_near(self, area: QRectF) -> int:
        """The number of links that may cross an area."""
        return self._index.count(area.left(), area.top(), area.right(), area.bottom())

    def ends(self, edge: LinkEntry) -> tuple[End, End] | None:
        """The start and end points of a link, or None if one of its ports does not exist."""
        start = self._layers[edge.source.layer].output_place(edge.source.port)
        end = self._layers[edge.key[0]].input_place(edge.key[1])
        return (start, end) if start is not None and end is not None else None

    def inner(self, edge: LinkEntry) -> bool:
        """Whether both ends of a link are in the same collapsed frame, which hides it."""
        frame = self._layers[edge.source.layer].folded
        return frame is not None and frame is self._layers[edge.key[0]].folded

    # --- routing of items ------------------------------------------------------------------------------------

    def route(self, link: LinkItem) -> float | None:
        """The y of the lane that leads a link around the nodes between its ends, or None for a direct link."""
        start, end = link.source.center(), link.target.center()
        if end.x() - start.x() < LONG:
            self._long.discard(link)
            return None
        self._long.add(link)
        top, bottom = min(start.y(), end.y()) - DETOUR, max(start.y(), end.y()) + DETOUR
        if self._layers.stale:
            near = self._layers.near(QRectF(start.x(), top, end.x() - start.x(), bottom - top))
            if len(near) > ROOM * CROWD:
                return None
            for name in near:
                self._layers.measured(name)
        ends = (link.source.node.layer, link.target.node.layer)
        return self._layers.obstacles.lane((start.x(), start.y()), (end.x(), end.y()), *ends)

    def redraw(self) -> None:
        """Redraw all items."""
        for edge in self:
            if edge.item is not None:
                edge.item.redraw()

    def unroute(self, link: LinkItem) -> None:
        """Forget the item of a link."""
        self._long.discard(link)

    def reroute(self) -> None:
        """Redraw the links that pass where nodes were added, removed or moved."""
        placed, self._layers.placed = self._layers.placed, []
        if not placed:
            return
        left, right = min(r.left for r in placed), max(r.right for r in placed)
        for link in list(self._long):
            if link.source.center().x() < right and link.target.center().x() > left:
                link.redraw()
