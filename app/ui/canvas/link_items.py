"""Creates, marks, labels and removes the items of links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QGraphicsScene

from app.ui.canvas.link_index import Key, LinkEntry, LinkIndex
from app.ui.canvas.links import LinkItem, PortDot
from app.ui.canvas.node import LayerItem
from designer.graph.model import Source


class LinkItems:
    """`node` returns the item of a layer and creates it if needed, `titles` the areas of the titles of frames."""

    def __init__(
        self,
        edges: LinkIndex,
        node: Callable[[str], LayerItem],
        scene: QGraphicsScene,
        titles: Callable[[], Iterable[QRectF]],
    ) -> None:
        self._titles = titles
        self._edges = edges
        self._node = node
        self._scene = scene
        self._before: Set[str] = frozenset()  # the selected layer and those upstream of it
        self._after: Set[str] = frozenset()

    def make(self, edge: LinkEntry) -> None:
        """Create the item of a link, unless it exists or one of its ports does not."""
        if edge.item is not None:
            return
        output, target = self._output(edge.source), self._input(edge.key)
        if output is None or target is None:
            return
        link = edge.item = LinkItem(output, target, edge.key, self._edges, self._titles)
        link.show_on_path(self.on_path(edge))
        self._scene.addItem(link)
        link.setVisible(not self._edges.inner(edge))
        self.label(edge)

    def unmake(self, edge: LinkEntry) -> None:
        link, edge.item = edge.item, None
        if link is not None:
            self._edges.unroute(link)
            for dot in (link.source, link.target):
                dot.node.update()
            link.delete()

    def holds(self, edge: LinkEntry, source: Source | None) -> bool:
        """Whether the item of a link still connects the right ports."""
        link = edge.item
        if link is None or source is None:
            return False
        return link.source is self._output(source) and link.target is self._input(edge.key)

    def label(self, edge: LinkEntry | None) -> None:
        """Update the shape label of a link that has an item."""
        link = edge.item if edge is not None else None
        if link is not None:
            shapes, number = link.source.node.look.shapes, link.source.index
            link.set_label(shapes[number] if number < len(shapes) else "")
            link.source.node.update()

    def on_path(self, edge: LinkEntry) -> bool:
        """Whether a link is upstream or downstream of the selected layer."""
        return edge.key[0] in self._before or edge.source.layer in self._after

    def show_path(self, before: Set[str], after: Set[str]) -> bool:
        """Highlight exactly the links into the layers of `before` and out of those of `after`. Returns whether these changed."""
        if (before, after) == (self._before, self._after):
            return False
        self._before, self._after = before, after
        for edge in self._edges:
            if edge.item is not None:
                edge.item.show_on_path(self.on_path(edge))
        return True

    def _output(self, source: Source) -> PortDot | None:
        dots = self._node(source.layer).outputs
        if not source.port:
            return dots[0] if dots else None
        return next((d for d in dots if d.look.name == source.port), None)

    def _input(self, key: Key) -> PortDot | None:
        dots = self._node(key[0]).inputs
        return dots[key[1]] if key[1] < len(dots) else None
