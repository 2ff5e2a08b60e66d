"""The line that splits an image in two: geometry, hit testing and painting."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from app.ui.widgets import theme

GRAB = 7  # pixels around the line in which it can be grabbed


class SplitMode(StrEnum):
    """Orientation of the split line, if there is one."""

    NONE = ""
    VERTICAL = "v_split"  # vertical line, left and right parts
    HORIZONTAL = "h_split"


@dataclass(frozen=True, slots=True)
class SplitLine:
    """`amount` is the position, 0..1 of the image's width or height. `target` is the image's rectangle in the view."""

    way: SplitMode = SplitMode.NONE
    amount: float = 0.5

    @property
    def cursor(self) -> Qt.CursorShape:
        return Qt.CursorShape.SplitHCursor if self.way is SplitMode.VERTICAL else Qt.CursorShape.SplitVCursor

    def ends(self, target: QRectF) -> tuple[QPointF, QPointF]:
        if self.way is SplitMode.VERTICAL:
            x = target.left() + self.amount * target.width()
            return QPointF(x, target.top()), QPointF(x, target.bottom())
        y = target.top() + self.amount * target.height()
        return QPointF(target.left(), y), QPointF(target.right(), y)

    def is_at(self, place: QPointF, target: QRectF) -> bool:
        """Whether a press at this view position grabs the line."""
        if self.way is SplitMode.NONE:
            return False
        start, _ = self.ends(target)
        away = place.x() - start.x() if self.way is SplitMode.VERTICAL else place.y() - start.y()
        return target.adjusted(-GRAB, -GRAB, GRAB, GRAB).contains(place) and abs(away) <= GRAB

    def amount_at(self, place: QPointF, target: QRectF) -> float:
        """The amount that moves the line to a view position."""
        if self.way is SplitMode.VERTICAL:
            share = (place.x() - target.left()) / target.width()
        else:
            share = (place.y() - target.top()) / target.height()
        return min(max(share, 0.0), 1.0)

    def moved(self, steps: float) -> float:
        """The amount after a move by this share of the image."""
        return min(max(round(self.amount + steps, 6), 0.0), 1.0)

    def paint(self, painter: QPainter, target: QRectF, seen: QRectF) -> None:
        """Draw the line, with its handle inside `seen`."""
        if self.way is SplitMode.NONE:
            return
        start, end = self.ends(target)
        painter.setPen(QPen(theme.color("surface"), 3))
        painter.drawLine(start, end)
        painter.setPen(QPen(theme.color("accent"), 1))
        painter.drawLine(start, end)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(theme.color("accent"))
        part = target.intersected(seen)
        middle = (
            QPointF(start.x(), part.center().y())
            if self.way is SplitMode.VERTICAL
            else QPointF(part.center().x(), start.y())
        )
        painter.drawEllipse(middle, 5, 5)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
