"""Layout of nodes in canvas units, computed from their texts so that no text is cut off."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import Any

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QGuiApplication

from app.ui.canvas.node_look import NodeLook, PortLook
from designer.graph.model import GRID

PAD = 10.0
PORT_RADIUS = 5.0
MARK = 16.0
MARK_GAP = 6.0
MIN_WIDTH = 144.0
LEAST = 9.0  # minimum font size in pixels of names and comments at any scale
LINES = (
    2  # of text in a box: title and summary. A box without a summary is as high, so that its name fits when zoomed out
)


@dataclass(frozen=True, eq=False)
class Fonts:
    """The fonts of the canvas, derived from the application font, with their metrics."""

    name: QFont
    small: QFont
    mono: QFont
    name_metrics: QFontMetricsF = field(init=False)
    small_metrics: QFontMetricsF = field(init=False)
    mono_metrics: QFontMetricsF = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name_metrics", QFontMetricsF(self.name))
        object.__setattr__(self, "small_metrics", QFontMetricsF(self.small))
        object.__setattr__(self, "mono_metrics", QFontMetricsF(self.mono))


def fonts() -> Fonts:
    """The fonts for the current application font."""
    base = QGuiApplication.font()
    if not _last or _last[0] != base:  # comparing is much faster than converting the font to a key
        _last[:] = [QFont(base), _fonts(base.toString())]
    found: Fonts = _last[1]
    return found


_last: list[Any] = []  # the application font and the fonts derived from it


def text_width(name: str, text: str) -> float:
    """The width of a text in the current font of that name."""
    return _wide(fonts(), name, text)


@lru_cache(maxsize=4096)
def _wide(metrics: Fonts, name: str, text: str) -> float:
    """The width of a text in one of the fonts. It is cached, because most nodes share a few texts."""
    width: float = getattr(metrics, name).horizontalAdvance(text)
    return width


@lru_cache(maxsize=4)
def _fonts(key: str) -> Fonts:
    """Sizes in pixels (canvas units), because sizes in points would differ between the screen and a PDF or SVG."""
    base = QFont()
    base.fromString(key)
    screen = QGuiApplication.primaryScreen()
    dots = screen.logicalDotsPerInch() if screen is not None else 96.0
    size = base.pointSizeF() * dots / 72 if base.pointSizeF() > 0 else float(max(base.pixelSize(), 9))
    name, small = QFont(base), QFont(base)
    name.setPixelSize(round(size * 1.1))
    name.setWeight(QFont.Weight.DemiBold)
    small.setPixelSize(round(size * 0.85))
    mono = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    mono.setPixelSize(round(size * 0.85))
    return Fonts(name, small, mono)


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of the parts of a node, relative to the top left corner of its box.

    `tab` is empty without an attached activation; `bounds` contains everything that is painted. `block` represents the node
    when zoomed out, and covers the text below the box, which is not shown then.
    """

    box: QRectF
    header: float
    tab: QRectF
    left: float
    right: float
    bounds: QRectF
    inputs: tuple[tuple[float, float], ...]
    outputs: tuple[tuple[float, float], ...]
    block: QRectF = field(init=False)

    def __post_init__(self) -> None:
        bottom = max(self.box.bottom(), self.bounds.bottom() - 3)
        object.__setattr__(self, "block", QRectF(self.box.topLeft(), QPointF(self.box.right(), bottom)))

    @property
    def mark(self) -> QRectF:
        """The rectangle of the first mark in the title bar, which is that of a problem if there is one."""
        return QRectF(self.box.right() - PAD - MARK, (self.header - MARK) / 2, MARK, MARK)


def layout(look: NodeLook) -> Layout:
    """The layout of `look`. Width and height of the box are multiples of half the grid."""
    f = fonts()
    header = ceil(f.name_metrics.height()) + 8.0
    if look.collapsed:
        return _title_alone(look, header, f)
    line = f.small_metrics.height() + 2
    step = max(18.0, line)
    left = _column(look.inputs, f) if look.named_inputs else 0.0
    right = _column(look.outputs, f) if look.named_outputs else 0.0
    body = max(_wide(f, "small_metrics", look.title), _wide(f, "mono_metrics", look.summary))
    width = max(
        MIN_WIDTH,
        2 * PAD + f.name_metrics.horizontalAdvance(look.name) + look.marks * (MARK + MARK_GAP),
        2 * PAD + left + body + right,
    )
    width = _snap(width)
    ports = max(len(look.inputs), len(look.outputs))
    height = _snap(header + max(LINES * line, ports * step) + 8)
    first = header + 4 + step / 2
    tab = QRectF()
    if look.activation:
        tab_width = _wide(f, "small_metrics", look.activation) + 16
        tab = QRectF(width, first - line / 2 - 1, tab_width, line + 2)
    shape = _wide(f, "mono_metrics", look.under)
    wide = max(width + tab.width(), PAD + shape)
    edge = PORT_RADIUS + 3
    bounds = QRectF(-edge, -3, wide + 2 * edge, height + f.mono_metrics.height() + 8)
    return Layout(
        QRectF(0, 0, width, height),
        header,
        tab,
        left,
        right,
        bounds,
        tuple((0.0, first + i * step) for i in range(len(look.inputs))),
        tuple((width + (tab.width() if i == 0 else 0.0), first + i * step) for i in range(len(look.outputs))),
    )


def _title_alone(look: NodeLook, header: float, f: Fonts) -> Layout:
    """The layout of a collapsed node: all ports are in the middle of the sides of its title bar."""
    width = _snap(2 * PAD + f.name_metrics.horizontalAdvance(look.name) + look.marks * (MARK + MARK_GAP))
    height, edge = _snap(header), PORT_RADIUS + 3
    return Layout(
        QRectF(0, 0, width, height),
        height,
        QRectF(),
        0.0,
        0.0,
        QRectF(-edge, -3, width + 2 * edge, height + 6),
        ((0.0, height / 2),) * len(look.inputs),
        ((width, height / 2),) * len(look.outputs),
    )


def _column(ports: tuple[PortLook, ...], f: Fonts) -> float:
    return max((_wide(f, "small_metrics", p.name) for p in ports), default=0.0) + 10


def _snap(value: float) -> float:
    half = GRID // 2
    return float(ceil(value / half) * half)
