"""The tab bar alone: what it emits for each tab wherever it was dragged, and what each tab says."""

from __future__ import annotations

from itertools import permutations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTabBar
from pytestqt.qtbot import QtBot

from app.ui.shell.tab_bar import TabBar

RIGHT_SIDE = QTabBar.ButtonPosition.RightSide
NAMES = ("a.xml", "b & c.xml", "<b>.xml", "a name that is long " * 6)


class Heard:
    """A bar with four tabs, and what it emitted."""

    def __init__(self, qtbot: QtBot) -> None:
        self.bar = TabBar()
        qtbot.addWidget(self.bar)
        self.said: list[tuple[object, ...]] = []
        self.bar.shown.connect(lambda number: self.said.append(("shown", number)))
        self.bar.close_asked.connect(lambda number: self.said.append(("close", number)))
        self.bar.menu_asked.connect(lambda number, place: self.said.append(("menu", number, place)))
        self.numbers = [self.bar.add(name) for name in NAMES]
        self.bar.resize(900, 40)
        self.bar.show()

    def heard(self) -> list[tuple[object, ...]]:
        said, self.said = self.said, []
        return said


@pytest.fixture
def tabs(qtbot: QtBot) -> Heard:
    return Heard(qtbot)


def test_new_tabs_are_numbered_and_said_to_nobody(tabs: Heard) -> None:
    assert tabs.numbers == tabs.bar.numbers() == [1, 2, 3, 4]
    assert tabs.heard() == []
    for index, number in enumerate(tabs.numbers):
        assert tabs.bar.index(number) == index
    assert tabs.bar.index(9) == -1
    assert all(tabs.bar.tabSizeHint(index).width() <= 240 for index in range(4))


@pytest.mark.parametrize("order", list(permutations((1, 2, 3)))[1:4])
def test_every_gesture_says_the_number_of_its_tab_wherever_it_is(tabs: Heard, order: tuple[int, ...]) -> None:
    bar = tabs.bar
    for place, number in enumerate(order):
        bar.moveTab(bar.index(number), place)
    assert bar.numbers() == [*order, 4]
    tabs.heard()
    for index, number in enumerate((*order, 4)):
        middle = bar.tabRect(index).center()
        bar.tabButton(index, RIGHT_SIDE).click()
        assert tabs.heard() == [("close", number)]
        QTest.mouseClick(bar, Qt.MouseButton.MiddleButton, pos=middle)
        assert tabs.heard() == [("close", number)]
        bar.customContextMenuRequested.emit(middle)
        assert tabs.heard() == [("menu", number, bar.mapToGlobal(middle))]
        other = bar.tabRect((index + 1) % 4).center()
        QTest.mousePress(bar, Qt.MouseButton.MiddleButton, pos=middle)
        QTest.mouseRelease(bar, Qt.MouseButton.MiddleButton, pos=other)
        assert tabs.heard() == [], "released above another tab"
        bar.choose(number)
        assert bar.currentIndex() == index
        assert tabs.heard() == []
        bar.customContextMenuRequested.emit(QPoint(-5, -5))  # the menu key
        assert tabs.heard() == [("menu", number, bar.mapToGlobal(middle))]
        bar.setCurrentIndex((index + 1) % 4)
        assert tabs.heard() == [("shown", bar.numbers()[(index + 1) % 4])]


def test_a_tab_says_its_name_and_whether_it_is_saved(tabs: Heard) -> None:
    bar = tabs.bar
    for unsaved in (True, False, True):
        for number, name in zip(tabs.numbers, NAMES, strict=True):
            bar.label(number, name, f"/folder/{name}", unsaved=unsaved)
            index = bar.index(number)
            mark = "● " if unsaved else ""
            assert bar.tabText(index) == f"{mark}{name}".replace("&", "&&")
            assert bar.accessibleTabName(index) == f"{name}{', unsaved' if unsaved else ''}"
            button = bar.tabButton(index, RIGHT_SIDE)
            assert button.accessibleName() == f"Close {name}"
            assert button.toolTip() == "Close"
            assert button.objectName() == f"tabs.close_{number}"
            tip = bar.tabToolTip(index)
            assert tip == (f"/folder/{name}" if "<" not in name else "<p>/folder/&lt;b&gt;.xml</p>")


def test_tabs_that_are_removed_leave_the_others_and_their_numbers(tabs: Heard) -> None:
    bar = tabs.bar
    bar.choose(3)
    for gone, left in ((2, [1, 3, 4]), (9, [1, 3, 4]), (4, [1, 3])):
        bar.remove(gone)
        assert bar.numbers() == left
        assert bar.tabData(bar.currentIndex()) == 3
        assert tabs.heard() == []
    assert bar.add("new") == 5, "numbers are not used again"
    for number in (1, 3, 5):
        bar.tabButton(bar.index(number), RIGHT_SIDE).click()
        assert tabs.heard() == [("close", number)]
    for number in (1, 3, 5):
        bar.remove(number)
    bar.customContextMenuRequested.emit(QPoint(5, 5))
    QTest.mouseClick(bar, Qt.MouseButton.MiddleButton, pos=QPoint(5, 5))
    assert tabs.heard() == []
