"""Dragging links: which ports can take one, and what a dropped one asks of the document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QPointF, QTimer

from app.ui.canvas import gestures, wishes
from app.ui.canvas.fitting import misfit, output_type, takes
from app.ui.canvas.inserting import insert_layer
from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from app.ui.canvas.node_paint import READABLE
from app.ui.canvas.ports import PortDot
from app.ui.canvas.rerouting import Rerouting
from app.ui.engine.context import Context
from app.ui.widgets.texts import tr
from designer.graph import commands
from designer.graph.diagnostics import errors
from designer.graph.edits import Edit
from designer.graph.model import Layer, Source
from designer.operators.api import Operator

if TYPE_CHECKING:
    from app.ui.canvas.canvas import Canvas

SLICE_MS = 6  # for which ports are checked at a time


class Linking:
    """Follows the viewer's link gestures on behalf of a canvas."""

    def __init__(self, canvas: Canvas, context: Context) -> None:
        self._canvas = canvas
        self._context = context
        self._drag: gestures.Link | None = None
        self._loop: set[str] = set()  # layers with which the dragged link would close a loop
        self._checked: set[str] = set()
        self._waiting: list[str] = []  # layers in view
        viewer = canvas.viewer
        self._later = QTimer(viewer, interval=0, timeout=self._check_some)
        self.points = Rerouting(canvas)
        viewer.dropped_on_link.connect(self._on_node_dropped)
        viewer.link_started.connect(self._on_started)
        viewer.link_near.connect(self._check)
        viewer.link_ended.connect(self._on_ended)
        viewer.link_dropped.connect(self._on_dropped)
        viewer.horizontalScrollBar().valueChanged.connect(self._look_around)
        viewer.verticalScrollBar().valueChanged.connect(self._look_around)

    @property
    def waiting(self) -> bool:
        """Whether ports in view were not checked yet."""
        return bool(self._waiting)

    def _on_started(self, drag: gestures.Link) -> None:
        """Grey out the ports in view that cannot take the link, each with its reason; others when they come into view."""
        document = self._canvas.document
        if document is None:
            return
        own = drag.anchor.node.layer
        self._loop = document.graph.downstream([own]) if drag.anchor.is_input else document.graph.upstream([own])
        self._drag = drag
        self._checked.clear()
        self._look_around()
        self._check_some()

    def _look_around(self) -> None:
        """Note the nodes in view that were not checked yet. Ports that are too small to be seen are checked when one is pointed at."""
        viewer = self._canvas.viewer
        if self._drag is None or viewer.zoom < READABLE:
            return
        area = viewer.mapToScene(viewer.viewport().rect()).boundingRect()
        self._waiting = [name for name in self._canvas.projection.within(area) if name not in self._checked]
        if self._waiting:
            self._later.start()

    def _check_some(self) -> None:
        """Check ports for a moment, and the rest at the next turn: the pointer never waits for them."""
        clock = QElapsedTimer()
        clock.start()
        while self._waiting and clock.elapsed() < SLICE_MS:
            self._check(self._canvas.projection.get(self._waiting.pop()))
        if not self._waiting:
            self._later.stop()

    def _check(self, item: object) -> None:
        """Grey out those ports of a node that cannot take the link, or that it would not fit."""
        document, drag = self._canvas.document, self._drag
        if document is None or drag is None or not isinstance(item, LayerItem) or item.layer in self._checked:
            return
        self._checked.add(item.layer)
        anchor = drag.anchor
        loose = drag.detached.key if drag.detached is not None else None
        dots = item.outputs if anchor.is_input else item.inputs
        for dot in dots:
            start, end = (dot, anchor) if anchor.is_input else (anchor, dot)
            source, consumer, index = source_of(start), end.node.layer, end.index
            refusal = wishes.refusal(document, source, consumer, index, closes_loop=item.layer in self._loop)
            dot.refuse(refusal, "" if refusal else misfit(document, source, consumer, index, loose))
        if any(dot.greyed for dot in dots):
            item.update()

    def _on_ended(self) -> None:
        self._later.stop()
        self._waiting.clear()
        self._drag = None
        for name in self._checked:
            item = self._canvas.projection.get(name)
            for dot in (*item.inputs, *item.outputs) if item is not None else ():
                dot.refuse("")
            if item is not None:
                item.update()
        self._checked.clear()

    def _on_dropped(self, drag: gestures.Link, target: object, place: QPointF) -> None:
        anchor, detached = drag.anchor, drag.detached
        if not isinstance(target, PortDot):
            if detached is not None:
                self._canvas.do(lambda d: wishes.disconnect(d, *detached.key))
            else:
                self._search_for(anchor, place)
            return
        source, consumer = (target, anchor) if anchor.is_input else (anchor, target)
        name, index = consumer.node.layer, consumer.index
        if detached is None:
            done = self._canvas.do(lambda d: commands.connect(d.graph, source_of(source), name, index))
        elif consumer is not detached.target or source is not detached.source:
            done = self._canvas.do(lambda d: wishes.move_link(d, detached.key, source_of(source), name, index))
        else:
            return
        if done is not None:
            self._tell_misfit(name)

    def _tell_misfit(self, name: str) -> None:
        """Say what is wrong with a layer that was just connected, where something is."""
        document = self._canvas.document
        state = document.inference.states.get(name) if document is not None else None
        wrong = errors(state.diagnostics) if state is not None else ()
        if wrong:
            text = tr("Connected, but it does not fit: {rule}. Type Checking has more.", rule=wrong[0].message)
            self._context.message.emit("warning", text)

    def _on_node_dropped(self, name: str, place: QPointF, link: object) -> None:
        """A node that nothing was connected to was dropped on a link."""
        if not isinstance(link, LinkItem):
            return
        spot, key = (round(place.x()), round(place.y())), link.key
        if self._canvas.do(lambda d: insert_layer(d.graph, name, spot, *key)) is None:
            self._canvas.projection.reset_positions([name])
        else:
            self._tell_misfit(name)

    def _search_for(self, anchor: PortDot, place: QPointF) -> None:
        """A new link was dropped on nothing: offer the operators that it can lead to."""
        document = self._canvas.document
        if document is None:
            return
        item: LayerItem = anchor.node
        source = None if anchor.is_input else source_of(anchor)
        consumer = (item.layer, anchor.index) if anchor.is_input else None

        def join(layer: Layer) -> Edit:
            return wishes.add_connected(document.graph, layer, source, consumer)

        tensor = output_type(document, source) if source is not None else None

        def accepts(cls: type[Operator]) -> bool:
            return bool(cls.outputs) if anchor.is_input else bool(cls.inputs) and takes(cls.inputs[0], tensor)

        self._canvas.open_search(place, join, accepts)


def source_of(dot: PortDot) -> Source:
    """The producer that an output dot stands for; the first output has no port name."""
    return Source(dot.node.layer, dot.look.name if dot.index else "")
