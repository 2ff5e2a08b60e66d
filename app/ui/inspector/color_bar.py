"""How the channels are colored: map, magnify, shift, scale and size."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isfinite, log10

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLayout, QSlider, QToolButton, QWidget

from app.ui.inspector.look import Fit, Look
from app.ui.widgets import theme
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.render import PALETTES
from app.ui.widgets.slider import NumberSlider
from designer.texts import tr

GAINS = (1e-3, 1e5)  # of the slider
LIMITS = (1e-9, 1e12)
DIGITS = 4  # significant digits of magnify and shift
EXTENT = 2.0  # of the shift before there are values
LINE = 520  # pixels that the bar asks for at least: what it takes is missing left and right of it. It wraps below 722


class ColorBar(QWidget):
    """Palette, magnify, shift, scale and size of the tiles."""

    look_changed = Signal(Look)
    side_changed = Signal(int)
    auto_requested = Signal()
    look_touched = Signal()  # the user has set magnify or shift
    scale_changed = Signal()  # another map or scale: a fitted range is another one then

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        titles = {
            "green / red": tr("green +  red −"),
            "orange / blue": tr("orange +  blue −"),
            "gray": tr("gray"),
            "viridis": tr("viridis"),
        }
        self.palette_box = QComboBox()
        self.palette_box.setObjectName("channel_inspector.palette")
        self.palette_box.setAccessibleName(tr("Colors"))
        self.palette_box.setToolTip(tr("Colors: with black at zero, or running from low to high values"))
        for name in PALETTES:
            self.palette_box.addItem(titles.get(name, name), name)
        self.palette_box.currentIndexChanged.connect(self._rescale)
        self.gain = NumberSlider(
            "channel_inspector.gain", tr("Magnify"), *GAINS, 0.001, logarithmic=True, significant=DIGITS
        )
        self.gain.set_value(1.0)
        self.gain.setToolTip(tr("Values are multiplied by this before they become colors"))
        self.gain.changed.connect(self._touch)
        self.shift = NumberSlider(
            "channel_inspector.shift", tr("Shift"), -EXTENT, EXTENT, EXTENT / 200, significant=DIGITS
        )
        self.shift.set_value(0.0)
        self.shift.setToolTip(tr("Is added to the values before they are magnified"))
        self.shift.changed.connect(self._touch)
        auto = tool_button("auto", tr("Auto"), tr("Magnify and shift so that the values fill the colors"))
        auto.clicked.connect(self.auto_requested)
        reset = tool_button("reset", tr("Reset"), tr("Magnify 1, shift 0"))
        reset.clicked.connect(self._reset)
        self.lock = tool_button("lock", "", tr("Lock the range: keep it for other images and layers"), check=True)
        theme.set_icon(self.lock, "lock-outline")
        self.log = tool_button("log", tr("Log"), tr("Logarithmic colors, three decades on either side of zero"), True)
        self.log.toggled.connect(self._emit_look)
        self.each = tool_button(
            "each", tr("Each"), tr("Each channel on a scale of its own; else all share one"), check=True
        )
        self.each.toggled.connect(self._rescale)
        self.side = QSlider(Qt.Orientation.Horizontal)
        self.side.setObjectName("channel_inspector.side")
        self.side.setAccessibleName(tr("Size of the channels"))
        self.side.setToolTip(tr("Size of the channels (Ctrl + wheel over them)"))
        self.side.setRange(24, 512)
        self.side.setValue(144)
        self.side.setMinimumWidth(48)
        self.side.setMaximumWidth(120)
        self.side.valueChanged.connect(self.side_changed)
        row = FlowLayout(self, spacing=4, line=LINE)
        for each in (self.gain, self.shift):
            each.slider.setMinimumWidth(32)
        row.addWidget(self.palette_box)
        row.add_labelled(tr("Magnify"), self.gain)
        row.add_labelled(tr("Shift"), self.shift)
        rest = QWidget()  # wraps as one, so that the slider is never alone on a line
        line = QHBoxLayout(rest)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(4)
        line.setSizeConstraint(QLayout.SizeConstraint.SetMinAndMaxSize)
        for widget in (auto, reset, self.lock, self.log, self.each, self.side):
            line.addWidget(widget)
        row.addWidget(rest)

    def set_look(self, gain: float, shift: float | None = None) -> None:
        """Magnify, and shift unless it stays."""
        self.gain.set_value(min(max(gain, LIMITS[0]), LIMITS[1]))
        if shift is not None:
            self.shift.set_value(shift)
        self._emit_look()

    def show_extent(self, extent: float = EXTENT) -> None:
        """Let the slider shift by as much as the largest magnitude of the values."""
        if extent > 0 and isfinite(extent):
            decade = 10.0 ** floor(log10(extent))
            most = next(m * decade for m in (1, 2, 5, 10) if m * decade >= extent * (1 - 1e-9))
            self.shift.set_range(-most, most, most / 200)

    def show_fit(self, fit: Fit) -> None:
        self.set_look(fit.gain, fit.shift)

    def set_side(self, side: int) -> None:
        """Show a size that the grid already has."""
        with QSignalBlocker(self.side):
            self.side.setValue(side)

    @property
    def locked(self) -> bool:
        return self.lock.isChecked()

    @property
    def look(self) -> Look:
        return Look(
            str(self.palette_box.currentData()),
            self.gain.value,
            self.shift.value,
            self.log.isChecked(),
            self.each.isChecked(),
        )

    def _reset(self) -> None:
        self.gain.set_value(1.0)
        self.shift.set_value(0.0)
        self._touch()

    def _rescale(self) -> None:
        self.scale_changed.emit()
        self._emit_look()

    def _touch(self) -> None:
        self._emit_look()
        self.look_touched.emit()

    def _emit_look(self) -> None:
        self.look_changed.emit(self.look)


def tool_button(
    name: str, text: str, tip: str, check: bool = False, action: Callable[[], object] | None = None
) -> QToolButton:
    """A flat button of the inspector."""
    button = QToolButton()
    button.setObjectName(f"channel_inspector.{name}")
    button.setAccessibleName(text or tip)
    button.setText(text)
    button.setToolTip(tip)
    button.setAutoRaise(True)
    button.setCheckable(check)
    if action is not None:
        button.clicked.connect(action)
    return button
