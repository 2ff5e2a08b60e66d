"""Export of the network as an image: PNG at any size, SVG, or PDF for printing. The same items paint it as on the canvas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtWidgets import QGraphicsItem

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.node import LayerItem
from app.ui.canvas.node_layout import layout
from app.ui.canvas.node_look import node_look
from app.ui.canvas.projection import Projection
from app.ui.canvas.viewer import LayerViewer
from app.ui.document.document import Document
from app.ui.widgets import theme
from designer.files.atomic import write_atomic
from designer.files.formats import Format, FormatTable
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

PageSize = Literal["drawing", "A4", "A3", "Letter"]
MARGIN = 32.0  # canvas units around the network
PAPER_MARGIN = 12.0  # mm
MAX_PIXELS = 200_000_000
MAX_SIDE = 32_000
UNITS_PER_INCH = 96.0  # on a page that is as large as the drawing
_PAPER = {"A4": QPageSize.PageSizeId.A4, "A3": QPageSize.PageSizeId.A3, "Letter": QPageSize.PageSizeId.Letter}


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """Options of an image. `names`: only these layers; `area`: only this part of the canvas; `scale`: pixels per canvas unit (PNG)."""

    dark: bool = False
    transparent: bool = False
    scale: float = 2.0
    page: PageSize = "A4"
    names: Collection[str] = ()
    area: QRectF | None = None


def drawn_area(projection: Projection, options: ImageOptions) -> QRectF:
    """The area to be painted, in canvas units, computed without creating items. `projection` can be that of the window's canvas."""
    document = projection.document
    if options.area is not None or document is None:
        return options.area or QRectF()
    rects = [_unmarked(projection, document, name) for name in options.names or projection.layers]
    if not options.names:
        frames = (projection.frame(frame_id) for frame_id in document.graph.frames)
        rects += [frame.sceneBoundingRect() for frame in frames if frame is not None]
    whole = QRectF()
    for rect in rects:
        whole = whole.united(rect)
    return whole.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)


def _unmarked(projection: Projection, document: Document, name: str) -> QRectF:
    """The bounds of a layer without the mark of the inspected layer, which takes room."""
    entry = projection.entry(name)
    if name != projection.inspected or entry.folded is not None:
        return entry.area()
    return QRectF(layout(node_look(document, name)).bounds.translated(entry.pos()))


def pixels(area: QRectF, options: ImageOptions) -> QSize:
    """The size in pixels of an area's PNG."""
    return QSize(max(1, round(area.width() * options.scale)), max(1, round(area.height() * options.scale)))


class NetworkImage:
    """A document on a separate canvas without selection, marks and grid. `area` is the painted area, in canvas units."""

    def __init__(self, viewer: LayerViewer, projection: Projection, options: ImageOptions) -> None:
        self._viewer, self._projection, self.options = viewer, projection, options
        projection.need(projection.extent())
        for item in viewer.scene().items():
            item.setCacheMode(
                QGraphicsItem.CacheMode.NoCache
            )  # NodeGraphQt caches pixmaps, which would end up in the PDF
        if options.names:
            layers = [projection[name] for name in options.names]
            shown = {layer.folded or layer for layer in layers}  # a collapsed frame in place of its layers
            for item in viewer.scene().items():
                if isinstance(item, LayerItem | FrameItem):
                    item.setVisible(item in shown)
        self.area = drawn_area(projection, options)

    def pixels(self) -> QSize:
        """The size of the PNG."""
        return pixels(self.area, self.options)

    def png(self) -> bytes:
        size = self.pixels()
        if max(size.width(), size.height()) > MAX_SIDE or size.width() * size.height() > MAX_PIXELS:
            raise DiagnosticError(
                Diagnostic(
                    "picture-too-large",
                    tr(
                        "an image of {width:,} x {height:,} pixels is too large: at most {side:,} a side and "
                        "{millions} million in total",
                        width=size.width(),
                        height=size.height(),
                        side=MAX_SIDE,
                        millions=MAX_PIXELS // 1_000_000,
                    ),
                    remedy=tr("choose a smaller scale, or export SVG or PDF"),
                )
            )
        image = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
        image.fill(QColor(Qt.GlobalColor.transparent))
        ratio = max(1.0, self.options.scale)  # lines scale with the image, but stay visible below 100%
        image.setDevicePixelRatio(ratio)
        painter = QPainter(image)
        self._paint(painter, QRectF(0, 0, size.width() / ratio, size.height() / ratio))
        painter.end()
        if not self.options.transparent:  # halves the time to save
            image.convertTo(QImage.Format.Format_RGB32)
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(buffer, "PNG")  # type: ignore[call-overload]  # the stubs declare bytes, the call expects str
        return bytes(buffer.data().data())

    def svg(self) -> bytes:
        from PySide6.QtSvg import QSvgGenerator

        buffer = QBuffer()
        generator = QSvgGenerator()
        generator.setOutputDevice(buffer)
        size = self.area.size().toSize()
        generator.setSize(size)
        generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
        generator.setTitle(self._title())
        painter = QPainter(generator)
        self._paint(painter, QRectF(0, 0, size.width(), size.height()))
        painter.end()
        return bytes(buffer.data().data())

    def pdf(self) -> bytes:
        """One page: as large as the drawing, or a paper size in the better orientation with the drawing scaled to fit."""
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        writer = QPdfWriter(buffer)
        writer.setTitle(self._title())
        writer.setCreator("Layerwright")
        area = self.area.size()
        if self.options.page == "drawing":
            inches = area / UNITS_PER_INCH
            writer.setPageSize(QPageSize(inches, QPageSize.Unit.Inch, "", QPageSize.SizeMatchPolicy.ExactMatch))
            writer.setPageMargins(QMarginsF())
            room = inches
        else:
            writer.setPageSize(QPageSize(_PAPER[self.options.page]))
            lying = area.width() > area.height()
            writer.setPageOrientation(QPageLayout.Orientation.Landscape if lying else QPageLayout.Orientation.Portrait)
            margin = PAPER_MARGIN
            writer.setPageMargins(QMarginsF(margin, margin, margin, margin), QPageLayout.Unit.Millimeter)
            room = writer.pageLayout().paintRect(QPageLayout.Unit.Inch).size()
        # One dot per canvas unit, so that cosmetic lines are as thick as on the canvas at 100%.
        dots = max(area.width() / room.width(), area.height() / room.height(), UNITS_PER_INCH)
        writer.setResolution(round(dots))
        painter = QPainter(writer)
        page = QRectF(0, 0, writer.width(), writer.height())
        scale = min(page.width() / area.width(), page.height() / area.height(), writer.resolution() / UNITS_PER_INCH)
        target = QRectF(0, 0, area.width() * scale, area.height() * scale)
        target.moveCenter(page.center())
        if self.options.dark and not self.options.transparent:
            painter.fillRect(page, theme.color("sunken"))  # the light theme is close enough to white paper
        self._render(painter, target)
        painter.end()
        return bytes(buffer.data().data())

    def _title(self) -> str:
        document = self._projection.document
        return document.graph.name if document is not None else ""

    def _paint(self, painter: QPainter, target: QRectF) -> None:
        if not self.options.transparent:
            painter.fillRect(target, theme.color("sunken"))
        self._render(painter, target)

    def _render(self, painter: QPainter, target: QRectF) -> None:
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        scene = self._viewer.scene()
        scene.drawBackground = lambda *_: None  # NodeGraphQt would paint its grid
        scene.render(painter, target, self.area, Qt.AspectRatioMode.IgnoreAspectRatio)


@contextmanager
def drawn(document: Document, options: ImageOptions) -> Iterator[NetworkImage]:
    """Yield the image of a document. Raises DiagnosticError ("nothing-to-draw") if it has no layers."""
    if not len(document.graph):
        raise DiagnosticError(
            Diagnostic(
                "nothing-to-draw", tr("the network has no layers"), remedy=tr("add layers before exporting the image")
            )
        )
    viewer = LayerViewer()
    try:
        with theme.as_if(dark=options.dark):
            projection = Projection(viewer)
            projection.show(document)
            yield NetworkImage(viewer, projection, options)
            projection.show(None)
    finally:
        viewer.deleteLater()


def save(document: Document, path: Path, options: ImageOptions) -> None:
    """Write an image in the format of the suffix. Raises DiagnosticError if it cannot be written."""
    encode = IMAGE_FORMATS.writer(path)
    with drawn(document, options) as image:
        data = encode(image)
    write_atomic(path, data)


@dataclass(frozen=True, slots=True)
class NetworkImageFormat(Format[None, Callable[[NetworkImage], bytes]]):
    """A format of images of the network; `options` are the fields of `ImageOptions` that only some formats have."""

    options: tuple[str, ...] = ()


IMAGE_FORMATS: FormatTable[None, Callable[[NetworkImage], bytes]] = FormatTable(
    "images of networks",
    (
        NetworkImageFormat("PNG image", (".png",), write=NetworkImage.png, options=("scale", "transparent")),
        NetworkImageFormat("SVG image", (".svg",), write=NetworkImage.svg, options=("transparent",)),
        NetworkImageFormat("PDF page", (".pdf",), write=NetworkImage.pdf, options=("page",)),
    ),
)
