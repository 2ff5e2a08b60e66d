"""Keeps the items equal to the document: ChangeSets in, items made, changed and removed."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from NodeGraphQt.base.graph import NodeGraph
from PySide6.QtCore import QPointF

from app.ui.canvas.far import FarView
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem
from app.ui.canvas.look import NodeLook, node_look
from app.ui.canvas.node import LayerItem, LayerNode
from app.ui.canvas.ports import PortDot
from app.ui.canvas.routing import LONG, Obstacles, Rect
from app.ui.canvas.viewer import LayerViewer
from app.ui.document import Document
from designer.graph.edits import ChangeSet
from designer.graph.model import Frame
from designer.graph.template import INSTANCE


class LayerGraph(NodeGraph):  # type: ignore[misc]
    """NodeGraphQt's graph without its search for free names, which is linear a node: names are the document's."""

    def get_unique_name(self, name: str) -> str:
        return name


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing becomes garbage while items are made, and looking for it again and again takes a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Projection:
    """The items of one document."""

    def __init__(self, viewer: LayerViewer) -> None:
        self.viewer = viewer
        self.graph = LayerGraph(viewer=viewer)
        self.graph.set_acyclic(False)  # the library's check is quadratic; the document refuses cycles itself
        self.document: Document | None = None
        self.inspected = ""  # the layer that the Channel Inspector shows
        self._nodes: dict[str, LayerNode] = {}
        self._links: dict[tuple[str, int], LinkItem] = {}
        self._frames: dict[str, FrameItem] = {}
        self._obstacles = Obstacles()
        self._long: set[LinkItem] = set()  # links that may have to run around nodes
        viewer.collect_far = self.collect_far
        self._placed: list[Rect] = []  # boxes that came, went or changed since links were last routed

    def __getitem__(self, layer: str) -> LayerItem:
        return self._nodes[layer].item

    def get(self, layer: str) -> LayerItem | None:
        node = self._nodes.get(layer)
        return node.item if node is not None else None

    def link(self, consumer: str, index: int) -> LinkItem | None:
        """The item of the link that ends at input `index` of `consumer`."""
        return self._links.get((consumer, index))

    @property
    def layers(self) -> Iterable[str]:
        return self._nodes.keys()

    # --- following the document ------------------------------------------------------------------------------

    def show(self, document: Document | None) -> None:
        """Forget what was shown and show `document`."""
        self.viewer.far_changed()
        for name in list(self._nodes):
            self._remove(name)
        self._links.clear()
        self._show_frames(list(self._frames), {})
        self.inspected = ""
        self.document = document
        if document is None:
            return
        with _no_collection():
            for name in document.graph.layers:
                self._add(name)
            self._placed.clear()  # no link is there yet
            for name in document.graph.layers:
                self._wire(name)
        self._show_frames(list(document.graph.frames), document.graph.frames)

    def apply(self, change: ChangeSet) -> None:
        """Follow one change."""
        self.viewer.far_changed()
        document = self._document()
        for old, new in change.renamed.items():
            self._rename(old, new)
        for name in change.removed - change.renamed.keys():
            self._remove(name)
        for name in change.added - set(change.renamed.values()):
            self._add(name)
        for name in change.moved:
            self._nodes[name].item.setPos(QPointF(*document.graph[name].position))
            self._place(name)
        for link in {link for name in change.moved for link in self._nodes[name].item.links()}:
            link.redraw()
        again: set[str] = set()
        instances = {layer.name for layer in document.graph if layer.type == INSTANCE} if change.templates else set()
        for name in change.rewired | change.reconfigured | frozenset(change.renamed.values()) | instances:
            again |= self._refresh(name)
        again |= change.added | change.rewired
        for name in change.added | change.removed:
            again.update(n for n in document.graph.consumers(name) if n in self._nodes)
        for name in again:
            self._wire(name)
        self._reroute()
        self._show_frames(change.frames, document.graph.frames)

    def refresh(self, names: Iterable[str]) -> None:
        """Show another inferred state of these layers."""
        self.viewer.far_changed()
        graph = self._document().graph
        for name in names:
            if name not in self._nodes:
                continue
            for other in self._refresh(name):
                self._wire(other)
            for consumer in graph.consumers(name):
                self._label(consumer)
        self._reroute()

    def reset_positions(self, names: Iterable[str]) -> None:
        """Put items back where the document has their layers."""
        self.viewer.far_changed()
        for name in names:
            self._nodes[name].item.move_to(QPointF(*self._document().graph[name].position))

    def collect_far(self, far: FarView) -> None:
        far.collect((node.item for node in self._nodes.values()), self._links.values(), self._frames.values())

    def _document(self) -> Document:
        if self.document is None:
            raise RuntimeError("no document is shown")
        return self.document

    def inspect(self, name: str) -> None:
        """Mark the layer that the Channel Inspector shows."""
        old, self.inspected = self.inspected, name
        if self.document is not None:
            self.refresh({old, name})

    def _look(self, name: str) -> NodeLook:
        return node_look(self._document(), name, inspected=name == self.inspected)

    # --- items -----------------------------------------------------------------------------------------------

    def _add(self, name: str) -> None:
        document = self._document()
        node = LayerNode()
        node.NODE_NAME = name
        node.item.show_look(self._look(name))
        self._nodes[name] = node
        self.graph.add_node(node, pos=document.graph[name].position, selected=False, push_undo=False)
        self._place(name)

    def _remove(self, name: str) -> None:
        node = self._nodes.pop(name)
        for link in node.item.links():
            self._drop(link)
        self.graph.delete_node(node, push_undo=False)
        old = self._obstacles.drop(name)
        if old is not None:
            self._placed.append(old)

    def _rename(self, old: str, new: str) -> None:
        node = self._nodes.pop(old)
        self._nodes[new] = node
        self.inspected = new if self.inspected == old else self.inspected
        node.NODE_NAME = node.model.name = new
        self._obstacles.drop(old)
        self._place(new)
        for key in [k for k in self._links if k[0] == old]:
            link = self._links.pop(key)
            link.key = (new, key[1])
            self._links[link.key] = link

    def _refresh(self, name: str) -> set[str]:
        """Show the layer as it is now; returns the layers whose links must be made again."""
        item = self._nodes[name].item
        ports_changed = item.show_look(self._look(name))
        self._place(name)
        if not ports_changed:
            return set()
        for link in item.links():
            link.redraw()
        return {name, *(n for n in self._document().graph.consumers(name) if n in self._nodes)}

    def _show_frames(self, ids: Iterable[str], frames: Mapping[str, Frame]) -> None:
        for frame_id in ids:
            old = self._frames.pop(frame_id, None)
            if old is not None:
                self.viewer.scene().removeItem(old)
            if frame_id in frames:
                new = self._frames[frame_id] = FrameItem(frames[frame_id])
                self.viewer.scene().addItem(new)
                new.setSelected(old is not None and old.isSelected())

    def frame(self, frame_id: str) -> FrameItem | None:
        """The item of a comment frame."""
        return self._frames.get(frame_id)

    # --- links -----------------------------------------------------------------------------------------------

    def _wire(self, name: str) -> None:
        """Make the links into a layer what its inputs say."""
        layer = self._document().graph[name]
        item = self._nodes[name].item
        for index in range(max(len(layer.inputs), self._linked(name))):
            source = layer.inputs[index] if index < len(layer.inputs) else None
            old = self._links.get((name, index))
            output = self._output(source.layer, source.port) if source is not None else None
            target = item.inputs[index] if index < len(item.inputs) else None
            if old is not None and (output is None or old.source is not output or old.target is not target):
                self._drop(old)
                old = None
            if old is None and output is not None and target is not None:
                link = LinkItem(output, target, (name, index), self._route)
                self._links[link.key] = link
                self.viewer.scene().addItem(link)
        item.update()
        self._label(name)

    def _linked(self, name: str) -> int:
        """One more than the highest input index that has an item."""
        count = len(self._nodes[name].item.inputs)
        while (name, count) in self._links:
            count += 1
        return count

    def _output(self, layer: str, port: str) -> PortDot | None:
        node = self._nodes.get(layer)
        if node is None:
            return None
        dots = node.item.outputs
        if not port:
            return dots[0] if dots else None
        return next((d for d in dots if d.look.name == port), None)

    def _drop(self, link: LinkItem) -> None:
        if self._links.get(link.key) is link:
            del self._links[link.key]
        self._long.discard(link)
        for dot in (link.source, link.target):
            dot.node.update()
        link.delete()

    def _place(self, name: str) -> None:
        """Note where a node stands, for the links that run past it."""
        item = self._nodes[name].item
        box, under = item.box(), item.layout.bounds.bottom() - item.layout.box.bottom()
        rect = Rect(box.left(), box.top(), box.right(), box.bottom() + under)
        old = self._obstacles.put(name, rect)
        if old != rect:
            self._placed += [rect] if old is None else [old, rect]

    def _route(self, link: LinkItem) -> float | None:
        start, end = link.source.centre(), link.target.centre()
        if end.x() - start.x() < LONG:
            self._long.discard(link)
            return None
        self._long.add(link)
        ends = (link.source.node.layer, link.target.node.layer)
        return self._obstacles.lane((start.x(), start.y()), (end.x(), end.y()), *ends)

    def _reroute(self) -> None:
        """Draw the links again that pass where nodes came, went or moved."""
        placed, self._placed = self._placed, []
        if not placed:
            return
        left, right = min(r.left for r in placed), max(r.right for r in placed)
        for link in list(self._long):
            if link.source.centre().x() < right and link.target.centre().x() > left:
                link.redraw()

    def show_path(self, before: set[str], after: set[str]) -> None:
        """Mark the links into the layers of `before` and out of those of `after`, and no others."""
        self.viewer.far_marked()
        for (consumer, _), link in self._links.items():
            link.show_on_path(consumer in before or link.source.node.layer in after)

    def _label(self, name: str) -> None:
        layer = self._document().graph[name]
        for index, source in enumerate(layer.inputs):
            link = self._links.get((name, index))
            if link is None or source is None:
                continue
            shapes = link.source.node.look.shapes
            number = link.source.index
            link.set_label(shapes[number] if number < len(shapes) else "")
            link.source.node.update()
