"""The bar over the images: how they are put together, zoom, and the options of the present mode."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from app.ui.compare.model import CLEAN, INPUT, SideModel
from app.ui.compare.pictures import Pictures, ViewMode
from app.ui.widgets import theme
from app.ui.widgets.narrow_combo import NarrowComboBox
from app.ui.widgets.slider import NumberSlider
from app.ui.widgets.tooltips import plain_tip
from designer.texts import tr

RATES = (0.5, 3.0)  # changes a second; not more, so that nobody is put at risk


class ModeBar(QWidget):
    """Controls of `Pictures`."""

    mode_changed = Signal(object)

    def __init__(self, model: SideModel, pictures: Pictures, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side.bar")
        self.setAccessibleName(tr("How the images are shown"))
        self._model, self._pictures = model, pictures
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.modes: dict[ViewMode, QToolButton] = {}
        group = QButtonGroup(self)
        for mode, text, tip in (
            (ViewMode.GRID, tr("Grid"), tr("All next to each other (G)")),
            (ViewMode.SPLIT, tr("Split"), tr("Parts of one image, with lines to drag (S)")),
            (ViewMode.TURNS, tr("Flicker"), tr("Two in turns in the same place (F; X for the other one)")),
            (ViewMode.DIFFERENCE, tr("Difference"), tr("What differs, amplified (D)")),
        ):
            button = _button(f"side.mode.{mode.value}", text, tip, lambda _on=False, m=mode: self.set_mode(m))
            button.setCheckable(True)
            group.addButton(button)
            row.addWidget(button)
            self.modes[mode] = button
        row.addSpacing(8)
        for name, text, tip, zoom in (
            ("fit", tr("Fit"), tr("Whole images (Ctrl+0)"), 0.0),
            ("one", "100 %", tr("One image pixel per screen pixel (Ctrl+1)"), 1.0),
            ("two", "200 %", tr("Two screen pixels per image pixel (Ctrl+2)"), 2.0),
        ):
            row.addWidget(_button(f"side.zoom.{name}", text, tip, lambda _on=False, z=zoom: self.zoom(z)))
        self.zoom_label = QLabel()
        self.zoom_label.setObjectName("side.zoom")
        self.zoom_label.setAccessibleName(tr("Zoom"))
        self.zoom_label.setFont(theme.mono_font())
        self.zoom_label.setMinimumWidth(self.zoom_label.fontMetrics().horizontalAdvance("1000 %"))
        row.addWidget(self.zoom_label)
        row.addSpacing(8)
        self._options = QStackedWidget()
        self._pages = {ViewMode.GRID: self._grid_page(), ViewMode.SPLIT: QWidget(), ViewMode.TURNS: self._turns_page()}
        self._pages[ViewMode.DIFFERENCE] = self._difference_page()
        for page in self._pages.values():
            self._options.addWidget(page)
        self._options.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row.addWidget(self._options, 1)
        pictures.zoom_changed.connect(lambda zoom: self.zoom_label.setText(f"{zoom * 100:.0f} %"))
        pictures.turned.connect(self._show_turn)
        model.started.connect(self.refresh)
        self.set_mode(ViewMode.GRID)

    # --- actions of the user ------------------------------------------------------------------------------------

    def set_mode(self, mode: ViewMode) -> None:
        self.modes[mode].setChecked(True)
        for each, button in self.modes.items():  # Fusion's pressed look is faint in dark colors
            font = button.font()
            font.setBold(each is mode)
            font.setUnderline(each is mode)
            button.setFont(font)
        self._options.setCurrentWidget(self._pages[mode])
        self._pictures.set_mode(mode)
        self._turning(self.automatic.isChecked() and mode is ViewMode.TURNS)

    def zoom(self, zoom: float) -> None:
        """Zoom to a factor around the middle; 0 fits."""
        view = self._pictures.shown_view()
        if view is not None:
            if zoom:
                view.set_zoom(zoom)
            else:
                view.fit()

    def show_only(self, key: str) -> None:
        """One image alone, as a key on the keyboard asks for it."""
        if self._pictures.mode is not ViewMode.TURNS:
            self.set_mode(ViewMode.TURNS)
        self._pictures.show_alone(key)

    def swap(self) -> None:
        """The other image of the pair."""
        if self._pictures.mode is not ViewMode.TURNS:
            self.set_mode(ViewMode.TURNS)
        self._pictures.swap()

    def refresh(self) -> None:
        """Names of images that can be chosen. What was chosen stays while it is there."""
        pictures = self._pictures
        keys = [*self._model.keys, INPUT, *([CLEAN] if self._model.knows_clean else [])]
        first, second = pictures.pair
        first = first if first in keys else next(key for key in keys if key != second)
        second = second if second in keys else next(key for key in keys if key != first)
        for box, present in ((self.first, first), (self.second, second)):
            _fill(box, [(self._model.title(k), k) for k in keys], present)
        choices = [(tr("reference"), ""), *((self._model.title(k), k) for k in keys)]
        _fill(self.against, choices, pictures.against)
        pictures.pair, pictures.against = (first, second), str(self.against.currentData())
        pictures.show_alone(pictures.alone if pictures.alone in keys else first)

    # --- pages -------------------------------------------------------------------------------------------------

    def _grid_page(self) -> QWidget:
        page, row = _page()
        self.with_input = _check("side.with_input", tr("Input"), tr("Show what went in too"), self._on_with)
        self.with_clean = _check("side.with_clean", tr("Clean"), tr("Show the clean image too"), self._on_with)
        self.with_input.setChecked(True)
        self.with_clean.setChecked(True)
        row.addWidget(self.with_input)
        row.addWidget(self.with_clean)
        row.addStretch(1)
        return page

    def _turns_page(self) -> QWidget:
        page, row = _page()
        self.first = _combo("side.first", tr("First image"), self._on_pair)
        self.second = _combo("side.second", tr("Second image"), self._on_pair)
        self.other = _button("side.swap", tr("Swap"), tr("Show the other one (X)"), self.swap)
        self.automatic = _check("side.automatic", tr("By itself"), tr("Take turns"), self._turning)
        self.rate = NumberSlider("side.rate", tr("Changes a second"), *RATES, 0.1)
        self.rate.set_value(2.0)
        self.rate.setMaximumWidth(150)
        self.rate.changed.connect(lambda _value: self._turning(self.automatic.isChecked()))
        for widget in (self.first, self.second, self.other, self.automatic, self.rate):
            row.addWidget(widget)
        row.addWidget(QLabel(tr("/ s")))
        row.addStretch(1)
        return page

    def _difference_page(self) -> QWidget:
        page, row = _page()
        self.against = _combo("side.against", tr("Difference to"), self._on_difference)
        self.signed = _check(
            "side.signed", tr("Signed"), tr("Green where it is brighter, red where darker"), self._on_difference
        )
        self.gain = NumberSlider("side.gain", tr("Gain"), 1.0, 100.0, 1.0, logarithmic=True, significant=4)
        self.gain.set_value(self._pictures.gain)
        self.gain.setMaximumWidth(260)
        self.gain.changed.connect(self._on_difference)
        row.addWidget(QLabel(tr("to")))
        row.addWidget(self.against)
        row.addWidget(self.signed)
        row.addWidget(QLabel(tr("Gain")))
        row.addWidget(self.gain)
        row.addStretch(1)
        return page

    def _on_with(self, _on: object = None) -> None:
        self._pictures.with_input = self.with_input.isChecked()
        self._pictures.with_clean = self.with_clean.isChecked()
        self._pictures.refresh()

    def _on_pair(self, _index: object = None) -> None:
        self._pictures.pair = (str(self.first.currentData()), str(self.second.currentData()))
        if self._pictures.alone not in self._pictures.pair:
            self._pictures.show_alone(self._pictures.pair[0])

    def _on_difference(self, _value: object = None) -> None:
        pictures = self._pictures
        pictures.against = str(self.against.currentData() or "")
        pictures.signed = self.signed.isChecked()
        pictures.gain = self.gain.value
        if pictures.mode is ViewMode.DIFFERENCE:
            pictures.refresh()

    def _turning(self, on: object) -> None:
        self._pictures.set_turning(round(1000 / self.rate.value) if on and self._pictures.mode is ViewMode.TURNS else 0)

    def _show_turn(self, key: str) -> None:
        self.other.setToolTip(plain_tip(tr("Shown: {title}. Show the other one (X)", title=self._model.title(key))))


def _page() -> tuple[QWidget, QHBoxLayout]:
    page = QWidget()
    row = QHBoxLayout(page)
    row.setContentsMargins(0, 0, 0, 0)
    return page, row


def _button(name: str, text: str, tip: str, action: Callable[..., object]) -> QToolButton:
    button = QToolButton()
    button.setObjectName(name)
    button.setAccessibleName(tip)
    button.setText(text)
    button.setToolTip(tip)
    button.clicked.connect(action)
    return button


def _check(name: str, text: str, tip: str, action: Callable[..., object]) -> QCheckBox:
    box = QCheckBox(text)
    box.setObjectName(name)
    box.setAccessibleName(tip)
    box.setToolTip(tip)
    box.clicked.connect(action)
    return box


def _combo(name: str, title: str, action: Callable[..., object]) -> QComboBox:
    box = NarrowComboBox(name, title, title, characters=7)
    box.setMinimumWidth(72)
    box.activated.connect(action)
    return box


def _fill(box: QComboBox, items: list[tuple[str, str]], present: str) -> None:
    with QSignalBlocker(box):
        box.clear()
        for text, value in items:
            box.addItem(text, value)
        box.setCurrentIndex(max(0, box.findData(present)))
