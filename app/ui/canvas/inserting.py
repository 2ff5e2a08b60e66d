"""Dropping a node that nothing is connected to on a link: it goes into the link."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from app.ui.widgets.texts import tr
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Source

if TYPE_CHECKING:
    from app.ui.canvas.viewer import LayerViewer

INSIDE = 8.0  # how far a link has to reach into the node, canvas units


def may_insert(item: LayerItem) -> bool:
    """Whether a node can go into a link: it has an input and an output, and no link yet."""
    return bool(item.inputs and item.outputs) and not item.links()


def link_under(viewer: LayerViewer, item: LayerItem) -> LinkItem | None:
    """The link that a node lies on, the one nearest to its middle."""
    box = item.box().adjusted(INSIDE, INSIDE, -INSIDE, -INSIDE)
    links = [i for i in viewer.scene().items(box) if isinstance(i, LinkItem) and i.path().intersects(box)]
    centre = box.center()
    return min(links, key=lambda i: abs(i.path().pointAtPercent(0.5).y() - centre.y()), default=None)


def insert_layer(graph: Graph, name: str, place: tuple[int, int], consumer: str, index: int) -> Edit:
    """Move a layer and let it read what input `index` of `consumer` read, which reads the layer then."""
    layer, reader = graph[name], graph[consumer]
    source = reader.inputs[index]
    moved = replace(layer.with_input(0, source), position=place)
    return Edit(
        tr("Insert {name}", name=name),
        {name: (layer, moved), consumer: (reader, reader.with_input(index, Source(name)))},
    )
