"""Images next to each other that are looked at together: one zoom, one place, one pointer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QImage, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.ui.widgets.image_view import ImageView, Viewport
from app.ui.widgets.overlays import Overlay
from designer.texts import tr

SPACE = 4  # pixels between images


class PictureGrid(QWidget):
    """Panes by key, in as many columns as show the images largest."""

    probed = Signal(object)  # (x, y) or None
    view_changed = Signal(Viewport)
    zoom_changed = Signal(float)

    def __init__(self, name: str, empty: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(tr("Images next to each other"))
        self._empty = empty
        self.panes: dict[str, ImageView] = {}
        self._view = Viewport()

    def show_keys(self, keys: Sequence[str], titles: Mapping[str, str]) -> None:
        """Have a pane for each key, in this order."""
        for key in [k for k in self.panes if k not in keys]:
            pane = self.panes.pop(key)
            pane.hide()
            pane.deleteLater()
        for key in keys:
            if key not in self.panes:
                pane = ImageView(f"{self.objectName()}.{key}", titles[key], self._empty, self)
                pane.view_changed.connect(self._follow)
                pane.zoom_changed.connect(self.zoom_changed)
                pane.probed.connect(self.probed)
                self.panes[key] = pane
            self.panes[key].setAccessibleName(titles[key])
        self.panes = {key: self.panes[key] for key in keys}
        self._arrange()

    def show_image(self, key: str, image: QImage | None, overlays: Sequence[Overlay]) -> None:
        pane = self.panes[key]
        pane.set_overlays(overlays)
        fresh = pane.image is None or image is None or pane.image.size() != image.size()
        if pane.image is not image:
            pane.show_image(image)
        if fresh and image is not None:
            pane.follow(self._view)
        if image is not None:
            self._arrange()

    def follow(self, view: Viewport) -> None:
        """Look there with all panes."""
        self._view = view
        for pane in self.panes.values():
            pane.follow(view)

    def forget_place(self) -> None:
        """Begin with whole images again."""
        self._view = Viewport()

    def first(self) -> ImageView | None:
        """A pane with an image."""
        return next((p for p in self.panes.values() if p.image is not None), None)

    def _follow(self, view: Viewport) -> None:
        self.follow(view)
        self.view_changed.emit(view)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        count = len(self.panes)
        if not count:
            return
        columns = self._columns(count)
        rows = -(-count // columns)
        width = (self.width() - SPACE * (columns - 1)) // columns
        height = (self.height() - SPACE * (rows - 1)) // rows
        for index, pane in enumerate(self.panes.values()):
            row, column = divmod(index, columns)
            pane.setGeometry(column * (width + SPACE), row * (height + SPACE), max(width, 1), max(height, 1))
            pane.show()

    def _columns(self, count: int) -> int:
        first = self.first()
        shape = first.image.size() if first is not None and first.image is not None else None
        ratio = shape.width() / max(shape.height(), 1) if shape is not None else 4 / 3

        def share(columns: int) -> float:
            rows = -(-count // columns)
            return min(self.width() / columns / ratio, self.height() / rows)

        return max(range(1, count + 1), key=share)
