"""Dropping a node that nothing is connected to on a link: it goes into the link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem

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
