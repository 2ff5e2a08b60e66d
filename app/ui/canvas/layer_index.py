"""Positions and, on demand, looks of all layers, without creating items for them.

Items cost a third of a millisecond each, so they are created only near the view. Zoom to fit, the minimap, the far view,
keyboard navigation and the rubber band work on this index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QElapsedTimer, QObject, QPointF, QRectF, QTimer

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.node_layout import Layout, layout
from app.ui.canvas.node_look import NodeLook
from app.ui.canvas.obstacles import Obstacles, Rect
from app.ui.canvas.rect_index import RectIndex
from designer.graph.model import Layer

ROUGH_WIDTH, ROUGH_HEIGHT = 240.0, 120.0  # size of a layer that is not measured yet: a generous estimate
SLICE_MS = 6  # of measuring per event loop turn


class LayerEntry:
    """One layer. `look` and `layout` are those last measured; `exact` means that they are up to date."""

    __slots__ = ("exact", "folded", "layout", "look", "name", "rough", "x", "y")

    def __init__(self, name: str, x: float, y: float, rough: tuple[float, float]) -> None:
        self.name, self.x, self.y = name, x, y
        self.rough = rough  # the estimated width and height
        self.look: NodeLook | None = None
        self.layout: Layout | None = None
        self.exact = False
        self.folded: FrameItem | None = None  # the collapsed frame that contains it

    def pos(self) -> QPointF:
        return QPointF(self.x, self.y)

    @property
    def seen(self) -> tuple[NodeLook, Layout]:
        """The look and the layout. Raises RuntimeError if the layer is not measured."""
        if self.look is None or self.layout is None:
            raise RuntimeError(f"'{self.name}' was not measured")
        return self.look, self.layout

    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of everything painted; for a folded layer, those of its frame's title bar."""
        if self.folded is not None:
            bar = self.folded.seen
            return bar.left(), bar.top(), bar.right(), bar.bottom()
        if self.layout is None:
            return self.x - 8, self.y - 8, self.x + self.rough[0], self.y + self.rough[1]
        b = self.layout.bounds
        return self.x + b.left(), self.y + b.top(), self.x + b.right(), self.y + b.bottom()

    def area(self) -> QRectF:
        """The rectangle of everything painted."""
        left, top, right, bottom = self.bounds()
        return QRectF(left, top, right - left, bottom - top)

    def box(self) -> QRectF:
        """The box with its tab, in canvas units."""
        if self.layout is None:
            return QRectF(self.x, self.y, 160, 64)
        return QRectF(self.layout.box.united(self.layout.tab).translated(self.x, self.y))

    def output_place(self, port: str) -> tuple[float, float] | None:
        """The point where links leave an output ("" for the first), or None if there is no such output."""
        if self.folded is not None:
            return self.folded.end(is_input=False).toTuple()
        if self.layout is None or self.look is None:
            return (self.x + 160, self.y + 40)
        names = [p.name for p in self.look.outputs]
        index = 0 if not port and names else names.index(port) if port in names else None
        if index is None:
            return None
        x, y = self.layout.outputs[index]
        return (self.x + x, self.y + y)

    def input_place(self, index: int) -> tuple[float, float] | None:
        """The point where the link into an input ends."""
        if self.folded is not None:
            return self.folded.end(is_input=True).toTuple()
        if self.layout is None:
            return (self.x, self.y + 40 + 18 * index)
        if index >= len(self.layout.inputs):
            return None
        x, y = self.layout.inputs[index]
        return (self.x + x, self.y + y)


class LayerIndex:
    """All layers of the current document."""

    def __init__(self, look: Callable[[str], NodeLook]) -> None:
        self._look = look
        self._layers: dict[str, LayerEntry] = {}
        self._index: RectIndex[str] = RectIndex()
        self.obstacles = Obstacles()  # the exact boxes, to route links around them
        self.placed: list[Rect] = []  # boxes added, removed or changed since links were last routed
        self.stale: dict[str, None] = {}  # layers to measure, in order

    def __contains__(self, name: object) -> bool:
        return name in self._layers

    def __getitem__(self, name: str) -> LayerEntry:
        return self._layers[name]

    def __iter__(self) -> Iterator[LayerEntry]:
        return iter(self._layers.values())

    def __len__(self) -> int:
        return len(self._layers)

    @property
    def names(self) -> Iterable[str]:
        return self._layers.keys()

    def put(self, layers: Iterable[Layer]) -> None:
        """Add layers, with sizes estimated from the number of their inputs."""
        layers = list(layers)
        names = [layer.name for layer in layers]
        places = np.array([layer.position for layer in layers], float).reshape(-1, 2)
        rough = np.empty_like(places)
        rough[:, 0] = np.maximum(ROUGH_WIDTH, 12.0 * np.fromiter(map(len, names), float, len(names)) + 80)
        rough[:, 1] = np.maximum(ROUGH_HEIGHT, 48.0 + 20.0 * np.array([len(layer.inputs) for layer in layers], float))
        entries = map(LayerEntry, names, *places.T.tolist(), zip(*rough.T.tolist(), strict=True))
        self._layers.update(zip(names, entries, strict=True))
        self._index.put_all(names, np.hstack([places - 8, places + rough]))
        self.stale.update(dict.fromkeys(names))

    def drop(self, name: str) -> None:
        del self._layers[name]
        self._index.drop(name)
        self.stale.pop(name, None)
        old = self.obstacles.drop(name)
        if old is not None:
            self.placed.append(old)

    def move(self, name: str, position: tuple[float, float]) -> LayerEntry:
        entry = self._layers[name]
        entry.x, entry.y = map(float, position)
        self._settle(entry)
        return entry

    def fold(self, name: str, frame: FrameItem | None) -> None:
        """Fold a layer into a collapsed frame, or (None) show it again."""
        entry = self._layers[name]
        entry.folded = frame
        if frame is None:
            self._settle(entry)
            self.placed.append(Rect(*entry.bounds()))
            return
        self._index.drop(name)
        old = self.obstacles.drop(name)
        if old is not None:
            self.placed.append(old)

    def forget(self, names: Iterable[str]) -> None:
        """Mark layers to be measured again when they are next needed."""
        for name in names:
            self._layers[name].exact = False
            self.stale[name] = None

    def measured(self, name: str) -> LayerEntry:
        """A layer with up-to-date look and layout."""
        entry = self._layers[name]
        if not entry.exact:
            look = self._look(name)
            self.stale.pop(name, None)
            entry.exact = True
            if look != entry.look:
                entry.look, entry.layout = look, layout(look)
                self._settle(entry)
        return entry

    def _settle(self, entry: LayerEntry) -> None:
        if entry.folded is not None:
            return
        self._index.put(entry.name, *entry.bounds())
        if entry.layout is None:
            return
        rect = _outline(entry, entry.layout)
        old = self.obstacles.put(entry.name, rect)
        if old is not None and old != rect:
            self.placed += [old, rect]

    def announce(self, name: str) -> None:
        """Report a new layer, which links may have to be routed around."""
        entry = self.measured(name)
        if entry.layout is not None:
            self.placed.append(_outline(entry, entry.layout))

    def bounds(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The bounds of layers, one per row."""
        rows = self._index.rects(names)
        for row in np.flatnonzero(np.isnan(rows[:, 0])).tolist():  # folded
            rows[row] = self._layers[names[row]].bounds()
        return rows

    def near(self, area: QRectF) -> list[str]:
        """The layers that may be visible in an area."""
        return self._index.within(area.left(), area.top(), area.right(), area.bottom())

    def count_near(self, area: QRectF) -> int:
        """The number of layers that may be visible in an area."""
        return self._index.count(area.left(), area.top(), area.right(), area.bottom())

    def within(self, area: QRectF) -> list[str]:
        """The layers whose boxes intersect an area."""
        return [name for name in self.near(area) if self.measured(name).box().intersects(area)]

    def extent(self) -> QRectF:
        return QRectF(*self._index.extent())


def _outline(entry: LayerEntry, layout: Layout) -> Rect:
    """The box with the shape text below it."""
    box, under = entry.box(), layout.bounds.bottom() - layout.box.bottom()
    return Rect(box.left(), box.top(), box.right(), box.bottom() + under)


class QuietMeasuring:
    """Measures layers without items while the event loop is idle, so that the far view becomes exact."""

    def __init__(self, parent: QObject, done: Callable[[], None]) -> None:
        self._layers: LayerIndex | None = None
        self._done = done
        self._timer = QTimer(parent, interval=0, timeout=self._some)

    def start(self, layers: LayerIndex) -> None:
        self._layers = layers
        if layers.stale and not self._timer.isActive():
            self._timer.start()

    @property
    def active(self) -> bool:
        return self._timer.isActive()

    def _some(self) -> None:
        clock = QElapsedTimer()
        clock.start()
        stale = self._layers.stale if self._layers is not None else {}
        while self._layers is not None and stale and clock.elapsed() < SLICE_MS:
            self._layers.measured(next(iter(stale)))
        if not stale:
            self._timer.stop()
            self._done()
