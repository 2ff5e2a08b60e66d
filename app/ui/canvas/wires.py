"""What the canvas knows of links without items for them: from where to where, and whether they cross an area."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QRectF

from app.ui.canvas.links import LinkItem
from app.ui.canvas.rect_index import RectIndex
from app.ui.canvas.routing import DETOUR, LONG
from app.ui.canvas.spots import Spots
from designer.graph.model import Source
from designer.graph.routes import Points

Key = tuple[str, int]  # the consumer and the index of its input
BOW = 220.0  # how far a link that runs backwards reaches beyond its ends
SLACK = 64.0  # nodes grow a little without their links being looked at again
End = tuple[float, float]


class Wire:
    """One link, with its item where there is one."""

    __slots__ = ("item", "key", "source")

    def __init__(self, key: Key, source: Source) -> None:
        self.key = key
        self.source = source
        self.item: LinkItem | None = None


class Wires:
    """All links between layers that exist."""

    def __init__(self, spots: Spots, points: Callable[[Key], Points] = lambda key: ()) -> None:
        self._spots = spots
        self.points = points  # that a person lets a link run through
        self._wires: dict[Key, Wire] = {}
        self._out: dict[str, set[Key]] = {}
        self._in: dict[str, set[Key]] = {}
        self._index: RectIndex[Key] = RectIndex()
        self._long: set[LinkItem] = set()  # those that may have to run around nodes

    def __iter__(self) -> Iterator[Wire]:
        return iter(self._wires.values())

    def __len__(self) -> int:
        return len(self._wires)

    def get(self, key: Key) -> Wire | None:
        return self._wires.get(key)

    def put(self, key: Key, source: Source) -> Wire:
        wire = self._wires[key] = Wire(key, source)
        self._out.setdefault(source.layer, set()).add(key)
        self._in.setdefault(key[0], set()).add(key)
        self.fit(wire)
        return wire

    def drop(self, wire: Wire) -> None:
        """Forget a link, which has no item any more."""
        del self._wires[wire.key]
        self._out[wire.source.layer].discard(wire.key)
        self._in[wire.key[0]].discard(wire.key)
        self._index.drop(wire.key)

    def of(self, name: str) -> list[Wire]:
        """The links into and out of a layer."""
        return [self._wires[key] for key in sorted(self.into(name) | self.leaving(name))]

    def into(self, name: str) -> set[Key]:
        """The links that end at a layer."""
        return self._in.get(name, set())

    def leaving(self, name: str) -> set[Key]:
        """The links that start at a layer."""
        return self._out.get(name, set())

    def fit(self, wire: Wire) -> None:
        """Note where a link may run: at least all that it covers, as it can be told without its item."""
        if wire.source.layer not in self._spots or wire.key[0] not in self._spots:
            return
        source, target = self._spots[wire.source.layer].bounds(), self._spots[wire.key[0]].bounds()
        left, right = min(source[0], target[0]), max(source[2], target[2])
        top, bottom = min(source[1], target[1]), max(source[3], target[3])
        if target[0] < source[2]:  # backwards
            left, right = left - BOW, right + BOW
        elif target[0] - source[2] + 16 >= LONG:  # around nodes that stand between
            top, bottom = top - DETOUR, bottom + DETOUR
        for x, y in self.points(wire.key):
            left, right = min(left, x), max(right, x)
            top, bottom = min(top, y), max(bottom, y)
        self._index.put(wire.key, left - SLACK, top - SLACK, right + SLACK, bottom + SLACK)

    def near(self, area: QRectF) -> list[Wire]:
        """The links that may run through an area."""
        keys = self._index.within(area.left(), area.top(), area.right(), area.bottom())
        return [self._wires[key] for key in keys]

    def count_near(self, area: QRectF) -> int:
        """How many links may run through an area."""
        return self._index.count(area.left(), area.top(), area.right(), area.bottom())

    def ends(self, wire: Wire) -> tuple[End, End] | None:
        """Where a link starts and ends, None when one of its ports does not exist."""
        start = self._spots[wire.source.layer].output_place(wire.source.port)
        end = self._spots[wire.key[0]].input_place(wire.key[1])
        return (start, end) if start is not None and end is not None else None

    def inner(self, wire: Wire) -> bool:
        """Whether one collapsed frame stands for both ends of a link, so that it is not seen."""
        frame = self._spots[wire.source.layer].folded
        return frame is not None and frame is self._spots[wire.key[0]].folded

    # --- where the items of links run ------------------------------------------------------------------------

    def route(self, link: LinkItem) -> float | None:
        """The height along which a link runs around the nodes between its ends; None: directly."""
        start, end = link.source.centre(), link.target.centre()
        if end.x() - start.x() < LONG:
            self._long.discard(link)
            return None
        self._long.add(link)
        top, bottom = min(start.y(), end.y()) - DETOUR, max(start.y(), end.y()) + DETOUR
        if self._spots.stale:
            for name in self._spots.near(QRectF(start.x(), top, end.x() - start.x(), bottom - top)):
                self._spots.measured(name)
        ends = (link.source.node.layer, link.target.node.layer)
        return self._spots.obstacles.lane((start.x(), start.y()), (end.x(), end.y()), *ends)

    def redraw(self) -> None:
        """Draw all items anew."""
        for wire in self:
            if wire.item is not None:
                wire.item.redraw()

    def unroute(self, link: LinkItem) -> None:
        """The item of a link goes."""
        self._long.discard(link)

    def reroute(self) -> None:
        """Draw the items again of links that pass where nodes came, went or moved."""
        placed, self._spots.placed = self._spots.placed, []
        if not placed:
            return
        left, right = min(r.left for r in placed), max(r.right for r in placed)
        for link in list(self._long):
            if link.source.centre().x() < right and link.target.centre().x() > left:
                link.redraw()
