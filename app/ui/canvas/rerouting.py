"""Points of links on the canvas: added, dragged and removed by gestures and from the menu."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF

from app.ui.canvas import wishes
from app.ui.canvas.links import LinkItem
from app.ui.widgets.texts import tr
from designer.graph import routes

if TYPE_CHECKING:
    from app.ui.canvas.canvas import Canvas


class Rerouting:
    """Follows the viewer's gestures on points on behalf of a canvas."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        canvas.viewer.route_wanted.connect(self._on_wanted)
        canvas.viewer.point_dropped.connect(self._on_dropped)

    def _on_wanted(self, link: object, place: QPointF) -> None:
        """Alt and a double click: a point more, or one less."""
        if isinstance(link, LinkItem):
            number = link.point_at(place, self._canvas.viewer.zoom)
            if number is None:
                self._add(link, place)
            else:
                self._remove(link, number)

    def _on_dropped(self, link: object, number: int, place: QPointF) -> None:
        if isinstance(link, LinkItem):
            points = self._points(link)
            if number < len(points):
                points[number] = wishes.on_grid(place.x(), place.y())
                self._set(link, points, tr("Move reroute point"))

    def add(self) -> None:
        """Add a point to the selected link where the pointer is, or in its middle."""
        link = self._selected()
        if link is not None:
            place = self._canvas.viewer.menu_place
            near = place is not None and link.shape().contains(place)
            self._add(link, place if near and place is not None else link.path().pointAtPercent(0.5))

    def remove(self) -> None:
        """Remove the selected link's point that is nearest to the pointer, or its last one."""
        link = self._selected()
        if link is None or not link.points:
            return
        place = self._canvas.viewer.menu_place
        numbers = range(len(link.points))
        number = numbers[-1] if place is None else min(numbers, key=lambda n: _apart(link.points[n], place))
        self._remove(link, number)

    def straighten(self) -> None:
        """Remove all points of the selected links."""
        for link in self._canvas.viewer.selected_links():
            if link.points:
                self._set(link, [], tr("Straighten link"))

    def _selected(self) -> LinkItem | None:
        links = self._canvas.viewer.selected_links()
        return links[0] if len(links) == 1 else None

    def _points(self, link: LinkItem) -> list[routes.Point]:
        document = self._canvas.document
        layer = document.graph.get(link.key[0]) if document is not None else None
        return list(routes.routes_of(layer).get(link.key[1], ())) if layer is not None else []

    def _add(self, link: LinkItem, place: QPointF) -> None:
        points = self._points(link)
        points.insert(link.slot_at(place), wishes.on_grid(place.x(), place.y()))
        self._set(link, points, tr("Add reroute point"))

    def _remove(self, link: LinkItem, number: int) -> None:
        points = self._points(link)
        del points[number]
        self._set(link, points, tr("Remove reroute point"))

    def _set(self, link: LinkItem, points: list[routes.Point], title: str) -> None:
        name, index = link.key
        self._canvas.do(lambda d: routes.set_route(d.graph, name, index, points, title))


def _apart(a: QPointF, b: QPointF) -> float:
    return abs(a.x() - b.x()) + abs(a.y() - b.y())
