"""Ports, and the links between them: a curve from an output to an input, with the shape that flows through it."""

from __future__ import annotations

from collections.abc import Sequence
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
from app.ui.widgets.plain import plain_tip
from designer.graph.types import DataType
from designer.texts import tr

READABLE = 0.6  # below this scale no shapes are written on links
HIT = 6.0  # half the width in which a link is hit, in canvas units
POINT = 3.5  # radius of a point that a user set
SHARES = 64  # places along a link that are looked at for the nearest one
AIR = PORT_RADIUS + 4  # free room between a shape on a link and the nodes beside it, in canvas units
GRASP = 7.0  # pixels around a point in which it is hit
REACH = 11.0  # how far from its center a port is hit, in canvas units


class PaintedNode(Protocol):
    """A layer's item, as its ports, its links and its painting know it."""

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
    """Who knows where links run."""

    def route(self, link: LinkItem) -> float | None:
        """The height along which a link runs around nodes; None: directly."""

    def points(self, key: tuple[str, int]) -> Sequence[tuple[int, int]]:
        """The points that a user lets it run through."""


class PortDot(QGraphicsItem):
    """A port. It takes hits, hovering and tooltips; its node paints it, which keeps panning fast.

    It has what the library asks of a port, without its base class: that one is told of every change, at a quarter of the
    time in which a network opens.
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
        self.refusal = ""  # why the link that is being dragged cannot end here
        self.misfit = ""  # the rule that it would break here; it may end here all the same, to be mended then
        self.connected_pipes: list[LinkItem] = []
        self.setToolTip(plain_tip(look.tip))

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Nothing: see the node."""

    def boundingRect(self) -> QRectF:
        return QRectF(-REACH, -REACH, 2 * REACH, 2 * REACH)

    def center(self) -> QPointF:
        """Where links end, in canvas units. Where a collapsed frame stands for the node, at the frame's edge."""
        if self.node.folded is not None:
            return self.node.folded.end(is_input=self.is_input)
        return QPointF(self.node.pos() + self.pos())

    @property
    def links(self) -> list[LinkItem]:
        return list(self.connected_pipes)

    @property
    def grayed(self) -> bool:
        """Whether the link that is being dragged cannot end here, or would not fit."""
        return bool(self.refusal or self.misfit)

    def refuse(self, reason: str, misfit: str = "") -> None:
        """Gray the port out with the reason in its tooltip, or (both empty) free it again."""
        if (reason, misfit) == (self.refusal, self.misfit):
            return
        self.refusal, self.misfit = reason, misfit
        if reason:
            self.setToolTip(plain_tip(tr("Cannot connect here: {reason}", reason=reason)))
        elif misfit:
            told = tr("Type mismatch: {reason}. The link can still be connected here.", reason=misfit)
            self.setToolTip(plain_tip(told))
        else:
            self.setToolTip(plain_tip(self.look.tip))

    def show_look(self, look: PortLook) -> None:
        """Be another port of the same node."""
        if look != self.look:
            self.look = look
            self.setToolTip(plain_tip(look.tip))

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
        if not self.grayed:
            carried = self.carried()
            told = tr("{port}, currently {type}", port=self.look.tip, type=carried) if carried else self.look.tip
            self.setToolTip(plain_tip(told))
        self.hovered = True
        self.node.update()

    def hoverLeaveEvent(self, event: object) -> None:
        self.hovered = False
        self.node.update()


class LinkItem(QGraphicsPathItem):
    """A link. `key` is the consumer's name and input index. Its line is equally thick at every scale."""

    def __init__(self, source: PortDot, target: PortDot, key: tuple[str, int], router: Router) -> None:
        super().__init__()
        self.source = source
        self.target = target
        self._hovered = False
        self._label_box = QRectF()
        self._bounds = QRectF()
        self.label_fits = False  # whether there is room for the shape between the two nodes
        self.setZValue(-1)
        self.setAcceptHoverEvents(True)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable, True)
        self.key = key
        self.label = ""
        self.on_path = False  # leads to the selected layer, or away from it
        self._router = router
        self._lane: float | None = None
        self.points: list[QPointF] = []
        self.shift = QPointF()  # of the points, while both ends are dragged
        source.connected_pipes.append(self)
        target.connected_pipes.append(self)
        self.redraw()

    def set_label(self, text: str) -> None:
        """The shape that is written on the link."""
        if text != self.label:
            self.prepareGeometryChange()
            self.label = text
            self._measure()
            self.update()

    def redraw(self) -> None:
        """Follow the ports."""
        self.points = [QPointF(*point) + self.shift for point in self._router.points(self.key)]
        self._draw()

    def show_point(self, number: int, place: QPointF) -> None:
        """Let the link run through another place, while a point is dragged."""
        self.points[number] = place
        self._draw()

    def _draw(self) -> None:
        self._lane = self._router.route(self) if not self.points else None
        self.prepareGeometryChange()
        self.setPath(link_path(self.source.center(), self.target.center(), self._lane, self.points))
        self._measure()

    def point_at(self, place: QPointF, zoom: float) -> int | None:
        """The number of the point at a place of the canvas."""
        reach = max(POINT + 2, GRASP / zoom)
        runs = [point - place for point in self.points]
        return next((n for n, run in enumerate(runs) if max(abs(run.x()), abs(run.y())) <= reach), None)

    def slot_at(self, place: QPointF) -> int:
        """Between which points a new one at a place belongs: before the point of this number."""
        path = self.path()
        share = _share(path, place)
        return sum(1 for point in self.points if _share(path, point) < share)

    def nearest(self, place: QPointF) -> QPointF:
        """The place on the link that is nearest to another."""
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
        """Stand out: what is being dragged would go into the link."""
        self._hovered = on
        self.update()

    def show_on_path(self, on_path: bool) -> None:
        """Mark the link as part of the selected layer's paths."""
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
        """Work out where the label stands, whether it fits, and what is painted at most."""
        self._bounds = self.path().boundingRect().adjusted(-HIT, -HIT, HIT, HIT)
        self.label_fits = False
        if not self.label:
            return
        metrics = fonts().mono_metrics
        width, height = text_width("mono_metrics", self.label) + 8, metrics.height()
        center = label_place(self.source.center(), self.target.center(), self._lane, self.points)
        self._label_box = QRectF(center.x() - width / 2, center.y() - height / 2, width, height)
        kept = self._label_box.adjusted(-AIR, 0, AIR, 0)  # the ports stand out of their nodes
        ends = (self.source.node.box(), self.target.node.box())
        self.label_fits = not any(kept.intersects(box) for box in ends)
        self._bounds = self._bounds.united(self._label_box)

    @property
    def emphasized(self) -> bool:
        return bool(
            self._hovered or self.isSelected() or self.source.node.isSelected() or self.target.node.isSelected()
        )

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        detail = option.levelOfDetailFromTransform(painter.worldTransform())
        strong = self.emphasized
        width = 3.4 if self.isSelected() else 2.8 if strong else 2.2 if self.on_path else 1.6
        # A cosmetic pen counts in pixels of the device, so a screen with dense pixels needs a thicker one.
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
        if detail >= READABLE and self.label_fits:
            rect = self._label_box
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("sunken"))
            painter.drawRoundedRect(rect, 3, 3)
            painter.setFont(fonts().mono)
            painter.setPen(theme.color("link_active" if strong else "muted"))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self.label)


class LiveLink(QGraphicsPathItem):
    """The link that is being dragged: from a port to the pointer. Dashed; crossed out by its color where refused."""

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
    """How far along a path the place is that is nearest to another, from 0 to 1."""

    def apart(share: float) -> float:
        run = path.pointAtPercent(share) - place
        return float(run.x() ** 2 + run.y() ** 2)

    return min((step / SHARES for step in range(SHARES + 1)), key=apart)
