"""Comment frames: a tinted ground with a title behind the nodes. The title moves it, its edges resize it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.ui import theme
from app.ui.canvas.metrics import PAD, fonts
from designer.graph.model import Frame

TINT = 36  # of 255
EDGE = 6.0  # pixels in which an edge is hit
LARGE = 0.45  # below this scale (pixels a canvas unit) the title stands above the frame, clear of what is in it
ABOVE = 160.0  # room for it there, as far out as Qt asks for it


class FrameItem(QGraphicsItem):
    """One frame. The title keeps its size on the screen when the canvas is far out, so that it stays readable."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame
        self.setZValue(-10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable, True)
        self._size = QSizeF()
        self.show_rect(QRectF(*frame.rect))
        self.setToolTip(frame.text)

    @property
    def rect(self) -> QRectF:
        """Where it is seen now, in canvas units; while it is dragged the document does not know yet."""
        return QRectF(self.pos(), self._size)

    def show_rect(self, rect: QRectF) -> None:
        self.prepareGeometryChange()
        self.setPos(rect.topLeft())
        self._size = rect.size()
        self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(QPointF(), self._size).adjusted(-2, -ABOVE, 2, 2)

    def grip(self, place: QPointF, zoom: float) -> str:
        """What a press at a place of the canvas takes hold of: "move", edges as letters of "ltrb", or nothing."""
        rect, edge = self.rect, EDGE / zoom
        title = (fonts().name_metrics.height() + 8) * max(1.0, 1.0 / zoom)
        head = QRectF(rect.left(), rect.top() - (title if zoom < LARGE else 0.0), rect.width(), title)
        if zoom < LARGE and head.contains(place):
            return "move"
        if not rect.adjusted(-edge, -edge, edge, edge).contains(place):
            return ""
        sides = {
            "l": place.x() < rect.left() + edge,
            "t": place.y() < rect.top() + edge / 2,
            "r": place.x() > rect.right() - edge,
            "b": place.y() > rect.bottom() - edge,
        }
        found = "".join(name for name, near in sides.items() if near)
        return found or ("move" if head.contains(place) else "")

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        ink = QColor.fromString(self.frame.color) if self.frame.color else QColor()
        if not ink.isValid():
            ink = theme.color("accent")
        rect = QRectF(QPointF(), self._size)
        ground = QColor(ink)
        ground.setAlpha(TINT)
        selected = self.isSelected()
        width = (2.5 if selected else 1.0) * painter.device().devicePixelRatio()
        pen = QPen(theme.color("link_active") if selected else ink, width)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.setBrush(ground)
        painter.drawRoundedRect(rect, 6, 6)
        detail = option.levelOfDetailFromTransform(painter.worldTransform())
        scale = max(1.0, 1.0 / max(detail, 0.01))
        painter.translate(PAD * scale, 0)
        painter.scale(scale, scale)
        painter.setFont(fonts().name)
        painter.setPen(theme.color("text"))
        height = fonts().name_metrics.height()
        room = QRectF(0, 4 if detail >= LARGE else -height - 4, rect.width() / scale - 2 * PAD, height)
        title = fonts().name_metrics.elidedText(self.frame.title, Qt.TextElideMode.ElideRight, max(room.width(), 0))
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
