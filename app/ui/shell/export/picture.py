"""File > Export > Picture and File > Print to PDF: the network as PNG, SVG or PDF."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.picture import PICTURES, Look, Page, PictureFormat, drawn_area, pixels, save
from app.ui.document.locations import start_folder
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.file_dialogs import ask_save_path
from app.ui.widgets.findings import finding_text, without_icons
from app.ui.widgets.growing import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.texts import tr
from app.ui.widgets.typed_path import taken, typed_path
from designer.graph.diagnostics import DiagnosticError
from designer.units import count

MEASURING_MS = 50  # between two looks whether the canvas has measured all layers


class PictureDialog(GrowingDialog):
    """Asks for file, part, colours and size, and writes the picture of what `canvas` shows."""

    def __init__(self, context: Context, canvas: Canvas, ending: str = ".png", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context, self._projection, self._seen = context, canvas.projection, canvas.viewer.seen()
        self.setObjectName("picture")
        self.setAccessibleName(tr("Picture of the network"))
        self.setWindowTitle(tr("Print to PDF") if ending == ".pdf" else tr("Picture of the Network"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.file = QLineEdit(str(start_folder(context.root.path) / f"{context.document.graph.name}{ending}"))
        self.file.setMinimumWidth(380)
        self.part = QComboBox()
        self.part.addItem(tr("The whole network"), "all")
        if context.selection:
            self.part.addItem(tr("The selected layers"), "selection")
        self.part.addItem(tr("What the canvas shows now"), "seen")
        self.colours = QComboBox()
        self.colours.addItem(tr("Light, for paper"), False)
        self.colours.addItem(tr("Dark"), True)
        self.colours.setCurrentIndex(int(theme.is_dark() and ending != ".pdf"))
        self.scale = QDoubleSpinBox()
        self.scale.setRange(0.1, 16.0)
        self.scale.setSingleStep(0.5)
        self.scale.setDecimals(1)
        self.scale.setValue(2.0)
        self.scale.setSuffix(" ×")
        self.page = QComboBox()
        for title, page in (
            ("A4", "A4"),
            ("A3", "A3"),
            ("Letter", "Letter"),
            (tr("As large as the drawing"), "drawing"),
        ):
            self.page.addItem(title, page)
        self.transparent = QCheckBox(tr("&Transparent ground"))
        self.pixels = QLabel()
        self.message = Message("picture.message")
        self._form = QFormLayout()
        browse = QPushButton(tr("Browse..."))
        browse.setObjectName("picture.file.browse")
        browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.addWidget(self.file, 1)
        row.addWidget(browse)
        for name, title, field in (
            ("file", tr("&File"), self.file),
            ("part", tr("&What"), self.part),
            ("colours", tr("&Colours"), self.colours),
            ("scale", tr("&Size"), self.scale),
            ("page", tr("&Page"), self.page),
            ("transparent", "", self.transparent),
            ("size", "", self.pixels),
        ):
            field.setObjectName(f"picture.{name}")
            field.setAccessibleName(title.replace("&", ""))
            label = QLabel(title)
            label.setBuddy(field)
            self._form.addRow(label, row if field is self.file else field)
        self.transparent.setAccessibleName(tr("Transparent ground"))
        self.pixels.setAccessibleName(tr("Size of the picture"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.export = buttons.addButton(tr("&Export"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.export.setObjectName("picture.export")
        buttons.accepted.connect(self.write)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addLayout(self._form)
        box.addWidget(self.message)
        box.addWidget(buttons)
        self.export.setDefault(True)  # once it is in the dialog: before, Qt forgets it
        self._areas: dict[str, QRectF] = {}  # of the parts, once measured
        self._measuring = QTimer(self, singleShot=True, interval=MEASURING_MS, timeout=self._refresh)
        self.file.textChanged.connect(self._refresh)
        self.part.currentIndexChanged.connect(self._refresh)
        self.scale.valueChanged.connect(self._refresh)
        self._refresh()

    def look(self) -> Look:
        """What was chosen."""
        part = str(self.part.currentData())
        page: Page = self.page.currentData()
        return Look(
            dark=bool(self.colours.currentData()),
            transparent=self.transparent.isChecked(),
            scale=self.scale.value(),
            page=page,
            names=self._context.selection if part == "selection" else (),
            area=self._seen if part == "seen" else None,
        )

    def _path(self) -> Path:
        return typed_path(self.file.text())

    def _refresh(self) -> None:
        format = PICTURES.find(self._path())
        options = format.options if isinstance(format, PictureFormat) else ()
        for option, field in (("scale", self.scale), ("page", self.page), ("transparent", self.transparent)):
            self._form.setRowVisible(field, option in options)
        self.export.setEnabled(format is not None)
        if format is None:
            text = tr("The name must end with one of {suffixes}.", suffixes=", ".join(PICTURES.write_suffixes))
            self.message.tell(text, "warning")
        else:
            self.message.tell(
                tr("The file is there already; it will be replaced.") if taken(self._path()) else "", "info"
            )
        self.pixels.setText(self._size() if "scale" in options else tr("Drawn with lines: sharp at every size."))

    def _size(self) -> str:
        """How many pixels the picture would have. The canvas measures a large network a while after it was opened."""
        look, part = self.look(), str(self.part.currentData())
        if part not in self._areas:
            if look.area is None and not self._projection.measured:
                self._measuring.start()
                return tr("Measuring the network...")
            self._areas[part] = drawn_area(self._projection, look)
        size = pixels(self._areas[part], look)
        return tr("{width} x {height} pixels", width=count(size.width()), height=count(size.height()))

    def _browse(self) -> None:
        path = ask_save_path(self, self.windowTitle(), self.file.text(), PICTURES)
        if path is not None:
            self.file.setText(str(path))

    def write(self) -> None:
        """Write the picture; the dialog stays and says what came of it."""
        path = self._path()
        QApplication.setOverrideCursor(Qt.CursorShape.WaitCursor)
        try:
            save(self._context.document, path, self.look())
        except DiagnosticError as error:
            self.message.tell("\n".join(finding_text(d) for d in error.diagnostics))
            return
        finally:
            QApplication.restoreOverrideCursor()
        self.message.tell(tr("Written to {path}", path=path), "positive")
