"""The result of one output layer: the image, the value under the cursor, zoom, and the split line of a Mix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.ui.analysis.display import DisplayBar, DisplayMode, out_of_range
from app.ui.engine.pinned_pixel import Spot
from app.ui.engine.pixel_positions import scaled
from app.ui.engine.result import Array
from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.export_button import ExportButton
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.file_output import VIEWS, ask_path, write_in_thread
from app.ui.widgets.image_view import ImageView, SplitMode
from app.ui.widgets.overlays import CrossOverlay
from app.ui.widgets.render import Floats, are_probabilities, as_channels, classes, to_image
from designer.files.formats import FormatTable
from designer.graph.types import Size3D
from designer.runtime.images import TENSORS
from designer.runtime.provenance import Provenance
from designer.texts import mark, tr, tr_data
from designer.units import numbers, percent

NEGATIVE = 0.25  # share of the values from which a recipe's result is shown as signed
EMPTY = mark("Launch Analysis to see the output of the network.")


class OutputView(QWidget):
    """`analysis_view` of the output layer decides: "image" clips to 0..1, "tensor" shows signs, other ranks are bars."""

    split_moved = Signal(float)
    split_released = Signal()

    def __init__(self, layer: str, origin: Callable[[], Provenance], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.layer = layer
        self._origin = origin
        name = f"analysis.output.{layer}"
        self.setObjectName(name)
        self.setAccessibleName(tr("Output {layer}", layer=layer))
        self._array: Array | None = None
        self._mode = DisplayMode.IMAGE  # of the output layer
        self._offset = (0, 0)
        self._size: tuple[int, int] | None = None  # width and height of the whole tensor
        self._spot: Spot | None = None
        self.view = ImageView(f"{name}.picture", tr("Image of {layer}", layer=layer), tr_data(EMPTY))
        self.features = FeatureView(f"{name}.values", tr("Values of {layer}", layer=layer))
        self._stack = QStackedWidget()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.features)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._menu)
        self._place: tuple[int, int] | None = None
        self._split = (SplitMode.NONE, 0.5)  # of the whole tensor
        self._build(name)
        self.view.zoom_changed.connect(self._show_zoom)
        self.view.probed.connect(self._show_probe)
        self.view.split_moved.connect(lambda amount: self.split_moved.emit(self._amount_of_tensor(amount)))
        self.view.split_released.connect(self.split_released)

    def _build(self, name: str) -> None:
        self._probe = _label(f"{name}.probe", tr("Value under the cursor"), elided=True)
        self._zoom = _label(f"{name}.zoom", tr("Zoom"))
        bar = QHBoxLayout()
        bar.setContentsMargins(0, 0, 0, 0)
        fit = _button(f"{name}.fit", tr("Fit"), tr("Show the whole image (Ctrl+0)"), self.view.fit)
        one = _button(f"{name}.one", "1:1", tr("One image pixel per screen pixel (Ctrl+1)"), self.view.one_to_one)
        self._zooms = (fit, one)
        for button in self._zooms:
            button.setEnabled(False)
            bar.addWidget(button)
        bar.addWidget(self._zoom)
        self.display_bar = DisplayBar(name)
        self.display_bar.changed.connect(self._draw)
        self.display_bar.hide()
        bar.addSpacing(16)  # "111 %" and "< 0: 0.02 %" would be read as one
        self._range = _label(f"{name}.range", tr("How to read the image"), elided=True)
        self._range.setToolTip(
            tr(
                "Shares of the values below 0 and above 1, which an image cannot show; the meaning of colors; channels shown"
            )
        )
        bar.addWidget(self._range, 1)
        self._adjust = _button(f"{name}.adjust", "", tr("Signed view, exposure, gamma, values out of range"), None)
        theme.set_icon(self._adjust, "tune-variant")
        self._adjust.setCheckable(True)
        self._adjust.toggled.connect(self.display_bar.setVisible)
        bar.addWidget(self._adjust)
        self.export = ExportButton(name)
        self.export.requested.connect(self._export)
        bar.addWidget(self.export)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self._quality = _label(f"{name}.quality", tr("PSNR and SSIM"), elided=True)
        self._quality.setToolTip(
            tr(
                "What an export would output (a Mix hands on its first input) against the image before the first Noise "
                "layer, values clipped to 0..1"
            )
        )
        self._quality.hide()
        column.addWidget(self._stack, 1)
        column.addWidget(self._quality)
        column.addWidget(self._probe)  # a line of its own: the values of a pixel are wide
        column.addLayout(bar)
        column.addWidget(self.display_bar)

    @property
    def probe_text(self) -> str:
        return self._probe.text()

    def show_array(
        self, array: Array | None, operator: object = None, note: str = "", *, of_recipe: bool = False
    ) -> None:
        """Show a result, N x C x H x W or of another rank, as its output layer's operator says; None clears.

        Of a batch the first item is shown, and a note says so.
        The result of a recipe is shown as signed if many of its values are negative: `alpha * (a-b)` is black as an image.
        """
        kind = getattr(operator, "analysis_view", "image")
        self._size = (array.shape[3], array.shape[2]) if array is not None and array.ndim == 4 else None
        note = "; ".join(filter(None, (_item_of_batch(array, kind), note)))
        array, self._offset = shown_part(array, operator)
        self._array = array
        self._place_split()
        self._mode = DisplayMode.MAP if kind == "tensor" else DisplayMode.IMAGE
        self.export.setEnabled(array is not None)
        self.view.set_note(note)
        self.features.set_note(note)
        channels = as_channels(array) if array is not None else None
        values = array is not None and (channels is None or kind == "labels")
        for button in self._zooms:
            button.setEnabled(array is not None and not values)
        for control in (self._adjust, self.display_bar):  # they can also be set before the first result
            control.setEnabled(not values)
        if array is None:
            self._stack.setCurrentWidget(self.view)
            self.view.show_image(None)
            self._probe.setText("")
            self._range.setText("")
            return
        if channels is None or kind == "labels":
            self.features.show_values(array)
            self.view.show_image(None)  # the zoom of an image that is not shown would remain
            self._stack.setCurrentWidget(self.features)
            self._range.setText("")
            return
        self._stack.setCurrentWidget(self.view)
        if of_recipe and self._mode is DisplayMode.IMAGE and out_of_range(channels)[0] > NEGATIVE:
            self._mode = DisplayMode.SIGNED
        elif self._mode is DisplayMode.IMAGE and are_probabilities(channels):
            self._mode = DisplayMode.CLASSES
        self._draw()
        self.mark(self._spot)

    def _draw(self) -> None:
        """Color the result as the display bar says."""
        channels = as_channels(self._array) if self._array is not None else None
        if channels is None or self._stack.currentWidget() is not self.view:
            return
        display = self.display_bar.display
        self.view.show_image(to_image(display.pixels(channels, self._mode)))
        mode = display.mode or self._mode
        self._range.setText(_legend(channels, mode))
        if self._place is not None:
            self._show_probe(self._place)

    def display_like(self, other: OutputView) -> None:
        """Take over how another view displays its output."""
        self.display_bar.show_display(other.display_bar.display)
        self._adjust.setChecked(other._adjust.isChecked())

    def show_quality(self, text: str, current: bool) -> None:
        """PSNR and SSIM as a sentence; grayed while it is about an earlier result, hidden when it is empty."""
        self._quality.setText(text)
        self._quality.setEnabled(current)
        self._quality.setVisible(bool(text))

    def mark(self, spot: Spot | None) -> None:
        """Mark the pixel that is at the place of a pixel of another tensor; None takes the mark away."""
        self._spot = spot
        if spot is None or self._size is None or self._array is None:
            self.view.set_overlays(())
            return
        x, y = scaled(*spot, self._size)
        x, y = x - self._offset[0], y - self._offset[1]
        height, width = self._array.shape[2:]
        inside = 0 <= x < width and 0 <= y < height  # the output layer may show a part of the tensor only
        self.view.set_overlays((CrossOverlay(x, y),) if inside else ())

    def _menu(self, place: QPoint) -> None:
        menu = self.export.menu()
        if menu is not None and self._array is not None:
            menu.popup(self.view.mapToGlobal(place))

    def _export(self, way: str) -> None:
        """The image as it is seen, pixel for pixel, or the numbers behind it."""
        array = self._array
        if array is None:
            return
        shown = self._stack.currentWidget()
        image = self.view.image if shown is self.view else None
        picture = image if image is not None else shown.grab().toImage()
        if way == "copy":
            QGuiApplication.clipboard().setImage(picture.copy())  # the array under it goes with the next result
            self._probe.setText(tr("The image is on the clipboard."))
            return
        table: FormatTable[Any, Any] = TENSORS if way == "tensor" else VIEWS
        path = ask_path(self, tr("Save"), f"{self.layer}{table.write_suffixes[0]}", table)
        if path is not None:
            content = (array,) if way == "tensor" else (picture, self._origin().comment())
            self._probe.setText(tr("Writing …"))
            write_in_thread(
                self,
                lambda: table.writer(path)(path, *content),
                lambda _well, text: self._probe.setText(text),
                tr("Saved {name}", name=path.name),
            )

    def set_dimmed(self, dimmed: bool) -> None:
        self.view.set_dimmed(dimmed)

    def set_split(self, split: SplitMode, amount: float) -> None:
        """Draw a line at a share of the tensor's width or height; at the border of the image if it is beyond the part that is shown."""
        self._split = (split, amount)
        self._place_split()

    def _place_split(self) -> None:
        split, amount = self._split
        whole, start, length = self._extent()
        self.view.set_split(split, min(max((amount * whole - start) / length, 0.0), 1.0))

    def _amount_of_tensor(self, amount: float) -> float:
        """The share of the tensor that is a share of the part that is shown."""
        whole, start, length = self._extent()
        return (start + amount * length) / whole

    def _extent(self) -> tuple[int, int, int]:
        """Pixels of the tensor across the split line, and where the part begins that is shown, and its pixels."""
        if self._size is None or self._array is None:
            return 1, 0, 1
        axis = 1 if self._split[0] is SplitMode.HORIZONTAL else 0
        return self._size[axis], self._offset[axis], self._array.shape[3 - axis]

    def set_empty_text(self, text: str) -> None:
        self.view.set_empty_text(text or tr_data(EMPTY))

    def _show_zoom(self, zoom: float) -> None:
        self._zoom.setText(f"{zoom * 100:.0f} %" if self.view.image is not None else "")

    def _show_probe(self, place: Any) -> None:
        self._place = place
        channels = as_channels(self._array) if self._array is not None else None
        if place is None or channels is None or place[1] >= channels.shape[1] or place[0] >= channels.shape[2]:
            self._probe.setText("")
            return
        x, y = place
        at = f"x {x + self._offset[0]}  y {y + self._offset[1]}"
        if (self.display_bar.display.mode or self._mode) is DisplayMode.CLASSES:
            found = int(classes(channels[:, y : y + 1, x : x + 1])[0, 0])
            value = float(channels[min(found, len(channels) - 1), y, x])
            self._probe.setText(f"{at}   {tr('class {number}', number=found)}: {numbers([value])[0]}")
            return
        values = channels[:4, y, x]
        names = "RGBA" if 3 <= channels.shape[0] <= 4 else ""
        texts = [f"{names[i]} {text}" if names else text for i, text in enumerate(numbers([float(v) for v in values]))]
        more = " …" if channels.shape[0] > 4 else ""
        self._probe.setText(f"{at}   {'  '.join(texts)}{more}")


def _legend(channels: Floats, mode: DisplayMode) -> str:
    """What one has to know to read the image of C x H x W: shares out of range, the meaning of colors, channels left out."""
    count = len(channels)
    if mode is DisplayMode.CLASSES:
        return tr("the largest of {count} classes", count=max(count, 2))
    texts = [tr("0 is mid-gray")] if mode is DisplayMode.SIGNED else []
    if mode is DisplayMode.IMAGE:
        shares = zip(("< 0", "> 1"), out_of_range(channels), strict=True)
        texts = [f"{sign}: {percent(share)}" for sign, share in shares if share]
    if count > 1 and (mode is DisplayMode.MAP or count < 3):
        texts.append(tr("channel 0 of {count}", count=count))
    elif count > 4:
        texts.append(tr("channels 0 to 2 of {count}", count=count))
    return "   ".join(texts)


def _item_of_batch(array: Array | None, kind: str) -> str:
    """Which part of a batch is shown: its first item. N x T x F is shown as N channels."""
    if array is None or array.ndim < 2 or len(array) < 2 or (array.ndim == 3 and kind != "labels"):
        return ""
    return tr("item {item} of {count}", item=0, count=len(array))


def shown_part(array: Array | None, operator: object) -> tuple[Array | None, tuple[int, int]]:
    """What the output layer's width, height, channels and offset leave of an image, and the x and y it begins at."""
    offset = getattr(operator, "offset", None)
    if array is None or array.ndim != 4 or not isinstance(offset, Size3D):
        return array, (0, 0)
    cuts, starts = [slice(None)], []
    for axis, name, first in (
        (1, "channels", offset.channels),
        (2, "height", offset.height),
        (3, "width", offset.width),
    ):
        start = min(first, array.shape[axis] - 1)
        length = int(getattr(operator, name, 0))
        cuts.append(slice(start, start + length if length else None))
        starts.append(start)
    return array[tuple(cuts)], (starts[2], starts[1])


def _label(name: str, title: str, *, elided: bool = False) -> QLabel:
    label = ElidedLabel() if elided else QLabel()
    label.setObjectName(name)
    label.setAccessibleName(title)
    label.setFont(theme.mono_font())
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _button(name: str, text: str, tip: str, action: Callable[[], None] | None) -> QToolButton:
    button = QToolButton()
    button.setObjectName(name)
    button.setAccessibleName(tip)
    button.setText(text)
    button.setToolTip(tip)
    button.setAutoRaise(True)
    if action is not None:
        button.clicked.connect(action)
    return button
