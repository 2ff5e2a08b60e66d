"""Keyboard navigation along links and to neighboring layers, selection upstream and downstream, and nudging."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from app.ui.canvas.canvas import Canvas
from app.ui.engine.context import Context
from designer.graph import commands
from designer.graph.model import GRID


class Direction(Enum):
    LEFT = (-1, 0)
    RIGHT = (1, 0)
    UP = (0, -1)
    DOWN = (0, 1)


class Walker:
    """The commands of the arrow keys. A step starts at the layer selected last."""

    def __init__(self, context: Context, canvas: Canvas) -> None:
        self._context = context
        self._canvas = canvas

    def step(self, direction: Direction, *, extend: bool = False) -> None:
        """Select the next layer that direction, besides what is selected with `extend`; the first one from nothing."""
        selection = self._context.selection
        name = self._next(selection[-1], direction) if selection else self._first()
        if name is None:
            return
        kept = tuple(n for n in selection if n != name) if extend else ()
        self._context.select((*kept, name))
        self._canvas.show_layer(name)

    def _first(self) -> str | None:
        """The leftmost layer."""
        places = {layer.name: layer.position for layer in self._context.document.graph if self._shown(layer.name)}
        return min(places, key=lambda n: (places[n], n), default=None)

    def _shown(self, name: str) -> bool:
        """Whether no collapsed frame hides a layer."""
        return not self._canvas.projection.hides(name)

    def _joined(self, name: str, direction: Direction) -> list[str]:
        """The layers that feed a layer, or that it feeds. Links into collapsed frames are followed until they leave them."""
        graph = self._context.document.graph
        found: list[str] = []
        seen, waiting = {name}, [name]
        while waiting:
            here = waiting.pop()
            joined = graph.consumers(here) if direction is Direction.RIGHT else graph[here].producers()
            for other in (n for n in joined if n in graph and n not in seen):
                seen.add(other)
                (found if self._shown(other) else waiting).append(other)
        return found

    def _next(self, name: str, direction: Direction) -> str | None:
        items = self._canvas.projection
        here = items.entry(name).box().center()
        if direction in (Direction.LEFT, Direction.RIGHT):
            found = self._joined(name, direction)
            return min(found, key=lambda n: (abs(items.entry(n).box().center().y() - here.y()), n), default=None)
        best: tuple[float, str] | None = None
        for other in items.layers:
            run = items.entry(other).box().center() - here
            ahead, aside = run.y() * direction.value[1], abs(run.x())
            if ahead > GRID / 2 and self._shown(other) and (best is None or (ahead + 2 * aside, other) < best):
                best = (ahead + 2 * aside, other)
        return best[1] if best is not None else None

    def upstream(self) -> None:
        """Extend the selection to all layers that it depends on, except those hidden in collapsed frames."""
        self._reach(self._context.document.graph.upstream(self._context.selection))

    def downstream(self) -> None:
        """Extend the selection to all layers that depend on it, except those hidden in collapsed frames."""
        self._reach(self._context.document.graph.downstream(self._context.selection))

    def _reach(self, names: set[str]) -> None:
        before = self._context.selection
        self._context.select((*sorted(n for n in names if n not in before and self._shown(n)), *before))

    def nudge(self, direction: Direction) -> None:
        """Move the selected layers by one grid step; consecutive steps are undone together."""
        document = self._context.document
        dx, dy = direction.value
        positions = {n: document.graph[n].position for n in self._canvas.selection_to_edit()}
        if not positions:
            return
        places = {n: (x + dx * GRID, y + dy * GRID) for n, (x, y) in positions.items()}
        edit = commands.move_layers(document.graph, places)
        document.do(replace(edit, merge_key=f"nudge {' '.join(sorted(places))}"))
