"""The images of a comparison: next to each other, split, taking turns, or their differences."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from PySide6.QtCore import QRectF, QTimer, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.reports.comparison import CROP, ImageArray
from app.ui.compare.difference_images import DifferenceImages, DifferenceRequest
from app.ui.compare.grid import PictureGrid
from app.ui.compare.model import CLEAN, INPUT, SideModel
from app.ui.compare.sectors import SectorView
from app.ui.widgets.image_view import ImageView, Viewport
from app.ui.widgets.overlays import BoxOverlay, CrossOverlay, LabelOverlay, Overlay
from app.ui.widgets.render import Pixels, to_image
from designer.texts import tr

REGION_SHARE = 3  # a region that is jumped to has this many times its side around it


class ViewMode(StrEnum):
    """How the images are put together."""

    GRID = "grid"
    SPLIT = "split"
    TURNS = "turns"
    DIFFERENCE = "difference"


class Pictures(QWidget):
    """Shows the images of a model. What is looked at is kept when the mode or the images change."""

    probed = Signal(object)  # (x, y) or None
    zoom_changed = Signal(float)
    turned = Signal(str)  # the key of the image that is shown alone

    def __init__(self, model: SideModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side.pictures")
        self.setAccessibleName(tr("Images"))
        self._model = model
        self.mode = ViewMode.GRID
        self.with_input = True
        self.with_clean = True
        self.gain = 8.0
        self.signed = False
        self.against = ""  # a key; empty: what the figures are measured against
        self.pair = ("A", "B")
        self.alone = "A"
        self.region: tuple[int, int] | None = None  # left and top of the marked square
        self.region_label = ""
        self._place: tuple[int, int] | None = None
        self.differences = DifferenceImages(self)
        self.differences.changed.connect(self.refresh)
        self._drawn: dict[str, tuple[ImageArray, Pixels, QImage]] = {}  # what was drawn, from which array
        self._view = Viewport()
        empty = tr("Press Compare to run the variants.")
        self.grid = PictureGrid("side.grid", empty)
        self.split = SectorView("side.split", tr("Split image"), empty)
        self.single = ImageView("side.single", tr("Images in turns"), empty)
        self._stack = QStackedWidget()
        for widget in (self.grid, self.split, self.single):
            self._stack.addWidget(widget)
            widget.view_changed.connect(self._on_view)
            widget.zoom_changed.connect(self._on_zoom)
            widget.probed.connect(self._on_probed)
        self.split.sectors_changed.connect(self._mark)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._stack)
        self._turns = QTimer(self, interval=500, timeout=self.swap)
        model.started.connect(self._on_started)
        model.pictures_changed.connect(self.refresh)
        model.status_changed.connect(lambda _index: self._mark())

    # --- what is shown -----------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """The images of the present mode that could be shown, in order."""
        model = self._model
        if self.mode is ViewMode.GRID:
            around = [INPUT] * self.with_input + [CLEAN] * (self.with_clean and model.knows_clean)
            return [*around, *model.keys]
        if self.mode is ViewMode.TURNS:
            return [self.alone]
        if self.mode is ViewMode.DIFFERENCE:
            return [k for k in model.keys if k != self.difference_to()] or model.keys
        return model.keys

    def difference_to(self) -> str:
        """The key of the image that is taken away in differences."""
        return self.against if self.against and self._model.pixels(self.against) is not None else self._model.reference

    def set_mode(self, mode: ViewMode) -> None:
        self.mode = mode
        if mode is not ViewMode.TURNS:
            self._turns.stop()
        self.refresh()

    def refresh(self) -> None:
        """Show what the model has."""
        keys = self.keys()
        if self.mode is ViewMode.SPLIT:
            there = [k for k in keys if self._model.pixels(k) is not None]
            self.split.show_pictures([self._pixels(k) for k in there], [self._model.title(k) for k in there])
            self.split.follow(self._view)
            self._stack.setCurrentWidget(self.split)
        elif self.mode is ViewMode.TURNS:
            self._show_alone()
            self._stack.setCurrentWidget(self.single)
        else:
            self.grid.show_keys(keys, {k: self._model.title(k) for k in keys})
            self.grid.follow(self._view)
            self._stack.setCurrentWidget(self.grid)
        self._mark()

    def show_alone(self, key: str) -> None:
        """One image in the whole room."""
        self.alone = key
        self.turned.emit(key)
        if self.mode is ViewMode.TURNS:
            self._show_alone()
            self._mark()

    def swap(self) -> None:
        """The other one of the pair."""
        first, second = self.pair
        self.show_alone(second if self.alone == first else first)

    def set_turning(self, interval: int) -> None:
        """Take turns by itself every `interval` ms; 0 stops."""
        if interval:
            self._turns.setInterval(interval)
            self._turns.start()
        else:
            self._turns.stop()

    @property
    def turning(self) -> bool:
        return self._turns.isActive()

    def shown_view(self) -> ImageView | None:
        """The image that zoom and fit are asked of."""
        if self.mode is ViewMode.SPLIT:
            return self.split
        return self.single if self.mode is ViewMode.TURNS else self.grid.first()

    def mark_region(self, corner: Any, label: str) -> None:
        """Draw a square of the worst region (left, top), and bring it into the middle; None takes it away."""
        self.region, self.region_label = corner, label
        view = self.shown_view()
        if corner is not None and view is not None:
            side = CROP * REGION_SHARE
            middle = CROP / 2
            view.look_at(QRectF(corner[0] + middle - side / 2, corner[1] + middle - side / 2, side, side))
        self._mark()

    def _show_alone(self) -> None:
        there = self._model.pixels(self.alone) is not None
        self.single.set_empty_text("" if there else self._model.waits(self.alone))
        self.single.show_image(self._image(self.alone) if there else None)
        self.single.follow(self._view)

    def _mark(self) -> None:
        """Titles, the marked region and the pointer, on every image."""
        given = self._model.pixels(INPUT)
        size = (given.shape[3], given.shape[2]) if given is not None else (0, 0)
        whole = (0, 0, *size)
        common: list[Overlay] = []
        if self.region is not None:
            left, top = self.region
            right, bottom = min(left + CROP, size[0]), min(top + CROP, size[1])
            common.append(BoxOverlay(left, top, right, bottom, self.region_label, "warning"))
        if self._stack.currentWidget() is self.grid:
            cross = [CrossOverlay(*self._place)] if self._place is not None else []
            for key in self.grid.panes:
                there = self._model.pixels(key) is not None
                image = self._image(key) if there else None
                made = "" if image is not None else self._why_none(key)
                self.grid.panes[key].set_empty_text(made if there else self._model.waits(key))
                label = LabelOverlay(self._caption(key), whole)
                self.grid.show_image(key, image, [*common, *cross, label] if there else [])
            self.grid.follow(self._view)
        elif self._stack.currentWidget() is self.split:
            self.split.set_overlays([*common, *self.split.labels()])
        else:
            self.single.set_overlays([*common, LabelOverlay(self._model.title(self.alone), whole)])

    def _why_none(self, key: str) -> str:
        return self.differences.problem(key) or tr("The difference is being made …")

    def _caption(self, key: str) -> str:
        title = self._model.title(key)
        if self.mode is not ViewMode.DIFFERENCE:
            return title
        minus = "-" if self.signed else tr("to")
        return f"{title} {minus} {self._model.title(self.difference_to())}  x {self.gain:g}"

    def _pixels(self, key: str) -> Pixels:
        return self._draw(key)[1]

    def _image(self, key: str) -> QImage | None:
        if self.mode is not ViewMode.DIFFERENCE:
            return self._draw(key)[2]
        mine, other = self._model.pixels(key), self._model.pixels(self.difference_to())
        assert mine is not None
        assert other is not None
        return self.differences.image(key, DifferenceRequest(mine, other, self.gain, self.signed))

    def _draw(self, key: str) -> tuple[ImageArray, Pixels, QImage]:
        """The image in colors; those that did not change are not made again."""
        picture = self._model.pixels(key)
        assert picture is not None
        found = self._drawn.get(key)
        if found is None or found[0] is not picture:
            pixels = self._model.colours[key]
            found = self._drawn[key] = (picture, pixels, to_image(pixels))
        return found

    # --- what comes back ---------------------------------------------------------------------------------------

    def _on_started(self) -> None:
        self.region = None
        self._drawn.clear()
        self.differences.clear()

    def _on_view(self, view: Viewport) -> None:
        self._view = view

    def _on_zoom(self, _zoom: float) -> None:
        view = self.shown_view()
        if view is not None and view.image is not None:
            self.zoom_changed.emit(view.zoom)

    def _on_probed(self, place: Any) -> None:
        self._place = place
        self._mark()
        self.probed.emit(place)


def values_at(model: SideModel, key: str, place: tuple[int, int] | None) -> Sequence[float]:
    """The values of an image's pixel; none where it has no such pixel."""
    picture = model.pixels(key)
    if place is None or picture is None or place[1] >= picture.shape[2] or place[0] >= picture.shape[3]:
        return ()
    return [float(v) for v in picture[0, :4, place[1], place[0]]]
