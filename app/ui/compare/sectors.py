"""Two to four images in one, divided by lines that can be dragged: left and right, or quarters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter
from PySide6.QtWidgets import QWidget

from app.ui.widgets.image_view import NUDGE, ImageView
from app.ui.widgets.overlays import LabelOverlay
from app.ui.widgets.render import Pixels, to_image
from app.ui.widgets.split_line import SplitLine, SplitMode

Area = tuple[int, int, int, int]  # left, top, right, bottom


class SectorView(ImageView):
    """Two images are left and right of a line; of three the last has the lower half, of four each a quarter."""

    sectors_changed = Signal()

    def __init__(self, name: str, title: str, empty: str, parent: QWidget | None = None) -> None:
        super().__init__(name, title, empty, parent)
        self._pictures: list[Pixels] = []
        self._titles: list[str] = []
        self._across = SplitLine(SplitMode.VERTICAL, 0.5)
        self._down = SplitLine(SplitMode.HORIZONTAL, 0.5)
        self._held: tuple[bool, bool] = (False, False)

    @property
    def amounts(self) -> tuple[float, float]:
        """Where the lines are, 0..1 of width and height."""
        return self._across.amount, self._down.amount

    def show_pictures(self, pictures: Sequence[Pixels], titles: Sequence[str]) -> None:
        """Images of one size, H x W colors each."""
        self._pictures, self._titles = list(pictures), list(titles)
        self._compose()

    def areas(self) -> list[Area]:
        """The part of the image that each of the images fills."""
        if not self._pictures:
            return []
        height, width = self._pictures[0].shape
        count = len(self._pictures)
        x, y = round(self._across.amount * width), round(self._down.amount * height)
        foot = y if count > 2 else height
        found = [(0, 0, x if count > 1 else width, foot)]
        if count > 1:
            found.append((x, 0, width, foot))
        if count == 3:
            found.append((0, y, width, height))
        elif count > 3:
            found += [(0, y, x, height), (x, y, width, height)]
        return found

    def labels(self) -> list[LabelOverlay]:
        """A title in the outer corner of each part."""
        width = self._pictures[0].shape[1] if self._pictures else 0
        return [
            LabelOverlay(title, area, right=area[0] > 0 or (area[2] == width and i == 1), bottom=i > 1)
            for i, (title, area) in enumerate(zip(self._titles, self.areas(), strict=True))
        ]

    def set_amounts(self, across: float, down: float) -> None:
        """Move the lines."""
        lines = SplitLine(SplitMode.VERTICAL, across), SplitLine(SplitMode.HORIZONTAL, down)
        if lines != (self._across, self._down):
            self._across, self._down = lines
            self._compose()

    def _compose(self) -> None:
        if not self._pictures:
            self._held = (False, False)
            self.show_image(None)
        else:
            whole = np.empty_like(self._pictures[0])
            for pixels, (left, top, right, bottom) in zip(self._pictures, self.areas(), strict=True):
                whole[top:bottom, left:right] = pixels[top:bottom, left:right]
            self.show_image(to_image(whole))
        self.sectors_changed.emit()

    # --- the lines ---------------------------------------------------------------------------------------------

    def _lines(self) -> list[SplitLine]:
        count = len(self._pictures)
        return [line for line, needs in ((self._across, 2), (self._down, 3)) if count >= needs]

    def _at(self, place: QPointF) -> tuple[bool, bool]:
        if self.image is None:
            return False, False
        target = self._target()
        lines = self._lines()
        across = self._across in lines and self._across.is_at(place, self._reach(target))
        return across, self._down in lines and self._down.is_at(place, target)

    def _reach(self, target: QRectF) -> QRectF:
        """The part of the image that the upright line divides."""
        if len(self._pictures) == 3:
            return QRectF(target.topLeft(), QPointF(target.right(), target.top() + target.height() * self._down.amount))
        return target

    def mousePressEvent(self, event: QMouseEvent) -> None:
        held = self._at(event.position()) if event.button() is Qt.MouseButton.LeftButton else (False, False)
        if any(held):
            self._held = held
        else:
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not any(self._held):
            super().mouseMoveEvent(event)
            return
        place, target = event.position(), self._target()
        across = self._across.amount_at(place, target) if self._held[0] else self._across.amount
        self.set_amounts(across, self._down.amount_at(place, target) if self._held[1] else self._down.amount)
        self.probed.emit(self.pixel_at(place))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if any(self._held):
            self._held = (False, False)
            self._set_cursor(event.position())
        else:
            super().mouseReleaseEvent(event)

    def _set_cursor(self, place: QPointF) -> None:
        across, down = self._at(place)
        if across or down:
            shape = Qt.CursorShape.SizeAllCursor if across and down else (self._across if across else self._down).cursor
            self.setCursor(shape)
        else:
            super()._set_cursor(place)

    def _arrow(self, x: int, y: int, *, far: bool) -> None:
        lines = self._lines()
        if (x and self._across in lines) or (y and self._down in lines):
            self.set_amounts(self._across.moved(x * NUDGE[far]), self._down.moved(y * NUDGE[far]))
        else:
            super()._arrow(x, y, far=far)

    def _paint_line(self, painter: QPainter) -> None:
        target, seen = self._target(), QRectF(self.rect())
        for line in self._lines():
            line.paint(painter, self._reach(target) if line is self._across else target, seen)
