"""One input layer: the picture that feeds it, its size, and the ways to choose another."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage, QPalette, QPixmap
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QToolButton,
    QWidget,
)

from app.ui import theme
from app.ui.analysis.elided import ElidedLabel
from app.ui.analysis.inputs import FILTER, THUMBNAIL, photographs, thumbnail, title_of
from designer.files.settings import PATTERN
from designer.runtime.patterns import PATTERNS


class InputRow(QFrame):
    """Thumbnail, name, file and size of an input; a file can be dropped on it."""

    chosen = Signal(str, Path)  # layer, file

    def __init__(self, layer: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"analysis.input.{layer}")
        self.setAccessibleName(f"Picture for {layer}")
        self.setAcceptDrops(True)
        self.layer = layer
        self._path: Path | None = None
        self._picture = QLabel("drop a\npicture")
        self._picture.setFixedSize(THUMBNAIL)
        self._picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._picture.setFrameShape(QFrame.Shape.StyledPanel)
        self._picture.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._picture.setObjectName(f"analysis.input.{layer}.thumbnail")
        self._picture.setAccessibleName(f"Thumbnail for {layer}")
        name = QLabel(f"<b>{layer}</b>")
        self._file = ElidedLabel()
        self._file.setObjectName(f"analysis.input.{layer}.file")
        self._size = QLabel()
        self._size.setFont(theme.mono_font())
        self._size.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._size.setObjectName(f"analysis.input.{layer}.size")
        self._problem = QLabel()
        self._problem.setWordWrap(True)
        self._problem.setForegroundRole(QPalette.ColorRole.BrightText)  # the theme's colour of errors
        self._problem.setObjectName(f"analysis.input.{layer}.problem")
        self._problem.setAccessibleName(f"Problem of the picture for {layer}")
        self._problem.hide()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        grid.addWidget(self._picture, 0, 0, 4, 1, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(name, 0, 1)
        grid.addWidget(self._file, 1, 1)
        grid.addWidget(self._size, 2, 1)
        grid.addLayout(self._buttons(), 3, 1)
        grid.addWidget(self._problem, 4, 0, 1, 2)
        grid.setColumnStretch(1, 1)

    def _buttons(self) -> QHBoxLayout:
        opening = QPushButton("Open…")
        opening.setObjectName(f"analysis.input.{self.layer}.open")
        opening.setAccessibleName(f"Open a picture for {self.layer}")
        opening.setToolTip("Choose a JPG, PNG, TIFF, WebP or npy file; a file can be dropped here too")
        opening.clicked.connect(self._open)
        samples = QToolButton()
        samples.setText("Samples")
        samples.setObjectName(f"analysis.input.{self.layer}.photographs")
        samples.setAccessibleName(f"Sample pictures for {self.layer}")
        samples.setToolTip("Photographs that come with the program, and test patterns at the size of the input's dims")
        samples.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(samples)
        for path in photographs():
            menu.addAction(path.stem.replace("_", " "), partial(self.chosen.emit, self.layer, path))
        menu.addSeparator()
        for name in PATTERNS:
            path = Path(f"{PATTERN}{name}")
            menu.addAction(title_of(path), partial(self.chosen.emit, self.layer, path))
        samples.setMenu(menu)
        row = QHBoxLayout()
        row.addWidget(opening)
        row.addWidget(samples)
        row.addStretch(1)
        return row

    def show_file(self, path: Path | None, problem: str, fed: tuple[int, ...] = ()) -> None:
        """Show the chosen file, what is wrong with it, and the tensor that was made of it."""
        if path != self._path or path is None:
            self._path = path
            image, size = thumbnail(path) if path is not None else (None, "no picture chosen")
            self._show_picture(image, path)
            self._file.setText(title_of(path) if path is not None else "")
            self._file.setToolTip(str(path or ""))
            self._size.setText(size)
        if fed:
            self._size.setToolTip(f"fed as {' x '.join(map(str, fed))}")
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))

    def _show_picture(self, image: QImage | None, path: Path | None) -> None:
        if image is None:
            self._picture.setText("npy" if path is not None and path.suffix == ".npy" else "drop a\npicture")
            return
        ratio = self.devicePixelRatioF()
        size = THUMBNAIL * ratio
        mode = Qt.TransformationMode.SmoothTransformation
        scaled = image.scaled(size, Qt.AspectRatioMode.KeepAspectRatio, mode)
        pixmap = QPixmap.fromImage(scaled)
        pixmap.setDevicePixelRatio(ratio)
        self._picture.setPixmap(pixmap)

    def _open(self) -> None:
        drawn = str(self._path).startswith(PATTERN)
        folder = str(self._path.parent) if self._path is not None and not drawn else ""
        name, _ = QFileDialog.getOpenFileName(self, f"Picture for {self.layer}", folder, FILTER)
        if name:
            self.chosen.emit(self.layer, Path(name))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_file(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = dropped_file(event.mimeData())
        if path is not None:
            event.acceptProposedAction()
            self.chosen.emit(self.layer, path)


def dropped_file(data: QMimeData) -> Path | None:
    """The first local file of a drag."""
    for url in data.urls():
        if url.isLocalFile():
            return Path(url.toLocalFile())
    return None
