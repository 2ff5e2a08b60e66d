"""The items of layers and frames, and NodeGraphQt's graph that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from NodeGraphQt.base.graph import NodeGraph
from PySide6.QtCore import QRectF

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.layer_index import LayerEntry
from app.ui.canvas.node import LayerItem, LayerNode
from app.ui.canvas.viewer import LayerViewer
from designer.graph.model import Frame


class LayerGraph(NodeGraph):  # type: ignore[misc]
    """NodeGraphQt's graph without its search for unique names, which takes linear time per node. The document has unique names."""

    def get_unique_name(self, name: str) -> str:
        return name


class Nodes:
    """Creates and removes the items of layers, without their links."""

    def __init__(self, viewer: LayerViewer) -> None:
        self._graph = LayerGraph(viewer=viewer)
        self._graph.set_acyclic(False)  # NodeGraphQt's check is quadratic; the document refuses cycles
        self._nodes: dict[str, LayerNode] = {}
        self._items: dict[str, LayerItem] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __getitem__(self, name: str) -> LayerItem:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def get(self, name: str) -> LayerItem | None:
        return self._items.get(name)

    @property
    def items(self) -> Mapping[str, LayerItem]:
        return self._items

    def make(self, entry: LayerEntry) -> LayerItem:
        """Create the item of a measured layer."""
        node = self._nodes[entry.name] = LayerNode()
        node.NODE_NAME = entry.name
        item = self._items[entry.name] = node.item
        item.show_look(*entry.seen)
        self._graph.add_node(node, pos=(entry.x, entry.y), selected=False, push_undo=False)
        return item

    def remove(self, name: str) -> None:
        """Remove an item whose links are removed already."""
        del self._items[name]
        self._graph.delete_node(self._nodes.pop(name), push_undo=False)

    def rename(self, old: str, new: str) -> None:
        """Rename the layer of an item, if it has one."""
        if old in self._items:
            node = self._nodes[new] = self._nodes.pop(old)
            self._items[new] = self._items.pop(old)
            node.NODE_NAME = node.model.name = new


class Frames:
    """The items of comment frames. There are few frames, so all have items."""

    def __init__(self, viewer: LayerViewer) -> None:
        self._viewer = viewer
        self._frames: dict[str, FrameItem] = {}

    def __iter__(self) -> Iterator[FrameItem]:
        return iter(self._frames.values())

    @property
    def ids(self) -> Iterable[str]:
        return self._frames.keys()

    def titles(self) -> list[QRectF]:
        """The areas of the titles."""
        return [item.title for item in self._frames.values()]

    def get(self, frame_id: str) -> FrameItem | None:
        return self._frames.get(frame_id)

    def show(self, ids: Iterable[str], frames: Mapping[str, Frame]) -> None:
        """Create the items of these frames again; remove those not in `frames`."""
        for frame_id in ids:
            old = self._frames.pop(frame_id, None)
            if old is not None:
                self._viewer.scene().removeItem(old)
            if frame_id in frames:
                new = self._frames[frame_id] = FrameItem(frames[frame_id])
                self._viewer.scene().addItem(new)
                new.setSelected(old is not None and old.isSelected())
