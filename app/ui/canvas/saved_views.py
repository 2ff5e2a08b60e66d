"""Views of the canvas that the user stores under the keys 1 to 9. They are saved with the document, as properties.

A view includes the template that was open, and recalling it opens that template. Storing a view is not an undo step, but it
marks the document as modified.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from PySide6.QtCore import QPointF

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.view import EXTENT, ZOOM_MAX, ZOOM_MIN
from app.ui.document.template_view import ScopeStep
from app.ui.engine.context import Context
from designer.graph.graph import Graph
from designer.graph.template import INSTANCE, PARAMETER
from designer.texts import tr

_TEXT = re.compile(r"(-?\d{1,10}),(-?\d{1,10}),(\d{1,3}(?:\.\d{1,6})?)(?:,(.+))?\Z", re.DOTALL)


class SavedView(NamedTuple):
    """A position, a scale, and the path to the scope: names of instances, the first possibly `:<template>`."""

    x: int
    y: int
    zoom: float
    way: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SavedView | None:
        """Parse a text written by `str`. Returns None for any other text."""
        match = _TEXT.match(text)
        if match is None:
            return None
        x, y, zoom = int(match[1]), int(match[2]), float(match[3])
        if max(abs(x), abs(y)) > EXTENT or not ZOOM_MIN <= zoom <= ZOOM_MAX:
            return None
        return cls(x, y, zoom, tuple(match[4].split("/")) if match[4] else ())

    def __str__(self) -> str:
        way = f",{'/'.join(self.way)}" if self.way else ""
        return f"{self.x},{self.y},{self.zoom:.4f}{way}"


def key(number: int) -> str:
    """The document property in which a view is stored."""
    return f"view.{number}"


class SavedViews:
    """Ctrl+number stores a view; the number recalls it."""

    def __init__(self, context: Context, canvas: Canvas) -> None:
        self._context = context
        self._canvas = canvas

    def store(self, number: int) -> None:
        viewer = self._canvas.viewer
        x, y = viewer.visible_center().toTuple()
        way = tuple(step.instance or f":{step.template}" for step in self._context.scope)
        self._context.root.keep(key(number), str(SavedView(round(x), round(y), viewer.zoom, way)))
        self._context.message.emit(
            "info", tr("Stored view {number} in the document. Press {number} to go back to it.", number=number)
        )

    def recall(self, number: int) -> None:
        text = self._context.root.graph.properties.get(key(number))
        if text is None:
            self._context.message.emit(
                "info",
                tr("No view is stored under {number}. Press Ctrl+{number} to store the current view.", number=number),
            )
            return
        view = SavedView.parse(text)
        scope = _scope(self._context.root.graph, view.way) if view is not None else None
        if view is None or scope is None or not self._context.set_scope(scope):
            self._context.message.emit(
                "warning", tr("View {number} shows a template or instance that no longer exists.", number=number)
            )
            return
        self._canvas.viewer.zoom_by(view.zoom / self._canvas.viewer.zoom)
        self._canvas.viewer.go(QPointF(view.x, view.y))


def _scope(graph: Graph, way: tuple[str, ...]) -> tuple[ScopeStep, ...] | None:
    """The steps of a path of names, or None if one does not exist."""
    steps: list[ScopeStep] = []
    around = graph
    for name in way:
        if name.startswith(":"):
            step = ScopeStep("", name[1:])
        else:
            layer = around.get(name)
            step = ScopeStep(
                name, layer.params.get(PARAMETER, "") if layer is not None and layer.type == INSTANCE else ""
            )
        if step.template not in graph.templates:
            return None
        steps.append(step)
        around = graph.inside(step.template)
    return tuple(steps)
