"""Placeholders of panels without content: icon, sentence and button."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import numpy as np
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.feature_view import FeatureView


def darkest(label: QLabel) -> list[QColor]:
    """The colors of an icon's opaque pixels."""
    image = label.pixmap().toImage()
    pixels = [image.pixelColor(x, y) for y in range(image.height()) for x in range(image.width())]
    return [pixel for pixel in pixels if pixel.alpha() == 255]


def test_the_icon_follows_the_theme(qtbot: QtBot, qapp: QApplication) -> None:
    theme.apply(qapp, "dark")
    empty = EmptyState("some", "layers-outline", "Nothing yet.")
    qtbot.addWidget(empty)
    empty.resize(400, 400)
    empty.show()
    mark = next(label for label in empty.findChildren(QLabel) if not label.pixmap().isNull())
    for mode in ("dark", "light", "dark"):
        theme.apply(qapp, mode)
        assert {color.name() for color in darkest(mark)} == {theme.color("muted").name()}


def test_the_note_under_a_single_value_has_the_size_of_other_notes(qtbot: QtBot) -> None:
    view = FeatureView("values", "Values")
    qtbot.addWidget(view)
    view.resize(400, 200)
    view.show()
    view.show_values(np.array([3.0], np.float32))
    without = view.grab().toImage()
    view.set_note("a note")
    with_note = view.grab().toImage()
    changed = QRect()
    for y in range(with_note.height()):
        for x in range(with_note.width()):
            if with_note.pixel(x, y) != without.pixel(x, y):
                changed = changed.united(QRect(QPoint(x, y), QPoint(x, y)))
    expected = QFontMetrics(view.font()).boundingRect("a note").adjusted(-6, -3, 6, 3)
    assert abs(changed.height() - expected.height()) <= 2
    assert abs(changed.width() - expected.width()) <= 2
