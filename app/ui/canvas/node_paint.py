"""Paints nodes: a box with texts, or a filled block in the color of its category when zoomed out."""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF

from app.ui.canvas.links import PaintedNode, PortDot
from app.ui.canvas.node_layout import LEAST, MARK, MARK_GAP, PAD, PORT_RADIUS, Fonts, Layout, fonts
from app.ui.widgets import theme
from designer.operators.api import Category

READABLE = 0.7  # below this scale nodes are blocks with names, because smaller texts are not readable
PORTS = 0.45  # below this scale ports are not painted
NAMED = 0.18  # below this scale not even names are readable
RADIUS = 5.0
CONDENSED = 82  # percent of the normal width, for names that are larger than their box was made for
SPACING = 1.05  # distance between two lines of a name, as a multiple of the font size
EDGE = 2.0  # pixels between a name and the edges of its block
GHOST = 0.4  # opacity of a bypassed layer
_PROBLEM: dict[str, theme.RoleName] = {"error": "error", "warning": "warning", "unknown": "muted"}


def paint(painter: QPainter, item: PaintedNode, detail: float) -> None:
    """Paint `item` at a scale of `detail` device pixels per canvas unit."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, detail >= PORTS)
    painter.setOpacity(GHOST if item.look.bypassed else 1.0)
    if detail < READABLE:
        _paint_block(painter, item, detail)
    else:
        _paint_box(painter, item, detail)


def _category(item: PaintedNode) -> QColor:
    return theme.category(item.look.category or Category.DEVELOPMENT)


def _paint_block(painter: QPainter, item: PaintedNode, detail: float) -> None:
    place = item.layout
    block = place.block
    painter.fillRect(block, _category(item))
    if not place.tab.isEmpty():
        painter.fillRect(place.tab, theme.category(Category.ACTIVATION))
    if detail >= NAMED:
        paint_name(painter, block, item.look.name, detail)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if item.look.training:
        painter.setPen(training_pen(painter.device().devicePixelRatio()))
        painter.drawRect(block)
    if item.isSelected():
        pen = _pen(theme.color("link_active"), 3.0 * painter.device().devicePixelRatio())
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.drawRect(block)
    if detail >= PORTS:
        for dot in (*item.inputs, *item.outputs):
            _paint_port(painter, dot)
    if item.look.problem in ("error", "warning"):
        paint_block_mark(painter, block, item.look.problem, detail)


def paint_block_mark(painter: QPainter, box: QRectF, problem: str, detail: float) -> None:
    """Paint the mark of an error or a warning, large enough to be visible when zoomed out."""
    side = min(box.height(), max(MARK, 10.0 / detail))
    center = box.topRight()  # clear of the name
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    _paint_mark(painter, QRectF(center.x() - side / 2, center.y() - side / 2, side, side), problem)


def paint_name(painter: QPainter, block: QRectF, name: str, detail: float) -> None:
    """Paint a name in the middle of its block, at the size for the scale, on two lines where one is too short."""
    font, _ = name_font(detail)
    painter.setFont(font)
    painter.setPen(theme.color("on_category"))
    lines, step = name_lines(block.width(), block.height(), name, detail), font.pixelSize() * SPACING
    top = block.center().y() - len(lines) * step / 2
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip
    for number, line in enumerate(lines):
        painter.drawText(QRectF(block.left(), top + number * step, block.width(), step), flags, line)


def name_lines(width: float, height: float, name: str, detail: float) -> tuple[str, ...]:
    """A name as the lines that fit into a block of this size (canvas units), shortened only if two lines are too short."""
    font, _ = name_font(detail)
    rows = 2 if height >= 2 * font.pixelSize() else 1  # the space around two lines may be outside of the block
    return _broken(fonts(), ceil(LEAST / detail), int(width - 2 * EDGE / detail), rows, name)


@lru_cache(maxsize=4096)
def _broken(f: Fonts, size: int, width: int, rows: int, name: str) -> tuple[str, ...]:
    """The lines of a name; most nodes share few sizes, and names are painted in every frame."""
    _, metrics = _font(f, size)
    if metrics.horizontalAdvance(name) <= width:
        return (name,)
    if rows == 1:
        return (metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, width),)
    words = [(name[: at + 1], name[at + 1 :]) for at, letter in enumerate(name) if letter in "_."]
    widest = [max(metrics.horizontalAdvance(part) for part in pair) for pair in words]
    if words and min(widest) <= width:
        return words[widest.index(min(widest))]
    head = next(
        (name[:at] for at in range(len(name), 1, -1) if metrics.horizontalAdvance(name[:at]) <= width), name[:1]
    )
    return head, metrics.elidedText(name[len(head) :], Qt.TextElideMode.ElideLeft, width)


def name_font(detail: float) -> tuple[QFont, QFontMetricsF]:
    """The font of names at a scale of `detail` pixels per canvas unit."""
    return _font(fonts(), ceil(LEAST / detail))


def _font(f: Fonts, size: int) -> tuple[QFont, QFontMetricsF]:
    return (f.name, f.name_metrics) if size <= f.name.pixelSize() else _sized(f, size)


@lru_cache(maxsize=64)
def _sized(f: Fonts, size: int) -> tuple[QFont, QFontMetricsF]:
    font = QFont(f.name)
    font.setPixelSize(size)
    font.setWeight(QFont.Weight.Medium)
    font.setStretch(CONDENSED)
    return font, QFontMetricsF(font)


def _header(box: QRectF, height: float) -> QPainterPath:
    """The upper part of a box. It is a path of its own, since an SVG has no clipping."""
    header, side = QPainterPath(), 2 * RADIUS
    header.moveTo(box.left(), box.top() + height)
    header.arcTo(box.left(), box.top(), side, side, 180, -90)
    header.arcTo(box.right() - side, box.top(), side, side, 90, -90)
    header.lineTo(box.right(), box.top() + height)
    header.closeSubpath()
    return header


def _paint_box(painter: QPainter, item: PaintedNode, detail: float) -> None:
    look, place, f = item.look, item.layout, fonts()
    box = place.box
    if not place.tab.isEmpty():
        _paint_tab(painter, place, look.activation, f)
    body = QPainterPath()
    body.addRoundedRect(box, RADIUS, RADIUS)
    painter.fillPath(body, theme.color("raised"))
    painter.fillPath(_header(box, place.header) if place.header < box.height() else body, _category(item))
    _paint_texts(painter, item, f, detail)
    mark = QRectF(place.mark)
    if look.problem:
        _paint_mark(painter, mark, look.problem)
        mark.translate(-MARK - MARK_GAP, 0)
    if look.inspected:
        theme.icon("eye-outline", "on_category").paint(painter, mark.toRect())
        mark.translate(-MARK - MARK_GAP, 0)
    if look.training:
        theme.icon("school-outline", "on_category").paint(painter, mark.toRect())
    pen = _pen(theme.color("outline"), 1.0)
    if look.training:
        pen = training_pen()
    if item.isSelected():
        pen = _pen(theme.color("link_active"), 2.5)
    elif look.problem:
        pen = _pen(theme.color(_PROBLEM[look.problem]), 1.6)
        if look.problem == "unknown":
            pen.setStyle(Qt.PenStyle.DashLine)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(body)
    for dot in (*item.inputs, *item.outputs):
        _paint_port(painter, dot)


def _paint_texts(painter: QPainter, item: PaintedNode, f: Fonts, detail: float) -> None:
    look, place = item.look, item.layout
    box = place.box
    font, metrics = name_font(detail)
    painter.setFont(font)
    painter.setPen(theme.color("on_category"))
    head = QRectF(PAD, 0, box.width() - 2 * PAD - look.marks * (MARK + MARK_GAP), place.header)
    name = look.name
    if font is not f.name:
        name = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, head.width())
    painter.drawText(head, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, name)
    if look.collapsed:
        return
    line = f.small_metrics.height() + 2
    top, left = place.header + 4, PAD + place.left
    wide = box.width() - left - PAD - place.right
    painter.setFont(f.small)
    painter.setPen(theme.color("muted"))
    at_left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(QRectF(left, top, wide, line), at_left, look.title)
    for dots, named, align in (
        (item.inputs, look.named_inputs, Qt.AlignmentFlag.AlignLeft),
        (item.outputs, look.named_outputs, Qt.AlignmentFlag.AlignRight),
    ):
        for dot in dots if named else ():
            row = QRectF(PAD, dot.y() - line / 2, box.width() - 2 * PAD, line)
            painter.drawText(row, align | Qt.AlignmentFlag.AlignVCenter, dot.look.name)
    if look.summary:
        painter.setFont(f.mono)
        painter.setPen(theme.color("text"))
        painter.drawText(QRectF(left, top + line, wide, line), at_left, look.summary)
    if look.under:
        painter.setFont(f.mono)
        painter.setPen(theme.color("muted"))
        under = QRectF(PAD, box.bottom() + 2, place.bounds.right() - PAD, f.mono_metrics.height())
        painter.drawText(under, at_left, look.under)


def _paint_tab(painter: QPainter, place: Layout, text: str, f: Fonts) -> None:
    tab = place.tab.adjusted(-RADIUS, 0, 0, 0)  # overlaps the box, so that both look joined
    path = QPainterPath()
    path.addRoundedRect(tab, RADIUS, RADIUS)
    painter.fillPath(path, theme.category(Category.ACTIVATION))
    painter.setPen(theme.color("on_category"))
    painter.setFont(f.small)
    painter.drawText(place.tab, Qt.AlignmentFlag.AlignCenter, text)


def _paint_port(painter: QPainter, dot: PortDot) -> None:
    center = dot.pos()
    if dot.grayed:
        painter.setPen(_pen(theme.color("disabled"), 1.4))
        painter.setBrush(theme.color("sunken"))
        painter.drawEllipse(center, PORT_RADIUS, PORT_RADIUS)
        reach = PORT_RADIUS * 0.6
        painter.drawLine(center + QPointF(-reach, -reach), center + QPointF(reach, reach))
        return
    ink = theme.color("link_active" if dot.hovered else "link")
    radius = PORT_RADIUS + (1.5 if dot.hovered else 0.0)
    pen = _pen(ink, 1.6)
    if dot.look.free:
        pen.setStyle(Qt.PenStyle.DotLine)
    painter.setPen(pen)
    painter.setBrush(QBrush(ink if dot.connected_pipes else theme.color("sunken")))
    painter.drawEllipse(center, radius, radius)


def _paint_mark(painter: QPainter, place: QRectF, problem: str) -> None:
    """Error: a disc with a cross; warning: a triangle with an exclamation mark; unknown: a disc with a question mark."""
    ground = theme.color("sunken")
    ink = theme.color(_PROBLEM[problem])
    painter.setPen(_pen(ink, place.width() / 12))
    painter.setBrush(ground)
    if problem == "warning":
        painter.drawPolygon(
            QPolygonF([QPointF(place.center().x(), place.top()), place.bottomRight(), place.bottomLeft()])
        )
    else:
        painter.drawEllipse(place)
    if problem == "error":
        inner = place.adjusted(place.width() * 0.3, place.height() * 0.3, -place.width() * 0.3, -place.height() * 0.3)
        painter.setPen(_pen(ink, place.width() / 7))
        painter.drawLine(inner.topLeft(), inner.bottomRight())
        painter.drawLine(inner.topRight(), inner.bottomLeft())
        return
    font = fonts().small
    font = type(font)(font)
    font.setBold(True)
    font.setPixelSize(max(1, round(place.height() * (0.6 if problem == "warning" else 0.75))))
    painter.setFont(font)
    painter.setPen(ink)
    lower = place.adjusted(0, place.height() * 0.2, 0, 0) if problem == "warning" else place
    painter.drawText(lower, Qt.AlignmentFlag.AlignCenter, "!" if problem == "warning" else "?")


def training_pen(ratio: float = 0.0) -> QPen:
    """The pen for the outline of layers of the training branch. With the pixel ratio of the screen, it has one width at all scales."""
    pen = _pen(theme.color("muted"), 2.0 * (ratio or 1.0))
    pen.setDashPattern([5.0, 3.0])
    pen.setCosmetic(ratio > 0)
    return pen


def _pen(ink: QColor, width: float) -> QPen:
    pen = QPen(ink, width)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    return pen
