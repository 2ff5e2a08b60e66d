"""The whole network painted in one go, for scales at which no text can be read: blocks by category, and lines.

Qt would ask every item to paint itself, which costs a call into Python for each. Here Qt gets lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.ui import theme
from app.ui.canvas import node_paint
from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from designer.operators.api import Category

FAR = node_paint.NAMED  # below this scale (pixels a canvas unit)
CURVES = 300  # with more links than that they are painted as straight lines


@dataclass
class FarView:
    """What is painted, kept until `forget`."""

    blocks: dict[Category, list[QRectF]] = field(default_factory=dict)
    problems: list[LayerItem] = field(default_factory=list)
    selected: list[QRectF] = field(default_factory=list)
    frames: list[FrameItem] = field(default_factory=list)
    lines: dict[theme.RoleName, QPainterPath] = field(default_factory=dict)
    _known: bool = False

    def forget(self) -> None:
        """Something looks different or stands elsewhere."""
        self._known = False

    def collect(self, nodes: Iterable[LayerItem], links: Collection[LinkItem], frames: Iterable[FrameItem]) -> None:
        """Take in all items, unless nothing changed."""
        if self._known:
            return
        count = len(links)
        self.frames = list(frames)
        self.blocks, self.problems, self.selected = {}, [], []
        for item in nodes:
            place, corner = item.layout, item.pos()
            box = place.box.translated(corner)
            self.blocks.setdefault(item.look.category or Category.DEVELOPMENT, []).append(box)
            if not place.tab.isEmpty():
                self.blocks.setdefault(Category.ACTIVATION, []).append(place.tab.translated(corner))
            if item.look.problem in ("error", "warning"):
                self.problems.append(item)
            if item.isSelected():
                self.selected.append(box)
        self.lines = {"link": QPainterPath(), "link_path": QPainterPath(), "link_active": QPainterPath()}
        for link in links:
            role: theme.RoleName = "link_active" if link.emphasised else "link_path" if link.on_path else "link"
            if count <= CURVES or role != "link":
                self.lines[role].addPath(link.path())
            else:
                link.add_lines(self.lines[role])
        self._known = True

    def paint(self, painter: QPainter, detail: float) -> None:
        """Paint it on the canvas for a scale of `detail` pixels a canvas unit."""
        ratio = painter.device().devicePixelRatio()
        many = sum(len(rects) for rects in self.blocks.values()) > CURVES
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, not many)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for role, path in self.lines.items():
            width = 1.0 if role == "link" and many else 1.2 if role == "link" else 2.4
            pen = QPen(theme.color(role), width * ratio)
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.drawPath(path)
        self.paint_blocks(painter)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        pen = QPen(theme.color("link_active"), 3.0 * ratio)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.drawRects(self.selected)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        for item in self.problems:
            node_paint.paint_block_mark(painter, item.layout.box.translated(item.pos()), item.look.problem, detail)

    def paint_blocks(self, painter: QPainter) -> None:
        """Paint the layers only, each in its category's colour."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        for category, rects in self.blocks.items():
            painter.setBrush(theme.category(category))
            painter.drawRects(rects)

    def extent(self) -> QRectF:
        """What holds all layers and frames."""
        rect = QRectF()
        for boxes in self.blocks.values():
            for box in boxes:
                rect = rect.united(box)
        for frame in self.frames:
            rect = rect.united(frame.rect)
        return rect
