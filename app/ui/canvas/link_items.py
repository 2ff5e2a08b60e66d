"""The items of links: made between the ports of two nodes, marked, labelled and taken away."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QGraphicsScene

from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from app.ui.canvas.ports import PortDot
from app.ui.canvas.wires import Key, Wire, Wires
from designer.graph.model import Source


class LinkItems:
    """`node` gives the item of a layer; where there is none it makes one."""

    def __init__(self, wires: Wires, node: Callable[[str], LayerItem], scene: QGraphicsScene) -> None:
        self._wires = wires
        self._node = node
        self._scene = scene
        self.path: set[Key] = set()  # links of the selected layer's path

    def make(self, wire: Wire) -> None:
        """Make the item of a link, unless it is there or one of its ports is not."""
        if wire.item is not None:
            return
        output, target = self._output(wire.source), self._input(wire.key)
        if output is None or target is None:
            return
        link = wire.item = LinkItem(output, target, wire.key, self._wires)
        link.show_on_path(wire.key in self.path)
        self._scene.addItem(link)
        link.setVisible(not self._wires.inner(wire))
        self.label(wire)

    def unmake(self, wire: Wire) -> None:
        link, wire.item = wire.item, None
        if link is not None:
            self._wires.unroute(link)
            for dot in (link.source, link.target):
                dot.node.update()
            link.delete()

    def holds(self, wire: Wire, source: Source | None) -> bool:
        """Whether the item of a link still joins the right ports."""
        link = wire.item
        if link is None or source is None:
            return False
        return link.source is self._output(source) and link.target is self._input(wire.key)

    def label(self, wire: Wire | None) -> None:
        """Write the shape on a link that has an item."""
        link = wire.item if wire is not None else None
        if link is not None:
            shapes, number = link.source.node.look.shapes, link.source.index
            link.set_label(shapes[number] if number < len(shapes) else "")
            link.source.node.update()

    def show_path(self, before: set[str], after: set[str]) -> bool:
        """Mark the links into the layers of `before` and out of those of `after`, and no others; whether that is new."""
        path = {k for n in before for k in self._wires.into(n)} | {k for n in after for k in self._wires.leaving(n)}
        changed, self.path = path ^ self.path, path
        for key in changed:
            wire = self._wires.get(key)
            if wire is not None and wire.item is not None:
                wire.item.show_on_path(key in path)
        return bool(changed)

    def _output(self, source: Source) -> PortDot | None:
        dots = self._node(source.layer).outputs
        if not source.port:
            return dots[0] if dots else None
        return next((d for d in dots if d.look.name == source.port), None)

    def _input(self, key: Key) -> PortDot | None:
        dots = self._node(key[0]).inputs
        return dots[key[1]] if key[1] < len(dots) else None
