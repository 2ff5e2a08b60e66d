"""Overlays on an image that follow zoom and pan: boxes, crosses and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.ui.widgets import theme

Place = Callable[[float, float], QPointF]  # maps an image point to view coordinates

ARM = 9  # view pixels from the center of a cross to its end
GAP = 3


@dataclass(frozen=True, slots=True)
class BoxOverlay:
    """A rectangle in image pixels, right and bottom excluded, such as a receptive field or the worst region."""

    left: float
    top: float
    right: float
    bottom: float
    label: str = ""
    role: theme.RoleName = "accent"

    def paint(self, painter: QPainter, place: Place) -> None:
        area = QRectF(place(self.left, self.top), place(self.right, self.bottom))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for ink, width in ((theme.color("surface"), 4), (theme.color(self.role), 2)):
            pen = QPen(ink, width)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(area)
        if self.label:
            window = painter.window()
            foot = area.topLeft().toPoint() + QPoint(0, -4)
            if foot.y() < painter.fontMetrics().height() + 8:  # no space above
                foot = area.bottomLeft().toPoint() + QPoint(0, painter.fontMetrics().height() + 12)
            foot.setX(min(max(foot.x(), 4), max(4, window.right() - 40)))
            paint_note(painter, self.label, foot, self.role)


@dataclass(frozen=True, slots=True)
class CrossOverlay:
    """A cross around the image pixel (x, y) that does not cover the pixel itself."""

    x: int
    y: int
    label: str = ""
    role: theme.RoleName = "accent"

    def paint(self, painter: QPainter, place: Place) -> None:
        middle = place(self.x + 0.5, self.y + 0.5)
        free = max(GAP, (place(self.x + 1, self.y) - place(self.x, self.y)).x() / 2)
        for ink, width in ((theme.color("surface"), 3), (theme.color(self.role), 1)):
            painter.setPen(QPen(ink, width))
            for step in (QPointF(1, 0), QPointF(-1, 0), QPointF(0, 1), QPointF(0, -1)):
                painter.drawLine(middle + step * free, middle + step * (free + ARM))
        if self.label:
            paint_note(painter, self.label, (middle + QPointF(free + 4, -free - 4)).toPoint(), self.role)


@dataclass(frozen=True, slots=True)
class LabelOverlay:
    """A text in a corner of the visible part of an area (left, top, right, bottom in image pixels)."""

    text: str
    area: tuple[float, float, float, float]
    right: bool = False
    bottom: bool = False
    role: theme.RoleName = "text"

    def paint(self, painter: QPainter, place: Place) -> None:
        left, top, right, bottom = self.area
        seen = QRectF(place(left, top), place(right, bottom)).intersected(QRectF(painter.window()))
        size = painter.fontMetrics().boundingRect(self.text).adjusted(-6, -3, 6, 3)
        if seen.width() < min(size.width(), 40) or seen.height() < size.height():
            return
        x = seen.right() - 6 if self.right else seen.left() + 6
        y = seen.bottom() - 6 if self.bottom else seen.top() + 6 + size.height()
        painter.save()
        painter.setClipRect(seen)
        paint_note(painter, self.text, QPoint(round(x), round(y)), self.role, right=self.right)
        painter.restore()


Overlay = BoxOverlay | CrossOverlay | LabelOverlay


def paint_note(
    painter: QPainter, text: str, corner: QPoint, role: theme.RoleName = "warning", *, right: bool = False
) -> QRectF:
    """Draw a label with its lower left corner (with `right`, the lower right one) at `corner`, readable on any image."""
    metrics = painter.fontMetrics()
    box = metrics.boundingRect(text).adjusted(-6, -3, 6, 3)
    box.moveBottomLeft(corner)
    if right:
        box.moveBottomRight(corner)
    back = QColor(theme.color("raised"))
    back.setAlphaF(0.9)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(back)
    painter.drawRoundedRect(box, 3, 3)
    painter.setPen(theme.color(role))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
    return QRectF(box)
