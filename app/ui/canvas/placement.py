"""Placement of added layers: clear of others, after their producers, with room made for their consumers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QPointF, QRectF

from app.ui.canvas.projection import Projection
from designer.graph.arrangement import GAP, make_room, on_grid
from designer.graph.commands import move_layers
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import GRID

AIR = 1.0 * GRID  # space between unconnected layers
TRIES = 100  # positions tried to find a free one


def settle(
    graph: Graph, projection: Projection, names: Sequence[str], center: QPointF | None = None, *, free: bool = True
) -> Edit:
    """Move layers that were just added to a free place.

    They are centered on `center` if given. A single layer is placed after its producers. With `free`, they move down until they
    cover no other layer; layers that depend on them move right instead.
    """
    added = set(names)
    rect = _union(projection, names)
    start = rect.topLeft()
    if center is not None:
        rect.moveCenter(center)
    if len(names) == 1:
        before = [n for n in graph[names[0]].producers() if n in graph]
        rect.moveLeft(max([rect.left(), *(projection.entry(n).box().right() + GAP for n in before)]))
    _snap(rect, start)
    behind = graph.downstream(names) - added
    if free:
        _move_down(projection, rect, added | behind)
        _snap(rect, start, up=True)
    run = rect.topLeft() - start
    places = {n: on_grid(*(projection.entry(n).pos() + run).toTuple()) for n in names}
    return move_layers(graph, places).then(_room(graph, projection, rect, added, behind))


def free_rect(projection: Projection, rect: QRectF) -> QRectF:
    """A rectangle moved down until it covers no layer."""
    free = QRectF(rect)
    _move_down(projection, free, ())
    _snap(free, rect.topLeft(), up=True)
    return free


def _union(projection: Projection, names: Sequence[str]) -> QRectF:
    rect = QRectF()
    for name in names:
        rect = rect.united(projection.entry(name).box())
    return rect


def _snap(rect: QRectF, start: QPointF, *, up: bool = False) -> None:
    """Round the distance from `start` to whole grid steps."""
    x, y = on_grid(*(rect.topLeft() - start).toTuple())
    if up and start.y() + y < rect.top():
        y += GRID
    rect.moveTopLeft(start + QPointF(x, y))


def _move_down(projection: Projection, rect: QRectF, ignored: Collection[str]) -> None:
    for _ in range(TRIES):
        area = rect.adjusted(-AIR, -AIR, AIR, AIR)
        below = [projection.entry(n).area().bottom() for n in projection.within(area) if n not in ignored]
        if not below:
            return
        rect.moveTop(max(below) + AIR)


def _room(graph: Graph, projection: Projection, rect: QRectF, added: set[str], behind: set[str]) -> Edit:
    """Move the layers of `behind` to the right if one of them overlaps `rect`."""
    readers = {c for n in added for c in graph.consumers(n)} - added
    area = rect.adjusted(0, -AIR, GAP, AIR)
    blocking = {*readers, *(n for n in projection.within(area) if n in behind)}
    run = max((rect.right() + GAP - projection.entry(n).box().left() for n in blocking), default=0.0)
    if run <= 0:
        return make_room(graph, (), 0, {})
    held = {frame: set(projection.held(frame)) - added for frame in graph.frames}
    return make_room(graph, {n for n in behind if projection.entry(n).pos().x() >= rect.left()} | readers, run, held)
