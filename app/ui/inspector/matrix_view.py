"""A map with two axes: sequences (position x feature) and matrices of weights."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QImage, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.inspector.look import Look, fit, pixels
from app.ui.widgets import theme
from app.ui.widgets.image_view import DIMMED
from app.ui.widgets.overlays import paint_note
from app.ui.widgets.render import Floats, block_mean, to_image

TICKS = (1, 2, 5)  # steps between ticks, times a power of ten
APART = 48  # pixels between ticks, at least


class MatrixView(QWidget):
    """Rows x columns over the whole widget, each value a rectangle (several in one where there are more than pixels)."""

    probed = Signal(object)  # (row, column) under the cursor, or None

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setMouseTracking(True)
        self.setMinimumSize(96, 96)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._data: Floats | None = None
        self._axes = ("", "")
        self._look = Look()
        self._image: QImage | None = None
        self._dimmed = False
        self._note = ""

    @property
    def image(self) -> QImage | None:
        """One pixel a value, unless there are far more values than the screen has pixels."""
        if self._image is None and self._data is not None and self._data.size:
            block = max(1, max(self._data.shape) // 4096)
            own = fit(self._data, self._look.palette) if self._look.each else None
            self._image = to_image(pixels(block_mean(self._data, block), self._look, own))
        return self._image

    def show_values(self, data: Floats | None, axes: tuple[str, str] = ("", "")) -> None:
        """Rows x columns, with the names of the axes: down, across."""
        self._data, self._axes, self._image = data, axes, None
        self.update()

    def set_look(self, look: Look) -> None:
        if look != self._look:
            self._look, self._image = look, None
            self.update()

    def set_note(self, note: str) -> None:
        self._note = note
        self.update()

    def set_dimmed(self, dimmed: bool) -> None:
        if dimmed != self._dimmed:
            self._dimmed = dimmed
            self.update()

    def area(self) -> QRectF:
        """The area of the map, without its axes."""
        metrics = self.fontMetrics()
        digits = metrics.horizontalAdvance(str(max(1, len(self._data) - 1 if self._data is not None else 1)))
        left, bottom = digits + metrics.height() + 12, 2 * metrics.height() + 8
        return QRectF(left, 8, max(1, self.width() - left - 12), max(1, self.height() - bottom - 8))

    def place_at(self, position: QPointF) -> tuple[int, int] | None:
        """Row and column of a place of the view."""
        if self._data is None or not self._data.size:
            return None
        area = self.area()
        rows, columns = self._data.shape
        row = int((position.y() - area.top()) / area.height() * rows // 1)
        column = int((position.x() - area.left()) / area.width() * columns // 1)
        return (row, column) if 0 <= row < rows and 0 <= column < columns else None

    def sizeHint(self) -> QSize:
        return QSize(640, 320)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.probed.emit(self.place_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.probed.emit(None)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("sunken"))
        image, area = self.image, self.area()
        if image is None or self._data is None:
            return
        painter.setOpacity(DIMMED if self._dimmed else 1.0)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, image.width() > area.width())
        painter.drawImage(area, image)
        painter.setOpacity(1.0)
        painter.setPen(theme.color("outline"))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(area.adjusted(-1, -1, 0, 0))
        self._paint_axes(painter, area)
        if self._note:
            paint_note(painter, self._note, area.bottomLeft().toPoint() + QPoint(8, -8))

    def _paint_axes(self, painter: QPainter, area: QRectF) -> None:
        assert self._data is not None
        rows, columns = self._data.shape
        metrics = painter.fontMetrics()
        painter.setPen(theme.color("muted"))
        flags = Qt.AlignmentFlag
        for number in ticks(columns, area.width()):
            x = area.left() + (number + 0.5) * area.width() / columns
            painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 3))
            painter.drawText(QRectF(x - 40, area.bottom() + 3, 80, metrics.height()), flags.AlignHCenter, str(number))
        for number in ticks(rows, area.height()):
            y = area.top() + (number + 0.5) * area.height() / rows
            painter.drawLine(QPointF(area.left() - 3, y), QPointF(area.left(), y))
            box = QRectF(0, y - metrics.height() / 2, area.left() - 5, metrics.height())
            painter.drawText(box, flags.AlignRight | flags.AlignVCenter, str(number))
        painter.setPen(theme.color("text"))
        foot = QRectF(area.left(), self.height() - metrics.height() - 2, area.width(), metrics.height())
        painter.drawText(foot, flags.AlignHCenter, self._axes[1])
        painter.save()
        painter.translate(2, area.center().y())
        painter.rotate(-90)
        painter.drawText(
            QRectF(-area.height() / 2, 0, area.height(), metrics.height()), flags.AlignHCenter, self._axes[0]
        )
        painter.restore()


def ticks(count: int, length: float) -> list[int]:
    """Round numbers below `count`, far enough from each other on `length` pixels."""
    least = count * APART / max(1.0, length)
    step = next(int(m * 10**e) for e in range(12) for m in TICKS if m * 10**e >= least)
    return list(np.arange(0, count, max(1, step)))
