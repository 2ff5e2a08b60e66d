"""Differences of a comparison, marked on the canvas: a badge and an outline for each layer, and ghosts of removed layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas.node_layout import fonts
from app.ui.engine.context import Context
from app.ui.widgets import theme
from designer.graph.compare import NetworkComparison

if TYPE_CHECKING:
    from app.ui.canvas.projection import Projection
    from app.ui.canvas.viewer import LayerViewer

GAP = 6.0  # between a layer and its outline, canvas units
BADGE = 20.0  # pixels
GHOST = (160.0, 48.0)
FAR = 0.35  # below this scale only outlines are drawn
_PENS: dict[str, tuple[theme.RoleName, Qt.PenStyle]] = {
    "+": ("positive", Qt.PenStyle.SolidLine),
    "~": ("warning", Qt.PenStyle.DashLine),
    "→": ("info", Qt.PenStyle.DotLine),
    "−": ("negative", Qt.PenStyle.DashDotLine),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A badge at a position. `ghost` is the name of a removed layer."""

    sign: str
    rect: QRectF
    ghost: str = ""


class DifferenceMarks(QGraphicsItem):
    """All marks in one item, which costs one call while nothing is compared."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[Mark] = []
        self._area = QRectF()
        self.setZValue(50)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemUsesExtendedStyleOption, True)

    def show_marks(self, marks: list[Mark]) -> None:
        self.prepareGeometryChange()
        self.marks = marks
        area = QRectF()
        for mark in marks:
            area = area.united(mark.rect)
        self._area = area.adjusted(-4 * BADGE, -4 * BADGE, 4 * BADGE, 4 * BADGE) if marks else area
        self.setVisible(bool(marks))
        self.update()

    def boundingRect(self) -> QRectF:
        return self._area

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        detail = max(option.levelOfDetailFromTransform(painter.worldTransform()), 0.01)
        seen = option.exposedRect.adjusted(-BADGE / detail, -BADGE / detail, BADGE / detail, BADGE / detail)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for mark in self.marks:
            if not mark.rect.intersects(seen):
                continue
            role, style = _PENS[mark.sign]
            pen = QPen(theme.color(role), 2.0 * painter.device().devicePixelRatio(), style)
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(mark.rect.adjusted(-GAP, -GAP, GAP, GAP), 8, 8)
            if detail < FAR:
                continue
            if mark.ghost:
                painter.setPen(theme.color("muted"))
                painter.setFont(fonts().name)
                painter.drawText(mark.rect, Qt.AlignmentFlag.AlignCenter, mark.ghost)
            self._badge(painter, mark, BADGE / min(detail, 1.0))

    def _badge(self, painter: QPainter, mark: Mark, size: float) -> None:
        """Paint the badge in a disc at the upper left corner."""
        place = QRectF(0, 0, size, size)
        place.moveCenter(mark.rect.topLeft() + QPointF(-GAP, -GAP))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(_PENS[mark.sign][0]))
        painter.drawEllipse(place)
        font = fonts().name
        painter.save()
        painter.setFont(font)
        painter.setPen(theme.color("sunken"))
        painter.translate(place.center())
        painter.scale(size / BADGE, size / BADGE)
        painter.drawText(QRectF(-BADGE, -BADGE, 2 * BADGE, 2 * BADGE), Qt.AlignmentFlag.AlignCenter, mark.sign)
        painter.restore()


class DifferenceMarker(QObject):
    """Keeps the marks in sync with the comparison."""

    def __init__(self, context: Context, viewer: LayerViewer, projection: Projection) -> None:
        super().__init__(viewer)
        self._context = context
        self._viewer = viewer
        self._projection = projection
        self.item = DifferenceMarks()
        viewer.scene().addItem(self.item)
        viewer.overlays.append(self.item)
        self.item.hide()
        context.comparison.changed.connect(self.refresh)

    def refresh(self, *_args: object) -> None:
        """Mark the differences in the current scope, after the canvas shows it."""
        if self._context.has_document and self._projection.document is not self._context.document:
            return
        comparison = self._context.comparison
        shown = comparison.shown() if comparison.other is not None else NetworkComparison()
        signs = dict.fromkeys(shown.moved, "→")
        signs.update(dict.fromkeys(sorted(comparison.shown_instances()), "~"))
        signs.update(dict.fromkeys((*shown.changed, *shown.rewired, *shown.renamed.values()), "~"))
        signs.update(dict.fromkeys(shown.added, "+"))
        seen: dict[str, set[str]] = {}
        for name, sign in signs.items():
            if name in self._projection:
                seen.setdefault(self._projection.shown_for(name), set()).add(sign)
        marks = [
            Mark(next(iter(found)) if len(found) == 1 else "~", self._projection.entry(name).area())
            for name, found in seen.items()
        ]
        other = comparison.shown_other()
        for name in shown.removed:
            if other is not None and name in other:
                x, y = other[name].position
                marks.append(Mark("−", QRectF(x, y, *GHOST), name))
        self.item.show_marks(marks)
        self._viewer.overlays_changed()
