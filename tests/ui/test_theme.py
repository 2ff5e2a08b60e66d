"""Colours keep their contrast, categories have a colour and an icon, and switching reaches the application."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QPushButton

import app.ui
from app.ui.widgets import theme
from designer.operators.api import Category


@pytest.fixture(params=["dark", "light"])
def themed(request, qapp):
    theme.apply(qapp, request.param)
    yield request.param
    theme.apply(qapp, "system")


def test_text_and_marks_are_readable(themed):
    low = []
    for ground in theme.GROUNDS:
        for role in theme.TEXTS:
            low += [(role, ground, r) for r in [theme.contrast(theme.color(role), theme.color(ground))] if r < 4.5]
        for role in theme.MARKS:
            low += [(role, ground, r) for r in [theme.contrast(theme.color(role), theme.color(ground))] if r < 3.0]
    assert not low
    assert theme.contrast(theme.color("selection_text"), theme.color("selection")) >= 4.5


@pytest.mark.parametrize("category", list(Category))
def test_category_colours_carry_text_and_stand_out(themed, category):
    colour = theme.category(category)
    assert theme.contrast(theme.color("on_category"), colour) >= 4.5
    for ground in theme.GROUNDS:
        assert theme.contrast(colour, theme.color(ground)) >= 3.0
    assert not theme.category_icon(category).isNull()


def test_contrast_follows_the_definition():
    from PySide6.QtGui import QColor

    assert theme.contrast(QColor(255, 255, 255), QColor(0, 0, 0)) == pytest.approx(21.0)
    assert theme.contrast(QColor(119, 119, 119), QColor(255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def test_switching_changes_the_palette_and_tells(qtbot, qapp):
    theme.apply(qapp, "dark")
    dark = qapp.palette().color(QPalette.ColorRole.Window)
    with qtbot.waitSignal(theme.changes().changed):
        theme.apply(qapp, "light")
    assert qapp.palette().color(QPalette.ColorRole.Window) != dark
    assert not theme.is_dark()
    theme.apply(qapp, "system")


def test_the_theme_follows_the_system(qapp):
    theme.apply(qapp, "system")
    assert theme.is_dark()  # no desktop says anything here
    hints = qapp.styleHints()
    hints.setColorScheme(Qt.ColorScheme.Light)
    followed = hints.colorScheme() is Qt.ColorScheme.Light
    assert theme.is_dark() is not followed
    hints.unsetColorScheme()
    assert theme.is_dark()


def test_an_icon_follows_the_theme(qtbot, qapp):
    theme.apply(qapp, "dark")
    button = QPushButton()
    qtbot.addWidget(button)
    theme.set_icon(button, "redo")
    theme.set_icon(button, "undo")
    dark = button.icon().pixmap(QSize(24, 24), 1.0).toImage()
    theme.apply(qapp, "light")
    light = button.icon().pixmap(QSize(24, 24), 1.0).toImage()
    assert dark != light
    assert light == theme.icon("undo").pixmap(QSize(24, 24), 1.0).toImage()
    assert theme.icon("undo").pixmap(QSize(24, 24), 2.0).size() == QSize(48, 48)
    theme.apply(qapp, "system")


def test_every_icon_draws_something_inside_its_box(qapp):
    for path in sorted(theme._ICONS.glob("*.svg")):
        image = theme.icon(path.stem).pixmap(QSize(32, 32), 1.0).toImage()
        drawn = [(x, y) for x in range(32) for y in range(32) if image.pixelColor(x, y).alpha() > 128]
        assert len(drawn) > 20, path.name


def test_an_unknown_icon_is_named():
    with pytest.raises(KeyError, match="no-such-icon"):
        theme.icon("no-such-icon")


def test_numbers_have_one_width(qapp: QApplication):
    from PySide6.QtGui import QFontMetricsF

    metrics = QFontMetricsF(theme.mono_font())
    assert metrics.horizontalAdvance("iiii") == metrics.horizontalAdvance("WWWW")


def test_no_colour_stands_outside_the_theme():
    root = Path(app.ui.__file__).parent
    literal = re.compile(r"""["']#[0-9a-fA-F]{3,8}["']|QColor\(\s*\d|QColor\(\s*["']|GlobalColor\.(?!transparent)""")
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        if path.name != "theme.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if literal.search(line)
    ]
    assert not found
