"""The whole network painted in one go, for scales at which no text can be read: blocks by category, and lines.

Qt would ask every item to paint itself, which costs one call into Python each. Here Qt gets lists, built from the layer and
link indexes without creating items. Selected and highlighted parts are kept separately, because they change more often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from PySide6.QtCore import QDeadlineTimer, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.ui.canvas import node_paint
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.layer_index import LayerIndex
from app.ui.widgets import theme
from designer.operators.api import Category

if TYPE_CHECKING:
    from app.ui.canvas.link_index import LinkEntry, LinkIndex
    from app.ui.canvas.node import LayerItem

CURVES = 300  # more links than this are painted as straight lines
STRIDE = 64  # layers or links between looks at the clock


class Sweep:
    """One pass over a large collection, in slices of time."""

    def __init__(self) -> None:
        self._stale = True
        self._steps: Iterator[None] | None = None

    def forget(self, *, restart: bool) -> None:
        """Request another pass. `restart`: discard the one in progress."""
        self._stale = True
        if restart:
            self._steps = None

    def proceed(self, begin: Callable[[], Iterator[None]], deadline: QDeadlineTimer) -> bool:
        """Continue the pass, or begin one if it was requested. Returns whether everything is up to date."""
        while self._stale or self._steps is not None:
            if self._steps is None:
                self._steps, self._stale = begin(), False
            for number, _ in enumerate(self._steps):
                if number % STRIDE == STRIDE - 1 and deadline.hasExpired():
                    return False
            self._steps = None
            if deadline.hasExpired():
                break
        return not self._stale


@dataclass
class FarView:
    """Paint lists, kept until `forget` is called. A large network is collected over several frames; the previous lists stay until then."""

    blocks: dict[Category, list[QRectF]] = field(default_factory=dict)
    ghosts: dict[Category, list[QRectF]] = field(default_factory=dict)  # blocks of bypassed layers
    problems: list[tuple[QRectF, str]] = field(default_factory=list)
    training: list[QRectF] = field(default_factory=list)
    frames: list[FrameItem] = field(default_factory=list)
    links: QPainterPath = field(default_factory=QPainterPath)
    selected: list[QRectF] = field(default_factory=list)
    marked: dict[theme.RoleName, QPainterPath] = field(default_factory=dict)
    count: int = 0  # of blocks
    _blocks: Sweep = field(default_factory=Sweep)
    _links: Sweep = field(default_factory=Sweep)
    _marks_known: bool = False

    def forget(self, *, moving: bool = False) -> None:
        """Collect everything again: some layer or link looks different or moved.

        `moving`: only positions change, with every move of the mouse, so what is being collected is completed first.
        """
        for sweep in (self._blocks, self._links):
            sweep.forget(restart=not moving)
        self._marks_known = False

    def forget_marks(self) -> None:
        """Discard the selected and highlighted parts."""
        self._marks_known = False

    def collect_blocks(
        self,
        layers: LayerIndex,
        items: Mapping[str, LayerItem],
        frames: Iterable[FrameItem],
        deadline: QDeadlineTimer,
    ) -> bool:
        """Collect the layers, if they changed. Returns whether that was finished before the deadline.

        Positions come from items where they exist, because these may be being dragged.
        """
        return self._blocks.proceed(lambda: self._collecting_blocks(layers, items, frames), deadline)

    def _collecting_blocks(
        self, layers: LayerIndex, items: Mapping[str, LayerItem], frames: Iterable[FrameItem]
    ) -> Iterator[None]:
        shown = [frame for frame in frames if frame.isVisible()]
        blocks: dict[Category, list[QRectF]] = {Category.ACTIVATION: []}
        ghosts: dict[Category, list[QRectF]] = {}
        problems: list[tuple[QRectF, str]] = []
        training: list[QRectF] = []
        shut = [frame.seen for frame in shown if frame.frame.collapsed]
        if shut:
            blocks[Category.DEVELOPMENT] = shut
        for entry in layers:
            yield
            if entry.folded is not None:
                continue
            look, place = entry.look, entry.layout
            if look is None or place is None:
                blocks.setdefault(Category.DEVELOPMENT, []).append(entry.box())
                continue
            item = items.get(entry.name)
            x, y = (entry.x, entry.y) if item is None else item.pos().toTuple()
            box = place.block.translated(x, y)
            kind = ghosts if look.bypassed else blocks
            kind.setdefault(look.category or Category.DEVELOPMENT, []).append(box)
            if look.activation:
                kind.setdefault(Category.ACTIVATION, []).append(place.tab.translated(x, y))
            if look.problem in ("error", "warning"):
                problems.append((box, look.problem))
            if look.training:
                training.append(box)
        self.frames, self.blocks, self.ghosts = shown, blocks, ghosts
        self.problems, self.training = problems, training
        self.count = len(layers)

    def collect_links(self, edges: LinkIndex, deadline: QDeadlineTimer) -> bool:
        """Collect the links, if they changed. Returns whether that was finished before the deadline."""
        return self._links.proceed(lambda: self._collecting_links(edges), deadline)

    def _collecting_links(self, edges: LinkIndex) -> Iterator[None]:
        links = QPainterPath()
        curves = len(edges) <= CURVES
        for edge in edges:
            yield
            _add(links, edges, edge, curves=curves)
        self.links = links

    def collect_marks(
        self,
        layers: LayerIndex,
        items: Mapping[str, LayerItem],
        edges: LinkIndex,
        on_path: Callable[[LinkEntry], bool],
        marked: Iterable[str],
    ) -> None:
        """Collect the selected and highlighted parts, if they changed."""
        if self._marks_known:
            return
        self.selected = [layers[name].box() for name in marked if layers[name].folded is None]
        self.selected += [item.layout.block.translated(item.pos()) for item in items.values() if item.isSelected()]
        self.marked = {"link_path": QPainterPath(), "link_active": QPainterPath()}
        curves = len(edges) <= CURVES  # in the same style as all other links
        for edge in edges:
            if edge.item is not None and edge.item.emphasized:
                _add(self.marked["link_active"], edges, edge, curves=curves)
            elif on_path(edge):
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
            painter.setPen(node_paint.training_pen(ratio))
            painter.drawRects(self.training)
        pen = QPen(theme.color("link_active"), 3.0 * ratio)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.drawRects(self.selected)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for box, problem in self.problems:
            node_paint.paint_block_mark(painter, box, problem, detail)

    def paint_blocks(self, painter: QPainter, *, tiny: bool = False) -> None:
        """Paint the layers only, each in its category's color, bypassed ones ghosted. `tiny`: blocks may be smaller than a pixel, but are visible."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for blocks, opacity in ((self.blocks, 1.0), (self.ghosts, node_paint.GHOST)):
            painter.setOpacity(opacity)
            for category, rects in blocks.items():
                color = theme.category(category)
                painter.setPen(QPen(color, 0) if tiny else Qt.PenStyle.NoPen)  # a width of 0 is one pixel
                painter.setBrush(color)
                painter.drawRects(rects)
        painter.setOpacity(1.0)


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
