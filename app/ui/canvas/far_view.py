"""The whole network painted in one go, for scales at which no text can be read: blocks by category, and lines.

Qt would ask every item to paint itself, which costs one call into Python each. Here Qt gets lists, built from the layer and
link indexes without creating items. Selected and highlighted parts are kept separately, because they change more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.ui.canvas import node_paint
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.layer_index import LayerIndex
from app.ui.widgets import theme
from designer.operators.api import Category

if TYPE_CHECKING:
    from app.ui.canvas.link_index import Key, LinkEntry, LinkIndex
    from app.ui.canvas.node import LayerItem

CURVES = 300  # more links than this are painted as straight lines


@dataclass
class FarView:
    """Cached paint lists, kept until `forget` is called."""

    blocks: dict[Category, list[QRectF]] = field(default_factory=dict)
    problems: list[tuple[QRectF, str]] = field(default_factory=list)
    training: list[QRectF] = field(default_factory=list)
    frames: list[FrameItem] = field(default_factory=list)
    links: QPainterPath = field(default_factory=QPainterPath)
    selected: list[QRectF] = field(default_factory=list)
    marked: dict[theme.RoleName, QPainterPath] = field(default_factory=dict)
    count: int = 0  # of blocks
    _known: bool = False
    _links_known: bool = False
    _marks_known: bool = False

    def forget(self) -> None:
        """Discard everything: some layer or link looks different or moved."""
        self._known = self._links_known = self._marks_known = False

    def forget_marks(self) -> None:
        """Discard the selected and highlighted parts."""
        self._marks_known = False

    def collect_blocks(self, layers: LayerIndex, items: Mapping[str, LayerItem], frames: Iterable[FrameItem]) -> None:
        """Collect the layers, if they changed. Positions come from items where they exist, because these may be being dragged."""
        if self._known:
            return
        self.frames = [frame for frame in frames if frame.isVisible()]
        self.blocks, self.problems, self.training = {}, [], []
        tabs = self.blocks.setdefault(Category.ACTIVATION, [])
        shut = [frame.seen for frame in self.frames if frame.frame.collapsed]
        if shut:
            self.blocks[Category.DEVELOPMENT] = shut
        for entry in layers:
            if entry.folded is not None:
                continue
            look, place = entry.look, entry.layout
            if look is None or place is None:
                self.blocks.setdefault(Category.DEVELOPMENT, []).append(entry.box())
                continue
            item = items.get(entry.name)
            x, y = (entry.x, entry.y) if item is None else item.pos().toTuple()
            box = place.block.translated(x, y)
            self.blocks.setdefault(look.category or Category.DEVELOPMENT, []).append(box)
            if look.activation:
                tabs.append(place.tab.translated(x, y))
            if look.problem in ("error", "warning"):
                self.problems.append((box, look.problem))
            if look.training:
                self.training.append(box)
        self.count = len(layers)
        self._known = True

    def collect_links(self, edges: LinkIndex) -> None:
        """Collect the links, if they changed."""
        if self._links_known:
            return
        self.links = QPainterPath()
        curves = len(edges) <= CURVES
        for edge in edges:
            _add(self.links, edges, edge, curves=curves)
        self._links_known = True

    def collect_marks(
        self,
        layers: LayerIndex,
        items: Mapping[str, LayerItem],
        edges: LinkIndex,
        path: Set[Key],
        marked: Iterable[str],
    ) -> None:
        """Collect the selected and highlighted parts, if they changed."""
        if self._marks_known:
            return
        self.selected = [layers[name].box() for name in marked]
        self.selected += [item.layout.block.translated(item.pos()) for item in items.values() if item.isSelected()]
        self.marked = {"link_path": QPainterPath(), "link_active": QPainterPath()}
        curves = len(edges) <= CURVES  # in the same style as all other links
        for edge in edges:
            if edge.item is not None and edge.item.emphasized:
                _add(self.marked["link_active"], edges, edge, curves=curves)
            elif edge.key in path:
                _add(self.marked["link_path"], edges, edge, curves=curves)
        self._marks_known = True

    def paint(self, painter: QPainter, detail: float, names: Iterable[tuple[QRectF, str]] = ()) -> None:
        """Paint the network at a scale of `detail` pixels per canvas unit, with `names` on their blocks."""
        ratio = painter.device().devicePixelRatio()
        many = self.count > CURVES
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, not many)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        _stroke(painter, "link", (1.0 if many else 1.2) * ratio, self.links)
        for role, path in self.marked.items():
            _stroke(painter, role, 2.4 * ratio, path)
        self.paint_blocks(painter)
        for box, name in names:
            node_paint.paint_name(painter, box, name, detail)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if detail >= node_paint.NAMED and self.training:
            painter.setPen(node_paint.training_pen(cosmetic=True))
            painter.drawRects(self.training)
        pen = QPen(theme.color("link_active"), 3.0 * ratio)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.drawRects(self.selected)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for box, problem in self.problems:
            node_paint.paint_block_mark(painter, box, problem, detail)

    def paint_blocks(self, painter: QPainter, *, tiny: bool = False) -> None:
        """Paint the layers only, each in its category's color. `tiny`: blocks may be smaller than a pixel, but are visible."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for category, rects in self.blocks.items():
            color = theme.category(category)
            painter.setPen(QPen(color, 0) if tiny else Qt.PenStyle.NoPen)  # a width of 0 is one pixel
            painter.setBrush(color)
            painter.drawRects(rects)


def _stroke(painter: QPainter, role: theme.RoleName, width: float, path: QPainterPath) -> None:
    pen = QPen(theme.color(role), width)
    pen.setCosmetic(True)
    painter.setPen(pen)
    painter.drawPath(path)


def _add(path: QPainterPath, edges: LinkIndex, edge: LinkEntry, *, curves: bool) -> None:
    """Add a link to a path, as straight lines if it has no item or `curves` is False."""
    if edge.item is not None and edge.item.isVisible():
        if curves:
            path.addPath(edge.item.path())
        else:
            edge.item.add_lines(path)
    elif edge.item is None and not edges.inner(edge) and (ends := edges.ends(edge)) is not None:
        path.moveTo(*ends[0])
        path.lineTo(*ends[1])
