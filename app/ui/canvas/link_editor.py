"""Link editing by gestures: which ports accept a dragged link, what a drop does, and the reroute points of links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from PySide6.QtCore import QElapsedTimer, QPointF, QTimer

from app.ui.canvas import gestures
from app.ui.canvas.connect_search import ConnectSearch
from app.ui.canvas.links import LinkItem, PortDot
from app.ui.canvas.node import LayerItem
from app.ui.canvas.node_paint import PORTS
from app.ui.canvas.projection import Projection
from app.ui.canvas.viewer import LayerViewer
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.graph import commands, routes
from designer.graph.arrangement import on_grid
from designer.graph.diagnostics import errors
from designer.graph.edits import Edit
from designer.graph.model import Layer, Source
from designer.operators import links
from designer.operators.api import Operator
from designer.texts import tr

SLICE_MS = 6  # of checking ports per event loop turn
Connect = Callable[[Layer], Edit]  # returns the edit that connects a new layer to the network
Accepts = Callable[[type[Operator]], bool]


class AddLayers(Protocol):
    """Commits an edit that adds layers or inserts one into a link, and makes room for them. Returns None if it was refused."""

    def __call__(
        self, request: Callable[[Document], Edit], names: Sequence[str], center: QPointF | None = None
    ) -> Edit | None: ...


class CommitEdit(Protocol):
    """Commits an edit of the current document. Returns None if it was refused."""

    def __call__(self, request: Callable[[Document], Edit]) -> Edit | None: ...


class OpenSearch(Protocol):
    """Opens the search for an operator to add and connect."""

    def __call__(self, place: QPointF, join: Connect | None, accepts: Accepts | None = None) -> None: ...


class LinkEditor:
    """Handles the link gestures of the viewer."""

    def __init__(
        self,
        context: Context,
        viewer: LayerViewer,
        projection: Projection,
        do: CommitEdit,
        add: AddLayers,
        search: OpenSearch,
        selection: Callable[[], Sequence[str]],
    ) -> None:
        self._context = context
        self._viewer = viewer
        self._projection = projection
        self._do = do
        self._add = add
        self._search = search
        self._selection = selection
        self._drag: gestures.DragLink | None = None
        self._connect_search = ConnectSearch(viewer)
        self._connect_search.chosen.connect(self._on_offer_chosen)
        self._loop: set[str] = set()  # layers to which the dragged link would close a loop
        self._checked: set[str] = set()
        self._waiting: list[str] = []  # visible layers to check
        self._later = QTimer(viewer, interval=0, timeout=self._check_some)
        viewer.dropped_on_link.connect(self._on_node_dropped)
        viewer.link_started.connect(self._on_started)
        viewer.link_near.connect(self._check)
        viewer.link_ended.connect(self._on_ended)
        viewer.link_dropped.connect(self._on_dropped)
        viewer.horizontalScrollBar().valueChanged.connect(self._look_around)
        viewer.verticalScrollBar().valueChanged.connect(self._look_around)

    def connect_to(self) -> None:
        """Search for an input to connect the selected layer to."""
        self._ask(outgoing=True)

    def connect_from(self) -> None:
        """Search for an output that the selected layer reads."""
        self._ask(outgoing=False)

    def _ask(self, *, outgoing: bool) -> None:
        document, names = self._projection.document, self._selection()
        item = self._projection.get(names[-1]) if names else None
        if document is not None and item is not None:
            self._viewer.bring(item)
            corner = item.box().topRight() if outgoing else item.box().topLeft()
            place = self._viewer.viewport().mapToGlobal(self._viewer.mapFromScene(corner))
            self._connect_search.open_for(document, item.layer, place, outgoing=outgoing)

    def _on_offer_chosen(self, key: str) -> None:
        offer = self._connect_search.offer(key)
        if self._do(lambda d: commands.connect(d.graph, offer.source, offer.consumer, offer.at)) is not None:
            self._report_misfit(offer.consumer)
        self._viewer.setFocus()

    @property
    def waiting(self) -> bool:
        """Whether visible ports remain to be checked."""
        return bool(self._waiting)

    def _on_started(self, drag: object) -> None:
        """Gray out the visible ports that cannot accept the link, each with its reason; check others when they become visible."""
        document = self._projection.document
        if document is None or not isinstance(drag, gestures.DragLink):
            return
        own = drag.anchor.node.layer
        self._loop = document.graph.downstream([own]) if drag.anchor.is_input else document.graph.upstream([own])
        self._drag = drag
        self._checked.clear()
        self._look_around()
        self._check_some()

    def _look_around(self) -> None:
        """Queue the visible nodes that are not checked yet. Ports too small to be visible are checked under the pointer only."""
        viewer = self._viewer
        if self._drag is None or viewer.zoom < PORTS:
            return
        area = viewer.mapToScene(viewer.viewport().rect()).boundingRect()
        self._waiting = [name for name in self._projection.within(area) if name not in self._checked]
        if self._waiting:
            self._later.start()

    def _check_some(self) -> None:
        """Check ports for one time slice and the rest in the next turn, so that the pointer never waits."""
        clock = QElapsedTimer()
        clock.start()
        while self._waiting and clock.elapsed() < SLICE_MS:
            self._check(self._projection.get(self._waiting.pop()))
        if not self._waiting:
            self._later.stop()

    def _check(self, item: object) -> None:
        """Gray out the ports of a node that cannot accept the link or have another type."""
        document, drag = self._projection.document, self._drag
        if document is None or drag is None or not isinstance(item, LayerItem) or item.layer in self._checked:
            return
        self._checked.add(item.layer)
        anchor = drag.anchor
        loose = drag.detached.key if drag.detached is not None else None
        dots = item.outputs if anchor.is_input else item.inputs
        for dot in dots:
            start, end = (dot, anchor) if anchor.is_input else (anchor, dot)
            source, consumer, index = source_of(start), end.node.layer, end.index
            refusal = links.refusal(document.inference, source, consumer, index)
            if item.layer in self._loop:
                refusal = tr("the link would create a loop")
            dot.refuse(refusal, "" if refusal else links.misfit(document.inference, source, consumer, index, loose))
        if any(dot.grayed for dot in dots):
            item.update()

    def _on_ended(self) -> None:
        self._later.stop()
        self._waiting.clear()
        self._drag = None
        for name in self._checked:
            item = self._projection.get(name)
            for dot in (*item.inputs, *item.outputs) if item is not None else ():
                dot.refuse("")
            if item is not None:
                item.update()
        self._checked.clear()

    def _on_dropped(self, drag: object, target: object, place: QPointF) -> None:
        if not isinstance(drag, gestures.DragLink):
            return
        anchor, detached = drag.anchor, drag.detached
        if not isinstance(target, PortDot):
            if detached is not None:
                self._do(lambda d: commands.disconnect(d.graph, *detached.key, close_gap=_variadic(d, detached)))
            else:
                self._search_for(anchor, place)
            return
        source, consumer = (target, anchor) if anchor.is_input else (anchor, target)
        name, index = consumer.node.layer, consumer.index
        if detached is None:
            done = self._do(lambda d: commands.connect(d.graph, source_of(source), name, index))
        elif consumer is not detached.target or source is not detached.source:
            done = self._do(
                lambda d: commands.move_link(
                    d.graph, detached.key, source_of(source), name, index, close_gap=_variadic(d, detached)
                )
            )
        else:
            return
        if done is not None:
            self._report_misfit(name)

    def _report_misfit(self, *names: str) -> None:
        """Report a type error of layers that were just connected."""
        states = self._projection.document.inference.states if self._projection.document is not None else {}
        found = [d for name in names if name in states for d in errors(states[name].diagnostics)]
        wrong = [d for d in found if d.code != "missing-input"]  # an open port is not the fault of this link
        if wrong:
            text = tr("Connected, but the types do not match: {rule}. See Type Checking.", rule=wrong[0].message)
            self._context.message.emit("warning", text)

    def _on_node_dropped(self, name: str, place: QPointF, link: object) -> None:
        """Insert an unconnected node that was dropped on a link."""
        if not isinstance(link, LinkItem):
            return
        item, key = self._projection[name], link.key
        center = link.nearest(item.box().center())
        spot = (round(place.x()), round(place.y()))

        def insert(document: Document) -> Edit:
            return commands.insert_on_link(document.graph, replace(document.graph[name], position=spot), *key)

        if self._add(insert, [name], center) is None:
            self._projection.reset_positions([name])
        else:
            self._report_misfit(name, key[0])

    def _search_for(self, anchor: PortDot, place: QPointF) -> None:
        """Offer the operators that a link dropped on empty canvas can connect to."""
        document = self._projection.document
        if document is None:
            return
        source = None if anchor.is_input else source_of(anchor)
        consumer = (anchor.node.layer, anchor.index) if anchor.is_input else None

        def join(layer: Layer) -> Edit:
            reads, gives = links.open_sides(document.graph, document.registry, layer)
            if not (reads if consumer is None else gives):
                return commands.add_layer(document.graph, layer)
            return commands.add_connected(document.graph, _sized(document, layer, consumer), source, consumer)

        tensor = document.inference.type_of(source) if source is not None else None

        def accepts(cls: type[Operator]) -> bool:
            if anchor.is_input:
                return bool(cls.outputs)
            return bool(cls.inputs) and (tensor is None or not cls.inputs[0].refusal(tensor))

        self._search(place, join, accepts)


def _sized(document: Document, layer: Layer, consumer: tuple[str, int] | None) -> Layer:
    """Give a new input layer the image size of another input of its consumer, such as the prediction of a loss."""
    if consumer is None or "dims" not in layer.params:
        return layer
    for source in document.graph[consumer[0]].inputs:
        tensor = document.inference.type_of(source) if source is not None else None
        if tensor is not None and tensor.rank == 4:
            _, c, h, w = tensor.shape
            if isinstance(c, int) and isinstance(h, int) and isinstance(w, int):
                return layer.with_param("dims", f"{w}x{h}x{c}")
    return layer


def _variadic(document: Document, link: LinkItem) -> bool:
    return links.is_variadic(document.inference, *link.key)


def source_of(dot: PortDot) -> Source:
    """The source for an output port; the first output has no port name."""
    return Source(dot.node.layer, dot.look.name if dot.index else "")


class RouteEditor:
    """Adds, moves and removes reroute points by gestures and from the menu."""

    def __init__(self, viewer: LayerViewer, projection: Projection, do: CommitEdit) -> None:
        self._viewer = viewer
        self._projection = projection
        self._do = do
        viewer.route_requested.connect(self._on_requested)
        viewer.point_dropped.connect(self._on_dropped)

    def _on_requested(self, link: object, place: QPointF) -> None:
        """Alt+double-click: add a point, or remove the one under the pointer."""
        if isinstance(link, LinkItem):
            number = link.point_at(place, self._viewer.zoom)
            if number is None:
                self._add(link, place)
            else:
                self._remove(link, number)

    def _on_dropped(self, link: object, number: int, place: QPointF) -> None:
        if isinstance(link, LinkItem):
            points = self._points(link)
            if number < len(points):
                points[number] = on_grid(place.x(), place.y())
                self._set(link, points, tr("Move reroute point"))

    def add(self) -> None:
        """Add a point to the selected link at the pointer, or in its middle."""
        link = self._selected()
        if link is not None:
            place = self._viewer.menu_place
            near = place is not None and link.shape().contains(place)
            self._add(link, place if near and place is not None else link.path().pointAtPercent(0.5))

    def remove(self) -> None:
        """Remove the point of the selected link nearest to the pointer, or its last one."""
        link = self._selected()
        if link is None or not link.points:
            return
        place = self._viewer.menu_place
        numbers = range(len(link.points))
        number = numbers[-1] if place is None else min(numbers, key=lambda n: _apart(link.points[n], place))
        self._remove(link, number)

    def straighten(self) -> None:
        """Remove all points of the selected links."""
        for link in self._viewer.selected_links():
            if link.points:
                self._set(link, [], tr("Straighten link"))

    def _selected(self) -> LinkItem | None:
        links = self._viewer.selected_links()
        return links[0] if len(links) == 1 else None

    def _points(self, link: LinkItem) -> list[routes.Point]:
        document = self._projection.document
        layer = document.graph.get(link.key[0]) if document is not None else None
        return list(routes.routes_of(layer).get(link.key[1], ())) if layer is not None else []

    def _add(self, link: LinkItem, place: QPointF) -> None:
        points = self._points(link)
        points.insert(link.slot_at(place), on_grid(place.x(), place.y()))
        self._set(link, points, tr("Add reroute point"))

    def _remove(self, link: LinkItem, number: int) -> None:
        points = self._points(link)
        del points[number]
        self._set(link, points, tr("Remove reroute point"))

    def _set(self, link: LinkItem, points: list[routes.Point], title: str) -> None:
        name, index = link.key
        self._do(lambda d: routes.set_route(d.graph, name, index, points, title))


def _apart(a: QPointF, b: QPointF) -> float:
    return abs(a.x() - b.x()) + abs(a.y() - b.y())
