"""The number next to a slider takes sums: strengths of noise are written as 25/255."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.ui.widgets.slider import NumberSlider


def write(slider: NumberSlider, text: str) -> None:
    slider.box.selectAll()
    QTest.keyClicks(slider.box, text)
    QTest.keyClick(slider.box, Qt.Key.Key_Return)


def test_a_share_of_255_is_typed(qtbot: QtBot) -> None:
    slider = NumberSlider("scale", "Scale", 0.0, 1.0, 0.01)
    qtbot.addWidget(slider)
    slider.show()
    reported: list[float] = []
    slider.changed.connect(reported.append)
    slider.set_value(0.1)
    assert slider.box.text() == "0.100"
    write(slider, "25/255")
    assert reported == [pytest.approx(25 / 255, abs=1e-6)]
    assert slider.box.text() == "0.098039"
    for wrong in ("25/", "255/25", "two"):  # no sum, beyond the range, no number
        write(slider, wrong)
        assert slider.value == pytest.approx(25 / 255, abs=1e-6)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.000"), (2.611058, "2.611"), (0.001234, "0.001234"), (12345.678, "12346"), (0.0, "0.0000")],
)
def test_a_measured_value_has_four_digits(qtbot: QtBot, value: float, text: str) -> None:
    slider = NumberSlider("gain", "Magnify", 0.0, 1e5, 0.001, significant=4)
    qtbot.addWidget(slider)
    slider.set_value(value)
    assert slider.box.text() == text
    assert slider.value == value


def test_a_drag_that_pauses_is_one_gesture_and_steps_end_after_a_pause(qtbot: QtBot) -> None:
    slider = NumberSlider("gain", "Magnify", 0.0, 10.0, 1.0)
    qtbot.addWidget(slider)
    slider.show()
    ends: list[float] = []
    slider.released.connect(lambda: ends.append(slider.value))
    slider.slider.setSliderDown(True)
    for tick in (3, 5):
        slider.slider.setSliderPosition(tick)
        assert not slider._rest.isActive()
    assert ends == []
    slider.slider.setSliderDown(False)
    assert ends == [5.0]
    slider._rest.setInterval(20)
    QTest.keyClick(slider.slider, Qt.Key.Key_Right)
    QTest.keyClick(slider.slider, Qt.Key.Key_Right)
    assert ends == [5.0]
    qtbot.waitUntil(lambda: ends == [5.0, 7.0])


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 1.0), (0.5, 4.0)])
def test_a_number_that_is_typed_is_the_value_only_within_the_range(qtbot: QtBot, low: float, high: float) -> None:
    """Also one that is a sum; else the value before it stays. A value that was set outside of the range widens it until it is gone."""
    slider = NumberSlider("number", "Number", low, high, 0.25)
    qtbot.addWidget(slider)
    slider.show()
    said: list[float] = []
    slider.changed.connect(said.append)
    typed = {"0.5": 0.5, "-1": -1.0, "1/4": 0.25, "4": 4.0, "2-4.5": -2.5, "4*2": 8.0, "1e9": 1e9, "-0.01": -0.01}
    for text, value in typed.items():
        slider.set_value(0.75)
        write(slider, text)
        inside = low <= value <= high
        assert (slider.value, said) == ((value, [value]) if inside else (0.75, [])), text
        said.clear()
    for outside, limits in ((low - 3, (low - 3, high)), (high + 3, (low, high + 3)), (0.75, (low, high))):
        slider.set_value(outside)
        assert (slider.value, slider.box.minimum(), slider.box.maximum()) == (outside, *limits)
    assert said == []
