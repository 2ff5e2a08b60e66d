"""One input layer: the image that feeds it, its size, and the ways to choose another."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QIcon, QImage, QPalette, QPixmap
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QGridLayout,
    QInputDialog,
    QLabel,
    QMenu,
    QPushButton,
    QToolButton,
    QWidget,
)

from app.ui.analysis.image_input import ask_input
from app.ui.analysis.transport import Transport
from app.ui.engine.inputs import (
    THUMBNAIL,
    cameras,
    image_of,
    pattern_thumbnail,
    photographs,
    title_of,
)
from app.ui.engine.playback import Playback, Track
from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.tooltips import plain_tip
from designer.files.settings import CAMERA, PATTERN
from designer.runtime.images import TENSORS
from designer.runtime.patterns import PATTERNS
from designer.runtime.sources import INPUTS, is_deep
from designer.texts import tr
from designer.units import dims_text


class InputRow(QFrame):
    """Thumbnail, name, file and size of an input, and the controls of its frames; a file can be dropped on it."""

    chosen = Signal(str, Path)  # layer, file

    def __init__(self, layer: str, playback: Playback, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"analysis.input.{layer}")
        self.setAccessibleName(tr("Image for {layer}", layer=layer))
        self.setAcceptDrops(True)
        self.layer = layer
        self._playback = playback
        self._path: Path | None = None
        self._drawn: Track | None = None  # the track whose thumbnail is shown
        self._preview: Any = None
        self._opacity = False  # of the still image
        self._channels = 0  # of the tensor that was made of it; 0: not known yet
        self._picture = QLabel(tr("drop a\npicture"))
        self._picture.setFixedSize(THUMBNAIL)
        self._picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._picture.setFrameShape(QFrame.Shape.StyledPanel)
        self._picture.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._picture.setObjectName(f"analysis.input.{layer}.thumbnail")
        self._picture.setAccessibleName(tr("Thumbnail for {layer}", layer=layer))
        name = QLabel(layer)
        font = name.font()
        font.setBold(True)
        name.setFont(font)
        self._file = ElidedLabel()
        self._file.setObjectName(f"analysis.input.{layer}.file")
        self._size = ElidedLabel()
        self._size.setFont(theme.mono_font())
        self._size.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._size.setObjectName(f"analysis.input.{layer}.size")
        self._problem = QLabel()
        self._problem.setWordWrap(True)
        self._problem.setForegroundRole(QPalette.ColorRole.BrightText)  # the theme's color of errors
        self._problem.setObjectName(f"analysis.input.{layer}.problem")
        self._problem.setAccessibleName(tr("Problem of the image for {layer}", layer=layer))
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
        grid.addWidget(Transport(layer, playback), 5, 0, 1, 2)
        grid.setColumnStretch(1, 1)
        playback.changed.connect(self._on_track)
        playback.looked.connect(self._on_looked)

    def _buttons(self) -> FlowLayout:
        opening = QPushButton(tr("Open..."))
        opening.setObjectName(f"analysis.input.{self.layer}.open")
        opening.setAccessibleName(tr("Open an image for {layer}", layer=self.layer))
        opening.setToolTip(tr("Choose an image, a tensor or a video; a file or a folder can be dropped here too"))
        opening.clicked.connect(self._open)
        folder = self._tool("folder", "folder-outline", tr("Open a folder of images for {layer}", layer=self.layer))
        folder.clicked.connect(self._open_folder)
        camera = self._tool("camera", "camera-outline", tr("Take images of a camera for {layer}", layer=self.layer))
        camera.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        devices = QMenu(camera)
        devices.aboutToShow.connect(partial(self._list_cameras, devices))
        camera.setMenu(devices)
        samples = QToolButton()
        samples.setText(tr("Samples"))
        samples.setObjectName(f"analysis.input.{self.layer}.photographs")
        samples.setAccessibleName(tr("Sample images for {layer}", layer=self.layer))
        samples.setToolTip(
            tr("Photographs that come with the program, and test patterns at the size of the input's dims")
        )
        samples.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(samples)
        for path in photographs():
            menu.addAction(path.stem.replace("_", " "), partial(self.chosen.emit, self.layer, path))
        menu.addSeparator()
        for name in PATTERNS:
            path = Path(f"{PATTERN}{name}")
            icon = QIcon(QPixmap.fromImage(pattern_thumbnail(name)))
            menu.addAction(icon, title_of(path), partial(self.chosen.emit, self.layer, path))
        samples.setMenu(menu)
        row = FlowLayout(spacing=4)
        for widget in (opening, folder, camera, samples):
            row.addWidget(widget)
        return row

    def _tool(self, name: str, icon: str, title: str) -> QToolButton:
        button = QToolButton()
        button.setObjectName(f"analysis.input.{self.layer}.{name}")
        button.setAccessibleName(title)
        button.setToolTip(plain_tip(title))
        theme.set_icon(button, icon)
        return button

    def _list_cameras(self, menu: QMenu) -> None:
        menu.clear()
        names = cameras()
        for name in names:
            path = Path(f"{CAMERA}{name}")
            menu.addAction(title_of(path), partial(self.chosen.emit, self.layer, path))
        if not names:
            menu.addAction(tr("The system shows no camera")).setEnabled(False)
        menu.addSeparator()
        menu.addAction(tr("Another number..."), self._ask_camera)

    def _ask_camera(self) -> None:
        number, sure = QInputDialog.getInt(self, tr("Camera"), tr("Number of the camera; 0 is the first"), 0, 0, 99)
        if sure:
            self.chosen.emit(self.layer, Path(f"{CAMERA}{number}"))

    def show_fed(self, shape: tuple[int, ...]) -> None:
        """Show the shape of the tensor that was made of the file."""
        self._size.setToolTip(tr("fed as {size}", size=dims_text(shape)))
        self._channels = shape[1] if len(shape) == 4 else 0
        self._show_opacity()

    def show_file(self, path: Path | None, problem: str) -> None:
        """Show the chosen file, and what is wrong with it."""
        if path != self._path or path is None:
            self._path = path
            track = self._playback.tracks.get(self.layer)
            if track is not None:
                self._show_track(track)
            else:
                self._show_still(path)
            self._file.setText(title_of(path) if path is not None else "")
            self._file.setToolTip(str(path or ""))
            self._size.setToolTip("")
        track = self._playback.tracks.get(self.layer)
        self._problem.setText(problem or (track.error if track is not None else ""))
        self._problem.setVisible(bool(self._problem.text()))

    def _show_still(self, path: Path | None) -> None:
        """An image: the engine's process decodes it, and the one before stays until it is there."""
        if path is None:
            self._show_read(None, None, tr("no image chosen"))
        elif str(path).startswith(PATTERN):
            name = str(path).removeprefix(PATTERN)
            if name in PATTERNS:
                self._show_read(path, pattern_thumbnail(name), tr("at the size of dims"))
            else:
                self._show_read(path, None, tr("no such pattern"))
        elif TENSORS.reads(path):
            self._show_read(path, None, "tensor")
        else:
            self._playback.look(self.layer, path)

    def _show_read(self, path: Path | None, image: QImage | None, size: str, opacity: bool = False) -> None:
        self._show_picture(image, path)
        self._size.setText(size)
        self._opacity = opacity
        self._show_opacity()

    def _show_opacity(self) -> None:
        """Only an input of four channels reads the opacity of an image."""
        dropped = tr(" · opacity is not used")
        text = self._size.text().removesuffix(dropped)
        self._size.setText(text + dropped if self._opacity and self._channels in (1, 3) else text)

    def _on_track(self, layer: str) -> None:
        if layer != self.layer:
            return
        track = self._playback.tracks.get(layer)
        if track is not None:
            self._show_track(track)
        elif self._path is not None and layer in self._playback.ranges:
            self._show_range(*self._playback.ranges[layer])

    def _show_track(self, track: Track) -> None:
        """What moves: its first frame as a thumbnail, its size and rate."""
        if track.error and not self._problem.text():
            self._problem.setText(track.error)
            self._problem.show()
        if track is self._drawn and track.preview is self._preview:
            return
        self._drawn, self._preview, self._opacity = track, track.preview, False
        image = image_of(track.preview)
        if image is None and track.kind == "folder" and track.names:
            self._playback.look(self.layer, track.path / track.names[track.position])
        self._show_picture(image, track.path)
        if track.kind == "folder":
            self._size.setText(tr("{count} images", count=len(track.names)))
        elif track.width:
            rate = tr("{fps:.4g} fps", fps=track.fps)
            uneven = tr(", uneven") if track.times else ""
            self._size.setText(f"{track.width} x {track.height} · {rate}{uneven} · {track.codec}")
        else:
            self._size.setText(tr("live images") if track.kind == "camera" else "")

    def _on_looked(self, layer: str, path: Path, found: Any) -> None:
        if layer != self.layer:
            return
        if path == self._path:
            self._show_read(path, image_of(found[0]), found[1], found[2])
        elif self._drawn is not None and path.parent == self._drawn.path and self._drawn.preview is None:
            self._show_picture(image_of(found[0]), path)

    def _show_range(self, low: float, high: float) -> None:
        """Values outside of 0..1 are computed with, and the image cannot show them: say so."""
        size = self._size.text().partition(" · ")[0]
        if low < 0 or high > 1:
            size = tr("{size} · values {low:.3g} … {high:.3g}, drawn within 0 … 1", size=size, low=low, high=high)
        self._size.setText(size)
        self._show_opacity()

    def _show_picture(self, image: QImage | None, path: Path | None) -> None:
        if image is None:
            kind = path.suffix[1:] if path is not None and is_deep(path) else ""
            self._picture.setText(kind or (tr("camera") if _is_camera(path) else tr("drop a\npicture")))
            return
        ratio = self.devicePixelRatioF()
        size = THUMBNAIL * ratio
        mode = Qt.TransformationMode.SmoothTransformation
        scaled = image.scaled(size, Qt.AspectRatioMode.KeepAspectRatio, mode)
        pixmap = QPixmap.fromImage(scaled)
        pixmap.setDevicePixelRatio(ratio)
        self._picture.setPixmap(pixmap)

    def _open(self) -> None:
        path = ask_input(self, self.layer, self._path)
        if path is not None:
            self.chosen.emit(self.layer, path)

    def _open_folder(self) -> None:
        drawn = str(self._path).startswith((PATTERN, CAMERA))
        start = str(self._path.parent) if self._path is not None and not drawn else ""
        name = QFileDialog.getExistingDirectory(self, tr("Folder of images for {layer}", layer=self.layer), start)
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


def _is_camera(path: Path | None) -> bool:
    return path is not None and str(path).startswith(CAMERA)


def dropped_file(data: QMimeData) -> Path | None:
    """The first file or folder of a drag that can feed an input."""
    paths = (Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile())
    return next((path for path in paths if INPUTS.reads(path) or path.is_dir()), None)
