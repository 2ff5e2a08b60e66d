"""The input image next to the channels, with the probed pixel and its receptive field."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.ui.engine.receptive_field import ReceptiveField
from app.ui.engine.result import Array
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.image_view import ImageView
from app.ui.widgets.overlays import BoxOverlay, CrossOverlay, Overlay
from app.ui.widgets.render import as_channels, picture_pixels, to_image
from designer.texts import tr


class InputPane(QWidget):
    """`probed` carries the pixel under the cursor and `pinned` the one that was clicked, both with the image's size."""

    probed = Signal(object)  # ((x, y), (width, height)), or None
    pinned = Signal(object)

    def __init__(self, field: ReceptiveField, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._field = field
        self._array: Array | None = None
        self._item = 0  # of its batch
        self._marks: list[Overlay] = []
        self._place: Any = None
        self.title = ElidedLabel()
        self.title.setObjectName("channel_inspector.input_title")
        self.view = ImageView("channel_inspector.input", tr("Input"), tr("Launch Analysis to see the input image."))
        self.view.probed.connect(self._probe)
        self.view.clicked.connect(lambda: self.pinned.emit(self._located(self._place)))
        self.view.right_clicked.connect(lambda pixel: self.pinned.emit(self._located(pixel)))
        self.words = ElidedLabel()
        self.words.setObjectName("channel_inspector.field")
        self.words.setAccessibleName(tr("Receptive field"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        for widget in (self.title, self.view, self.words):
            column.addWidget(widget, int(widget is self.view))
        assert isinstance(self.title, QLabel)
        field.changed.connect(self._show_field)

    @property
    def size_of_picture(self) -> tuple[int, int] | None:
        image = self.view.image
        return (image.width(), image.height()) if image is not None else None

    def show_input(self, layer: str, array: Array | None, item: int = 0) -> None:
        """The tensor of an input layer, as an image."""
        self.title.setText(layer)
        if array is self._array and item == self._item and array is not None:
            return
        self._array, self._item = array, item
        channels = as_channels(array, item) if array is not None else None
        self.view.show_image(to_image(picture_pixels(channels)) if channels is not None else None)

    def mark(self, pin: tuple[int, int] | None, hover: tuple[int, int] | None) -> None:
        """Pixels of the image: the pinned one, and the one under the cursor elsewhere."""
        self._marks = []
        if hover is not None and hover != pin:
            self._marks.append(CrossOverlay(*hover, role="muted"))
        if pin is not None:
            self._marks.append(CrossOverlay(*pin))
        self._show_field()

    def _show_field(self) -> None:
        marks = list(self._marks)
        if self._field.box is not None:
            marks.insert(0, BoxOverlay(*self._field.box))
        self.view.set_overlays(marks)
        self.words.setText(self._field.text)

    def _located(self, place: Any) -> Any:
        return (place, self.size_of_picture) if place is not None and self.size_of_picture is not None else None

    def _probe(self, place: Any) -> None:
        self._place = place
        self.probed.emit(self._located(place))
