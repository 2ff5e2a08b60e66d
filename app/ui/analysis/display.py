"""How an output is displayed: as an image or with zero in the middle, exposure, gamma, and values out of range."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QComboBox, QToolButton, QWidget

from app.ui.widgets import theme
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.render import Floats, Pixels, class_pixels, picture_pixels, signed_pixels
from app.ui.widgets.slider import NumberSlider
from designer.texts import mark, tr, tr_data

STOPS = 12.0  # of exposure, either way
GAMMAS = (0.2, 5.0)


class DisplayMode(StrEnum):
    IMAGE = "image"  # 0 is black, 1 is white
    SIGNED = "signed"  # -1 is black, 0 is mid-gray, 1 is white
    MAP = "map"  # the first channel: red below zero, green above
    CLASSES = "classes"  # the color of the channel with the largest value


MODES = (
    (None, mark("As the layer says")),
    (DisplayMode.IMAGE, mark("Image")),
    (DisplayMode.SIGNED, mark("Signed")),
    (DisplayMode.MAP, mark("Map")),
    (DisplayMode.CLASSES, mark("Classes")),
)


@dataclass(frozen=True, slots=True)
class Display:
    """`mode` None is the layer's own choice. Values are multiplied by 2^`exposure`; `gamma` applies to images only."""

    mode: DisplayMode | None = None
    exposure: float = 0.0
    gamma: float = 1.0
    mark: bool = False  # paint what is out of range

    def pixels(self, image: Floats, own: DisplayMode) -> Pixels:
        """Colors of C x H x W; `own` is the mode of the output layer."""
        mode = self.mode or own
        gain = np.float32(2.0**self.exposure)
        if mode is DisplayMode.MAP:
            return signed_pixels(image[0], "green / red", float(gain))
        if mode is DisplayMode.CLASSES:
            return class_pixels(image)
        values = image[:3] if len(image) >= 3 else image[:1]
        if mode is DisplayMode.SIGNED:
            values = values * (gain / 2) + np.float32(0.5)
        elif self.exposure:
            values = values * gain
        shown = values
        if mode is DisplayMode.IMAGE and self.gamma != 1.0:
            shown = np.clip(values, 0, 1) ** np.float32(1 / self.gamma)
        found = picture_pixels(shown)
        if self.mark:
            with np.errstate(invalid="ignore"):
                found[(values < 0).any(0)] = theme.color("accent").rgb()
                found[(values > 1).any(0)] = theme.color("error").rgb()
        return found


def out_of_range(image: Floats) -> tuple[float, float]:
    """Shares of the values of C x H x W below 0 and above 1."""
    return float(np.count_nonzero(image < 0) / image.size), float(np.count_nonzero(image > 1) / image.size)


class DisplayBar(QWidget):
    """Controls of a `Display`. `changed` is emitted with every step of a slider."""

    changed = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}.display")
        self.display = Display()
        self.mode = QComboBox()
        self.mode.setObjectName(f"{name}.mode")
        self.mode.setAccessibleName(tr("Display mode"))
        self.mode.setToolTip(
            tr(
                "Image: 0 is black, 1 is white. Signed: 0 is mid-gray. Map: red below 0, green above. "
                "Classes: the color of the channel with the largest value, black for channel 0"
            )
        )
        self.mode.addItems([tr_data(title) for _, title in MODES])
        self.mode.currentIndexChanged.connect(lambda index: self._set(mode=MODES[index][0]))
        self.exposure = NumberSlider(f"{name}.exposure", tr("Exposure"), -STOPS, STOPS, 0.1)
        self.exposure.setToolTip(tr("Exposure in stops: each multiplies the values by two (gain 2^stops)"))
        self.exposure.changed.connect(lambda value: self._set(exposure=value))
        self.gamma = NumberSlider(f"{name}.gamma", tr("Gamma"), *GAMMAS, 0.05, logarithmic=True, significant=4)
        self.gamma.setToolTip(tr("Gamma of the image: above 1 brightens the dark parts"))
        self.gamma.changed.connect(lambda value: self._set(gamma=value))
        self.mark = QToolButton()
        self.mark.setObjectName(f"{name}.mark")
        self.mark.setText(tr("Out of Range"))
        self.mark.setToolTip(tr("Paint values below black and above white"))
        self.mark.setAccessibleName(tr("Mark values out of range"))
        self.mark.setCheckable(True)
        self.mark.toggled.connect(lambda on: self._set(mark=on))
        reset = QToolButton()
        reset.setObjectName(f"{name}.reset_display")
        reset.setText(tr("Reset"))
        reset.setToolTip(tr("Display the output as the layer says, without exposure and gamma"))
        reset.setAccessibleName(reset.toolTip())
        reset.clicked.connect(partial(self.show_display, Display()))
        row = FlowLayout(self, spacing=4)
        row.addWidget(self.mode)
        row.add_labelled(tr("Exposure"), self.exposure)
        row.add_labelled(tr("Gamma"), self.gamma)
        row.addWidget(self.mark)
        row.addWidget(reset)
        self.show_display(self.display)

    def show_display(self, display: Display) -> None:
        """Set all controls."""
        with QSignalBlocker(self.mode), QSignalBlocker(self.mark):
            self.mode.setCurrentIndex([mode for mode, _ in MODES].index(display.mode))
            self.mark.setChecked(display.mark)
        self.exposure.set_value(display.exposure)
        self.gamma.set_value(display.gamma)
        self._apply(display)

    def _set(self, **values: Any) -> None:
        self._apply(replace(self.display, **values))

    def _apply(self, display: Display) -> None:
        if display != self.display:
            self.display = display
            self.changed.emit()
