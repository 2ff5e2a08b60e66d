"""Keeps the items in sync with the document: creates, updates and removes them from ChangeSets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QDeadlineTimer, QPointF, QRectF, QSizeF, QTimer

from app.ui.canvas.collapsed_frames import CollapsedFrames
from app.ui.canvas.far_view import FarView
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.layer_index import LayerEntry, LayerIndex, QuietMeasuring
from app.ui.canvas.link_index import End, Key, LinkEntry, LinkIndex
from app.ui.canvas.link_items import LinkItems
from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from app.ui.canvas.node_look import NodeLook, node_look
from app.ui.canvas.node_paint import PORTS
from app.ui.canvas.nodes import Frames, Nodes
from app.ui.canvas.viewer import LayerViewer
from app.ui.document.document import Document
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.routes import Points, points_into
from designer.graph.template import INSTANCE

EAGER = 300  # documents up to this many layers, and four times as many links, have all their items from the start
MANY = 300  # with more layers than this in the view, the far view is painted at scales without ports
FRAME_MS = 60  # of creating items before a frame
TOGETHER = 1000  # layers whose links are put into the index in one step
CROWD = 3000  # with more links than this in the view, the far view is painted
HUB = 300  # a layer with more links than this has items only for those near the view
BUDGET = 1500  # above this many items, those far from the view are removed
TRIM_MS = 1000
FEW = 200  # up to this many selected layers get their items immediately


class Projection:
    """The items of one document. In a large document, items are created when they come near the view or are requested.

    A node that is `whole` has items for all its links, or, if it is a hub, for those near the view. A node that is only the far
    end of a link need not have the others.
    """

    def __init__(self, viewer: LayerViewer) -> None:
        self.viewer = viewer
        self.document: Document | None = None
        self.inspected = ""  # the layer that the Channel Inspector shows
        self.far = FarView()
        self._nodes = Nodes(viewer)
        self.whole: set[str] = set()  # nodes with items for all their links
        self._frames = Frames(viewer)
        self.marked: set[str] = set()  # selected layers without items
        self._layers = LayerIndex(self._look)
        self._eager = True
        self._link_timer = QTimer(viewer, interval=0, timeout=self._link_some)
        self._linking: Iterator[None] | None = None  # what remains to be put into the index of a large document
        self._clear_links()
        self._measuring = QuietMeasuring(viewer, self._on_measured)
        self._trimming = QTimer(viewer, interval=TRIM_MS, singleShot=True, timeout=self._trim)
        self._resuming = QTimer(viewer, interval=0, singleShot=True, timeout=viewer.viewport().update)
        viewer.supply = self

    def __getitem__(self, layer: str) -> LayerItem:
        return self._complete(layer)

    def __contains__(self, layer: object) -> bool:
        return layer in self._layers

    def get(self, layer: str) -> LayerItem | None:
        return self._complete(layer) if layer in self._layers else None

    def link(self, consumer: str, index: int) -> LinkItem | None:
        """The item of the link that ends at input `index` of `consumer`."""
        edge = self._edges.get((consumer, index))
        if edge is not None:
            self._complete(consumer)
        return edge.item if edge is not None else None

    @property
    def layers(self) -> Iterable[str]:
        return self._layers.names

    @property
    def links(self) -> Iterable[LinkEntry]:
        """The index entries of all links, without creating their items."""
        return self._edges

    def ends(self, link: LinkEntry) -> tuple[End, End] | None:
        """The start and end points of a link, or None if one of its ports does not exist."""
        return self._edges.ends(link)

    def entry(self, layer: str) -> LayerEntry:
        """The measured index entry of a layer, without creating its item."""
        return self._layers.measured(layer)

    def hides(self, layer: str) -> bool:
        """Whether a layer is hidden in a collapsed frame."""
        return self._layers[layer].folded is not None

    def shown_for(self, layer: str) -> str:
        """The layer at whose place a layer is seen: itself, or the first one of the collapsed frame that contains it."""
        frame = self._layers[layer].folded if layer in self._layers else None
        return frame.members[0] if frame is not None else layer

    @property
    def collapsed_frames(self) -> Sequence[FrameItem]:
        """The collapsed frames that are shown."""
        return tuple(self._collapsed.shut)

    def within(self, area: QRectF) -> list[str]:
        """The layers whose boxes intersect an area, without creating their items."""
        return self._layers.within(area)

    @property
    def busy(self) -> bool:
        """Whether idle time is left to measure layers or to collect links."""
        return self._measuring.active or self._linking is not None

    @property
    def measured(self) -> bool:
        """Whether the sizes of all layers are known."""
        return not self._layers.stale

    # --- requests of the view --------------------------------------------------------------------------------

    def need(self, area: QRectF) -> None:
        """Create the items in an area of the canvas."""
        self._make_near(area, QDeadlineTimer(QDeadlineTimer.ForeverConstant.Forever))

    def need_soon(self, area: QRectF) -> None:
        """Create as many items in an area as one frame's time allows; the next frames create the rest."""
        if not self._make_near(area, QDeadlineTimer(FRAME_MS)):
            self._resuming.start()

    def _make_near(self, area: QRectF, deadline: QDeadlineTimer) -> bool:
        """Create the items in an area. Returns whether all were created before the deadline."""
        if self._eager:
            return True
        for name in self._layers.near(area):
            if name not in self.whole:
                if deadline.hasExpired():
                    return False
                self._complete(name)
        for edge in self._edges.near(area):
            if edge.item is None:
                if deadline.hasExpired():
                    return False
                self._links.make(edge)
        if len(self._nodes) > BUDGET and not self._trimming.isActive():
            self._trimming.start()
        return True

    def crowded(self, area: QRectF, zoom: float) -> bool:
        """Whether an area has so many links that they cannot be distinguished, or, without ports, so many layers."""
        if self._eager:
            return False
        if self._linking is not None or self._edges.count_near(area) > CROWD:
            return True
        return zoom < PORTS and self._layers.count_near(area) > MANY

    def start(self, seen: QSizeF) -> float | None:
        """The height at which a view of this size shows where the network begins: its left end, or else its leftmost layer."""
        extent = self.extent()
        columns = self._layers.near(QRectF(extent.left(), extent.top(), seen.width(), extent.height()))
        if not columns:
            return None
        rows = self._layers.bounds(columns)
        top, bottom = float(rows[:, 1].min()), float(rows[:, 3].max())
        if bottom - top <= seen.height():
            return (top + bottom) / 2
        first = min((self._layers[name] for name in columns), key=lambda entry: (entry.x, entry.y))
        middle, half = first.box().center().y(), seen.height() / 2
        return min(max(middle, top + half), bottom - half)

    def extent(self) -> QRectF:
        """The bounds of all layers and collapsed frames."""
        extent = self._layers.extent()
        for item in self._collapsed.shut:
            extent = extent.united(item.seen)
        return extent

    def select(self, names: Iterable[str]) -> list[LayerItem]:
        """The items to select for these layers. If many have no items, these are only marked as selected."""
        known = [n for n in names if n in self._layers]
        without = {n for n in known if n not in self._nodes}
        if len(without) <= FEW:
            self.marked = set()
            return [self._complete(n) for n in known]
        self.marked = without
        return [self._nodes[n] for n in known if n in self._nodes]

    def make_marked(self) -> None:
        """Create the items of all selected layers."""
        for name in list(self.marked):
            self._complete(name)

    def collect_blocks(self) -> bool:
        """Update the layers of the far view, for the time of one frame. Returns whether they are up to date."""
        return self._collect_blocks(QDeadlineTimer(FRAME_MS))

    def _collect_blocks(self, deadline: QDeadlineTimer) -> bool:
        return self.far.collect_blocks(self._layers, self._nodes.items, self._frames, deadline)

    def collect_far(self) -> FarView:
        """The far view, updated for the time of one frame; the next frames update the rest."""
        deadline = QDeadlineTimer(FRAME_MS)
        linked = self._linking is None
        if not (self._collect_blocks(deadline) and linked and self.far.collect_links(self._edges, deadline)):
            self._resuming.start()
        self.far.collect_marks(self._layers, self._nodes.items, self._index, self._links.on_path, self.marked)
        return self.far

    # --- following the document ------------------------------------------------------------------------------

    def show(self, document: Document | None) -> None:
        """Remove everything and show `document`."""
        self._linking = None
        self.viewer.far_changed()
        for name in list(self._nodes):
            self._remove_item(name)
        self._layers = LayerIndex(self._look)
        self._clear_links()
        self.marked = set()
        self._frames.show(list(self._frames.ids), {})
        self.inspected = ""
        self.document = document
        self._eager = document is None or _is_small(document.graph)
        if document is None:
            return
        self._layers.put(document.graph)
        self._linking = self._link_all(list(document.graph))
        if any(frame.collapsed for frame in document.graph.frames.values()):
            self._finish_linking()
        else:
            self._link_timer.start()
        for name in document.graph.layers if self._eager else ():
            self._complete(name)
        self._layers.placed.clear()
        self._frames.show(list(document.graph.frames), document.graph.frames)
        self._collapsed.update(document.graph)
        self._measuring.start(self._layers)

    def apply(self, change: ChangeSet) -> set[str]:
        """Apply one change. Returns the layers that collapsed frames hide from now on."""
        self._finish_linking()
        document = self._document()
        for old, new in change.renamed.items():
            self._rename(old, new)
        for name in change.removed - change.renamed.keys():
            self._remove(name)
        added = change.added - set(change.renamed.values())
        self._layers.put(document.graph[name] for name in added)
        for name in added:
            self._layers.announce(name)
        self._follow(change.moved)
        again: set[str] = set()
        instances = {layer.name for layer in document.graph if layer.type == INSTANCE} if change.templates else set()
        redrawn = change.rewired | change.reconfigured | change.redrawn
        redrawn |= frozenset(change.renamed.values()) | instances
        self._layers.forget(redrawn)
        for name in redrawn:
            again |= self._redraw(name)
        again |= change.added | change.rewired
        for name in change.added | change.removed:
            again.update(n for n in document.graph.consumers(name) if n in self._layers)
        self._connect(again)
        for name in added if self._eager else ():
            self._complete(name)
        self._frames.show(change.frames, document.graph.frames)
        hidden = self._collapsed.update(document.graph)
        self._edges.reroute()
        self.viewer.far_changed()
        self._measuring.start(self._layers)
        return hidden

    def refresh(self, names: Iterable[str]) -> None:
        """Update these layers from their inferred state. `apply` follows for those that a change has just removed."""
        known = [name for name in names if name in self._layers and name in self._document().graph]
        self._layers.forget(known)
        for name in known:
            if name in self._nodes:
                self._connect(self._redraw(name))
                for key in self._edges.leaving(name):
                    self._links.label(self._edges.get(key))
        self._index.reroute()  # only links with items: what remains to be put into the index can wait
        self.viewer.far_changed()
        self._measuring.start(self._layers)

    def reset_positions(self, names: Iterable[str]) -> None:
        """Move items back to their positions in the document."""
        for name in names:
            if name in self._nodes:
                self._nodes[name].move_to(QPointF(*self._document().graph[name].position))
        self.viewer.far_changed()

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

    def _on_measured(self) -> None:
        self._index.reroute()
        self.viewer.far_changed()

    # --- items -----------------------------------------------------------------------------------------------

    def _make(self, name: str) -> LayerItem:
        """The item of a layer, possibly without its links."""
        item = self._nodes.get(name)
        if item is None:
            entry = self._layers.measured(name)
            item = self._nodes.make(entry)
            if entry.folded is not None:
                item.fold(entry.folded)
            if name in self.marked:
                self.marked.discard(name)
                item.setSelected(True)
        return item

    def _complete(self, name: str) -> LayerItem:
        """The item of a layer with all its links."""
        item = self._make(name)
        if name not in self.whole:
            self.whole.add(name)
            edges = self._edges.of(name)
            for edge in edges if len(edges) <= HUB else ():
                self._links.make(edge)
        return item

    def _remove(self, name: str) -> None:
        for edge in self._edges.of(name):
            self._links.unmake(edge)
            self._edges.drop(edge)
        self._remove_item(name)
        self._layers.drop(name)
        self.marked.discard(name)

    def _remove_item(self, name: str) -> None:
        """Remove a node from the canvas. Its index entry remains."""
        self.whole.discard(name)
        if name in self._nodes:
            for edge in self._edges.of(name):
                self._links.unmake(edge)
            self._nodes.remove(name)

    def _rename(self, old: str, new: str) -> None:
        self.inspected = new if self.inspected == old else self.inspected
        self._nodes.rename(old, new)
        for names in (self.whole, self.marked):
            if old in names:
                names.discard(old)
                names.add(new)
        layer = self._document().graph[new]
        self._layers.put([layer])
        renamed = []
        for edge in self._edges.of(old):
            item, edge.item = edge.item, None
            self._edges.drop(edge)
            key = (new, edge.key[1]) if edge.key[0] == old else edge.key
            source = edge.source._replace(layer=new) if edge.source.layer == old else edge.source
            renamed.append(self._edges.put(key, source))
            renamed[-1].item = item
            if item is not None:
                item.key = key
        self._edges.fit(renamed)
        self._layers.drop(old)
        self._layers.announce(new)

    def _redraw(self, name: str) -> set[str]:
        """Update the item of a layer, if it has one. Returns the layers whose links must be created again."""
        item = self._nodes.get(name)
        if item is None or not item.show_look(*self._layers.measured(name).seen):
            return set()
        edges = self._edges.of(name)
        self._edges.fit(edges)
        for edge in edges:
            if edge.item is not None:
                edge.item.redraw()
        return {name, *(n for n in self._document().graph.consumers(name) if n in self._layers)}

    def _follow(self, names: Iterable[str]) -> None:
        """Move items and links to the positions in the document."""
        for name in names:
            entry = self._layers.move(name, self._document().graph[name].position)
            if name in self._nodes:
                self._nodes[name].setPos(entry.pos())
        edges = {edge for name in names for edge in self._edges.of(name)}
        self._edges.fit(edges)
        for edge in edges:
            if edge.item is not None:
                edge.item.redraw()

    def _trim(self) -> None:
        """Remove nodes far from the view if there are many."""
        if self.viewer.busy:
            self._trimming.start()
            return
        seen = self.viewer.seen()
        area = seen.adjusted(-seen.width(), -seen.height(), seen.width(), seen.height())
        kept = {*self._layers.near(area), *(item.layer for item in self.viewer.selected_items())}
        crossing = {edge.key for edge in self._edges.near(area)}
        ends: set[str] = set()
        for edge in self._edges:
            if edge.item is not None:
                if edge.key in crossing or edge.key[0] in kept or edge.source.layer in kept or edge.item.isSelected():
                    ends |= {edge.key[0], edge.source.layer}
                else:
                    self._links.unmake(edge)
        self.whole &= kept
        for name in [n for n in self._nodes if n not in kept and n not in ends]:
            self._remove_item(name)

    def members(self, frame_id: str) -> tuple[list[str], list[str]]:
        """The layers and frames inside a frame, by position or, if it is collapsed, by membership."""
        return self._collapsed.members(frame_id, self._document().graph)

    def held(self, frame_id: str) -> list[str]:
        """The layers inside a frame and inside the collapsed frames in it."""
        frames, found, waiting = self._document().graph.frames, dict[str, None](), [frame_id]
        for key in waiting:  # it grows during the iteration
            layers, others = self.members(key)
            found.update(dict.fromkeys(layers))
            waiting += [other for other in others if frames[other].collapsed and other not in waiting]
        return list(found)

    def frame(self, frame_id: str) -> FrameItem | None:
        """The item of a comment frame."""
        return self._frames.get(frame_id)

    # --- links -----------------------------------------------------------------------------------------------

    @property
    def _edges(self) -> LinkIndex:
        """The index of the links, complete."""
        self._finish_linking()
        return self._index

    def _clear_links(self) -> None:
        self._link_timer.stop()
        self._linking = None
        self._index = LinkIndex(self._layers, self._points)
        self._links = LinkItems(self._index, self._make, self.viewer.scene(), self._frames.titles)
        self._collapsed = CollapsedFrames(self._layers, self._index, self._nodes, self._frames)

    def _link_all(self, layers: Sequence[Layer]) -> Iterator[None]:
        """Put the links into these layers into the index, some at a time."""
        index = self._index
        for start in range(0, len(layers), TOGETHER):
            some = layers[start : start + TOGETHER]
            index.fit([index.put(*link) for layer in some for link in self._links_into(layer)])
            yield

    def _link_some(self) -> None:
        deadline = QDeadlineTimer(FRAME_MS)
        for _ in self._linking or ():
            if deadline.hasExpired():
                return
        self._finish_linking()
        self.viewer.far_changed()

    def _finish_linking(self) -> None:
        if self._linking is not None:
            for _ in self._linking:
                pass
            self._linking = None
            self._link_timer.stop()

    def _connect(self, names: Iterable[str]) -> None:
        """Update the links into layers from their inputs."""
        self._edges.fit([edge for name in names for edge in self._connect_one(name)])

    def _connect_one(self, name: str) -> list[LinkEntry]:
        """Update the links into a layer. Returns the new ones, whose bounds are not known yet."""
        wanted = dict(self._links_into(self._document().graph[name]))
        added = []
        for key in sorted(self._edges.into(name) | wanted.keys()):
            edge, source = self._edges.get(key), wanted.get(key)
            made = edge is not None and edge.item is not None
            if edge is not None and not self._links.holds(edge, source):
                self._links.unmake(edge)
            item = edge.item if edge is not None else None
            if edge is not None and edge.source != source:
                self._edges.drop(edge)
                edge = None
            if edge is None and source is not None:
                edge = self._edges.put(key, source)
                edge.item = item
                added.append(edge)
            if edge is not None and (made or name in self.whole or edge.source.layer in self.whole):
                self._links.make(edge)
            self._links.label(edge)
        if name in self._nodes:
            self._nodes[name].update()
        return added

    def _links_into(self, layer: Layer) -> Iterator[tuple[Key, Source]]:
        """The links into a layer from layers that exist."""
        known = self._layers.names
        for index, source in enumerate(layer.inputs):
            if source is not None and source.layer in known:
                yield (layer.name, index), source

    def _points(self, key: Key) -> Points:
        return points_into(self.document.graph, *key) if self.document is not None else ()

    def redraw_links(self) -> None:
        """Redraw all links, for example in another style."""
        self._edges.redraw()
        self.viewer.far_changed()

    def show_path(self, before: set[str], after: set[str]) -> None:
        """Highlight exactly the links into the layers of `before` and out of those of `after`."""
        if self._links.show_path(before, after):
            self.viewer.far_marked()


def _is_small(graph: Graph) -> bool:
    return len(graph) <= EAGER and sum(len(layer.inputs) for layer in graph) <= 4 * EAGER
