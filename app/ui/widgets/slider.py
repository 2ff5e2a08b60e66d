"""A slider with a spin box for exact values."""

from __future__ import annotations

import math

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QHBoxLayout, QSlider, QSpinBox, QWidget

from app.ui.widgets.expression import ExpressionError, evaluate
from designer.texts import tr

REST = 500  # ms without a change after which a series of wheel or key steps ends
DECIMALS = 6  # displayed at most
EXACT = 9  # decimals of a value: 25/255 must not become another level


class NumberSlider(QWidget):
    """Values from `low` to `high` in steps. `released` ends a gesture (one undo step) by mouse, wheel or keyboard.

    With `significant`, the number is displayed with that many significant digits; the value keeps all of them.
    """

    changed = Signal(float)
    released = Signal()

    def __init__(
        self,
        name: str,
        title: str,
        low: float,
        high: float,
        step: float | None = None,
        *,
        whole: bool = False,
        logarithmic: bool = False,
        significant: int | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._log = logarithmic
        self._step = step or (1.0 if whole else 10.0 ** math.floor(math.log10(max(high - low, 1e-9) / 100)))
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self._stretch(low, high)
        self.slider.setObjectName(name)
        self.slider.setAccessibleName(title)
        self.slider.setMinimumWidth(48)
        self.box: QSpinBox | QDoubleSpinBox = _box(low, high, self._step, whole, significant)
        self.box.setObjectName(f"{name}.number")
        self.box.setAccessibleName(tr("{title}, number", title=title))
        self.setFocusProxy(self.slider)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.slider, 1)
        row.addWidget(self.box)
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self.released.emit)
        self.slider.valueChanged.connect(self._from_slider)
        self.slider.sliderReleased.connect(self._finish)
        self.box.valueChanged.connect(self._from_box)
        self.box.editingFinished.connect(self._finish)

    @property
    def value(self) -> float:
        return float(self.box.value())

    def set_range(self, low: float, high: float, step: float) -> None:
        """Set another range and step without emitting signals; a value outside the range is kept."""
        if (low, high, step) != (self._low, self._high, self._step):
            self._step = step
            self.box.setSingleStep(step)  # type: ignore[arg-type]
            with QSignalBlocker(self.slider):
                self._stretch(low, high)
            self.set_value(self.value)

    def _stretch(self, low: float, high: float) -> None:
        self._low, self._high = low, high
        self._ticks = 1000 if self._log else max(1, min(10000, round((high - low) / self._step)))
        self.slider.setRange(0, self._ticks)
        self.slider.setPageStep(max(1, self._ticks // 10))

    def set_value(self, value: float) -> None:
        """Show a value without emitting signals. A value outside the slider's range extends the spin box's range only."""
        with QSignalBlocker(self.box), QSignalBlocker(self.slider):
            self.box.setRange(min(self._low, value), max(self._high, value))  # type: ignore[arg-type]
            if not self.box.hasFocus() or float(self.box.value()) != value:
                self.box.setValue(value)  # type: ignore[arg-type]
            if not self.slider.isSliderDown():
                self.slider.setValue(self._tick(value))

    def _tick(self, value: float) -> int:
        value = min(max(value, self._low), self._high)
        if self._log:
            share = math.log(value / self._low) / math.log(self._high / self._low)
        else:
            share = (value - self._low) / ((self._high - self._low) or 1.0)
        return round(share * self._ticks)

    def _from_slider(self, tick: int) -> None:
        share = tick / self._ticks
        if self._log:
            value = self._low * (self._high / self._low) ** share
        elif tick == self._ticks:  # also where the range is not a multiple of the step
            value = self._high
        else:
            value = min(self._low + round(share * (self._high - self._low) / self._step) * self._step, self._high)
        with QSignalBlocker(self.box):
            self.box.setValue(round(value) if isinstance(self.box, QSpinBox) else value)
        self._notify()

    def _from_box(self, value: float) -> None:
        with QSignalBlocker(self.slider):
            self.slider.setValue(self._tick(float(value)))
        self._notify()

    def _notify(self) -> None:
        self.changed.emit(self.value)
        if not self.slider.isSliderDown():
            self._rest.start()

    def _finish(self) -> None:
        self._rest.stop()
        self.released.emit()


class SumBox(QDoubleSpinBox):
    """Takes a sum in place of a number: `25/255`. Displays `decimals` decimals, and more for a value that has more.

    With `significant`, decimals beyond that many significant digits are not displayed.
    """

    def __init__(self, decimals: int, significant: int | None = None) -> None:
        super().__init__()
        self._decimals = decimals
        self._significant = significant
        self.setDecimals(EXACT)
        self.setToolTip(tr("A number, or a sum such as 25/255"))

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        try:
            inside = self.minimum() <= float(evaluate(text)) <= self.maximum()
        except ExpressionError:
            inside = False
        return (QValidator.State.Acceptable if inside else QValidator.State.Intermediate), text, position

    def valueFromText(self, text: str) -> float:
        try:
            return float(evaluate(text))
        except ExpressionError:
            return self.value()

    def textFromValue(self, value: float) -> str:
        places = DECIMALS
        if self._significant is not None and value:
            places = min(max(self._significant - 1 - math.floor(math.log10(abs(value))), 0), DECIMALS)
        whole, point, decimals = f"{value:.{places}f}".partition(".")
        return whole + point + decimals.rstrip("0").ljust(min(self._decimals, places), "0")


def _box(low: float, high: float, step: float, whole: bool, significant: int | None) -> QSpinBox | QDoubleSpinBox:
    box: QSpinBox | QDoubleSpinBox
    if whole:
        box = QSpinBox()
        box.setRange(round(low), round(high))
        box.setSingleStep(max(1, round(step)))
    else:
        box = SumBox(max(2, min(DECIMALS, 1 - math.floor(math.log10(step)))), significant)
        box.setRange(low, high)
        box.setSingleStep(step)
    box.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
    box.setAlignment(Qt.AlignmentFlag.AlignRight)
    box.setKeyboardTracking(False)
    widest = "00000.000" if significant is None else "0." + "0" * (significant + 2)
    box.setFixedWidth(box.fontMetrics().horizontalAdvance(widest) + 12)
    return box
