"""The view of the canvas: its items, selection, visible area and painting.

Zoomed in, Qt asks every item to paint itself; zoomed out, `FarView` paints the whole network in one go. `viewer.py` adds
mouse and keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from NodeGraphQt.widgets.viewer import NodeViewer
from PySide6.QtCore import QLineF, QPoint, QPointF, QRect, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsView, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas.far_view import FarView
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.layer_index import LayerEntry
from app.ui.canvas.links import LinkItem, PortDot
from app.ui.canvas.node import LayerItem
from app.ui.canvas.node_paint import NAMED
from app.ui.document.open_document import ViewPlace
from app.ui.widgets import theme
from designer.graph.model import GRID

EXTENT = 4_000_000.0  # the canvas extends this far in each direction
MARGIN = 2.0 * GRID  # around the area of a zoom to fit
ZOOM_MIN, ZOOM_MAX = 0.019, 4.0
NEARLY = 0.95  # of a least scale: what fits at this much of it is shown whole; names still have two lines
PORT_ZOOM = 0.25  # below this scale ports are too small to be hit

Hit = PortDot | LayerItem | LinkItem | FrameItem


class Gesture(Protocol):
    """A mouse gesture, from press to release. Points are in viewport pixels."""

    @property
    def moves_items(self) -> bool:
        """Whether items differ from their positions in the document until it ends."""

    def move(self, point: QPoint) -> None: ...
    def release(self, point: QPoint) -> None: ...
    def cancel(self) -> None: ...


class ItemSource(Protocol):
    """Creates the items that the view shows."""

    far: FarView
    marked: set[str]  # selected layers without items

    def need(self, area: QRectF) -> None: ...
    def need_soon(self, area: QRectF) -> None: ...
    def crowded(self, area: QRectF, zoom: float) -> bool: ...
    def within(self, area: QRectF) -> list[str]: ...
    def entry(self, layer: str) -> LayerEntry: ...
    def extent(self) -> QRectF: ...
    def start(self, seen: QSizeF) -> float | None: ...
    def collect_far(self) -> FarView: ...
    def select(self, names: Iterable[str]) -> list[LayerItem]: ...
    def make_marked(self) -> None: ...


class CanvasView(NodeViewer):  # type: ignore[misc]
    """NodeGraphQt's viewer with the items and painting of this package."""

    layers_moved = Signal(object)  # dict of layer to (x, y)
    dropped_on_link = Signal(str, QPointF, object)  # layer, its new position, LinkItem
    selection_changed = Signal()  # by a gesture
    # frame, its rect, dict of layer to (x, y) of the layers moved with it, list of the frames moved with it
    frame_dragged = Signal(str, QRectF, object, object)
    inspect_requested = Signal(str)  # layer
    unfold_requested = Signal(str)  # a collapsed frame
    rename_requested = Signal()  # for the selection
    quick_add_requested = Signal(QPointF, object)  # position on the canvas, LinkItem or None
    operator_dropped = Signal(str, QPointF)  # operator type, position on the canvas
    format_dropped = Signal(str, str)  # number format, name of the layer
    menu_requested = Signal(QPoint)  # global position
    fixes_requested = Signal(QPoint)  # global position; for the selected layer
    route_requested = Signal(object, QPointF)  # LinkItem, position at which to add or remove a reroute point
    point_dropped = Signal(object, int, QPointF)  # LinkItem, index of the reroute point, its new position
    link_started = Signal(object)  # gestures.DragLink: gray out the ports that cannot accept it
    link_near = Signal(object)  # LayerItem that the dragged link is over
    link_ended = Signal()
    link_refused = Signal(str)  # the reason
    link_dropped = Signal(object, object, QPointF)  # gestures.DragLink, PortDot or None, position on the canvas

    far_stale = Signal()  # the far view has changed

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._gesture: Gesture | None = None
        self._fitted, self._least = (
            False,
            ZOOM_MIN,
        )  # whether everything is kept in view, and the minimum scale for that
        self._restored: ViewPlace | None = None  # the place that is kept in view
        self.supply: ItemSource | None = None
        self.overlays: list[QGraphicsItem] = []  # items that the far view includes
        self._from_afar = False  # whether the far view was painted last
        self.scene().selectionChanged.connect(self.far_marked)

    @property
    def zoom(self) -> float:
        """Pixels per canvas unit."""
        return float(self.transform().m11())

    def repaint_all(self) -> None:
        """Repaint everything, for example in the colors of another theme."""
        self.resetCachedContent()
        for item in self.scene().items():
            item.update()

    @property
    def busy(self) -> bool:
        """Whether a gesture is active."""
        return self._gesture is not None

    def seen(self) -> QRectF:
        """The visible area of the canvas."""
        return QRectF(self.mapToScene(self.viewport().rect()).boundingRect())

    def need(self, area: QRectF) -> None:
        """Create the items in an area of the canvas."""
        if self.supply is not None:
            self.supply.need(area)

    def need_at(self, point: QPoint) -> QRect:
        """Create the items at a viewport point. Returns the pixels in which they are hit."""
        reach = QRect(point - QPoint(2, 2), point + QPoint(2, 2))
        if self.supply is not None:
            self.supply.need_soon(QRectF(self.mapToScene(reach).boundingRect()))
        return reach

    def far_changed(self) -> None:
        """Discard the far view."""
        self.far_stale.emit()
        if self.supply is not None:
            self.supply.far.forget()
        if self._from_afar:
            self.viewport().update()

    def far_marked(self) -> None:
        """Like `far_changed`, if only selected, highlighted or dragged parts changed."""
        if self.supply is not None:
            if self._gesture is not None and self._gesture.moves_items:
                self.supply.far.forget(moving=True)
            else:
                self.supply.far.forget_marks()
        if self._from_afar:
            self.viewport().update()

    def overlays_changed(self) -> None:
        """Paint the far view again: the scene does not know where it shows an overlay."""
        if self._from_afar:
            self.viewport().update()

    # --- items -----------------------------------------------------------------------------------------------

    def hit(self, point: QPoint) -> Hit | None:
        """The item at a viewport point, in this order: nearest port, node, link, title or edge of a frame."""
        place = self.mapToScene(point)
        ports: list[PortDot] = []  # they overlap
        node: LayerItem | None = None
        link: LinkItem | None = None
        frame: FrameItem | None = None
        for item in self.items(self.need_at(point)):
            if isinstance(item, PortDot):
                if self.zoom >= PORT_ZOOM:
                    ports.append(item)
            elif isinstance(item, LayerItem):
                if node is None and item.covers(place, self.zoom):
                    node = item
            elif isinstance(item, LinkItem) and link is None:
                link = item
            elif isinstance(item, FrameItem) and frame is None and item.grip(place, self.zoom):
                frame = item
        if ports:
            return min(ports, key=lambda port: QLineF(place, port.center()).length())
        return node or link or frame

    def layer_items(self, area: QRectF | None = None) -> list[LayerItem]:
        """The nodes near an area of the canvas, or all nodes that have items."""
        if area is not None:
            self.need(area)
        found = self.scene().items() if area is None else self.scene().items(area)
        return [item for item in found if isinstance(item, LayerItem)]

    def layers_within(self, area: QRectF) -> list[str]:
        """The layers whose boxes intersect an area of the canvas."""
        return self.supply.within(area) if self.supply is not None else []

    def selected_layers(self) -> list[LayerItem]:
        """The items of all selected layers, created if needed."""
        if self.supply is not None:
            self.supply.make_marked()
        return self.selected_items()

    def selected_items(self) -> list[LayerItem]:
        """The selected nodes, without selected layers that have no items."""
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
        """Select exactly these nodes and no links."""
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
        """Select exactly these layers and no links."""
        if self.supply is None:
            return
        before = self.supply.marked
        items = self.supply.select(names)
        marked = self.supply.marked
        self.select_items(items)
        if marked or before:
            self.supply.marked = marked
            self.far_marked()

    def select_link(self, link: LinkItem) -> None:
        """Select only this link."""
        self.select_items([])
        link.setSelected(True)
        self.selection_changed.emit()

    def select_frame(self, frame: FrameItem) -> None:
        """Select only this frame."""
        self.select_items([])
        frame.setSelected(True)
        self.selection_changed.emit()

    # --- viewport ---------------------------------------------------------------------------------------------

    def get_zoom(self) -> float:
        return round(self.zoom - 1.0, 2)

    def zoom_by(self, factor: float, point: QPoint | None = None) -> None:
        """Zoom around a viewport point (default: the center)."""
        self._leave_place()
        point = point if point is not None else self.viewport().rect().center()
        wanted = min(ZOOM_MAX, max(ZOOM_MIN, self.zoom * factor))
        before = self.mapToScene(point)
        QGraphicsView.scale(self, wanted / self.zoom, wanted / self.zoom)
        after = self.mapFromScene(before)
        self._scroll(point - after)

    def pan(self, run: QPoint) -> None:
        """Scroll by a distance in pixels."""
        self._leave_place()
        self._scroll(run)

    def _scroll(self, run: QPoint) -> None:
        for bar, step in ((self.horizontalScrollBar(), run.x()), (self.verticalScrollBar(), run.y())):
            bar.setValue(bar.value() - step)

    def frame_rect(self, rect: QRectF, *, least: float = ZOOM_MIN, start: float | None = None) -> None:
        """Zoom to fit an area of the canvas, to 100% at most. Much faster than NodeGraphQt's method.

        If that needs a much smaller scale than `least`, use `least` and show the left end at the height `start`, or the top left
        corner.
        """
        self._leave_place()
        if rect.isEmpty():
            self.resetTransform()
            self.centerOn(0, 0)
            return
        rect = rect.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        self.fitInView(rect, Qt.AspectRatioMode.KeepAspectRatio)
        wanted = min(1.0, self.zoom if self.zoom >= max(NEARLY * least, ZOOM_MIN) else least)
        too_wide = rect.width() * wanted > self.viewport().width()
        too_high = rect.height() * wanted > self.viewport().height()
        if wanted != self.zoom:
            QGraphicsView.scale(self, wanted / self.zoom, wanted / self.zoom)
        shown = self.seen()
        x = rect.left() + shown.width() / 2 if too_wide else rect.center().x()
        y = rect.center().y()
        if start is not None and (too_wide or too_high):
            y = start
        elif too_high:
            y = rect.top() + shown.height() / 2
        self.centerOn(x, y)

    def frame_all(self, *, least: float = ZOOM_MIN) -> None:
        """Zoom to fit everything, and keep it fitted when the window is resized, until the user pans or zooms."""
        if self.supply is not None:
            seen = QSizeF(self.viewport().size()) / least
            self.frame_rect(self.supply.extent(), least=least, start=self.supply.start(seen))
        self._fitted, self._least = True, least

    def _leave_place(self) -> None:
        """The user went elsewhere: a change of the size keeps neither everything nor a restored place in view."""
        self._fitted, self._restored = False, None

    def place(self) -> ViewPlace:
        """The place that is shown, for `restore`."""
        if self._restored is not None:  # exactly, however often one comes back to it
            return self._restored
        return ViewPlace(self.visible_center(), self.zoom, self._least if self._fitted else None)

    def restore(self, place: ViewPlace) -> None:
        """Show a place again, also in a canvas of another size and after changes of the size, until the user pans or zooms."""
        if place.fitted_from is not None:
            self.frame_all(least=place.fitted_from)
            return
        self.zoom_by(place.zoom / self.zoom)
        self.go(place.center)
        self._restored = place

    def bring(self, item: LayerItem) -> None:
        """Scroll by the minimum distance that makes a node visible."""
        self._leave_place()
        self.ensureVisible(item, 2 * GRID, 2 * GRID)

    def reveal(self, item: LayerItem) -> None:
        """Make a node visible, and zoom only if it is not readable."""
        if self.zoom < 0.5:
            self.zoom_by(0.8 / self.zoom)
        self._leave_place()
        visible = self.mapToScene(self.viewport().rect()).boundingRect()
        if not visible.contains(item.sceneBoundingRect()):
            self.centerOn(item.sceneBoundingRect().center())

    def go(self, place: QPointF) -> None:
        """Center the view on a point of the canvas."""
        self._leave_place()
        self.centerOn(place)

    def visible_center(self) -> QPointF:
        return QPointF(self.mapToScene(self.viewport().rect().center()))

    def show_band(self, rect: QRect | None) -> None:
        """Show the rubber band, or hide it."""
        if rect is None:
            self._rubber_band.hide()
        else:
            self._rubber_band.setGeometry(rect)
            self._rubber_band.show()

    # --- painting ---------------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        seen = self.seen()
        self._from_afar = self.supply is not None and (self.zoom < NAMED or self.supply.crowded(seen, self.zoom))
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
        option.exposedRect = area
        for overlay in self.overlays:
            if overlay.isVisible():
                overlay.paint(painter, option)
        painter.end()

    def _names(self, supply: ItemSource, area: QRectF) -> Iterable[tuple[QRectF, str]]:
        """The blocks in an area with their names."""
        for name in supply.within(area):
            entry = supply.entry(name)
            if entry.layout is not None:
                yield entry.layout.block.translated(entry.x, entry.y), name

    def drawBackground(self, painter: QPainter, rect: QRectF) -> None:
        rect = rect.intersected(self.seen())  # after a jump Qt requests everything in between
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
