"""Which gesture a press of the left button begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPoint, Qt

from app.ui.canvas import gestures
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from app.ui.canvas.ports import PortDot

if TYPE_CHECKING:
    from app.ui.canvas.viewer import LayerViewer


def gesture_at(viewer: LayerViewer, point: QPoint, keys: Qt.KeyboardModifier) -> gestures.Gesture | None:
    """The gesture of a press at a viewport point; None where it was all that there is to it."""
    toggle = bool(keys & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier))
    hit = viewer.hit(point)
    if isinstance(hit, PortDot):
        if hit.is_input and hit.connected_pipes:
            link = hit.connected_pipes[0]
            return gestures.Link(viewer, link.source, point, link)
        return gestures.Link(viewer, hit, point)
    if isinstance(hit, LayerItem):
        return _on_node(viewer, hit, point, toggle=toggle)
    if isinstance(hit, LinkItem):
        place = viewer.mapToScene(point)
        number = hit.point_at(place, viewer.zoom)
        if number is not None:
            return gestures.DragPoint(viewer, hit, number, point)
        to_source = QLineF(place, hit.source.centre()).length()
        near_source = to_source < QLineF(place, hit.target.centre()).length()
        return gestures.Link(viewer, hit.target if near_source else hit.source, point, hit)
    if isinstance(hit, FrameItem):
        viewer.select_items([])
        hit.setSelected(True)
        viewer.selection_changed.emit()
        return gestures.DragFrame(viewer, hit, hit.grip(viewer.mapToScene(point), viewer.zoom), point)
    return gestures.Band(viewer, point, extend=toggle)


def _on_node(viewer: LayerViewer, item: LayerItem, point: QPoint, *, toggle: bool) -> gestures.Gesture | None:
    was_selected = item.isSelected()
    if toggle:
        item.setSelected(not was_selected)
        viewer.selection_changed.emit()
        if was_selected:
            return None
    elif not was_selected:
        viewer.select_items([item])
        viewer.selection_changed.emit()
    return gestures.Move(viewer, item, point, single_on_click=was_selected and not toggle)
