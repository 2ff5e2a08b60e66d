"""Mouse gestures, from press to release. The viewer chooses a gesture at the press and forwards the events to it.

A gesture changes only the items. When it ends, it emits a request; `cancel` restores the previous state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from PySide6.QtCore import QLineF, QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtWidgets import QToolTip

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem, LiveLink, PortDot
from app.ui.canvas.node import LayerItem
from app.ui.canvas.view import CanvasView, Gesture
from designer.graph.model import GRID

THRESHOLD = 4  # pixels the pointer must move before a press becomes a drag
INSIDE = 8.0  # how far a link must reach into a node to be inserted into, canvas units
LEAST = 4.0 * GRID  # minimum size of a frame


class Pan:
    """Drag the view."""

    moves_items = False

    def __init__(self, viewer: CanvasView, start: QPoint) -> None:
        self._viewer = viewer
        self._last = start
        viewer.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)

    def move(self, point: QPoint) -> None:
        self._viewer.pan(point - self._last)
        self._last = point

    def release(self, point: QPoint) -> None:
        self._viewer.viewport().unsetCursor()

    def cancel(self) -> None:
        self.release(self._last)


class RubberBand:
    """Select with a rubber band; with `extend`, add to the selection."""

    moves_items = False

    def __init__(self, viewer: CanvasView, start: QPoint, *, extend: bool) -> None:
        self._viewer = viewer
        self._start = start
        self._from = viewer.mapToScene(start)  # fixed on the canvas while it scrolls
        self._before = viewer.selected_names()
        self._others = [*viewer.selected_links(), *viewer.selected_frames()]
        self._kept = self._before if extend else []
        self._extend = extend
        self._moved = False
        if not extend:
            viewer.select_items([])

    def move(self, point: QPoint) -> None:
        if not self._moved and (point - self._start).manhattanLength() < THRESHOLD:
            return
        self._moved = True
        rect = QRect(self._viewer.mapFromScene(self._from), point).normalized()
        self._viewer.show_band(rect)
        area = self._viewer.mapToScene(rect).boundingRect()
        names = {*self._kept, *self._viewer.layers_within(area)}
        self._select(names, others=self._extend and len(names) == len(self._kept))

    def _select(self, names: Collection[str], *, others: bool) -> None:
        """Select exactly these layers; with `others`, also the links and frames that were selected before."""
        self._viewer.select_names(names)
        for item in self._others if others else ():
            item.setSelected(True)

    def release(self, point: QPoint) -> None:
        self._viewer.show_band(None)
        self._viewer.selection_changed.emit()

    def cancel(self) -> None:
        self._select(self._before, others=True)
        self.release(self._start)


class MoveLayers:
    """Drag the selected nodes and collapsed frames, snapped to the grid; one request at the end."""

    moves_items = True

    def __init__(self, viewer: CanvasView, lead: LayerItem, start: QPoint, *, single_on_click: bool) -> None:
        self._viewer = viewer
        self._lead = lead
        self._start = start
        self._from = viewer.mapToScene(start)
        self._single_on_click = single_on_click
        self._origins = {item: QPointF(item.pos()) for item in viewer.selected_layers()}
        self._frames = {item: item.rect for item in viewer.selected_frames() if item.frame.collapsed}
        self._inner = {
            link
            for item in self._origins
            for link in item.links()
            if link.points and link.source.node in self._origins and link.target.node in self._origins
        }
        self._moved = False
        self._inserts = len(self._origins) == 1 and not self._frames and lead in self._origins and can_insert(lead)
        self._onto: LinkItem | None = None  # the link that the node would be inserted into

    def move(self, point: QPoint) -> None:
        if not self._moved and (point - self._start).manhattanLength() < THRESHOLD:
            return
        if self._lead not in self._origins:
            return
        self._moved = True
        run = self._viewer.mapToScene(point) - self._from
        origin = self._origins[self._lead]
        step = snap(origin + run) - origin
        self._shift(step)
        for item, place in self._origins.items():
            item.move_to(place + step)
        for frame, rect in self._frames.items():
            frame.show_rect(rect.translated(step))
        if self._inserts:
            self._aim(link_under(self._viewer, self._lead))

    def _aim(self, link: LinkItem | None) -> None:
        if link is not self._onto:
            for other, on in ((self._onto, False), (link, True)):
                if other is not None:
                    other.show_target(on)
            self._onto = link

    def _shift(self, step: QPointF) -> None:
        """Move the reroute points of links between dragged layers by the same distance."""
        for link in self._inner:
            link.shift = step

    def release(self, point: QPoint) -> None:
        self._shift(QPointF())
        onto = self._onto
        self._aim(None)
        moved = {item.layer: item.pos() for item, origin in self._origins.items() if item.pos() != origin}
        if moved and onto is not None:
            self._viewer.dropped_on_link.emit(self._lead.layer, self._lead.pos(), onto)
        elif moved:
            places = {name: (round(p.x()), round(p.y())) for name, p in moved.items()}
            if not self._frames:
                self._viewer.layers_moved.emit(places)
                return
            first, *others = self._frames
            places |= members_moved(self._viewer, self._frames, first.rect.topLeft() - self._frames[first].topLeft())
            self._viewer.frame_dragged.emit(first.frame.id, first.rect, places, [item.frame.id for item in others])
        elif self._single_on_click and not self._moved:
            self._viewer.select_items([self._lead])
            self._viewer.selection_changed.emit()

    def cancel(self) -> None:
        self._shift(QPointF())
        self._aim(None)
        for item, origin in self._origins.items():
            item.move_to(origin)
        for frame, rect in self._frames.items():
            frame.show_rect(rect)


class DragFrame:
    """Move a frame with the layers and frames in it, or resize it. `grip` names the edges ("l", "tr", ...) or is "move" for the title."""

    moves_items = True

    def __init__(self, viewer: CanvasView, frame: FrameItem, grip: str, start: QPoint) -> None:
        self._viewer = viewer
        self._frame = frame
        self._grip = grip
        self._start = start
        self._from = viewer.mapToScene(start)
        self._rect = frame.rect
        self._origins: dict[LayerItem, QPointF] = {}
        self._inner: dict[FrameItem, QRectF] = {}
        if grip == "move" and not frame.frame.collapsed:
            inside = [i for i in viewer.layer_items(frame.rect) if frame.rect.contains(i.box().center())]
            self._origins = {item: QPointF(item.pos()) for item in inside}
            others = [i for i in viewer.scene().items(frame.rect) if isinstance(i, FrameItem) and i.rect != frame.rect]
            self._inner = {item: item.rect for item in others if frame.rect.contains(item.seen)}
        self._moved = False

    def move(self, point: QPoint) -> None:
        if not self._moved and (point - self._start).manhattanLength() < THRESHOLD:
            return
        self._moved = True
        run = snap(self._viewer.mapToScene(point) - self._from)
        if self._grip == "move":
            self._show(self._rect.translated(run), run)
            return
        rect = QRectF(self._rect)
        if "l" in self._grip:
            rect.setLeft(min(rect.left() + run.x(), rect.right() - LEAST))
        if "r" in self._grip:
            rect.setRight(max(rect.right() + run.x(), rect.left() + LEAST))
        if "t" in self._grip:
            rect.setTop(min(rect.top() + run.y(), rect.bottom() - LEAST))
        if "b" in self._grip:
            rect.setBottom(max(rect.bottom() + run.y(), rect.top() + LEAST))
        self._show(rect, run)

    def _show(self, rect: QRectF, run: QPointF) -> None:
        self._frame.show_rect(rect)
        for inner, before in self._inner.items():
            inner.show_rect(before.translated(run))
        for item, origin in self._origins.items():
            item.move_to(origin + run)

    def release(self, point: QPoint) -> None:
        rect = self._frame.rect
        if rect != self._rect:
            places = {item.layer: (round(item.pos().x()), round(item.pos().y())) for item in self._origins}
            run = rect.topLeft() - self._rect.topLeft()
            places |= members_moved(self._viewer, (self._frame, *self._inner), run)
            inner = [item.frame.id for item in self._inner]
            self._viewer.frame_dragged.emit(self._frame.frame.id, rect, places, inner)

    def cancel(self) -> None:
        self._show(self._rect, QPointF())


class DragPoint:
    """Drag a reroute point of a link."""

    moves_items = False

    def __init__(self, viewer: CanvasView, link: LinkItem, number: int, start: QPoint) -> None:
        self._viewer = viewer
        self._link = link
        self._number = number
        self._start = start
        self._moved = False

    def move(self, point: QPoint) -> None:
        if self._moved or (point - self._start).manhattanLength() >= THRESHOLD:
            self._moved = True
            self._link.show_point(self._number, snap(self._viewer.mapToScene(point)))

    def release(self, point: QPoint) -> None:
        if self._moved:
            self._viewer.point_dropped.emit(self._link, self._number, self._link.points[self._number])
        else:
            self._viewer.select_link(self._link)

    def cancel(self) -> None:
        self._link.redraw()


class DragLink:
    """Drag a link: a new one from a port, or the loose end of one that exists (`detached`)."""

    moves_items = True

    def __init__(self, viewer: CanvasView, anchor: PortDot, start: QPoint, detached: LinkItem | None = None) -> None:
        self._viewer = viewer
        self.anchor = anchor
        self.detached = detached
        self._start = start
        self.live: LiveLink | None = None

    def move(self, point: QPoint) -> None:
        if self.live is None:
            if (point - self._start).manhattanLength() < THRESHOLD:
                return
            self._begin()
        assert self.live is not None
        target = self._target(point)
        grayed = target is not None and target.grayed
        pointer = self._viewer.mapToScene(point) if target is None else target.center()
        self.live.follow(self.anchor, pointer, refused=grayed)
        if target is not None and grayed:
            QToolTip.showText(self._viewer.viewport().mapToGlobal(point), target.toolTip(), self._viewer.viewport())
        else:
            QToolTip.hideText()

    def _begin(self) -> None:
        self.live = LiveLink()
        self._viewer.scene().addItem(self.live)
        self._viewer.overlays.append(self.live)
        if self.detached is not None:
            self.detached.hide()
        self._viewer.link_started.emit(self)

    def _target(self, point: QPoint) -> PortDot | None:
        hit = self._viewer.hit(point)
        near = hit.node if isinstance(hit, PortDot) else hit
        if isinstance(near, LayerItem):
            self._viewer.link_near.emit(near)
        if isinstance(hit, PortDot) and hit.is_input != self.anchor.is_input and hit.node is not self.anchor.node:
            return hit
        if isinstance(near, LayerItem) and near is not self.anchor.node:
            return best_port(near.outputs if self.anchor.is_input else near.inputs)
        return None

    def release(self, point: QPoint) -> None:
        target = self._target(point) if self.live is not None else None
        dragged = self.live is not None
        hit = self._viewer.hit(point)
        home = (hit.node if isinstance(hit, PortDot) else hit) is self.anchor.node
        self._end()
        if not dragged:
            if self.detached is not None:
                self._viewer.select_link(self.detached)
            return
        refusal = target.refusal if target is not None else ""
        self._viewer.link_ended.emit()
        if home and self.detached is None:
            return  # back where it came from
        if refusal:
            self._viewer.link_refused.emit(refusal)
        else:
            self._viewer.link_dropped.emit(self, target, self._viewer.mapToScene(point))

    def cancel(self) -> None:
        dragged = self.live is not None
        self._end()
        if dragged:
            self._viewer.link_ended.emit()

    def _end(self) -> None:
        QToolTip.hideText()
        if self.live is not None:
            self._viewer.overlays.remove(self.live)
            self._viewer.scene().removeItem(self.live)
            self.live = None
        if self.detached is not None:
            self.detached.show()


def best_port(dots: list[PortDot]) -> PortDot | None:
    """The port for a link dropped on a node's body: the first free port of matching type, else any matching one, else any that accepts it."""
    willing = [d for d in dots if not d.refusal]
    fitting = [d for d in willing if not d.misfit]
    free = [d for d in fitting if not d.is_input or not d.links]
    return next(iter(free or fitting or willing or dots), None)


def members_moved(viewer: CanvasView, frames: Iterable[FrameItem], run: QPointF) -> dict[str, tuple[int, int]]:
    """The new positions of the layers hidden in the collapsed ones of these frames, which move with them."""
    names = [name for frame in frames if frame.frame.collapsed for name in frame.members]
    places = {name: viewer.supply.entry(name).pos() + run for name in names} if viewer.supply is not None else {}
    return {name: (round(place.x()), round(place.y())) for name, place in places.items()}


def snap(point: QPointF) -> QPointF:
    """Round to the nearest grid point."""
    return QPointF(round(point.x() / GRID) * GRID, round(point.y() / GRID) * GRID)


def can_insert(item: LayerItem) -> bool:
    """Whether a node can be inserted into a link: it has an input and an output, and no links yet."""
    return bool(item.inputs and item.outputs) and not item.links()


def link_under(viewer: CanvasView, item: LayerItem) -> LinkItem | None:
    """The link under a node that is nearest to its center."""
    box = item.box().adjusted(INSIDE, INSIDE, -INSIDE, -INSIDE)
    links = [i for i in viewer.scene().items(box) if isinstance(i, LinkItem) and i.path().intersects(box)]
    center = box.center()
    return min(links, key=lambda i: abs(i.path().pointAtPercent(0.5).y() - center.y()), default=None)


def gesture_at(viewer: CanvasView, point: QPoint, keys: Qt.KeyboardModifier) -> Gesture | None:
    """The gesture that a press at a viewport point starts, or None if the press is already complete."""
    toggle = bool(keys & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier))
    hit = viewer.hit(point)
    if isinstance(hit, PortDot):
        if hit.is_input and hit.connected_pipes:
            link = hit.connected_pipes[0]
            return DragLink(viewer, link.source, point, link)
        return DragLink(viewer, hit, point)
    if isinstance(hit, LayerItem):
        return _on_node(viewer, hit, point, toggle=toggle)
    if isinstance(hit, LinkItem):
        place = viewer.mapToScene(point)
        number = hit.point_at(place, viewer.zoom)
        if number is not None:
            return DragPoint(viewer, hit, number, point)
        to_source = QLineF(place, hit.source.center()).length()
        near_source = to_source < QLineF(place, hit.target.center()).length()
        return DragLink(viewer, hit.target if near_source else hit.source, point, hit)
    if isinstance(hit, FrameItem):
        viewer.select_frame(hit)
        return DragFrame(viewer, hit, hit.grip(viewer.mapToScene(point), viewer.zoom), point)
    return RubberBand(viewer, point, extend=toggle)


def _on_node(viewer: CanvasView, item: LayerItem, point: QPoint, *, toggle: bool) -> Gesture | None:
    was_selected = item.isSelected()
    if toggle:
        item.setSelected(not was_selected)
        viewer.selection_changed.emit()
        if was_selected:
            return None
    elif not was_selected:
        viewer.select_items([item])
        viewer.selection_changed.emit()
    return MoveLayers(viewer, item, point, single_on_click=was_selected and not toggle)
