"""One layer on the canvas: its item, and its node object in NodeGraphQt."""

from __future__ import annotations

from NodeGraphQt.base.node import NodeObject
from NodeGraphQt.qgraphics.node_abstract import AbstractNodeItem
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPainterPath
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from app.ui.canvas import node_paint
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem, PortDot
from app.ui.canvas.node_layout import Layout
from app.ui.canvas.node_look import NodeLook

EMPTY = NodeLook("", "", None)
NOTHING = Layout(QRectF(), 0.0, QRectF(), 0.0, 0.0, QRectF(), (), ())


class LayerItem(AbstractNodeItem):  # type: ignore[misc]
    """The item of one layer: a box with a title bar, its ports, its activation's tab and its output shape."""

    def __init__(self) -> None:
        super().__init__("layer")
        self.setAcceptHoverEvents(True)
        self.look: NodeLook = EMPTY
        self.layout: Layout = NOTHING
        self.folded: FrameItem | None = None  # the collapsed frame that contains it
        self._inputs: list[PortDot] = []
        self._outputs: list[PortDot] = []

    # --- interface required by NodeGraphQt's viewer and graph ------------------------------------------------

    @property
    def inputs(self) -> list[PortDot]:
        return self._inputs

    @property
    def outputs(self) -> list[PortDot]:
        return self._outputs

    @property
    def layer(self) -> str:
        """The layer's name."""
        return self.look.name

    @property
    def name(self) -> str:
        return str(self._properties["name"])

    @name.setter
    def name(self, name: str) -> None:
        self._properties["name"] = name  # the base class would replace the tooltip by the name

    def post_init(self, viewer: object, pos: tuple[float, float] | None = None) -> None:
        if pos is not None:
            self.setPos(*pos)

    # --- projection ------------------------------------------------------------------------------------------

    def show_look(self, look: NodeLook, new: Layout) -> bool:
        """Show a look with layout `new`. Returns True if ports moved or changed, so that links must be redrawn."""
        old = self.layout
        if look is self.look or (look == self.look and new == old):
            return False
        ports_changed = (look.inputs, look.outputs) != (self.look.inputs, self.look.outputs)
        self.look = look
        if new.bounds != old.bounds:
            self.prepareGeometryChange()
        self.layout = new
        self._width, self._height = new.box.width(), new.box.height()
        if ports_changed:
            self._make_ports()
        for dots, places in ((self._inputs, new.inputs), (self._outputs, new.outputs)):
            for dot, place in zip(dots, places, strict=True):
                dot.setPos(*place)
        self.setToolTip(look.tip)
        self.update()
        return ports_changed or (new.inputs, new.outputs) != (old.inputs, old.outputs)

    def _make_ports(self) -> None:
        """Update the ports from the look; ports that remain keep their links."""
        for dots, looks, is_input in (
            (self._inputs, self.look.inputs, True),
            (self._outputs, self.look.outputs, False),
        ):
            while len(dots) > len(looks):
                dot = dots.pop()
                for link in dot.links:
                    link.delete()
                dot.setParentItem(None)  # type: ignore[arg-type]
                if dot.scene() is not None:
                    dot.scene().removeItem(dot)
            for dot, look in zip(dots, looks, strict=False):
                dot.show_look(look)
                dot.refuse("")
            for index in range(len(dots), len(looks)):
                dots.append(PortDot(self, looks[index], index, is_input=is_input))

    def links(self) -> list[LinkItem]:
        """All links that start or end here."""
        return [link for dot in (*self._inputs, *self._outputs) for link in dot.links]

    def move_to(self, position: QPointF) -> None:
        """Move the item and redraw its links."""
        self.setPos(position)
        for link in self.links():
            link.redraw()

    def fold(self, frame: FrameItem | None) -> None:
        """Fold the node into a collapsed frame, or (None) show it again."""
        self.folded = frame
        if frame is not None:
            self.setSelected(False)  # Qt would deselect a hidden item without calling this method
        self.setVisible(frame is None)

    def setSelected(self, selected: bool) -> None:
        """Select the item and update its links here, because `itemChange` would be called for every change of every item."""
        if bool(selected) == self.isSelected():
            return
        super().setSelected(selected)
        self.setZValue(2 if self.isSelected() else 1)  # a hidden item cannot be selected
        for link in self.links():
            link.update()

    # --- geometry and painting -------------------------------------------------------------------------------

    def boundingRect(self) -> QRectF:
        return self.layout.bounds

    def shape(self) -> QPainterPath:
        path = QPainterPath()
        path.addRect(self.layout.block)
        if not self.layout.tab.isEmpty():
            path.addRect(self.layout.tab)
        return path

    def box(self) -> QRectF:
        """The box with its tab, in canvas units."""
        return QRectF(self.mapRectToScene(self.layout.box.united(self.layout.tab)))

    def covers(self, place: QPointF, zoom: float) -> bool:
        """Whether the node is painted at a point of the canvas at this scale."""
        block = zoom < node_paint.READABLE and self.mapRectToScene(self.layout.block).contains(place)
        return block or self.box().contains(place)

    def marked_at(self, place: QPointF, zoom: float) -> bool:
        """Whether the mark of a problem is painted at a point of the canvas at this scale."""
        shown = zoom >= node_paint.READABLE and self.look.problem in ("error", "warning")
        return shown and self.mapRectToScene(self.layout.mark).contains(place)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        detail = option.levelOfDetailFromTransform(painter.worldTransform())
        node_paint.paint(painter, self, detail)


class LayerNode(NodeObject):  # type: ignore[misc]
    """A layer as NodeGraphQt's graph holds it. Its item shows the layer; the layer itself is the document's."""

    __identifier__ = "layerwright"
    NODE_NAME = "layer"

    def __init__(self) -> None:
        super().__init__(LayerItem)

    @property
    def item(self) -> LayerItem:
        item: LayerItem = self.view
        return item
