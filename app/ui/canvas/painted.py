"""How the view paints itself: the grid, and from afar the whole network in one go."""

from __future__ import annotations

from collections.abc import Callable

from NodeGraphQt.widgets.viewer import NodeViewer
from PySide6.QtCore import QLineF, QRectF, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGraphicsView, QStyleOptionGraphicsItem, QWidget

from app.ui import theme
from app.ui.canvas import gestures
from app.ui.canvas.far import FAR, FarView
from designer.graph.model import GRID


class PaintedViewer(NodeViewer):  # type: ignore[misc]
    """NodeGraphQt's viewer with another paint."""

    far_stale = Signal()  # the network looks different from afar

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._gesture: gestures.Gesture | None = None
        self._far = FarView()
        self.collect_far: Callable[[FarView], None] = lambda far: None  # who knows the items fills it in
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

    def far_changed(self) -> None:
        """What is painted from afar is different now."""
        self.far_stale.emit()
        self.far_marked()

    def far_marked(self) -> None:
        """As `far_changed`, when only what is selected or stands out is different."""
        self._far.forget()
        if self.zoom < FAR:
            self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.zoom >= FAR:
            QGraphicsView.paintEvent(self, event)
            return
        self.collect_far(self._far)
        painter = QPainter(self.viewport())
        painter.setClipRegion(event.region())
        painter.setTransform(self.viewportTransform())
        area = self.mapToScene(event.region().boundingRect()).boundingRect()
        self.drawBackground(painter, area)
        option = QStyleOptionGraphicsItem()
        for frame in self._far.frames:
            painter.save()
            painter.translate(frame.pos())
            frame.paint(painter, option)
            painter.restore()
        self._far.paint(painter, self.zoom)
        if isinstance(self._gesture, gestures.Link) and self._gesture.live is not None:
            self._gesture.live.paint(painter, option)
        painter.end()

    def drawBackground(self, painter: QPainter, rect: QRectF) -> None:
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
