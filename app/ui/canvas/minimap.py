"""Minimap: the whole network in a corner of the canvas, with the visible area. Click or drag to move the view.

The network is painted only after it changed. While the view moves, only a cached image and one rectangle are painted.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap, QTransform
from PySide6.QtWidgets import QWidget

from app.ui.canvas.far_view import FarView
from app.ui.canvas.viewer import LayerViewer
from app.ui.widgets import theme
from designer.texts import tr

MOST = QSize(200, 128)
SHARE = (5, 4)  # at most this part of the canvas's width and height
EDGE = 12  # distance from the corner of the canvas
ROOM = QSize(520, 320)  # minimum size of a canvas that shows the minimap
DELAY = 150  # milliseconds after the last change


class Minimap(QWidget):
    """Visible while a part of the network is out of view, unless it is switched off."""

    def __init__(self, viewer: LayerViewer, far: FarView, collect: Callable[[], bool]) -> None:
        super().__init__(viewer)
        self.setObjectName("canvas.minimap")
        self.setAccessibleName(tr("Minimap"))
        self.setToolTip(tr("Minimap of the network. Click to go to a place."))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.resize(MOST)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # avoids repainting the canvas below
        self._viewer = viewer
        self._far = far
        self._collect = collect  # updates a part of the far view; returns whether it is up to date
        self._picture = QPixmap()
        self._map = QTransform()  # from the canvas to this widget
        self._extent = QRectF()
        self._wanted = True
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY)
        self._timer.timeout.connect(self.redraw)
        for bar in (viewer.horizontalScrollBar(), viewer.verticalScrollBar()):
            bar.valueChanged.connect(self._follow)
        viewer.far_stale.connect(self._timer.start)
        theme.changes().changed.connect(self._timer.start)
        self.hide()

    @property
    def wanted(self) -> bool:
        return self._wanted

    def want(self, wanted: bool) -> None:
        """Switch the minimap on or off."""
        self._wanted = wanted
        self._follow()

    def redraw(self) -> None:
        """Repaint the network."""
        self._timer.stop()
        far = self._far
        if not self._collect():
            self._timer.start()
        self._extent = self._viewer.supply.extent() if self._viewer.supply is not None else QRectF()
        for frame in far.frames:
            self._extent = self._extent.united(frame.seen)
        scale = 1.0
        if not self._extent.isEmpty():
            scale = min((self.width() - 12) / self._extent.width(), (self.height() - 12) / self._extent.height(), 0.25)
        center = self._extent.center()
        self._map = QTransform.fromTranslate(self.width() / 2, self.height() / 2).scale(scale, scale)
        self._map.translate(-center.x(), -center.y())
        ratio = self.devicePixelRatioF()
        self._picture = QPixmap(self.size() * ratio)
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(theme.color("surface"))
        painter = QPainter(self._picture)
        painter.setTransform(self._map)
        far.paint_blocks(painter, tiny=True)
        painter.end()
        self._follow()

    def _follow(self) -> None:
        """Update position and visible area after the view moved."""
        viewer = self._viewer.rect()
        size = QSize(viewer.width() // SHARE[0], viewer.height() // SHARE[1]).boundedTo(MOST)
        if size != self.size():
            self.resize(size)
            self._timer.start()
        self.move(viewer.right() - size.width() - EDGE, viewer.bottom() - size.height() - EDGE)
        seen = self._seen()
        self.setVisible(
            self._wanted
            and viewer.size().expandedTo(ROOM) == viewer.size()
            and not self._extent.isEmpty()
            and not seen.contains(self._extent)
        )
        self.update()

    def _seen(self) -> QRectF:
        return QRectF(self._viewer.mapToScene(self._viewer.viewport().rect()).boundingRect())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.drawPixmap(QPoint(), self._picture)
        painter.setPen(QPen(theme.color("outline"), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.setPen(QPen(theme.color("link_active"), 1.5))
        seen = self._map.mapRect(self._seen())
        painter.drawRect(seen.intersected(QRectF(self.rect()).adjusted(1, 1, -1, -1)))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()
        self._go(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        event.accept()
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def _go(self, place: QPointF) -> None:
        inverse, _ = self._map.inverted()
        self._viewer.go(inverse.map(place))
