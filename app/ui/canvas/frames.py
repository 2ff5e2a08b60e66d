"""Comment frames: a tinted area with title and text behind the nodes. Drag the title to move it, its edges to resize it."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QTextLayout, QTextOption
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas.node_layout import LEAST, PAD, fonts
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.graph.model import GRID, Frame
from designer.texts import tr

TINT = 36  # of 255
EDGE = 6.0  # pixels around an edge that count as a hit
LARGE = 0.45  # below this scale (pixels per canvas unit) the title is above the frame, clear of its content
LEAST_WIDTH = 144.0  # of a collapsed frame
ABOVE = 160.0  # room for it there, down to the smallest scale
WHOLE = 0.7  # scale down to which the height of a frame suits its text
SHOWN = 2000  # characters of the text that are painted


def text_top(detail: float = 1.0) -> float:
    """The distance of the text from the upper edge of a frame, at a scale at which the title is inside."""
    return (fonts().name_metrics.height() + 8) * max(1.0, 1.0 / detail)


def needed_height(width: float, content: str) -> int:
    """The height of a frame of this width that shows a title and the text on the lines after it."""
    text = content.partition("\n")[2].strip()[:SHOWN]
    if not text:
        return 0
    font = QFont(fonts().small)
    font.setPixelSize(ceil(LEAST / WHOLE))
    lines = text_lines(text, font, width - 2 * PAD)
    return ceil((text_top(WHOLE) + len(lines) * line_height(font) + 2 * PAD) / GRID) * GRID


def line_height(font: QFont) -> int:
    """The distance between two lines of text, in whole units."""
    return ceil(QFontMetricsF(font).lineSpacing())


def text_lines(text: str, font: QFont, width: float, most: int = SHOWN) -> list[str]:
    """The first lines of a text that is wrapped to a width, at most `most`. They are painted one by one: an SVG has no clipping."""
    layout, option = QTextLayout(text.replace("\n", "\u2028"), font), QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    units = text.encode("utf-16-le", "surrogatepass")  # what Qt counts
    found: list[str] = []
    layout.beginLayout()
    while len(found) < most and (line := layout.createLine()).isValid():
        line.setLineWidth(max(width, 1.0))
        start, end = 2 * line.textStart(), 2 * (line.textStart() + line.textLength())
        found.append(units[start:end].decode("utf-16-le", "replace").rstrip())
    layout.endLayout()
    return found


class FrameItem(QGraphicsItem):
    """One frame. The title keeps its size on the screen when the canvas is zoomed out, so that it stays readable."""

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame
        self.members: tuple[str, ...] = ()  # the layers folded into it while it is collapsed
        self.moved: Callable[[], None] = lambda: None  # their links follow
        self.setZValue(0 if frame.collapsed else -10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable, True)
        self._size = QSizeF()
        self.show_rect(QRectF(*frame.rect))
        self.setToolTip(plain_tip(frame.text))

    @property
    def rect(self) -> QRectF:
        """The current rectangle, in canvas units. During a drag it differs from the document."""
        return QRectF(self.pos(), self._size)

    @property
    def seen(self) -> QRectF:
        """The painted rectangle; that of a collapsed frame is its title bar."""
        if not self.frame.collapsed:
            return self.rect
        f = fonts()
        wide = f.name_metrics.horizontalAdvance(self.frame.title) + f.small_metrics.horizontalAdvance(self._note())
        return QRectF(self.pos(), QSizeF(max(LEAST_WIDTH, wide + 4 * PAD), f.name_metrics.height() + 16))

    @property
    def title(self) -> QRectF:
        """The area of the title where the canvas is not zoomed out far."""
        width = fonts().name_metrics.horizontalAdvance(self.frame.title)
        return QRectF(self.pos(), QSizeF(min(width + 2 * PAD, self._size.width()), text_top()))

    def end(self, *, is_input: bool) -> QPointF:
        """The end point of links to layers in a collapsed frame."""
        bar = self.seen
        return QPointF(bar.left() if is_input else bar.right(), bar.center().y())

    def _note(self) -> str:
        return tr("{count} layers", count=len(self.members)) if len(self.members) != 1 else tr("1 layer")

    def show_rect(self, rect: QRectF) -> None:
        self.prepareGeometryChange()
        self.setPos(rect.topLeft())
        self._size = rect.size()
        self.update()
        if self.frame.collapsed:
            self.moved()

    def boundingRect(self) -> QRectF:
        size = self.seen.size()
        beside = 1.25 * size.width() if self.frame.collapsed else 0.0  # its title from afar
        return QRectF(QPointF(), size).adjusted(-2, -ABOVE, 2 + beside, 2)

    def grip(self, place: QPointF, zoom: float) -> str:
        """The grip at a point of the canvas: "move", edges as letters of "ltrb", or an empty string."""
        rect, edge = self.seen, EDGE / zoom
        title = text_top(zoom)
        head = QRectF(rect.left(), rect.top() - (title if zoom < LARGE else 0.0), rect.width(), title)
        if zoom < LARGE and head.contains(place):
            return "move"
        if not rect.adjusted(-edge, -edge, edge, edge).contains(place):
            return ""
        if self.frame.collapsed:
            return "move"
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
        rect = QRectF(QPointF(), self.seen.size())
        ground = QColor(ink)
        ground.setAlpha(TINT)
        if self.frame.collapsed:  # a box like a node's
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("raised"))
            painter.drawRoundedRect(rect, 6, 6)
        selected = self.isSelected()
        width = (2.5 if selected else 1.0) * painter.device().devicePixelRatio()
        pen = QPen(theme.color("link_active") if selected else ink, width)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.setBrush(ground)
        painter.drawRoundedRect(rect, 6, 6)
        detail = option.levelOfDetailFromTransform(painter.worldTransform())
        if self.frame.collapsed and detail >= LARGE:
            self._paint_bar(painter, rect)
            return
        self._paint_text(painter, rect, detail)
        scale = max(1.0, 1.0 / max(detail, 0.01))
        painter.translate(PAD * scale, 0)
        painter.scale(scale, scale)
        painter.setFont(fonts().name)
        painter.setPen(theme.color("text"))
        height = fonts().name_metrics.height()
        wide = 2.25 * rect.width() if self.frame.collapsed else rect.width()  # the box alone has room for few letters
        room = QRectF(0, 4 if detail >= LARGE else -height - 4, wide / scale - 2 * PAD, height)
        title = fonts().name_metrics.elidedText(self.frame.title, Qt.TextElideMode.ElideRight, max(room.width(), 0))
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)

    def _paint_text(self, painter: QPainter, rect: QRectF, detail: float) -> None:
        """Paint the whole lines of the text that fit below the title, at a size that can be read."""
        if not self.frame.text:
            return
        font = QFont(fonts().small)
        font.setPixelSize(max(font.pixelSize(), ceil(LEAST / max(detail, 0.01))))
        line = line_height(font)
        room = rect.adjusted(PAD, text_top(detail) if detail >= LARGE else PAD, -PAD, -PAD)
        if room.width() <= 0 or room.height() < line:
            return
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        base = QPointF(room.left(), room.top() + QFontMetricsF(font).ascent())
        lines = text_lines(self.frame.text[:SHOWN], font, room.width(), int(room.height() // line))
        for number, text in enumerate(lines):
            painter.drawText(base + QPointF(0, number * line), text)

    def _paint_bar(self, painter: QPainter, rect: QRectF) -> None:
        """Paint the title of a collapsed frame and its number of layers."""
        inner = rect.adjusted(PAD, 0, -PAD, 0)
        painter.setFont(fonts().name)
        painter.setPen(theme.color("text"))
        painter.drawText(inner, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self.frame.title)
        painter.setFont(fonts().small)
        painter.setPen(theme.color("muted"))
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, self._note())
