"""Heat on the canvas: what each layer costs in the profiled run that the Profile workspace shows, its health in the training
run that the Train workspace shows, or the heat of a panel, with a legend.

The layers are framed in the color of their amount and labeled with the value. The critical path is drawn as a line through
its layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas.node_layout import fonts
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.engine.run_health import run_health_of
from app.ui.widgets import theme
from app.ui.widgets.heat import heat_color, paint_heat_bar
from designer.operators.inlining import inline
from designer.profiling.heat import DIFFERENCE, METRICS, Heat, critical_path, difference_heat, heat, in_scope
from designer.profiling.schema import ProfileRun
from designer.texts import tr
from designer.training.health import HealthHeat, health_heat

if TYPE_CHECKING:
    from app.ui.canvas.projection import Projection
    from app.ui.canvas.viewer import LayerViewer

BAND = 7.0  # width of the frame around a layer, canvas units
LABEL_FROM = 0.4  # below this scale only colors are drawn
MIN_BAND = 4.0  # pixels
EDGE = 12  # distance of the legend from the corner of the canvas, pixels


@dataclass(frozen=True, slots=True)
class Cell:
    """One framed layer: its area in canvas units, its share of the largest amount, and its label."""

    rect: QRectF
    share: float
    label: str
    signed: bool = False
    problem: bool = False

    @property
    def color(self) -> QColor:
        return theme.color("error") if self.problem else heat_color(self.share, signed=self.signed)


class HeatItem(QGraphicsItem):
    """All cells and the critical path in one item, which costs one call while no heat is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[Cell] = []
        self.path: list[QRectF] = []  # the areas of the layers on the critical path
        self._area = QRectF()
        self.setZValue(40)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemUsesExtendedStyleOption, True)

    def show_cells(self, cells: list[Cell], path: list[QRectF]) -> None:
        self.prepareGeometryChange()
        self.cells, self.path = cells, path
        area = QRectF()
        for cell in cells:
            area = area.united(cell.rect)
        for layer in path:
            area = area.united(layer)
        self._area = area.adjusted(-40, -60, 40, 40)
        self.setVisible(bool(cells or path))
        self.update()

    def boundingRect(self) -> QRectF:
        return self._area

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        detail = max(option.levelOfDetailFromTransform(painter.worldTransform()), 0.01)
        seen = option.exposedRect.adjusted(-60, -60, 60, 60)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if len(self.path) > 1:
            self._paint_path(painter)
        for cell in self.cells:
            if not cell.rect.intersects(seen):
                continue
            band = max(BAND, MIN_BAND / detail)
            frame = QPainterPath()  # filled by the odd-even rule: what is inside both is left out
            frame.addRoundedRect(cell.rect.adjusted(-band, -band, band, band), 8 + BAND, 8 + BAND)
            frame.addRoundedRect(cell.rect, 8, 8)
            painter.fillPath(frame, cell.color)
            if detail >= LABEL_FROM and cell.label:
                self._paint_label(painter, cell)

    def _paint_path(self, painter: QPainter) -> None:
        """Between the layers, so that their names can be read."""
        width = 3.0 * painter.device().devicePixelRatio()
        pen = QPen(theme.color("warning"), width, Qt.PenStyle.DashLine)
        pen.setCosmetic(True)
        painter.save()
        around, layers = QPainterPath(), QPainterPath()
        around.addRect(self._area)
        for area in self.path:
            layers.addRect(area)
        painter.setClipPath(around.subtracted(layers))
        painter.setPen(pen)
        painter.drawPolyline([area.center() for area in self.path])
        painter.restore()

    def _paint_label(self, painter: QPainter, cell: Cell) -> None:
        font = fonts()
        width = font.mono_metrics.horizontalAdvance(cell.label) + 12
        height = font.mono_metrics.height() + 4
        place = QRectF(cell.rect.right() + BAND - width, cell.rect.top() - BAND - height + 2, width, height)
        ground = cell.color
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ground)
        painter.drawRoundedRect(place, 4, 4)
        painter.setPen(theme.ink_on(ground))
        painter.setFont(font.mono)
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, cell.label)


class HeatLegend(QWidget):
    """A key of the colors in the lower left corner of the canvas."""

    def __init__(self, viewer: LayerViewer) -> None:
        super().__init__(viewer)
        self.setObjectName("canvas.heat_legend")
        self.setAccessibleName(tr("Legend of the heat"))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._viewer = viewer
        self._title = self._least = self._most = ""
        self._signed = False
        for bar in (viewer.horizontalScrollBar(), viewer.verticalScrollBar()):
            bar.rangeChanged.connect(self.place)
        self.hide()

    def show_heat(self, found: Heat | HealthHeat) -> None:
        """Show the title and the ends of the scale."""
        self._title, self._signed = found.title, found.signed
        self._least, self._most = found.ends
        self.setAccessibleDescription(f"{self._title}: {self._least} - {self._most}")
        self.resize(self.sizeHint())
        self.place()
        self.show()
        self.update()

    def place(self, *_: object) -> None:
        """Move to the corner of the canvas, whose size may have changed."""
        self.move(EDGE, self._viewer.viewport().height() - self.height() - EDGE)

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        ends = metrics.horizontalAdvance(self._least) + metrics.horizontalAdvance(self._most) + 24
        return QSize(max(180, metrics.horizontalAdvance(self._title) + 16, ends + 60), 2 * metrics.height() + 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("outline"), 1))
        painter.setBrush(theme.color("surface"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        line = self.fontMetrics().height()
        inner = self.rect().adjusted(8, 4, -8, -4)
        painter.setPen(theme.color("text"))
        painter.drawText(inner, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, self._title)
        paint_heat_bar(painter, QRectF(inner.left(), inner.top() + line + 3, inner.width(), 8), signed=self._signed)
        ends = inner.adjusted(0, line + 12, 0, 0)
        painter.setPen(theme.color("muted"))
        painter.drawText(ends, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, self._least)
        painter.drawText(ends, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight, self._most)


class HeatOverlay(QObject):
    """Keeps the heat in sync with the shown run, the scope and the layout."""

    changed = Signal()  # another metric, or none

    def __init__(self, context: Context, viewer: LayerViewer, projection: Projection) -> None:
        super().__init__(viewer)
        self._context = context
        self._viewer = viewer
        self._projection = projection
        self._profiling = profiling_of(context)
        self._health = run_health_of(context)
        self.metric = ""
        self.critical = False
        self._given: Heat | None = None  # by a panel, instead of that of a run; layers are paths
        self.item = HeatItem()
        self.legend = HeatLegend(viewer)
        viewer.scene().addItem(self.item)
        viewer.overlays.append(self.item)
        self.item.hide()
        self._profiling.current_changed.connect(self.refresh)
        self._profiling.compared_changed.connect(self.refresh)
        self._health.changed.connect(self.refresh)
        viewer.far_stale.connect(self.refresh)
        context.heat_requested.connect(self.show_given)
        context.document_changed.connect(self.refresh)
        context.root_changed.connect(lambda _: self.show_given(None))

    def show_given(self, found: object) -> None:
        """Color the layers by the `Heat` of a panel, with the paths of layers; None removes it."""
        if found is self._given:
            return
        self._given = found if isinstance(found, Heat) else None
        if self._given is not None:
            self.metric = ""
        self.refresh()
        self.changed.emit()

    def show_metric(self, metric: str) -> None:
        """Color the layers by a metric of `METRICS`; an empty text removes the heat."""
        self.metric, self._given = metric, None
        if metric and self._profiling.current is None:
            self._context.message.emit(
                "info",
                tr("No run to show yet. Launch inference in the Profile workspace, then the layers are colored."),
            )
        self.refresh()
        self.changed.emit()

    def toggle_critical_path(self) -> None:
        self.critical = not self.critical
        self.refresh()
        self.changed.emit()

    def refresh(self, *_: object) -> None:
        """Color the layers of the current scope by the heat of a panel or the shown profile; else by the health in the shown training run."""
        if self._given is not None and self._context.has_document:
            found = in_scope(self._given, self._in_sight)
            self._show_legend(found)
            self._paint(self._cells(found), [])
            return
        health, metric = self._health.health, self._health.metric
        if health is not None and metric and not (self.metric or self.critical) and self._context.has_document:
            self._show_health(health_heat(health, metric, self._in_sight))
            return
        entry = self._profiling.current
        if entry is None or not (self.metric or self.critical) or not self._context.has_document:
            self._paint([], [])
            self.legend.hide()
            return
        shown = self._found(entry.run)
        cells = self._cells(shown) if shown is not None else []
        self._show_legend(shown)
        self._paint(cells, self._path(entry.run) if self.critical else [])

    def _in_sight(self, path: str) -> str:
        """The layer that displays a layer path. The layers of a collapsed frame are displayed as one."""
        return self._projection.shown_for(self._context.in_sight(path))

    def _paint(self, cells: list[Cell], path: list[QRectF]) -> None:
        self.item.show_cells(cells, path)
        self._viewer.overlays_changed()

    def _show_legend(self, found: Heat | HealthHeat | None) -> None:
        """Show the scale, unless no layer has a value."""
        if found is not None and found.values:
            self.legend.show_heat(found)
        else:
            self.legend.hide()

    def _show_health(self, found: HealthHeat) -> None:
        """Color the layers by a statistic, and name the problems of layers."""
        self._show_legend(found)
        names = dict.fromkeys((*found.values, *found.problems))
        cells = []
        for name in names:
            if name in self._projection:
                problem, value = found.problems.get(name, ""), found.values.get(name)
                label = problem or (found.text(value) if value is not None else "")
                share = found.share(name) if value is not None else 0.0
                cells.append(Cell(self._projection.entry(name).area(), share, label, problem=bool(problem)))
        self._paint(cells, [])

    def _found(self, run: ProfileRun) -> Heat | None:
        if self.metric == DIFFERENCE.id:
            difference = self._profiling.difference()
            return difference_heat(difference, self._in_sight) if difference is not None else None
        return heat(run, METRICS[self.metric], self._in_sight) if self.metric else None

    def _cells(self, found: Heat) -> list[Cell]:
        return [
            Cell(self._projection.entry(name).area(), found.share(name), found.label(name), found.signed)
            for name, value in found.values.items()
            if name in self._projection and (value or not found.signed)
        ]

    def _path(self, run: ProfileRun) -> list[QRectF]:
        layers = critical_path(run, inline(self._context.root.graph, self._context.registry))
        names = dict.fromkeys(map(self._in_sight, layers))
        return [self._projection.entry(name).area() for name in names if name in self._projection]
