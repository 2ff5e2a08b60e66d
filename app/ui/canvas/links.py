"""Items of ports and links. A link is a curve from an output to an input, labeled with the shape of its tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPainterPathStroker, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.link_paths import label_place, link_path
from app.ui.canvas.node_layout import PORT_RADIUS, Layout, fonts, text_width
from app.ui.canvas.node_look import NodeLook, PortLook
from app.ui.canvas.obstacles import ramp_of
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.graph.types import DataType
from designer.texts import tr

READABLE = 0.7  # below this scale links have no shape labels
HIT = 6.0  # half the width of a link's hit area, in canvas units
POINT = 3.5  # radius of a reroute point
SHARES = 64  # samples along a link to find its nearest point
AIR = PORT_RADIUS + 4  # space between a link's label and the nodes next to it, in canvas units
GRASP = 7.0  # pixels around a reroute point that count as a hit
REACH = 11.0  # hit radius of a port, in canvas units


class PaintedNode(Protocol):
    """The part of a layer's item that its ports, links and painting use."""

    look: NodeLook
    layout: Layout
    folded: FrameItem | None

    @property
    def layer(self) -> str: ...
    @property
    def inputs(self) -> list[PortDot]: ...
    @property
    def outputs(self) -> list[PortDot]: ...
    def pos(self) -> QPointF: ...
    def box(self) -> QRectF: ...
    def isSelected(self) -> bool: ...
    def update(self) -> None: ...


class Router(Protocol):
    """Finds the routes of links."""

    def route(self, link: LinkItem) -> float | None:
        """The y of the lane that leads a link around nodes, or None for a direct link."""

    def points(self, key: tuple[str, int]) -> Sequence[tuple[int, int]]:
        """The reroute points of a link."""


class PortDot(QGraphicsItem):
    """A port. It handles hits, hovering and tooltips; its node paints it, which keeps panning fast.

    It has the interface that NodeGraphQt expects of a port, without its base class, which is notified of every change and
    takes a quarter of the time to open a network.
    """

    def __init__(self, node: PaintedNode, look: PortLook, index: int, *, is_input: bool) -> None:
        super().__init__(cast(QGraphicsItem, node))
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemHasNoContents, True)
        self.setAcceptHoverEvents(True)
        self.node = node
        self.look = look
        self.index = index
        self.is_input = is_input
        self.hovered = False
        self.refusal = ""  # why the dragged link cannot end here
        self.misfit = ""  # the type rule that the dragged link would break here; it can still be connected
        self.connected_pipes: list[LinkItem] = []
        self.setToolTip(plain_tip(look.tip))

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Paint nothing: the node paints its ports."""

    def boundingRect(self) -> QRectF:
        return QRectF(-REACH, -REACH, 2 * REACH, 2 * REACH)

    def center(self) -> QPointF:
        """The end point of links, in canvas units. For a node in a collapsed frame, it is on the frame's edge."""
        if self.node.folded is not None:
            return self.node.folded.end(is_input=self.is_input)
        return QPointF(self.node.pos() + self.pos())

    @property
    def links(self) -> list[LinkItem]:
        return list(self.connected_pipes)

    @property
    def grayed(self) -> bool:
        """Whether the dragged link cannot end here or has another type."""
        return bool(self.refusal or self.misfit)

    def refuse(self, reason: str, misfit: str = "") -> None:
        """Gray the port out with the reason in its tooltip, or (both empty) restore it."""
        if (reason, misfit) == (self.refusal, self.misfit):
            return
        self.refusal, self.misfit = reason, misfit
        if reason:
            self.setToolTip(plain_tip(tr("Cannot connect here: {reason}", reason=reason)))
        elif misfit:
            tip = tr("Type mismatch: {reason}. The link can still be connected here.", reason=misfit)
            self.setToolTip(plain_tip(tip))
        else:
            self.setToolTip(plain_tip(self.look.tip))

    def show_look(self, look: PortLook) -> None:
        """Show another port of the same node."""
        if look != self.look:
            self.look = look
            self.setToolTip(plain_tip(look.tip))

    def carried(self) -> str:
        """Shape and element type of the tensor, as far as known: `3 x 48 x 64 float32`."""
        shapes = self.node.look.shapes
        if self.is_input:
            shape = self.connected_pipes[0].label if self.connected_pipes else ""
        else:
            shape = shapes[self.index] if self.index < len(shapes) else ""
        named = not shape or any(shape.endswith(dtype.value) for dtype in DataType)
        return shape if named else f"{shape} {DataType.FLOAT32.value}"

    def hoverEnterEvent(self, event: object) -> None:
        if not self.grayed:
            carried = self.carried()
            tip = tr("{port}, currently {type}", port=self.look.tip, type=carried) if carried else self.look.tip
            self.setToolTip(plain_tip(tip))
        self.hovered = True
        self.node.update()

    def hoverLeaveEvent(self, event: object) -> None:
        self.hovered = False
        self.node.update()


class LinkItem(QGraphicsPathItem):
    """A link. `key` is the consumer's name and input index. The line width does not depend on the scale."""

    def __init__(
        self,
        source: PortDot,
        target: PortDot,
        key: tuple[str, int],
        router: Router,
        titles: Callable[[], Iterable[QRectF]] = tuple,
    ) -> None:
        super().__init__()
        self._titles = titles  # of frames, which the label must not cover
        self.source = source
        self.target = target
        self._hovered = False
        self.label_box = QRectF()  # of the label, in scene coordinates
        self._bounds = QRectF()
        self.label_fits = False  # whether the label fits between the two nodes
        self.setZValue(-1)
        self.setAcceptHoverEvents(True)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable, True)
        self.key = key
        self.label = ""
        self.on_path = False  # is upstream or downstream of the selected layer
        self._router = router
        self._lane: float | None = None
        self.points: list[QPointF] = []
        self.shift = QPointF()  # of the points, while both ends are dragged
        source.connected_pipes.append(self)
        target.connected_pipes.append(self)
        self.redraw()

    def set_label(self, text: str) -> None:
        """Set the shape label."""
        if text != self.label:
            self.prepareGeometryChange()
            self.label = text
            self._measure()
            self.update()

    def redraw(self) -> None:
        """Update the path from the ports."""
        self.points = [QPointF(*point) + self.shift for point in self._router.points(self.key)]
        self._draw()

    def show_point(self, number: int, place: QPointF) -> None:
        """Show a reroute point at another position while it is dragged."""
        self.points[number] = place
        self._draw()

    def _draw(self) -> None:
        self._lane = self._router.route(self) if not self.points else None
        self.prepareGeometryChange()
        self.setPath(link_path(self.source.center(), self.target.center(), self._lane, self.points))
        self._measure()

    def point_at(self, place: QPointF, zoom: float) -> int | None:
        """The index of the reroute point at a position of the canvas."""
        reach = max(POINT + 2, GRASP / zoom)
        runs = [point - place for point in self.points]
        return next((n for n, run in enumerate(runs) if max(abs(run.x()), abs(run.y())) <= reach), None)

    def slot_at(self, place: QPointF) -> int:
        """The index at which to insert a new reroute point at a position."""
        path = self.path()
        share = _share(path, place)
        return sum(1 for point in self.points if _share(path, point) < share)

    def nearest(self, place: QPointF) -> QPointF:
        """The point on the link nearest to a position."""
        return self.path().pointAtPercent(_share(self.path(), place))

    def add_lines(self, path: QPainterPath) -> None:
        """Add this link to a path, as straight lines."""
        start, end = self.source.center(), self.target.center()
        path.moveTo(start)
        for point in self.points:
            path.lineTo(point)
        if self._lane is not None:
            ramp = ramp_of(end.x() - start.x())
            path.lineTo(start.x() + ramp, self._lane)
            path.lineTo(end.x() - ramp, self._lane)
        path.lineTo(end)

    def show_target(self, on: bool) -> None:
        """Highlight the link as the target of the dragged node or operator."""
        self._hovered = on
        self.update()

    def show_on_path(self, on_path: bool) -> None:
        """Highlight the link as upstream or downstream of the selected layer."""
        if on_path != self.on_path:
            self.on_path = on_path
            self.update()

    def delete(self) -> None:
        for dot in (self.source, self.target):
            if self in dot.connected_pipes:
                dot.connected_pipes.remove(self)
        if self.scene() is not None:
            self.scene().removeItem(self)

    def hoverEnterEvent(self, event: object) -> None:
        self._hovered = True
        self.update()

    def hoverLeaveEvent(self, event: object) -> None:
        self._hovered = False
        self.update()

    # --- geometry and painting -------------------------------------------------------------------------------

    def boundingRect(self) -> QRectF:
        return self._bounds

    def shape(self) -> QPainterPath:
        stroker = QPainterPathStroker()
        stroker.setWidth(2 * HIT)
        return stroker.createStroke(self.path())

    def _measure(self) -> None:
        """Compute the position of the label, whether it fits, and the bounds of everything painted."""
        self._bounds = self.path().boundingRect().adjusted(-HIT, -HIT, HIT, HIT)
        self.label_fits = False
        if not self.label:
            return
        metrics = fonts().mono_metrics
        width, height = text_width("mono_metrics", self.label) + 8, metrics.height()
        center = label_place(self.source.center(), self.target.center(), self._lane, self.points)
        self.label_box = QRectF(center.x() - width / 2, center.y() - height / 2, width, height)
        kept = self.label_box.adjusted(-AIR, 0, AIR, 0)  # ports extend beyond their nodes
        ends = (self.source.node.box(), self.target.node.box())
        self.label_fits = not any(kept.intersects(box) for box in ends)
        self._bounds = self._bounds.united(self.label_box)

    @property
    def emphasized(self) -> bool:
        return bool(
            self._hovered or self.isSelected() or self.source.node.isSelected() or self.target.node.isSelected()
        )

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        detail = option.levelOfDetailFromTransform(painter.worldTransform())
        strong = self.emphasized
        width = 3.4 if self.isSelected() else 2.8 if strong else 2.2 if self.on_path else 1.6
        # The width of a cosmetic pen is in device pixels, so a high-DPI screen needs a thicker one.
        pen = QPen(
            theme.color("link_active" if strong else "link_path" if self.on_path else "link"),
            width * painter.device().devicePixelRatio(),
        )
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(self.path())
        if self.points:
            painter.setBrush(pen.color())
            for point in self.points:
                radius = POINT + (1.5 if strong else 0)
                painter.drawEllipse(point, radius, radius)
        rect = self.label_box
        if detail >= READABLE and self.label_fits and not any(title.intersects(rect) for title in self._titles()):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("sunken"))
            painter.drawRoundedRect(rect, 3, 3)
            painter.setFont(fonts().mono)
            painter.setPen(theme.color("link_active" if strong else "muted"))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self.label)


class LiveLink(QGraphicsPathItem):
    """The link being dragged, from a port to the pointer. It is dashed, and its color shows where it is refused."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.hide()

    def follow(self, port: PortDot, pointer: QPointF, *, refused: bool) -> None:
        """Draw from `port` to `pointer` (canvas units)."""
        ends = (pointer, port.center()) if port.is_input else (port.center(), pointer)
        self.setPath(link_path(*ends))
        ratio = port.scene().views()[0].devicePixelRatioF()
        pen = QPen(theme.color("error" if refused else "link_active"), 2.4 * ratio)
        pen.setCosmetic(True)
        pen.setStyle(Qt.PenStyle.DotLine if refused else Qt.PenStyle.DashLine)
        self.setPen(pen)
        self.show()


def _share(path: QPainterPath, place: QPointF) -> float:
    """The position along a path, from 0 to 1, of its point nearest to a position."""

    def apart(share: float) -> float:
        run = path.pointAtPercent(share) - place
        return float(run.x() ** 2 + run.y() ** 2)

    return min((step / SHARES for step in range(SHARES + 1)), key=apart)
