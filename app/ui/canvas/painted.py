"""How the view paints itself: the grid, and from afar the whole network in one go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from NodeGraphQt.widgets.viewer import NodeViewer
from PySide6.QtCore import QLineF, QPoint, QRect, QRectF, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsView, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas import gestures
from app.ui.canvas.far import FarView
from app.ui.canvas.node_paint import NAMED
from app.ui.widgets import theme
from designer.graph.model import GRID

if TYPE_CHECKING:
    from app.ui.canvas.node import LayerItem
    from app.ui.canvas.spots import Spot


class Supply(Protocol):
    """Who makes the items that the view shows."""

    far: FarView
    marked: set[str]  # selected layers without items

    def need(self, area: QRectF) -> None: ...
    def need_soon(self, area: QRectF) -> None: ...
    def crowded(self, area: QRectF) -> bool: ...
    def within(self, area: QRectF) -> list[str]: ...
    def spot(self, layer: str) -> Spot: ...
    def extent(self) -> QRectF: ...
    def collect_far(self) -> FarView: ...
    def select(self, names: Iterable[str]) -> list[LayerItem]: ...
    def make_marked(self) -> None: ...


class PaintedViewer(NodeViewer):  # type: ignore[misc]
    """NodeGraphQt's viewer with another paint."""

    far_stale = Signal()  # the network looks different from afar

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._gesture: gestures.Gesture | None = None
        self.supply: Supply | None = None
        self.overlays: list[QGraphicsItem] = []  # items that are painted from afar too
        self.far_below = NAMED  # the scale below which the network is painted in one go
        self._from_afar = False  # whether it was painted in one go last
        self.scene().selectionChanged.connect(self.far_marked)

    @property
    def zoom(self) -> float:
        """Pixels a canvas unit."""
        return float(self.transform().m11())

    def repaint_all(self) -> None:
        """Paint everything anew, for instance in another theme's colours."""
        self.resetCachedContent()
        for item in self.scene().items():
            item.update()

    @property
    def busy(self) -> bool:
        """Whether a gesture is going on."""
        return self._gesture is not None

    def seen(self) -> QRectF:
        """What is seen of the canvas."""
        return QRectF(self.mapToScene(self.viewport().rect()).boundingRect())

    def need(self, area: QRectF) -> None:
        """Have the items in an area of the canvas."""
        if self.supply is not None:
            self.supply.need(area)

    def need_at(self, point: QPoint) -> QRect:
        """Have the items at a point of the viewport; the pixels in which they are hit."""
        reach = QRect(point - QPoint(2, 2), point + QPoint(2, 2))
        if self.supply is not None:
            self.supply.need_soon(QRectF(self.mapToScene(reach).boundingRect()))
        return reach

    def far_changed(self) -> None:
        """What is painted from afar is different now."""
        self.far_stale.emit()
        if self.supply is not None:
            self.supply.far.forget()
        if self._from_afar:
            self.viewport().update()

    def far_marked(self) -> None:
        """As `far_changed`, when only what is selected or stands out is different, or is being dragged."""
        if self.supply is not None:
            if isinstance(self._gesture, gestures.Move | gestures.DragFrame | gestures.Link):
                self.supply.far.forget()
            else:
                self.supply.far.forget_marks()
        if self._from_afar:
            self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        seen = self.seen()
        self._from_afar = self.supply is not None and (self.zoom < self.far_below or self.supply.crowded(seen))
        if self.supply is None or not self._from_afar:
            if self.supply is not None:
                self.supply.need_soon(seen)
            QGraphicsView.paintEvent(self, event)
            return
        far = self.supply.collect_far()
        painter = QPainter(self.viewport())
        painter.setClipRegion(event.region())
        painter.setTransform(self.viewportTransform())
        area = self.mapToScene(event.region().boundingRect()).boundingRect()
        self.drawBackground(painter, area)
        option = QStyleOptionGraphicsItem()
        for frame in far.frames:
            painter.save()
            painter.translate(frame.pos())
            frame.paint(painter, option)
            painter.restore()
        far.paint(painter, self.zoom, self._names(self.supply, area) if self.zoom >= NAMED else ())
        if isinstance(self._gesture, gestures.Link) and self._gesture.live is not None:
            self._gesture.live.paint(painter, option)
        option.exposedRect = area
        for overlay in self.overlays:
            if overlay.isVisible():
                overlay.paint(painter, option)
        painter.end()

    def _names(self, supply: Supply, area: QRectF) -> Iterable[tuple[QRectF, str]]:
        """The blocks in an area with what is written on them."""
        for name in supply.within(area):
            spot = supply.spot(name)
            if spot.layout is not None:
                yield spot.layout.box.translated(spot.x, spot.y), name

    def drawBackground(self, painter: QPainter, rect: QRectF) -> None:
        rect = rect.intersected(self.seen())  # after a jump Qt asks for all that lies between
        painter.fillRect(rect, theme.color("sunken"))
        step = float(GRID)
        while step * self.zoom < 24:
            step *= 2
        pen = QPen(theme.color("grid"), self.devicePixelRatioF())
        pen.setCosmetic(True)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(pen)
        left, top = rect.left() - rect.left() % step, rect.top() - rect.top() % step
        columns = [left + i * step for i in range(int(rect.width() / step) + 2)]
        rows = [top + i * step for i in range(int(rect.height() / step) + 2)]
        painter.drawLines(
            [QLineF(x, rect.top(), x, rect.bottom()) for x in columns]
            + [QLineF(rect.left(), y, rect.right(), y) for y in rows]
        )
