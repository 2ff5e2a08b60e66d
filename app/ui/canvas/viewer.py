"""The view of the canvas: mouse, keys, zoom and drops. It asks for changes by signals and never makes them.

Every handler of NodeGraphQt's viewer that reacts to mouse or keys is replaced here; `tests/ui/test_canvas_gestures.py`
drives each of them with real events and so guards against another version of the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, Signal
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

from app.ui.canvas import gestures, presses
from app.ui.canvas.edge_scroll import EdgeScroll
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from app.ui.canvas.painted import PaintedViewer
from app.ui.canvas.ports import PortDot
from app.ui.widgets import theme
from app.ui.widgets.texts import tr
from designer.graph.model import GRID

OPERATOR_MIME = "application/x-layerwright-operator"
EXTENT = 4_000_000.0  # the canvas reaches this far in each direction
MARGIN = 2.0 * GRID  # around what is framed
ZOOM_MIN, ZOOM_MAX = 0.02, 4.0
PORT_ZOOM = 0.25  # below this scale a press never means a port: it is too small to be aimed at
CACHE_KILOBYTES = 128 * 1024  # painted nodes are kept as pixmaps; Qt's default of 10 MiB holds about 100 nodes

Hit = PortDot | LayerItem | LinkItem | FrameItem


class LayerViewer(PaintedViewer):
    """Shows the items and turns gestures into requests."""

    layers_moved = Signal(object)  # dict of layer to (x, y)
    dropped_on_link = Signal(str, QPointF, object)  # layer, where it is now, LinkItem
    selection_changed = Signal()  # by a gesture
    frame_dragged = Signal(str, QRectF, object)  # frame, its rect, dict of layer to (x, y) of those that went with it
    inspect_wanted = Signal(str)  # layer
    unfold_wanted = Signal(str)  # a collapsed frame
    rename_wanted = Signal()  # of what is selected
    quick_add_wanted = Signal(QPointF, object)  # place on the canvas, LinkItem or None
    operator_dropped = Signal(str, QPointF)  # operator type, place on the canvas
    menu_wanted = Signal(QPoint)  # global place
    route_wanted = Signal(object, QPointF)  # LinkItem, place: a point more there, or one less
    point_dropped = Signal(object, int, QPointF)  # LinkItem, the number of its point, where it is now
    link_started = Signal(gestures.Link)  # grey out the ports that cannot take it
    link_near = Signal(object)  # LayerItem that the dragged link is over
    link_ended = Signal()
    link_refused = Signal(str)  # the reason
    link_dropped = Signal(gestures.Link, object, QPointF)  # the second: PortDot or None, place on the canvas

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._search_widget.setParent(self)  # a window of its own otherwise
        self._search_widget.hide()
        for shadow in (self._cursor_text, self._LIVE_PIPE, self._SLICER_PIPE):
            self.scene().removeItem(shadow)
        self._ctx_menu_bar.clear()
        self._fitted, self._least = False, ZOOM_MIN
        self.menu_place: QPointF | None = None  # where the menu was asked for by the mouse
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

    # --- items -----------------------------------------------------------------------------------------------

    def hit(self, point: QPoint) -> Hit | None:
        """What is at a viewport point: a port before a node before a link before the title or the edge of a frame."""
        node: LayerItem | None = None
        link: LinkItem | None = None
        frame: FrameItem | None = None
        for item in self.items(self.need_at(point)):
            if isinstance(item, PortDot):
                if self.zoom >= PORT_ZOOM:
                    return item
            elif isinstance(item, LayerItem):
                if node is None and item.box().contains(self.mapToScene(point)):
                    node = item
            elif isinstance(item, LinkItem) and link is None:
                link = item
            elif isinstance(item, FrameItem) and frame is None and item.grip(self.mapToScene(point), self.zoom):
                frame = item
        return node or link or frame

    def layer_items(self, area: QRectF | None = None) -> list[LayerItem]:
        """The nodes near an area of the canvas, or all that have items."""
        if area is not None:
            self.need(area)
        found = self.scene().items() if area is None else self.scene().items(area)
        return [item for item in found if isinstance(item, LayerItem)]

    def layers_within(self, area: QRectF) -> list[str]:
        """The layers whose boxes reach into an area of the canvas."""
        return self.supply.within(area) if self.supply is not None else []

    def selected_layers(self) -> list[LayerItem]:
        """The items of all selected layers, made where they were not there."""
        if self.supply is not None:
            self.supply.make_marked()
        return self.selected_items()

    def selected_items(self) -> list[LayerItem]:
        """The selected nodes, without those selected layers that have no items."""
        return [item for item in self.scene().selectedItems() if isinstance(item, LayerItem)]

    def selected_names(self) -> list[str]:
        """All selected layers."""
        marked = self.supply.marked if self.supply is not None else ()
        return [*(item.layer for item in self.selected_items()), *marked]

    def selected_links(self) -> list[LinkItem]:
        return [item for item in self.scene().selectedItems() if isinstance(item, LinkItem)]

    def selected_frames(self) -> list[FrameItem]:
        return [item for item in self.scene().selectedItems() if isinstance(item, FrameItem)]

    def select_items(self, items: Iterable[LayerItem]) -> None:
        """Select exactly these nodes, and no link."""
        if self.supply is not None and self.supply.marked:
            self.supply.marked = set()
            self.far_marked()
        wanted = set(items)
        for item in self.scene().selectedItems():
            if item not in wanted:
                item.setSelected(False)
        for item in wanted:
            item.setSelected(True)

    def select_names(self, names: Iterable[str]) -> None:
        """Select exactly these layers, and no link."""
        if self.supply is None:
            return
        items = self.supply.select(names)
        marked = self.supply.marked
        self.select_items(items)
        if marked:
            self.supply.marked = marked
            self.far_marked()

    def select_link(self, link: LinkItem) -> None:
        """Select a link alone."""
        self.select_items([])
        link.setSelected(True)
        self.selection_changed.emit()

    # --- looking ---------------------------------------------------------------------------------------------

    def get_zoom(self) -> float:
        return round(self.zoom - 1.0, 2)

    def zoom_by(self, factor: float, point: QPoint | None = None) -> None:
        """Scale around a viewport point (default: the middle)."""
        self._fitted = False
        point = point if point is not None else self.viewport().rect().center()
        wanted = min(ZOOM_MAX, max(ZOOM_MIN, self.zoom * factor))
        before = self.mapToScene(point)
        QGraphicsView.scale(self, wanted / self.zoom, wanted / self.zoom)
        after = self.mapFromScene(before)
        self._scroll(point - after)

    def pan(self, run: QPoint) -> None:
        """Move what is seen by pixels."""
        self._fitted = False
        self._scroll(run)

    def _scroll(self, run: QPoint) -> None:
        for bar, step in ((self.horizontalScrollBar(), run.x()), (self.verticalScrollBar(), run.y())):
            bar.setValue(bar.value() - step)

    def frame(self, items: Sequence[LayerItem], *, least: float = ZOOM_MIN) -> None:
        """Show these nodes as large as they fit, at most at natural size."""
        rect = QRectF()
        for item in items:
            rect = rect.united(item.sceneBoundingRect())
        self.frame_rect(rect, least=least)

    def frame_rect(self, rect: QRectF, *, least: float = ZOOM_MIN) -> None:
        """Show a part of the canvas as large as it fits, at most at natural size. Much faster than the library's own way.

        Where it would be smaller than `least`, that scale is kept and its top left corner is shown.
        """
        if rect.isEmpty():
            self.resetTransform()
            self.centerOn(0, 0)
            return
        rect = rect.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        self.fitInView(rect, Qt.AspectRatioMode.KeepAspectRatio)
        wanted = min(1.0, max(least, self.zoom))
        too_wide = rect.width() * wanted > self.viewport().width()
        too_high = rect.height() * wanted > self.viewport().height()
        if wanted != self.zoom:
            QGraphicsView.scale(self, wanted / self.zoom, wanted / self.zoom)
        shown = self.seen()
        x = rect.left() + shown.width() / 2 if too_wide else rect.center().x()
        y = rect.top() + shown.height() / 2 if too_high else rect.center().y()
        self.centerOn(x, y)

    def frame_all(self, *, least: float = ZOOM_MIN) -> None:
        """Show everything, also after the window gets another size, until the person pans or zooms."""
        self.frame_rect(self.supply.extent() if self.supply is not None else QRectF(), least=least)
        self._fitted, self._least = True, least

    def bring(self, item: LayerItem) -> None:
        """Scroll as little as needed to see a node."""
        self._fitted = False
        self.ensureVisible(item, 2 * GRID, 2 * GRID)

    def reveal(self, item: LayerItem) -> None:
        """Bring a node into view, without zooming where it can be read."""
        if self.zoom < 0.5:
            self.zoom_by(0.8 / self.zoom)
        self._fitted = False
        visible = self.mapToScene(self.viewport().rect()).boundingRect()
        if not visible.contains(item.sceneBoundingRect()):
            self.centerOn(item.sceneBoundingRect().center())

    def go(self, place: QPointF) -> None:
        """Show a place in the middle."""
        self._fitted = False
        self.centerOn(place)

    def visible_centre(self) -> QPointF:
        return QPointF(self.mapToScene(self.viewport().rect().center()))

    def show_band(self, rect: QRect | None) -> None:
        """Show the rubber band, or hide it."""
        if rect is None:
            self._rubber_band.hide()
        else:
            self._rubber_band.setGeometry(rect)
            self._rubber_band.show()

    # --- mouse -----------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()
        point = event.position().toPoint()
        if self._gesture is not None:
            return
        button, keys = event.button(), event.modifiers()
        if button == Qt.MouseButton.MiddleButton or (
            button == Qt.MouseButton.LeftButton and keys == Qt.KeyboardModifier.AltModifier
        ):
            self._gesture = gestures.Pan(self, point)
        elif button == Qt.MouseButton.LeftButton:
            self._gesture = presses.gesture_at(self, point, keys)
        elif button == Qt.MouseButton.RightButton:
            hit = self.hit(point)
            if isinstance(hit, LayerItem) and not hit.isSelected():
                self.select_items([hit])
                self.selection_changed.emit()
            elif isinstance(hit, LinkItem) and not hit.isSelected():
                self.select_link(hit)

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
        if event.button() == Qt.MouseButton.RightButton or self._gesture is None:
            return
        self._edge.stop()
        gesture, self._gesture = self._gesture, None
        gesture.release(event.position().toPoint())
        self.far_marked()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()
        if event.button() != Qt.MouseButton.LeftButton:
            return
        point = event.position().toPoint()
        hit = self.hit(point)
        if isinstance(hit, LinkItem) and event.modifiers() == Qt.KeyboardModifier.AltModifier:
            self.route_wanted.emit(hit, self.mapToScene(point))
        elif isinstance(hit, LayerItem):
            self.inspect_wanted.emit(hit.layer)
        elif isinstance(hit, FrameItem) and hit.frame.collapsed:
            self.unfold_wanted.emit(hit.frame.id)
        elif isinstance(hit, FrameItem):
            self.rename_wanted.emit()
        elif not isinstance(hit, PortDot):
            self.quick_add_wanted.emit(self.mapToScene(point), hit)

    def wheelEvent(self, event: QWheelEvent) -> None:
        delta = event.angleDelta().y() or event.angleDelta().x()
        if delta:
            self.zoom_by(1.0015**delta, event.position().toPoint())
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        self.menu_place = self.mapToScene(event.pos()) if by_mouse else None
        self.menu_wanted.emit(event.globalPos())
        event.accept()

    # The scene calls these for every event that reaches it; only hovering does.
    def sceneMousePressEvent(self, event: object) -> None:
        return

    def sceneMouseMoveEvent(self, event: object) -> None:
        return

    def sceneMouseReleaseEvent(self, event: object) -> None:
        return

    # --- keys ------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._gesture is not None:
            self._edge.stop()
            gesture, self._gesture = self._gesture, None
            gesture.cancel()
            self.far_changed()
        else:
            QGraphicsView.keyPressEvent(self, event)

    def pointer_place(self) -> QPointF:
        """The canvas place under the pointer, or the middle of what is seen when the pointer is elsewhere."""
        point = self.viewport().mapFromGlobal(self.cursor().pos())
        return self.mapToScene(point) if self.viewport().rect().contains(point) else self.visible_centre()

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

    def _update_scene(self) -> None:
        """The library's own framing would undo ours."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self._accept(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        self._accept(event)

    def _accept(self, event: QDragMoveEvent) -> None:
        """Operators are ours; files go up to the window."""
        if event.mimeData().hasFormat(OPERATOR_MIME):
            event.acceptProposedAction()
        else:
            event.ignore()

    def dropEvent(self, event: QDropEvent) -> None:
        if not event.mimeData().hasFormat(OPERATOR_MIME):
            event.ignore()
            return
        event.acceptProposedAction()
        name = bytes(event.mimeData().data(OPERATOR_MIME).data()).decode("utf-8", "replace")
        self.operator_dropped.emit(name, self.mapToScene(event.position().toPoint()))
