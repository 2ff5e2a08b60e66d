"""Views of the canvas that a person keeps under the keys 1 to 9, for each open document."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from PySide6.QtCore import QPointF

from app.ui.canvas.canvas import Canvas
from app.ui.context import Context
from app.ui.document import Document


class SavedViews:
    """Places and scales by number."""

    def __init__(self, context: Context, canvas: Canvas) -> None:
        self._context = context
        self._canvas = canvas
        self._views: WeakKeyDictionary[Document, dict[int, tuple[QPointF, float]]] = WeakKeyDictionary()

    def store(self, number: int) -> None:
        viewer = self._canvas.viewer
        kept = self._views.setdefault(self._context.document, {})
        kept[number] = (viewer.visible_centre(), viewer.zoom)
        self._context.message.emit("info", f"View {number} is stored: the key {number} brings it back")

    def recall(self, number: int) -> None:
        view = self._views.get(self._context.document, {}).get(number)
        if view is None:
            self._context.message.emit("info", f"No view is stored under {number}: Ctrl+{number} stores one")
            return
        centre, zoom = view
        self._canvas.viewer.zoom_by(zoom / self._canvas.viewer.zoom)
        self._canvas.viewer.go(centre)
