"""Plots of a run on the screen: roofline, timeline, memory, precision, sweep and training step. Imports pyqtgraph: import it when a plot is first shown.

Each plot selects the rows that are clicked, and marks the selected ones. Figures that are saved are drawn by matplotlib
(`app.reports.profile_figures`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QPainter, QPen
from PySide6.QtWidgets import QGraphicsSceneMouseEvent, QStyleOptionGraphicsItem, QWidget

from app.ui.widgets import theme
from app.ui.widgets.themed_plot import ThemedPlot
from app.ui.widgets.tooltips import plain_tip
from designer.profiling.grouping import precision_shares
from designer.profiling.schema import OperatorProfile, ProfileRun
from designer.profiling.sweep import Sweep
from designer.texts import mark, tr, tr_data
from designer.units import binary, digits, duration, si

POINT = 9  # pixels
HEIGHT = 1.6  # of the timeline, in heights of a bar
MIN_NAMED = 48  # pixels: narrower bars of the timeline have no name
BOUND_ROLES: dict[str, theme.RoleName] = {
    "compute": "accent",
    "memory": "warning",
    "cache": "info",
    "launch": "positive_alt",
    "": "muted",
}
BOUND_TITLES = {
    "compute": mark("compute"),
    "memory": mark("memory"),
    "cache": mark("cache"),
    "launch": mark("launch"),
    "": mark("unknown"),
}


class SiAxis(pg.AxisItem):  # type: ignore[misc]
    """An axis whose logarithmic ticks have SI prefixes, such as 10 G. Where less than two decades are visible, 2 and 5 are named too."""

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float | None) -> list[str]:
        named = (1.0, 2.0, 5.0) if self.range[1] - self.range[0] < 2.0 else (1.0,)
        return [si(10.0**value, "") if round(10.0 ** (value % 1.0), 6) in (*named, 10.0) else "" for value in values]


class Plot(ThemedPlot):
    """A plot of the rows of one run."""

    rows_clicked = Signal(object)  # list of OperatorProfile

    title = ""
    keeps_range = True  # the visible range stays as long as the same run is shown

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        axes = {side: SiAxis(side) for side in ("left", "bottom")}
        super().__init__(name, tr_data(self.title), parent, axisItems=axes)
        self.run: ProfileRun | None = None
        self.legend = self.add_legend((-10, -10))
        self.chosen: frozenset[int] = frozenset()
        self.setAntialiasing(True)

    def show_run(self, run: ProfileRun | None, chosen: frozenset[int]) -> None:
        """Draw a run with the rows of the indexes `chosen` marked."""
        same = run is self.run
        self.run, self.chosen = run, chosen
        self.redraw()
        if not same or not self.keeps_range:
            self.getViewBox().autoRange(padding=0.06)

    def redraw(self) -> None:
        super().redraw()
        view = self.getViewBox().viewRange() if self.run is not None else None
        self.clear()
        self.legend.clear()  # of the keys that belong to no item of the plot
        if self.run is not None:
            self.draw(self.run)
        if view is not None:
            self.getViewBox().setRange(xRange=view[0], yRange=view[1], padding=0)

    def draw(self, run: ProfileRun) -> None:
        raise NotImplementedError


def tip(run: ProfileRun, row: OperatorProfile) -> str:
    """The values of a row, one per line."""
    lines = [row.name or tr("outside of operators"), row.type]
    lines.append(tr("{time}, {share} % of the rows", time=si(row.time_ms / 1e3, "s"), share=digits(run.share(row))))
    if row.flops_per_s:
        lines.append(si(row.flops_per_s, "FLOP/s"))
    if row.bytes_per_s:
        lines.append(si(row.bytes_per_s, "B/s"))
    if row.distance is not None:
        lines.append(tr("{distance} x the time at the roof", distance=digits(row.distance)))
    return "\n".join(line for line in lines if line)


class RooflinePlot(Plot):
    """Achieved FLOP/s of each row by its intensity, under the roofs of the machine; both axes are logarithmic."""

    title = mark("Roofline")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("charts.roofline", parent)
        self.setLogMode(x=True, y=True)
        self.points = pg.ScatterPlotItem(hoverable=True, hoverPen=pg.mkPen(width=2), tip=self._tip)
        self.points.sigClicked.connect(self._clicked)

    def draw(self, run: ProfileRun) -> None:
        self.label_axis("bottom", tr("Intensity (FLOP/B)"))
        self.label_axis("left", tr("Achieved (FLOP/s)"))
        placed = [(number, row) for number, row in enumerate(run.operators) if row.flops_per_s and row.intensity]
        self._draw_roofs(run, [row.intensity or 1.0 for _, row in placed])
        # Shared by the points: pyqtgraph renders the symbol of each brush and pen object.
        brushes = {bound: pg.mkBrush(theme.color(role)) for bound, role in BOUND_ROLES.items()}
        pens = {
            picked: pg.mkPen(theme.color("text" if picked else "surface"), width=1 + picked) for picked in (False, True)
        }
        spots = []
        for number, row in placed:
            picked = number in self.chosen
            spots.append(
                {
                    "pos": (np.log10(row.intensity or 1.0), np.log10(row.flops_per_s or 1.0)),
                    "data": number,
                    "size": POINT * 1.7 if picked else POINT,
                    "symbol": "d" if picked else "o",
                    "brush": brushes[row.bound],
                    "pen": pens[picked],
                }
            )
        spots.sort(key=lambda spot: spot["data"] in self.chosen)
        self.points.setData(spots)
        self.addItem(self.points)
        for bound in dict.fromkeys(row.bound for _, row in placed):
            key = pg.ScatterPlotItem(brush=theme.color(BOUND_ROLES[bound]), pen=None, size=POINT)
            self.legend.addItem(key, tr("bound by {what}", what=tr_data(BOUND_TITLES[bound])))

    def _draw_roofs(self, run: ProfileRun, intensities: Sequence[float]) -> None:
        peaks = run.peaks
        if peaks is None or peaks.flops_per_s.value is None:
            return
        top = peaks.flops_per_s.value
        roofs = [
            (tr("memory"), peaks.memory_bytes_per_s.value, Qt.PenStyle.SolidLine),
            (tr("cache"), peaks.cache_bytes_per_s.value, Qt.PenStyle.DashLine),
        ]
        ridges = [top / flow for _, flow, _ in roofs if flow]
        shown = [*intensities, *ridges] or [1.0]  # no step has FLOPs, and no bandwidth is known
        low, high = min(shown) / 2, max(shown) * 4
        for title, flow, style in roofs:
            if flow:
                line = pg.mkPen(theme.color("muted"), width=2, style=style)
                self.plot([low, top / flow], [low * flow, top], pen=line, name=f"{title} {si(flow, 'B/s')}")
        self.plot(
            [min(ridges, default=low), high],
            [top, top],
            pen=pg.mkPen(theme.color("text"), width=2),
            name=tr("compute {rate}", rate=si(top, "FLOP/s")),
        )

    def _tip(self, *, x: float, y: float, data: int) -> str:
        return tip(self.run, self.run.operators[data]) if self.run is not None else ""

    def _clicked(self, item: object, spots: Sequence[pg.SpotItem], event: object) -> None:
        if self.run is not None and len(spots):
            self.rows_clicked.emit([self.run.operators[spots[0].data()]])


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the timeline: its area in ms and lanes, and the row."""

    rect: QRectF
    row: int


class TimelineBars(pg.GraphicsObject):  # type: ignore[misc]
    """All bars in one item."""

    def __init__(self, run: ProfileRun, chosen: frozenset[int], clicked: Callable[[int], None]) -> None:
        super().__init__()
        self._clicked = clicked
        self._chosen = chosen
        self._run = run
        ends = list(accumulate(row.time_ms for row in run.operators))
        self.bars = [
            Bar(QRectF(end - row.time_ms, 0.0, row.time_ms, 1.0), number)
            for number, (row, end) in enumerate(zip(run.operators, ends, strict=True))
        ]
        self._area = QRectF(0.0, 0.0, ends[-1] if ends else 1.0, 1.0)
        self.setAcceptHoverEvents(True)

    def boundingRect(self) -> QRectF:
        return self._area

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        edge = QPen(theme.color("surface"), 1)
        edge.setCosmetic(True)
        marked = QPen(theme.color("text"), 3)
        marked.setCosmetic(True)
        scale = painter.worldTransform().m11()
        for bar in sorted(self.bars, key=lambda bar: bar.row in self._chosen):  # no bar covers a marked edge
            row = self._run.operators[bar.row]
            painter.setPen(marked if bar.row in self._chosen else edge)
            painter.setBrush(QBrush(theme.color(BOUND_ROLES[row.bound])))
            painter.drawRect(bar.rect)
            if bar.rect.width() * scale > MIN_NAMED:
                self._paint_name(painter, bar, row.name or tr("outside of operators"))

    def _paint_name(self, painter: QPainter, bar: Bar, name: str) -> None:
        area = painter.worldTransform().mapRect(bar.rect).adjusted(4, 2, -4, -2)
        painter.save()
        painter.resetTransform()
        painter.setPen(theme.ink_on(theme.color(BOUND_ROLES[self._run.operators[bar.row].bound])))
        shown = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, int(area.width()))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, shown)
        painter.restore()

    def at(self, x: float) -> int | None:
        """The row at a time in ms."""
        return next((bar.row for bar in self.bars if bar.rect.left() <= x < bar.rect.right()), None)

    def hoverMoveEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        row = self.at(event.pos().x())
        self.setToolTip(plain_tip(tip(self._run, self._run.operators[row])) if row is not None else "")

    def mousePressEvent(self, event: QGraphicsSceneMouseEvent) -> None:
        row = self.at(event.pos().x())
        if row is None or event.button() is not Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._clicked(row)


class TimelinePlot(Plot):
    """The rows in running order, as wide as their times."""

    title = mark("Timeline")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("charts.timeline", parent)
        self.hideAxis("left")
        self.setMouseEnabled(x=True, y=False)
        self.setLimits(yMin=0.0, yMax=HEIGHT, minYRange=HEIGHT)  # the legend is above the bars
        self.legend.anchor((1.0, 0.0), (1.0, 0.0), offset=(-10, 10))
        self.bars: TimelineBars | None = None

    def draw(self, run: ProfileRun) -> None:
        self.label_axis("bottom", tr("Time (ms), steps in running order"))
        self.bars = TimelineBars(run, self.chosen, lambda row: self.rows_clicked.emit([run.operators[row]]))
        self.addItem(self.bars)
        for bound in dict.fromkeys(row.bound for row in run.operators if row.layers):
            key = pg.BarGraphItem(x=[], height=[], width=1, brush=theme.color(BOUND_ROLES[bound]))
            self.legend.addItem(key, tr("bound by {what}", what=tr_data(BOUND_TITLES[bound])))


class MemoryPlot(Plot):
    """The memory that exists during each step, with the peak."""

    title = mark("Memory")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("charts.memory", parent)
        self.setMouseEnabled(x=True, y=False)
        self.scene().sigMouseClicked.connect(self._on_click)

    def draw(self, run: ProfileRun) -> None:
        self.label_axis("bottom", tr("Time (ms), steps in running order"))
        self.label_axis("left", tr("Memory (MiB)"))
        held = [(row.memory_bytes or 0) / 2**20 for row in run.operators]
        ends = list(accumulate(row.time_ms for row in run.operators))
        if not any(held):
            return
        fill = QColor(theme.color("accent"))
        fill.setAlpha(90)
        self.plot(
            [0.0, *ends],
            held,
            stepMode="center",
            fillLevel=0.0,
            brush=fill,
            pen=pg.mkPen(theme.color("accent"), width=2),
        )
        for number in sorted(self.chosen):
            start = ends[number] - run.operators[number].time_ms
            ground = QColor(theme.color("positive_alt"))
            ground.setAlpha(90)
            region = pg.LinearRegionItem((start, ends[number]), movable=False, brush=ground)
            self.addItem(region)
        peak = run.peak_memory
        if peak is not None:
            middle = ends[peak.operator] - run.operators[peak.operator].time_ms / 2
            text = tr("peak {size}", size=binary(peak.bytes))
            item = pg.TextItem(text, color=theme.color("text"), anchor=(0.5, 1.0))
            item.setFont(self.font())
            item.setPos(middle, peak.bytes / 2**20)
            self.addItem(item)
            self.addItem(pg.ScatterPlotItem([middle], [peak.bytes / 2**20], size=POINT, brush=theme.color("error")))
        self.setLimits(yMin=0)

    def row_at(self, x: float) -> int | None:
        """The index of the row at a time in ms."""
        if self.run is None:
            return None
        ends = accumulate(row.time_ms for row in self.run.operators)
        return next((number for number, end in enumerate(ends) if 0 <= x < end), None)

    def _on_click(self, event: object) -> None:
        place: QPointF = self.getViewBox().mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
        row = self.row_at(place.x())
        if row is not None and self.run is not None:
            self.rows_clicked.emit([self.run.operators[row]])


class PrecisionPlot(Plot):
    """The share of each precision in time and in operations."""

    title = mark("Precision")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("charts.precision", parent)
        self.setMouseEnabled(x=False, y=False)

    def draw(self, run: ProfileRun) -> None:
        shares = precision_shares(run)
        self.label_axis("left", tr("Share (%)"))
        self.getAxis("bottom").setTicks([[(0, tr("Time")), (1, tr("FLOPs"))]])
        base = np.zeros(2)
        for (precision, share), role in zip(shares.items(), _PRECISION_ROLES * len(shares), strict=False):
            height = np.array(share)
            bars = pg.BarGraphItem(
                x=[0, 1], y0=base, height=height, width=0.5, brush=theme.color(role), pen=theme.color("surface")
            )
            self.addItem(bars)
            for x in (0, 1):
                if height[x] >= SMALLEST_LABEL:
                    text = f"{precision} {digits(float(height[x]))} %"
                    item = pg.TextItem(text, color=theme.ink_on(theme.color(role)), anchor=(0.5, 0.5))
                    item.setFont(self.font())
                    item.setPos(x, base[x] + height[x] / 2)
                    self.addItem(item)
            base = base + height


SMALLEST_LABEL = 8  # % of a bar that is tall enough for its text
_PRECISION_ROLES: tuple[theme.RoleName, ...] = ("accent", "positive_alt", "warning", "info")


class TrainingPlot(Plot):
    """The phases of a training step, one bar each."""

    title = mark("Training Step")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("charts.training", parent)
        self.setMouseEnabled(x=False, y=False)

    def draw(self, run: ProfileRun) -> None:
        phases = run.training.phases if run.training is not None else {}
        self.label_axis("bottom", tr("Time (ms)"))
        places = list(range(len(phases), 0, -1))
        texts = [f"{tr_data(name)} {duration(milliseconds)}" for name, milliseconds in phases.items()]
        self.getAxis("left").setTicks([list(zip(places, texts, strict=True))])
        if phases:
            width = list(phases.values())
            self.addItem(
                pg.BarGraphItem(x0=0, y=places, width=width, height=0.6, brush=theme.color("accent"), pen=None)
            )


class SweepPlot(Plot):
    """Throughput (left axis) and latency (right axis) against the batch or the size, with the knee."""

    keeps_range = False
    axis_title = ""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.sweep: Sweep | None = None
        self.setMouseEnabled(x=False, y=False)
        self.showAxis("right")
        self.legend.anchor((0.5, 0.0), (0.5, 0.0), offset=(0, 10))  # the curves end in the corners

    def draw(self, run: ProfileRun) -> None:
        sweep = self.sweep
        if sweep is None:
            return
        self.label_axis("bottom", tr_data(self.axis_title))
        self.label_axis("left", tr("Throughput ({unit})", unit=sweep.unit))
        self.label_axis("right", tr("Latency (ms)"))
        positions = [sweep.position(found) for found in sweep.runs]
        rates = [sweep.throughput(found) for found in sweep.runs]
        latencies = [found.time_ms or 0.0 for found in sweep.runs]
        scale = max(rates) / max(latencies)  # both curves use the full height; the right axis has the values in ms
        self.getAxis("right").setScale(1 / scale)
        for values, role, symbol, name in (
            (rates, "accent", "o", tr("throughput")),
            ([latency * scale for latency in latencies], "positive_alt", "s", tr("latency")),
        ):
            color = theme.color(cast("theme.RoleName", role))
            pen = pg.mkPen(color, width=2)
            self.plot(positions, values, pen=pen, symbol=symbol, symbolBrush=color, symbolPen=None, name=name)
        pen = pg.mkPen(theme.color("muted"), style=Qt.PenStyle.DashLine)
        knee = sweep.position(sweep.knee)
        self.addItem(pg.InfiniteLine(knee, pen=pen, label=tr("knee"), labelOpts={"color": theme.color("text")}))
        labels = [sweep.label(found) for found in sweep.runs]
        self.getAxis("bottom").setTicks([list(zip(positions, labels, strict=True))])


class BatchSweepPlot(SweepPlot):
    title = mark("Batch Sweep")
    axis_title = mark("Batch")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("charts.batch", parent)


class SizeSweepPlot(SweepPlot):
    title = mark("Size Sweep")
    axis_title = mark("Size")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("charts.size", parent)
