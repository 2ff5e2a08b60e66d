"""What an item of the canvas or a widget paints, in the order of painting, with colors named by their role in the theme."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args
from xml.etree import ElementTree

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRectF, QSize
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPainterPath, QRegion, QTransform
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.ui.widgets import theme
from designer.operators.api import Category

ROOM = 4000  # of the page, canvas units
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Stroke:
    """One thing that is painted. `area` is where, in the coordinates of the item or widget."""

    kind: str  # "text", "image", or the SVG element of a shape
    area: QRectF
    fill: str = ""
    pen: str = ""
    text: str = ""

    def __str__(self) -> str:
        parts = [repr(self.text)] if self.kind == "text" else []
        parts += [f"filled {self.fill}"] if self.fill else []
        parts += [f"outlined {self.pen}"] if self.pen else []
        return " ".join((self.kind, *parts))


Target = QGraphicsItem | QWidget | Callable[[QPainter], None]


def strokes(target: Target, zoom: float = 1.0) -> list[Stroke]:
    """What `target` paints at a scale of `zoom`."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(QSize(ROOM, ROOM))
    painter = QPainter(generator)
    painter.scale(zoom, zoom)
    if isinstance(target, QWidget):
        target.render(painter, QPoint(), QRegion(target.rect()), QWidget.RenderFlag.DrawChildren)
    elif isinstance(target, QGraphicsItem):
        option = QStyleOptionGraphicsItem()
        option.exposedRect = target.boundingRect()
        target.paint(painter, option, None)
    else:
        target(painter)
    painter.end()
    return of_svg(bytes(buffer.data().data()), zoom)


def of_svg(data: bytes, zoom: float = 1.0) -> list[Stroke]:
    """What an SVG has in the order of painting."""
    root = ElementTree.fromstring(data.decode())
    back = QTransform.fromScale(1 / zoom, 1 / zoom)
    return [made for group in root.iter() if _tag(group) == "g" for made in _of_group(group, back)]


def painted(target: Target, zoom: float = 1.0) -> list[str]:
    """The same as lines of text, without areas."""
    return [str(stroke) for stroke in strokes(target, zoom)]


def texts(target: Target, zoom: float = 1.0) -> list[str]:
    """The texts that are painted."""
    return [stroke.text for stroke in strokes(target, zoom) if stroke.kind == "text"]


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _of_group(group: ElementTree.Element, back: QTransform) -> list[Stroke]:
    matrix = [float(n) for n in NUMBER.findall(group.get("transform", ""))] or [1.0, 0, 0, 1, 0, 0]
    to_item = QTransform(*matrix) * back
    found = []
    for element in group:
        kind = _tag(element)
        if kind in ("g", "title", "desc", "defs"):
            continue
        if kind == "text":
            text = "".join(element.itertext())
            found.append(Stroke(kind, to_item.mapRect(_text_area(element, text)), _paint(element, "fill"), "", text))
        elif kind == "image":
            found.append(Stroke(kind, to_item.mapRect(_box(element)), _ends(element)))
        else:
            fill = _paint(group, "fill") if element.get("fill") != "none" else ""
            closed = kind not in ("polyline", "line") and not (kind == "path" and "Z" not in element.get("d", ""))
            found.append(Stroke(kind, to_item.mapRect(_box(element)), fill if closed or fill else "", _pen(group)))
    return found


def _box(element: ElementTree.Element) -> QRectF:
    """The bounds of a shape."""
    number = {key: float(value) for key, value in element.attrib.items() if NUMBER.fullmatch(value)}
    if "cx" in number:
        rx, ry = number.get("rx", number.get("r", 0.0)), number.get("ry", number.get("r", 0.0))
        return QRectF(number["cx"] - rx, number["cy"] - ry, 2 * rx, 2 * ry)
    if "width" in number:
        return QRectF(number.get("x", 0.0), number.get("y", 0.0), number["width"], number["height"])
    if "x1" in number:
        return QRectF(number["x1"], number["y1"], number["x2"] - number["x1"], number["y2"] - number["y1"]).normalized()
    values = [float(n) for n in NUMBER.findall(element.get("d") or element.get("points") or "")]
    path = QPainterPath()
    for at, (x, y) in enumerate(zip(values[::2], values[1::2], strict=True)):
        (path.lineTo if at else path.moveTo)(x, y)
    return path.controlPointRect()


def _ends(element: ElementTree.Element) -> str:
    """The colors of the first and the last pixel of an image."""
    data = next(value for key, value in element.attrib.items() if key.endswith("href")).partition(",")[2]
    image = QImage.fromData(b64decode(data))
    return f"{image.pixelColor(0, 0).name()} to {image.pixelColor(image.width() - 1, image.height() - 1).name()}"


def _text_area(element: ElementTree.Element, text: str) -> QRectF:
    font = QFont(element.get("font-family"))
    font.setPixelSize(max(1, int(float(element.get("font-size", "9")))))
    font.setWeight(QFont.Weight(int(element.get("font-weight", "400"))))
    metrics = QFontMetricsF(font)
    width = metrics.horizontalAdvance(text)
    return QRectF(
        float(element.get("x", "0")), float(element.get("y", "0")) - metrics.ascent(), width, metrics.height()
    )


def _paint(element: ElementTree.Element, kind: str) -> str:
    value = element.get(kind, "none")
    opacity = float(element.get(f"{kind}-opacity", "1")) * float(element.get("opacity", "1"))
    if value == "none" or not opacity:
        return ""
    name = role(QColor(value)) if value.startswith("#") else "gradient"
    return name if opacity > 0.99 else f"{name} at {opacity:.0%}"


def _pen(group: ElementTree.Element) -> str:
    ink = _paint(group, "stroke")
    if not ink:
        return ""
    width = float(group.get("stroke-width", "1"))
    dash = f" dashed {group.get('stroke-dasharray')}" if group.get("stroke-dasharray") else ""
    return f"{ink} {width:g}{dash}"


def role(ink: QColor) -> str:
    """The roles of a color in the theme, or its value."""
    roles = [name for name in get_args(theme.RoleName) if theme.color(name).name() == ink.name()]
    roles += [f"category {which.value}" for which in Category if theme.category(which).name() == ink.name()]
    return "/".join(roles) or ink.name()
