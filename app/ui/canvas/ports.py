"""The places of a node that links start and end at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from NodeGraphQt.constants import PortTypeEnum
from NodeGraphQt.qgraphics.port import PortItem
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtWidgets import QGraphicsItem

from app.ui.canvas.look import PortLook

if TYPE_CHECKING:
    from app.ui.canvas.links import LinkItem
    from app.ui.canvas.node import LayerItem

REACH = 11.0  # how far from its centre a port is hit, in canvas units


class PortDot(PortItem):  # type: ignore[misc]
    """A port. It takes hits, hovering and tooltips; its node paints it, which keeps panning fast."""

    def __init__(self, node: LayerItem, look: PortLook, index: int, *, is_input: bool) -> None:
        super().__init__(node)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, True)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemSendsScenePositionChanges, False)
        self.setCacheMode(QGraphicsItem.CacheMode.NoCache)
        self.look = look
        self.index = index
        self.is_input = is_input
        self.refusal = ""  # why the link that is being dragged cannot end here
        self.name = look.name
        self.port_type = PortTypeEnum.IN.value if is_input else PortTypeEnum.OUT.value
        self.multi_connection = not is_input
        self.setToolTip(look.tip)

    def boundingRect(self) -> QRectF:
        return QRectF(-REACH, -REACH, 2 * REACH, 2 * REACH)

    def centre(self) -> QPointF:
        """Where links end, in canvas units."""
        return QPointF(self.scenePos())

    @property
    def links(self) -> list[LinkItem]:
        return list(self.connected_pipes)

    def refuse(self, reason: str) -> None:
        """Grey the port out with the reason in its tooltip, or (empty) free it again."""
        self.refusal = reason
        self.setToolTip(f"cannot connect here: {reason}" if reason else self.look.tip)

    def hoverEnterEvent(self, event: object) -> None:
        self.hovered = True
        self.node.update()

    def hoverLeaveEvent(self, event: object) -> None:
        self.hovered = False
        self.node.update()
