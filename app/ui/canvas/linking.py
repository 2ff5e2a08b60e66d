"""Dragging links: which ports can take one, and what a dropped one asks of the document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF

from app.ui.canvas import gestures, wishes
from app.ui.canvas.node import LayerItem
from app.ui.canvas.ports import PortDot
from designer.graph import commands
from designer.graph.edits import Edit
from designer.graph.model import Layer, Source
from designer.operators.api import Operator

if TYPE_CHECKING:
    from app.ui.canvas.canvas import Canvas


class Linking:
    """Follows the viewer's link gestures on behalf of a canvas."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        canvas.viewer.link_started.connect(self._on_started)
        canvas.viewer.link_ended.connect(self._on_ended)
        canvas.viewer.link_dropped.connect(self._on_dropped)

    def _on_started(self, drag: gestures.Link) -> None:
        """Grey out every port that cannot take the link, each with its reason."""
        document = self._canvas.document
        if document is None:
            return
        anchor = drag.anchor
        own = anchor.node.layer
        forbidden = document.graph.downstream([own]) if anchor.is_input else document.graph.upstream([own])
        for name in self._canvas.projection.layers:
            item = self._canvas.projection[name]
            for dot in item.outputs if anchor.is_input else item.inputs:
                source, target = (dot, anchor) if anchor.is_input else (anchor, dot)
                reason = wishes.refusal(
                    document, source_of(source), target.node.layer, target.index, closes_loop=name in forbidden
                )
                dot.refuse(reason)
            item.update()

    def _on_ended(self) -> None:
        for name in self._canvas.projection.layers:
            item = self._canvas.projection[name]
            for dot in (*item.inputs, *item.outputs):
                if dot.refusal:
                    dot.refuse("")
            item.update()

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
            self._canvas.do(lambda d: commands.connect(d.graph, source_of(source), name, index))
        elif consumer is not detached.target or source is not detached.source:
            self._canvas.do(lambda d: wishes.move_link(d, detached.key, source_of(source), name, index))

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

        def accepts(cls: type[Operator]) -> bool:
            return bool(cls.outputs if anchor.is_input else cls.inputs)

        self._canvas.open_search(place, join, accepts)


def source_of(dot: PortDot) -> Source:
    """The producer that an output dot stands for; the first output has no port name."""
    return Source(dot.node.layer, dot.look.name if dot.index else "")
