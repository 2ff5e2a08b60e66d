"""Comment frames: a tinted ground with a title behind the nodes. Shown here; a person cannot edit them yet."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.ui import theme
from app.ui.canvas.metrics import PAD, fonts
from designer.graph.model import Frame

TINT = 36  # of 255


class FrameItem(QGraphicsItem):
    """One frame. The title keeps its size on the screen when the canvas is far out, so that it stays readable."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame
        self.setZValue(-10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setPos(frame.rect[0], frame.rect[1])
        self.setToolTip(frame.text)

    def boundingRect(self) -> QRectF:
        return QRectF(0, 0, self.frame.rect[2], self.frame.rect[3]).adjusted(-2, -2, 2, 2)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        ink = QColor.fromString(self.frame.color) if self.frame.color else QColor()
        if not ink.isValid():
            ink = theme.color("accent")
        rect = QRectF(0, 0, self.frame.rect[2], self.frame.rect[3])
        ground = QColor(ink)
        ground.setAlpha(TINT)
        pen = QPen(ink, painter.device().devicePixelRatio())
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
        room = QRectF(0, 4, rect.width() / scale - 2 * PAD, fonts().name_metrics.height())
        title = fonts().name_metrics.elidedText(self.frame.title, Qt.TextElideMode.ElideRight, max(room.width(), 0))
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
