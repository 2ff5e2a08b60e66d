"""Routing of links around nodes: direct if nothing is in between, else along a free lane above or below."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import NamedTuple

from app.ui.canvas.rect_index import RectIndex

DETOUR = 960.0  # maximum distance of a lane above or below the ends of its link
LONG = 200.0  # shorter links never pass a node
ABOVE, BELOW = 14.0, 10.0  # space between a lane and the nodes below or above it
RAMP = 56.0  # horizontal length of the curve from a lane to an end
CANDIDATES = 24
CROWD = 400  # links that pass more nodes than this are drawn directly
SAMPLES = 12


class Rect(NamedTuple):
    """The box of a node in canvas units, with the shape text below it."""

    left: float
    top: float
    right: float
    bottom: float


class Obstacles:
    """A spatial index of the boxes of all nodes."""

    def __init__(self) -> None:
        self._rects: dict[Hashable, Rect] = {}
        self._index: RectIndex[Hashable] = RectIndex()

    def put(self, key: Hashable, rect: Rect) -> Rect | None:
        """Set the box of a node. Returns its previous box."""
        old = self._rects.get(key)
        if old != rect:
            self._rects[key] = rect
            self._index.put(key, *rect)
        return old

    def drop(self, key: Hashable) -> Rect | None:
        """Remove a node. Returns its box."""
        self._index.drop(key)
        return self._rects.pop(key, None)

    def within(self, area: Rect, *others: Hashable) -> list[Rect]:
        """The boxes that intersect an area, except those of `others`."""
        left, top, right, bottom = area
        found = [self._rects[key] for key in self._index.within(*area) if key not in others]
        return [r for r in found if r[2] > left and r[0] < right and r[3] > top and r[1] < bottom]

    def lane(self, start: tuple[float, float], end: tuple[float, float], *ends: Hashable) -> float | None:
        """The y of the lane for a link from `start` to `end`, or None for a direct link. `ends` are the keys of its two nodes."""
        if end[0] - start[0] < LONG:
            return None
        top, bottom = min(start[1], end[1]), max(start[1], end[1])
        in_the_way = self.within(Rect(start[0], top - 2, end[0], bottom + 2), *ends)
        if not in_the_way or _free(_direct(start, end), in_the_way):
            return None
        low, top, bottom = bottom, top - DETOUR, bottom + DETOUR
        near = self.within(Rect(start[0], top, end[0], bottom), *ends)
        if len(near) > CROWD:
            return None
        candidates = {start[1], end[1], *(r.top - ABOVE for r in near), *(r.bottom + BELOW for r in near)}
        # Deeper layers are further down, so a lane below crosses more of their links than one above.
        best = sorted(
            (abs(y - start[1]) + abs(y - end[1]) + max(0.0, 2 * (y - low)), y) for y in candidates if top < y < bottom
        )
        return next((y for _, y in best[:CANDIDATES] if _free(_along(start, end, y), near)), None)


Line = list[tuple[float, float]]


def reach(dx: float) -> float:
    """The length of the control arms of a direct link that runs to the right."""
    return max(24.0, min(abs(dx) * 0.5, 160.0))


def _direct(start: tuple[float, float], end: tuple[float, float]) -> Line:
    return _bow(start, end, reach(end[0] - start[0]))


def _along(start: tuple[float, float], end: tuple[float, float], lane: float) -> Line:
    ramp = ramp_of(end[0] - start[0])
    first = _bow(start, (start[0] + ramp, lane), ramp / 2) if lane != start[1] else [start]
    last = _bow((end[0] - ramp, lane), end, ramp / 2) if lane != end[1] else [end]
    return [*first, *last]


def ramp_of(dx: float) -> float:
    """The horizontal distance from its ends at which a link that spans `dx` reaches its lane."""
    return min(RAMP, dx / 2)


def _bow(start: tuple[float, float], end: tuple[float, float], arm: float) -> Line:
    """Points of a curve that starts and ends horizontally."""
    points = []
    for step in range(SAMPLES + 1):
        t = step / SAMPLES
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        x = a * start[0] + b * (start[0] + arm) + c * (end[0] - arm) + d * end[0]
        points.append((x, (a + b) * start[1] + (c + d) * end[1]))
    return points


def _free(line: Line, rects: list[Rect]) -> bool:
    """Whether a line that runs to the right misses all boxes."""
    top = min(y for _, y in line)
    bottom = max(y for _, y in line)
    return not any(r.bottom > top - 2 and r.top < bottom + 2 and _meets(line, r) for r in rects)


def _meets(line: Line, rect: Rect) -> bool:
    for (x1, y1), (x2, y2) in pairwise(line):
        if x2 <= rect.left or x1 >= rect.right:
            continue
        width = x2 - x1
        at = (
            [y1, y2]
            if width <= 0
            else [y1 + (y2 - y1) * (min(max(x, x1), x2) - x1) / width for x in (rect.left, rect.right)]
        )
        if max(at) > rect.top - 2 and min(at) < rect.bottom + 2:
            return True
    return False
