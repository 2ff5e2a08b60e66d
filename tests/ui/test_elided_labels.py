"""Labels that shorten what does not fit."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import itertools

from painted import strokes
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel

LONG = "a name that is far too long for the room\nand a second line"


def tip_of(label: ElidedLabel) -> str:
    label.grab()  # paints it
    page = QTextDocument()
    page.setHtml(label.toolTip())
    return page.toPlainText() if "<" in label.toolTip() else label.toolTip()


@pytest.mark.parametrize("width", [60, 600])
@pytest.mark.parametrize("tip", ["", "What it is", "a <b>tip</b> from a file"])
def test_the_tip_has_what_is_elided_and_what_was_set(width: int, tip: str, qtbot: QtBot) -> None:
    label = ElidedLabel()
    qtbot.addWidget(label)
    label.resize(width, 60)
    for text in (LONG, "short", LONG.replace("name", "<i>name</i>")):
        label.setText(text)
        label.setToolTip(tip)
        elided = width < label.fontMetrics().horizontalAdvance(text.split("\n")[0])
        expected = f"{text}\n{tip}" if tip and elided else tip or text
        assert tip_of(label) == expected
        assert tip_of(label) == expected


def test_each_line_is_painted_as_far_as_there_is_room(qtbot: QtBot) -> None:
    label = ElidedLabel()
    qtbot.addWidget(label)
    palette = label.palette()
    palette.setColor(label.foregroundRole(), theme.color("error"))
    label.setPalette(palette)
    for width, text in itertools.product((600, 200, 60), (LONG, "short", "short\n" + LONG, "<b>short</b> & more")):
        label.resize(width, 60)
        label.setText(text)
        metrics = label.fontMetrics()
        lines = [metrics.elidedText(line, Qt.TextElideMode.ElideRight, width) for line in text.split("\n")]
        made = strokes(label)
        assert [stroke.text for stroke in made] == lines
        assert {stroke.fill for stroke in made} == {"error"}
        assert all(stroke.area.right() <= width + 2 for stroke in made)
        tops = [stroke.area.top() for stroke in made]
        assert tops == sorted(set(tops)), "one below the other"


def test_it_needs_no_room_for_its_text(qtbot: QtBot) -> None:
    label = ElidedLabel()
    qtbot.addWidget(label)
    label.setText(LONG)
    assert label.minimumSizeHint().width() == 0
    assert label.minimumSizeHint().height() >= 2 * label.fontMetrics().height()
