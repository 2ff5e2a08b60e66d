"""The places of a node that links start and end at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas.look import PortLook
from app.ui.widgets.plain import plain_tip
from app.ui.widgets.texts import tr
from designer.graph.types import DataType

if TYPE_CHECKING:
    from app.ui.canvas.links import LinkItem
    from app.ui.canvas.node import LayerItem

REACH = 11.0  # how far from its centre a port is hit, in canvas units


class PortDot(QGraphicsItem):
    """A port. It takes hits, hovering and tooltips; its node paints it, which keeps panning fast.

    It has what the library asks of a port, without its base class: that one is told of every change, at a quarter of the
    time in which a network opens.
    """

    def __init__(self, node: LayerItem, look: PortLook, index: int, *, is_input: bool) -> None:
        super().__init__(node)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, True)
        self.setAcceptHoverEvents(True)
        self.node = node
        self.look = look
        self.index = index
        self.is_input = is_input
        self.hovered = False
        self.refusal = ""  # why the link that is being dragged cannot end here
        self.misfit = ""  # the rule that it would break here; it may end here all the same, to be mended then
        self.connected_pipes: list[LinkItem] = []
        self.setToolTip(look.tip)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Nothing: see the node."""

    def boundingRect(self) -> QRectF:
        return QRectF(-REACH, -REACH, 2 * REACH, 2 * REACH)

    def centre(self) -> QPointF:
        """Where links end, in canvas units. Where a collapsed frame stands for the node, at the frame's edge."""
        if self.node.folded is not None:
            return self.node.folded.end(is_input=self.is_input)
        return QPointF(self.node.pos() + self.pos())

    @property
    def links(self) -> list[LinkItem]:
        return list(self.connected_pipes)

    @property
    def greyed(self) -> bool:
        """Whether the link that is being dragged cannot end here, or would not fit."""
        return bool(self.refusal or self.misfit)

    def refuse(self, reason: str, misfit: str = "") -> None:
        """Grey the port out with the reason in its tooltip, or (both empty) free it again."""
        if (reason, misfit) == (self.refusal, self.misfit):
            return
        self.refusal, self.misfit = reason, misfit
        if reason:
            self.setToolTip(plain_tip(tr("Cannot connect here: {reason}", reason=reason)))
        elif misfit:
            told = tr("Does not fit: {reason}. Dropped here it is connected as it is.", reason=misfit)
            self.setToolTip(plain_tip(told))
        else:
            self.setToolTip(self.look.tip)

    def show_look(self, look: PortLook) -> None:
        """Be another port of the same node."""
        if look != self.look:
            self.look = look
            self.setToolTip(look.tip)

    def carried(self) -> str:
        """Shape and element type of what flows through, as far as it is known: `3 x 48 x 64 float32`."""
        shapes = self.node.look.shapes
        if self.is_input:
            shape = self.connected_pipes[0].label if self.connected_pipes else ""
        else:
            shape = shapes[self.index] if self.index < len(shapes) else ""
        named = not shape or any(shape.endswith(dtype.value) for dtype in DataType)
        return shape if named else f"{shape} {DataType.FLOAT32.value}"

    def hoverEnterEvent(self, event: object) -> None:
        if not self.greyed:
            carried = self.carried()
            self.setToolTip(tr("{port} - now {type}", port=self.look.tip, type=carried) if carried else self.look.tip)
        self.hovered = True
        self.node.update()

    def hoverLeaveEvent(self, event: object) -> None:
        self.hovered = False
        self.node.update()
