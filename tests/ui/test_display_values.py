"""How outputs are displayed: every pixel as an independent computation says, and controls that are the display."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from app.ui.analysis.display import MODES, Display, DisplayBar, DisplayMode, out_of_range
from app.ui.widgets import theme
from app.ui.widgets.render import class_pixels, signed_pixels

VALUES = np.array([-3.0, -1.0, -0.5, -1e-3, 0.0, 0.1, 0.25, 0.5, 0.75, 0.999, 1.0, 1.001, 2.0, 4.0], np.float32)


def image(channels: int) -> np.ndarray:
    """Each channel has all the values, in another order."""
    return np.stack([np.roll(VALUES, 3 * n).reshape(2, 7) for n in range(channels)])


def wanted(display: Display, mode: DisplayMode, channels: np.ndarray, y: int, x: int) -> list[float]:
    """Red, green and blue of one pixel from 0 to 255."""
    used = channels[:3] if len(channels) >= 3 else channels[:1].repeat(3, 0)
    values = [float(channel[y, x]) for channel in used]
    gain = 2.0**display.exposure
    scaled = [value * gain / 2 + 0.5 if mode is DisplayMode.SIGNED else value * gain for value in values]
    if display.mark and max(scaled) > 1:
        return list(theme.color("error").getRgb()[:3])
    if display.mark and min(scaled) < 0:
        return list(theme.color("accent").getRgb()[:3])
    shown = [min(max(value, 0.0), 1.0) for value in scaled]
    if mode is DisplayMode.IMAGE:
        shown = [value ** (1 / display.gamma) for value in shown]
    return [255 * value for value in shown]


@pytest.mark.parametrize("mode", [DisplayMode.IMAGE, DisplayMode.SIGNED])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_each_pixel_of_an_image_has_the_gain_the_gamma_and_the_marks(
    qtbot: QtBot, mode: DisplayMode, count: int
) -> None:
    """Of one, two, three and more channels; the mode is chosen, or that of the layer."""
    channels = image(count)
    for exposure, gamma, marked, chosen in product((0.0, 1.0, -2.0), (1.0, 2.2, 0.5), (False, True), (True, False)):
        display = Display(mode if chosen else None, exposure, gamma, marked)
        other = DisplayMode.MAP if chosen else mode
        found = display.pixels(channels, other)
        assert found.shape == (2, 7)
        for y, x in np.ndindex(2, 7):
            color = QColor(int(found[y, x])).getRgb()[:3]
            assert np.abs(np.subtract(color, wanted(display, mode, channels, y, x))).max() <= 1, (display, y, x)


def test_a_map_shows_the_first_channel_with_the_gain_and_classes_the_largest(qtbot: QtBot) -> None:
    channels = image(4)
    for exposure, gamma, marked in product((0.0, 2.0, -1.0), (1.0, 2.0), (False, True)):
        display = Display(None, exposure, gamma, marked)
        expected = signed_pixels(channels[0], "green / red", 2.0**exposure)
        np.testing.assert_array_equal(display.pixels(channels, DisplayMode.MAP), expected)
        np.testing.assert_array_equal(display.pixels(channels, DisplayMode.CLASSES), class_pixels(channels))
        chosen = replace(display, mode=DisplayMode.MAP)
        np.testing.assert_array_equal(chosen.pixels(channels, DisplayMode.CLASSES), expected)


def test_shares_out_of_range_count_values_of_all_channels() -> None:
    below, above = out_of_range(image(5))
    assert below == pytest.approx(4 / 14)
    assert above == pytest.approx(3 / 14)
    assert out_of_range(np.array([[[0.0, 1.0]]], np.float32)) == (0.0, 0.0)
    assert out_of_range(np.array([[[-0.1, 0.5], [1.5, np.nan]]], np.float32)) == (0.25, 0.25)


def controls(bar: DisplayBar) -> Display:
    """The display that the controls say."""
    return Display(MODES[bar.mode.currentIndex()][0], bar.exposure.value, bar.gamma.value, bar.mark.isChecked())


def test_controls_are_the_display_and_each_change_is_said_once(qtbot: QtBot) -> None:
    bar = DisplayBar("out")
    qtbot.addWidget(bar)
    heard: list[Display] = []
    bar.changed.connect(lambda: heard.append(bar.display))
    reset = bar.findChild(QToolButton, "out.reset_display")
    assert controls(bar) == bar.display == Display()
    reset.click()
    assert heard == []
    wanted = Display()
    for name, act, value in (
        ("exposure", lambda: bar.exposure.changed.emit(3.5), 3.5),
        ("gamma", lambda: bar.gamma.changed.emit(2.0), 2.0),
        ("mark", bar.mark.click, True),
        *(
            ("mode", lambda number=number: bar.mode.setCurrentIndex(number), MODES[number][0])
            for number in (1, 2, 3, 4)
        ),
    ):
        act()
        wanted = replace(wanted, **{name: value})
        assert bar.display == wanted
        assert heard.pop() == wanted
        assert not heard
    bar.mark.setChecked(True)
    assert not heard
    for display in (
        Display(DisplayMode.SIGNED, -4.0, 0.5, False),
        Display(None, 12.0, 5.0, True),
        Display(DisplayMode.MAP),
    ):
        bar.show_display(display)
        assert controls(bar) == bar.display == display
        assert heard == [display]
        heard.clear()
        bar.show_display(display)
        assert heard == []
    reset.click()
    assert controls(bar) == bar.display == Display()
    assert heard == [Display()]
