"""File > Export > Export Image and File > Print to PDF: a drawing of the network as PNG, SVG or PDF."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QDoubleSpinBox, QLabel, QWidget

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.network_image import (
    IMAGE_FORMATS,
    ImageOptions,
    NetworkImageFormat,
    PageSize,
    drawn_area,
    pixels,
    save,
)
from app.ui.engine.context import Context
from app.ui.shell.export.dialog import ExportDialog
from app.ui.widgets import theme
from app.ui.widgets.file_dialogs import ask_save_path
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.units import count

MEASURING_MS = 50  # polling interval until the canvas has measured all layers


class PictureDialog(ExportDialog):
    """Exports a drawing of the network that `canvas` shows."""

    def __init__(self, context: Context, canvas: Canvas, suffix: str = ".png", parent: QWidget | None = None) -> None:
        title = tr("Print to PDF") if suffix == ".pdf" else tr("Export Image")
        super().__init__(context, "picture", title, f"{context.document.graph.name}{suffix}", parent)
        self._projection, self._seen = canvas.projection, canvas.viewer.seen()
        self._areas: dict[str, QRectF] = {}  # drawn area by part, once measured
        self._measuring = QTimer(self, singleShot=True, interval=MEASURING_MS, timeout=self.check)
        parts = [(tr("The whole network"), "all"), (tr("The visible part of the canvas"), "seen")]
        if context.selection:
            parts.insert(1, (tr("The selected layers"), "selection"))
        self.part = _choice(*parts)
        self.theme = _choice((tr("Light, for paper"), False), (tr("Dark"), True))
        self.theme.setCurrentIndex(int(theme.is_dark() and suffix != ".pdf"))
        self.scale = QDoubleSpinBox()
        self.scale.setRange(0.1, 16.0)
        self.scale.setSingleStep(0.5)
        self.scale.setDecimals(1)
        self.scale.setValue(2.0)
        self.scale.setSuffix(" ×")
        self.page = _choice(("A4", "A4"), ("A3", "A3"), ("Letter", "Letter"), (tr("Fit to drawing"), "drawing"))
        self.transparent = QCheckBox(tr("&Transparent background"))
        self.pixels = QLabel()
        self.add_target(tr("&File"))
        self.add_row("part", tr("&Content"), self.part)
        self.add_row("colours", tr("&Theme"), self.theme)
        self.add_row("scale", tr("&Size"), self.scale)
        self.add_row("page", tr("&Page"), self.page)
        self.add_row("transparent", "", self.transparent)
        self.add_row("size", "", self.pixels)
        self.transparent.setAccessibleName(tr("Transparent background"))
        self.pixels.setAccessibleName(tr("Image size"))
        self.part.currentIndexChanged.connect(self.check)
        self.scale.valueChanged.connect(self.check)
        self.check()

    def look(self) -> ImageOptions:
        """The chosen options."""
        part = str(self.part.currentData())
        page: PageSize = self.page.currentData()
        return ImageOptions(
            dark=bool(self.theme.currentData()),
            transparent=self.transparent.isChecked(),
            scale=self.scale.value(),
            page=page,
            names=self.context.selection if part == "selection" else (),
            area=self._seen if part == "seen" else None,
        )

    def browse(self) -> None:
        path = ask_save_path(self, self.windowTitle(), self.target.text(), IMAGE_FORMATS)
        if path is not None:
            self.target.setText(str(path))

    def problem(self) -> str:
        if IMAGE_FORMATS.find(self.path) is not None:
            return super().problem()
        return tr("The file name must end with one of {suffixes}.", suffixes=", ".join(IMAGE_FORMATS.write_suffixes))

    def check(self) -> None:
        super().check()
        format = IMAGE_FORMATS.find(self.path)
        options = format.options if isinstance(format, NetworkImageFormat) else ()
        for option, field in (("scale", self.scale), ("page", self.page), ("transparent", self.transparent)):
            self.form.setRowVisible(field, option in options)
        self.pixels.setText(self._size() if "scale" in options else tr("Vector graphics: sharp at any size."))

    def _size(self) -> str:
        """The image size in pixels. The canvas measures a large network some time after it was opened."""
        look, part = self.look(), str(self.part.currentData())
        if part not in self._areas:
            if look.area is None and not self._projection.measured:
                self._measuring.start()
                return tr("Measuring the network...")
            self._areas[part] = drawn_area(self._projection, look)
        size = pixels(self._areas[part], look)
        return tr("{width} x {height} pixels", width=count(size.width()), height=count(size.height()))

    def write(self, path: Path) -> None:
        QApplication.setOverrideCursor(Qt.CursorShape.WaitCursor)
        try:
            save(self.context.document, path, self.look())
        except DiagnosticError as error:
            self.failed(error.diagnostics)
        else:
            self.written(tr("Image written to {path}", path=path))
        finally:
            QApplication.restoreOverrideCursor()


def _choice(*choices: tuple[str, object]) -> QComboBox:
    """A combo box of titles and their values."""
    box = QComboBox()
    for title, value in choices:
        box.addItem(title, value)
    return box
