"""Mouse, keys and drops on the canvas. They request changes by signals and never make them.

Every handler of NodeGraphQt's viewer that reacts to mouse or keys is replaced here; `tests/ui/test_canvas_gestures.py`
drives each of them with real events, which detects incompatible versions of NodeGraphQt.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPixmapCache,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QGraphicsView, QWidget

from app.ui.canvas import gestures
from app.ui.canvas.edge_scroll import EdgeScroll
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem, PortDot
from app.ui.canvas.node import LayerItem
from app.ui.canvas.view import EXTENT, CanvasView, Gesture
from app.ui.widgets import theme
from designer.texts import tr

OPERATOR_MIME = "application/x-layerwright-operator"
FORMAT_MIME = "application/x-layerwright-number-format"
CACHE_KILOBYTES = (
    128 * 1024
)  # painted nodes are cached as pixmaps; Qt's default of 10 MiB is enough for about 100 nodes


class LayerViewer(CanvasView):
    """Shows the items and turns gestures into requests."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._search_widget.setParent(self)  # otherwise it would be a separate window
        self._search_widget.hide()
        for shadow in (self._cursor_text, self._LIVE_PIPE, self._SLICER_PIPE):
            self.scene().removeItem(shadow)
        self._ctx_menu_bar.clear()
        self.menu_place: QPointF | None = None  # where the context menu was opened by the mouse
        self._button = Qt.MouseButton.NoButton  # that was pressed for the gesture
        self._marked = ""  # the layer whose mark of a problem is pressed
        self._edge = EdgeScroll(self, self.pan, self._drag_on)
        self.setObjectName("canvas")
        self.setAccessibleName(tr("Network canvas"))
        self.setSceneRect(-EXTENT, -EXTENT, 2 * EXTENT, 2 * EXTENT)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setResizeAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setFrameShape(QGraphicsView.Shape.NoFrame)
        self.setMouseTracking(True)
        QPixmapCache.setCacheLimit(max(QPixmapCache.cacheLimit(), CACHE_KILOBYTES))
        theme.changes().changed.connect(self.repaint_all)

    # --- mouse -----------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()
        point = event.position().toPoint()
        if self._gesture is not None:
            return
        button, keys = event.button(), event.modifiers()
        self._button, self._marked = button, ""
        if button == Qt.MouseButton.MiddleButton or (
            button == Qt.MouseButton.LeftButton and keys == Qt.KeyboardModifier.AltModifier
        ):
            self._gesture = gestures.Pan(self, point)
        elif button == Qt.MouseButton.LeftButton:
            hit = self.hit(point)
            self._gesture = gestures.gesture_at(self, point, keys)
            self._marked = hit.layer if isinstance(hit, LayerItem) and self._on_mark(hit, point) else ""
        elif button == Qt.MouseButton.RightButton:
            hit = self.hit(point)
            if isinstance(hit, LayerItem) and not hit.isSelected():
                self.select_items([hit])
                self.selection_changed.emit()
            elif isinstance(hit, LinkItem) and not hit.isSelected():
                self.select_link(hit)
            elif isinstance(hit, FrameItem) and not hit.isSelected():
                self.select_frame(hit)

    @property
    def scrolling(self) -> bool:
        """Whether a drag near the border scrolls the view."""
        return self._edge.active

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._gesture is not None:
            point = event.position().toPoint()
            self._drag_on(point)
            if not isinstance(self._gesture, gestures.Pan):
                self._edge.follow(point)
            event.accept()
        else:
            self.need_at(event.position().toPoint())
            QGraphicsView.mouseMoveEvent(self, event)  # hovering

    def _drag_on(self, point: QPoint) -> None:
        if self._gesture is not None:
            self._gesture.move(point)
            if not isinstance(self._gesture, gestures.Pan):
                self.far_marked()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()
        if event.button() != self._button or self._gesture is None:
            return
        self._edge.stop()
        gesture, self._gesture = self._gesture, None
        point = event.position().toPoint()
        gesture.release(point)
        self.far_marked()
        hit = self.hit(point) if self._marked else None
        if isinstance(hit, LayerItem) and hit.layer == self._marked and self._on_mark(hit, point):
            self.fixes_requested.emit(self.viewport().mapToGlobal(point))

    def _on_mark(self, item: LayerItem, point: QPoint) -> bool:
        """Whether the mark of a problem is at a viewport point."""
        return item.marked_at(self.mapToScene(point), self.zoom)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()
        if event.button() != Qt.MouseButton.LeftButton:
            return
        point = event.position().toPoint()
        hit = self.hit(point)
        if isinstance(hit, LinkItem) and event.modifiers() == Qt.KeyboardModifier.AltModifier:
            self.route_requested.emit(hit, self.mapToScene(point))
        elif isinstance(hit, LayerItem):
            self.inspect_requested.emit(hit.layer)
        elif isinstance(hit, FrameItem) and hit.frame.collapsed:
            self.unfold_requested.emit(hit.frame.id)
        elif isinstance(hit, FrameItem):
            self.rename_requested.emit()
        elif not isinstance(hit, PortDot):
            self.quick_add_requested.emit(self.mapToScene(point), hit)

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta().y() or event.angleDelta().x()
        if delta:
            self.zoom_by(1.0015**delta, event.position().toPoint())
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        self.menu_place = self.mapToScene(event.pos()) if by_mouse else None
        self.menu_requested.emit(event.globalPos())
        event.accept()

    # The scene calls these for every event that it receives, which is only hovering.
    def sceneMousePressEvent(self, event: object) -> None:
        return

    def sceneMouseMoveEvent(self, event: object) -> None:
        return

    def sceneMouseReleaseEvent(self, event: object) -> None:
        return

    # --- keys ------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._gesture is not None:
            self._cancel(self._gesture)
        else:
            QGraphicsView.keyPressEvent(self, event)

    def _cancel(self, gesture: Gesture) -> None:
        self._edge.stop()
        self._gesture = None
        gesture.cancel()
        self.far_changed()

    def cancel_drag(self) -> None:
        """Cancel the drag of an item, which may be gone: the document has changed. Scrolling and the rubber band go on."""
        if self._gesture is not None and not isinstance(self._gesture, gestures.Pan | gestures.RubberBand):
            self._cancel(self._gesture)

    def pointer(self) -> QPointF | None:
        """The canvas position of the pointer, or None if it is outside the canvas."""
        point = self.viewport().mapFromGlobal(self.cursor().pos())
        return self.mapToScene(point) if self.viewport().rect().contains(point) else None

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        QGraphicsView.keyReleaseEvent(self, event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        QGraphicsView.focusInEvent(self, event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        QGraphicsView.focusOutEvent(self, event)

    # --- size and drops --------------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        QGraphicsView.resizeEvent(self, event)
        if self._fitted:
            self.frame_all(least=self._least)
        elif self._restored is not None:
            self.restore(self._restored)

    def _update_scene(self) -> None:
        """Do nothing: NodeGraphQt's scene rectangle would override ours."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self._accept(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        self._accept(event)

    def _accept(self, event: QDragMoveEvent) -> None:
        """Accept operators, and number formats above layers; leave files to the window."""
        data = event.mimeData()
        on_layer = data.hasFormat(FORMAT_MIME) and self._layer_at(event) is not None
        if data.hasFormat(OPERATOR_MIME) or on_layer:
            event.acceptProposedAction()
        else:
            event.ignore()

    def _layer_at(self, event: QDropEvent) -> LayerItem | None:
        hit = self.hit(event.position().toPoint())
        item = hit.node if isinstance(hit, PortDot) else hit
        return item if isinstance(item, LayerItem) else None

    def dropEvent(self, event: QDropEvent) -> None:
        layer = self._layer_at(event)
        if event.mimeData().hasFormat(FORMAT_MIME) and layer is not None:
            event.acceptProposedAction()
            name = bytes(event.mimeData().data(FORMAT_MIME).data()).decode("utf-8", "replace")
            self.format_dropped.emit(name, layer.layer)
            return
        if not event.mimeData().hasFormat(OPERATOR_MIME):
            event.ignore()
            return
        event.acceptProposedAction()
        name = bytes(event.mimeData().data(OPERATOR_MIME).data()).decode("utf-8", "replace")
        self.operator_dropped.emit(name, self.mapToScene(event.position().toPoint()))
