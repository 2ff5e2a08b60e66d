"""Curves of many runs in one plot. Imports pyqtgraph: import it when a plot is first shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from app.ui.widgets import theme
from app.ui.widgets.themed_plot import ThemedPlot
from designer.texts import tr

Values = NDArray[np.float64]
BLOCK = 16  # points whose extremes are remembered
VERTICES = 40_000  # of all curves together: more cannot be told apart, and cost time
_ROLES: tuple[theme.RoleName, ...] = ("accent", "positive_alt", "positive", "negative")
_STYLES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine)
NAMED = len(_ROLES) * len(_STYLES)  # curves with a look of their own and an entry in the legend; others are gray


@dataclass(frozen=True, eq=False)
class Curve:
    """One line: its title, and steps (increasing) with their values (without NaN)."""

    title: str
    x: Values
    y: Values

    @cached_property
    def coarse(self) -> tuple[Values, Values]:
        """The smallest and largest points of each block."""
        return reduced(self.x, self.y, -np.inf, np.inf, -(-len(self.x) // BLOCK))

    @cached_property
    def area(self) -> QRectF:
        """The area that the curve covers; empty without points."""
        if not len(self.x):
            return QRectF()
        low, high = self.y.min(), self.y.max()
        return QRectF(self.x[0], low, max(self.x[-1] - self.x[0], 1e-9), max(high - low, 1e-9))

    @cached_property
    def logarithm(self) -> Curve:
        """The curve of the decimal logarithms of its positive values."""
        positive = self.y > 0
        return Curve(self.title, self.x[positive], np.log10(self.y[positive]))

    def smoothed(self, share: float) -> Curve:
        """The means around each point over `share` of the points; fewer at both ends. A curve that is infinite somewhere stays."""
        count = len(self.y)
        half = round(count * share / 2)
        if not half or not np.isfinite(self.y).all():
            return self
        points = np.arange(count)
        inside = np.minimum(points + half + 1, count) - np.maximum(points - half, 0)
        return Curve(self.title, self.x, _window_sums(self.y, half) / inside)

    def between(self, low: float, high: float, columns: int) -> tuple[Values, Values]:
        """The part between two steps, reduced to at most two points per column."""
        first, last = np.searchsorted(self.x, (low, high))
        x, y = self.coarse if last - first > 4 * BLOCK * columns else (self.x, self.y)
        return reduced(x, y, low, high, columns)


def _window_sums(values: Values, half: int) -> Values:
    """The sum from `half` values before each one to `half` after it.

    Only these are added, in blocks of the size of a window: in a sum over all values, a peak would round those after it away.
    """
    size = 2 * half + 1
    blocks = np.pad(values, (half, half + -(len(values) + 2 * half) % size)).reshape(-1, size)
    to_the_end = blocks[:, ::-1].cumsum(1)[:, ::-1].ravel()
    from_the_start = blocks.cumsum(1)
    from_the_start[:, -1] = 0.0  # of a window that is a whole block
    first = np.arange(len(values))
    sums: Values = to_the_end[first] + from_the_start.ravel()[first + 2 * half]
    return sums


def reduced(x: Values, y: Values, low: float, high: float, columns: int) -> tuple[Values, Values]:
    """The part of a curve between `low` and `high`, at most two points per column: the smallest and largest of each.

    No peak is lost. One point on each side of the part is kept, so that the line reaches the edges.
    """
    first = max(int(np.searchsorted(x, low)) - 1, 0)
    last = min(int(np.searchsorted(x, high, "right")) + 1, len(x))
    x, y = x[first:last], y[first:last]
    if len(x) <= 2 * columns:
        return x, y
    size = -(-len(x) // columns)
    whole = len(x) // size * size
    starts = np.arange(0, len(x), size)
    blocks = y[:whole].reshape(-1, size)
    lows, highs = blocks.argmin(1), blocks.argmax(1)
    if whole < len(x):
        lows, highs = np.append(lows, y[whole:].argmin()), np.append(highs, y[whole:].argmax())
    chosen = np.sort(np.stack((starts + lows, starts + highs), 1), axis=1).ravel()
    return x[chosen], y[chosen]


def roomy(area: QRectF) -> QRectF:
    """An area with room around a single point or a flat line, so that the ticks of its axes differ."""
    wide, high = area.width(), area.height()
    x = 0.5 if wide < 1e-6 else 0.0
    y = (0.05 * abs(area.top()) or 0.5) if high <= 1e-6 * abs(area.top()) or high < 1e-8 else 0.0
    return area.adjusted(-x, -y, x, y)


class CurveBundle(pg.GraphicsObject):  # type: ignore[misc]
    """All curves in one item; what is painted is computed for the visible range only."""

    def __init__(self) -> None:
        super().__init__()
        self._curves: list[Curve] = []
        self._pens: list[QPen] = []
        self._logarithmic = False
        self._area = QRectF()

    def show_curves(self, curves: Sequence[Curve], pens: Sequence[QPen], logarithmic: bool) -> None:
        self.prepareGeometryChange()
        self._logarithmic = logarithmic
        self._curves = [curve.logarithm for curve in curves] if logarithmic else list(curves)
        self._pens = list(pens)
        self._area = QRectF()
        for curve in self._curves:
            self._area = self._area.united(curve.area)
        if not self._area.isNull():
            self._area = roomy(self._area)
        self.informViewBoundsChanged()
        self.update()

    def boundingRect(self) -> QRectF:
        return self._area

    def viewTransformChanged(self) -> None:
        super().viewTransformChanged()  # viewRect is another one
        self.update()

    def lines(self, low: float, high: float, width: int) -> list[tuple[Values, Values]]:
        """What is painted of each curve between two steps on `width` pixels."""
        columns = max(16, min(width, VERTICES // (2 * max(len(self._curves), 1))))
        return [curve.between(low, high, columns) for curve in self._curves]

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        view = self.viewRect()
        box = self.getViewBox()
        if view is None or box is None:
            return
        few = len(self._curves) <= NAMED
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, few)
        lines = self.lines(view.left(), view.right(), round(box.width()))
        for (x, y), pen in reversed(list(zip(lines, self._pens, strict=True))):
            painter.setPen(pen)
            if len(x) > 1:
                painter.drawPolyline(pg.functions.arrayToQPolygonF(x, y))
            elif len(x):
                dot = QPen(pen)
                dot.setWidthF(pen.widthF() + 4)
                dot.setCapStyle(Qt.PenCapStyle.RoundCap)
                painter.setPen(dot)
                point = painter.worldTransform().map(QPointF(x[0], y[0]))
                painter.save()
                painter.resetTransform()  # Qt stretches points whose units are not square
                painter.drawPoint(point)
                painter.restore()


class CurvePlot(ThemedPlot):
    """Curves of one metric by step. The range follows the curves until the user zooms; a double click follows them again."""

    named_changed = Signal(list)  # titles and pens of the curves that have a look of their own

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, tr("Training curves"), parent)
        self.bundle = CurveBundle()
        self.addItem(self.bundle)
        self._curves: list[Curve] = []
        self._title = ""
        self._logarithmic = False
        self._named: tuple[str, ...] = ()
        self.redraw()

    def show_curves(self, title: str, curves: Sequence[Curve], logarithmic: bool) -> None:
        """Draw other curves of a metric called `title`."""
        if logarithmic != self._logarithmic:
            self.getPlotItem().setLogMode(y=logarithmic)
        if (title, logarithmic) != (self._title, self._logarithmic):
            self.follow()
        self._title, self._curves, self._logarithmic = title, list(curves), logarithmic
        self._draw_curves()

    def follow(self) -> None:
        """Show the whole curves, also when they grow."""
        self.getViewBox().enableAutoRange()

    def mouseDoubleClickEvent(self, event: object) -> None:
        self.follow()

    def redraw(self) -> None:
        super().redraw()
        self._named = ()
        self._draw_curves()

    def _draw_curves(self) -> None:
        count = len(self._curves)
        pens = [_pen(number, wide=count <= NAMED) for number in range(count)]
        self.bundle.show_curves(self._curves, pens, self._logarithmic)
        self.label_axis("bottom", tr("Step"))
        self.label_axis("left", self._title)
        known = not self.bundle.boundingRect().isNull()
        for side in ("bottom", "left"):  # without points, the range has no meaning
            self.getAxis(side).setStyle(showValues=known)
        named = tuple(curve.title for curve in self._curves[:NAMED])
        if named != self._named:
            self._named = named
            self.named_changed.emit([(name, _pen(number, wide=True)) for number, name in enumerate(named)])


def _pen(number: int, *, wide: bool) -> QPen:
    """The pen of a curve by its position. Wide lines cost ten times as much, so many curves have thin ones."""
    if number >= NAMED:
        faint = QColor(theme.color("muted"))
        faint.setAlpha(110)
        return _cosmetic(QPen(faint, 1))
    style, role = divmod(number, len(_ROLES))
    return _cosmetic(QPen(theme.color(_ROLES[role]), 2 if wide else 1, _STYLES[style]))


def _cosmetic(pen: QPen) -> QPen:
    pen.setCosmetic(True)
    return pen
