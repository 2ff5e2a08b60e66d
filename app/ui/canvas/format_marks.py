"""Number formats of layers on the canvas: a badge where a layer of the current variant has a format of its own, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSceneHoverEvent, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas.node_layout import fonts
from app.ui.engine.context import Context
from app.ui.engine.number_formats import TITLES, number_formats_of, reason_text
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.files.variants import BY_HAND
from designer.texts import tr, tr_data

if TYPE_CHECKING:
    from app.ui.canvas.projection import Projection
    from app.ui.canvas.viewer import LayerViewer

FAR = 0.35  # below this scale badges are dots
DOT = 4.0  # radius, pixels
HEIGHT, MARGIN = 18.0, 6.0  # canvas units
MOST_TIPS = 12  # lines about the layers of a collapsed frame


@dataclass(frozen=True, slots=True)
class Badge:
    """A badge at the lower left corner of a layer. `by_hand`: the user changed a format that was found."""

    rect: QRectF
    text: str
    tip: str
    by_hand: bool = False


class FormatBadges(QGraphicsItem):
    """All badges in one item, which costs one call while no layer has a format of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.badges: list[Badge] = []
        self._path = QPainterPath()
        self.setZValue(45)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.setAcceptHoverEvents(True)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemUsesExtendedStyleOption, True)

    def show_badges(self, badges: list[Badge]) -> None:
        self.prepareGeometryChange()
        self.badges = badges
        self._path = QPainterPath()
        for badge in badges:
            self._path.addRect(badge.rect)
        self.setVisible(bool(badges))
        self.update()

    def boundingRect(self) -> QRectF:
        return self._path.boundingRect()

    def shape(self) -> QPainterPath:
        return self._path

    def hoverMoveEvent(self, event: QGraphicsSceneHoverEvent) -> None:
        self.setToolTip(self.tip_at(event.pos()))

    def tip_at(self, place: QPointF) -> str:
        """The tooltip of the badge at a position; empty outside of badges."""
        return next((badge.tip for badge in self.badges if badge.rect.contains(place)), "")

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        detail = max(option.levelOfDetailFromTransform(painter.worldTransform()), 0.01)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(fonts().mono)
        for badge in self.badges:
            if not badge.rect.intersects(option.exposedRect):
                continue
            ground = theme.color("warning" if badge.by_hand else "info")
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ground)
            if detail < FAR:
                dot = DOT / detail
                painter.drawEllipse(badge.rect.center() - QPointF(badge.rect.width() / 2, 0), dot, dot)
                continue
            painter.drawRoundedRect(badge.rect, 4, 4)
            painter.setPen(theme.ink_on(ground))
            painter.drawText(badge.rect, Qt.AlignmentFlag.AlignCenter, badge.text)


class FormatMarks(QObject):
    """Keeps the badges in sync with the current variant, the scope and the layout."""

    def __init__(self, context: Context, viewer: LayerViewer, projection: Projection) -> None:
        super().__init__(viewer)
        self._context = context
        self._viewer = viewer
        self._projection = projection
        self._formats = number_formats_of(context)
        self.item = FormatBadges()
        viewer.scene().addItem(self.item)
        viewer.overlays.append(self.item)
        self.item.hide()
        self._formats.formats_changed.connect(self.refresh)
        viewer.far_stale.connect(self.refresh)

    def refresh(self, *_: object) -> None:
        """Mark the layers in the current scope, after the canvas shows it."""
        shown = self._context.has_document and self._projection.document is self._context.document
        self.item.show_badges(self._badges() if shown else [])
        self._viewer.overlays_changed()

    def _badges(self) -> list[Badge]:
        """One badge for each layer with a format, and one for those of a collapsed frame."""
        reasons = self._formats.reasons
        places: dict[str, list[tuple[str, str, str]]] = {}
        for path in dict.fromkeys((*self._formats.formats, *reasons)):
            name = self._context.in_sight(path)
            if name in self._projection and self._context.path_of(name) == path:
                format = tr_data(TITLES.get(self._formats.format_of(path), self._formats.format_of(path)))
                found = (name, format, reasons.get(path, ""))
                places.setdefault(self._projection.shown_for(name), []).append(found)
        return [self._badge(self._projection.entry(name).area(), found) for name, found in places.items()]

    def _badge(self, area: QRectF, layers: list[tuple[str, str, str]]) -> Badge:
        """The badge of layers at one place, by name, format and reason."""
        text = ", ".join(dict.fromkeys(format for _, format, _ in layers))
        tips = [_tip(format, reason) for _, format, reason in layers]
        if len(layers) > 1:
            tips = [f"{name}: {tip}" for (name, _, _), tip in zip(layers, tips, strict=True)]
        if len(tips) > MOST_TIPS:
            tips = [*tips[: MOST_TIPS - 1], tr("and {count} more", count=len(tips) - MOST_TIPS + 1)]
        by_hand = any(reason == BY_HAND for _, _, reason in layers)
        return Badge(self._place(area, text), text, plain_tip("\n".join(tips)), by_hand)

    @staticmethod
    def _place(area: QRectF, text: str) -> QRectF:
        width = fonts().mono_metrics.horizontalAdvance(text) + 2 * MARGIN
        return QRectF(area.left() + MARGIN, area.bottom() - HEIGHT / 2, width, HEIGHT)


def _tip(format: str, reason: str) -> str:
    return tr("{format}: {reason}", format=format, reason=reason_text(reason)) if reason else format
