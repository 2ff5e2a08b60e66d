"""Paths of links: curved or at right angles; direct, along a lane, or through reroute points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainterPath

from app.ui.canvas.obstacles import ramp_of, reach

CURVED, ANGLED = "curved", "angled"
STYLES = (CURVED, ANGLED)
STUB = 24.0  # length of the first and last piece of an angled line
CORNER = 8.0  # radius
_current = [CURVED]  # for all canvases of the program, as the user chose it


def style() -> str:
    return _current[0]


def set_style(name: str) -> None:
    """Draw links curved or angled from now on. The caller redraws the items."""
    _current[0] = name if name in STYLES else CURVED


def link_path(
    start: QPointF, end: QPointF, lane: float | None = None, points: Sequence[QPointF] = (), shape: str = ""
) -> QPainterPath:
    """The path of a link in the current style, or in style `shape`. Points take precedence over a lane."""
    if (shape or style()) == ANGLED:
        return rounded(angled(start, end, lane, points))
    return through([start, *points, end]) if points else curve(start, end, lane)


def curve(start: QPointF, end: QPointF, lane: float | None = None) -> QPainterPath:
    """A path that leaves `start` to the right and reaches `end` from the left, along the y of a lane if given."""
    path = QPainterPath(start)
    dx, dy = end.x() - start.x(), end.y() - start.y()
    if lane is None:
        arm = reach(dx) if dx >= 0 else min(200.0, 48.0 + abs(dx) * 0.25 + abs(dy) * 0.1)
        path.cubicTo(start + QPointF(arm, 0), end - QPointF(arm, 0), end)
        return path
    ramp = ramp_of(dx)
    first, last = QPointF(start.x() + ramp, lane), QPointF(end.x() - ramp, lane)
    if lane != start.y():
        path.cubicTo(start + QPointF(ramp / 2, 0), first - QPointF(ramp / 2, 0), first)
    if lane == end.y():
        path.lineTo(end)
    else:
        path.lineTo(last)
        path.cubicTo(last + QPointF(ramp / 2, 0), end - QPointF(ramp / 2, 0), end)
    return path


def through(places: Sequence[QPointF]) -> QPainterPath:
    """A smooth path through points that leaves the first to the right and reaches the last from the left."""
    path = QPainterPath(places[0])
    runs = [QPointF(1, 0)]
    for before, after in zip(places, places[2:], strict=False):
        run = after - before
        length = max(1e-6, (run.x() ** 2 + run.y() ** 2) ** 0.5)
        runs.append(run / length)
    runs.append(QPointF(1, 0))
    for (a, b), (out, into) in zip(pairwise(places), pairwise(runs), strict=True):
        run = b - a
        arm = (run.x() ** 2 + run.y() ** 2) ** 0.5 * 0.4
        path.cubicTo(a + out * arm, b - into * arm, b)
    return path


def angled(start: QPointF, end: QPointF, lane: float | None = None, points: Sequence[QPointF] = ()) -> list[QPointF]:
    """The corners of a line of horizontal and vertical pieces that leaves and arrives to the right."""
    if points:
        first, last = points[0], points[-1]
        out = max(start.x() + STUB, (start.x() + first.x()) / 2)
        into = min(end.x() - STUB, (last.x() + end.x()) / 2)
        found = [start, QPointF(out, start.y()), QPointF(out, first.y()), first]
        for a, b in pairwise(points):
            x = (a.x() + b.x()) / 2
            found += [QPointF(x, a.y()), QPointF(x, b.y()), b]
        return [*found, QPointF(into, last.y()), QPointF(into, end.y()), end]
    if lane is not None:
        ramp = ramp_of(end.x() - start.x()) / 2
        one, other = start.x() + ramp, end.x() - ramp
        return [start, QPointF(one, start.y()), QPointF(one, lane), QPointF(other, lane), QPointF(other, end.y()), end]
    if end.x() < start.x() + 2 * STUB:
        middle, out, into = (start.y() + end.y()) / 2, start.x() + STUB, end.x() - STUB
        turns = [(out, start.y()), (out, middle), (into, middle), (into, end.y())]
        return [start, *(QPointF(*turn) for turn in turns), end]
    x = (start.x() + end.x()) / 2
    return [start, QPointF(x, start.y()), QPointF(x, end.y()), end]


def label_place(start: QPointF, end: QPointF, lane: float | None, points: Sequence[QPointF]) -> QPointF:
    """The position of a link's label: the middle of its longest piece."""
    if style() == ANGLED:
        pieces = angled(start, end, lane, points)
    elif points:
        pieces = [start, *points, end]
    else:
        middle = (start + end) / 2  # a curve's middle is that of its ends
        return QPointF(middle.x(), lane) if lane is not None else middle
    a, b = max(pairwise(pieces), key=lambda piece: (piece[1] - piece[0]).manhattanLength())
    return QPointF((a + b) / 2)


def rounded(places: Sequence[QPointF]) -> QPainterPath:
    """A path along corners, each rounded as far as there is room."""
    path = QPainterPath(places[0])
    for before, corner, after in zip(places, places[1:], places[2:], strict=False):
        first, second = before - corner, after - corner
        lengths = [(v.x() ** 2 + v.y() ** 2) ** 0.5 for v in (first, second)]
        room = min(CORNER, *(length / 2 for length in lengths))
        if room < 0.5:
            path.lineTo(corner)
            continue
        path.lineTo(corner + first * (room / lengths[0]))
        path.quadTo(corner, corner + second * (room / lengths[1]))
    path.lineTo(places[-1])
    return path
