"""Collapsed frames replace the layers that are folded into them. These layers and the links between them are hidden."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QRectF

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.layer_index import LayerIndex
from app.ui.canvas.link_index import LinkIndex
from app.ui.canvas.nodes import Frames, Nodes
from designer.graph.graph import Graph


class CollapsedFrames:
    """Maps folded layers to the frame that replaces them: the outermost collapsed one."""

    def __init__(self, layers: LayerIndex, edges: LinkIndex, nodes: Nodes, frames: Frames) -> None:
        self._layers = layers
        self._edges = edges
        self._nodes = nodes
        self._frames = frames
        self._folded: dict[str, FrameItem] = {}
        self.shut: list[FrameItem] = []  # collapsed frames that are shown

    def update(self, graph: Graph) -> set[str]:
        """Update from the graph. The frames must have their items already. Returns the layers that are hidden from now on."""
        shut = {key: _outermost(graph, key) for key, frame in graph.frames.items() if frame.collapsed}
        if not shut and not self._folded and not self.shut:
            return set()
        found = {
            x.name: item for x in graph if x.folded in shut and (item := self._frames.get(shut[x.folded])) is not None
        }
        for item in self._frames:
            item.setVisible(item.frame.folded not in shut)
        self.shut = [item for item in self._frames if item.frame.collapsed and item.isVisible()]
        for item in self.shut:
            item.members = tuple(name for name, other in found.items() if other is item)
            item.moved = partial(self._follow_frame, item)
        changed = [n for n in graph.layers if found.get(n) is not self._folded.get(n)]
        hidden = found.keys() - self._folded.keys()
        self._folded = found
        for name in changed:
            self._layers.fold(name, found.get(name))
            item_of = self._nodes.get(name)
            if item_of is not None:
                item_of.fold(found.get(name))
        for name in changed:
            self._follow_links(name)
        return hidden

    def members(self, frame_id: str, graph: Graph) -> tuple[list[str], list[str]]:
        """The layers and frames inside a frame, by position or, if it is collapsed, by membership."""
        frame = graph.frames[frame_id]
        if frame.collapsed:
            layers = [layer.name for layer in graph if layer.folded == frame_id]
            return layers, [other.id for other in graph.frames.values() if other.folded == frame_id]
        rect = QRectF(*frame.rect)
        inside = [n for n in self._layers.within(rect) if rect.contains(self._layers.measured(n).box().center())]
        others = (item for item in self._frames if item.isVisible() and item.frame.id != frame_id)
        return inside, [item.frame.id for item in others if rect.contains(item.seen)]

    def _follow_frame(self, item: FrameItem) -> None:
        for name in item.members:
            self._follow_links(name)

    def _follow_links(self, name: str) -> None:
        edges = self._edges.of(name)
        self._edges.fit(edges)
        for edge in edges:
            if edge.item is not None:
                edge.item.setVisible(not self._edges.inner(edge))
                edge.item.redraw()


def _outermost(graph: Graph, frame_id: str) -> str:
    """The outermost collapsed frame that a collapsed frame is folded into, or the frame itself."""
    seen = {frame_id}
    while True:
        outer = graph.frames[frame_id].folded
        if outer in seen or outer not in graph.frames or not graph.frames[outer].collapsed:
            return frame_id
        seen.add(outer)
        frame_id = outer
