"""The text field over the canvas: what each key, wheel and click elsewhere does with what was typed, and where it opens."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsScene, QGraphicsView, QLineEdit, QVBoxLayout, QWidget
from shiboken6 import isValid
from window_kit import wheel

from app.ui.canvas.inline_editor import InlineEditor


@pytest.fixture
def view(qtbot):
    view = QGraphicsView(QGraphicsScene())
    qtbot.addWidget(view)
    view.resize(500, 300)
    view.show()
    with qtbot.waitActive(view):
        view.activateWindow()
    return view


class Opened:
    """An editor of "old" that refuses "bad"; `accepted` is what it gave."""

    def __init__(self, view: QGraphicsView, *, lines: bool, text: str = "old", place: QRect | None = None) -> None:
        self.accepted: list[str] = []

        def rule(typed: str) -> str | None:
            return "this name is bad" if typed.strip() == "bad" else None

        self.editor = InlineEditor(view, "edit", "Name", text, self.accepted.append, rule, lines=lines)
        self.editor.open_at(place or QRect(40, 40, 120, 20))

    @property
    def state(self) -> str:
        return "open" if isValid(self.editor) and self.editor.isVisible() else "closed"

    def type(self, text: str) -> None:
        QTest.keyClicks(self.editor.field, text)


def return_(opened: Opened) -> None:
    QTest.keyClick(opened.editor.field, Qt.Key.Key_Return)


def enter(opened: Opened) -> None:
    QTest.keyClick(opened.editor.field, Qt.Key.Key_Enter)


def escape(opened: Opened) -> None:
    QTest.keyClick(opened.editor.field, Qt.Key.Key_Escape)


def tab(opened: Opened) -> None:
    QTest.keyClick(opened.editor.field, Qt.Key.Key_Tab)


def turn(opened: Opened) -> None:
    wheel(opened.editor.parentWidget(), 1)


def resize(opened: Opened) -> None:
    view = opened.editor.parentWidget().parentWidget()
    view.resize(view.width() - 20, view.height())
    QApplication.processEvents()


def leave(opened: Opened) -> None:
    opened.editor.parentWidget().parentWidget().setFocus()


def discard(opened: Opened) -> None:
    opened.editor.discard()


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("end", [return_, enter, escape, tab, turn, resize, leave, discard])
def test_what_ends_editing_and_what_is_accepted(view, end, lines):
    stays = end in (return_, enter)
    drops = end in (escape, discard)
    for typed, accepted in (("new", ["new"]), ("  new  ", ["new"]), ("old", []), ("bad", [])):
        opened = Opened(view, lines=lines)
        opened.type(typed)
        refused = typed == "bad"
        assert opened.editor._message.text() == ("This name is bad." if refused else "")
        end(opened)
        assert opened.state == ("open" if refused and stays else "closed"), typed
        wanted = ["  new"] if lines and typed.startswith(" ") else accepted
        assert opened.accepted == ([] if drops else wanted), typed
        if opened.state == "open":
            opened.type("ge")  # "badge"
            assert opened.editor._message.text() == ""
            end(opened)
            assert opened.accepted == ["badge"]
        assert opened.state == "closed"
        assert view.hasFocus()
        QApplication.sendPostedEvents(None, 52)  # deferred deletes


@pytest.mark.parametrize("lines", [False, True])
def test_return_with_shift_begins_a_line_where_there_can_be_several(view, lines):
    opened = Opened(view, lines=lines)
    before = opened.editor.height()
    opened.type("one")
    QTest.keyClick(opened.editor.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    if not lines:
        assert (opened.accepted, opened.state) == (["one"], "closed")
        return
    assert (opened.accepted, opened.state) == ([], "open")
    assert opened.editor.height() > before
    opened.type("two")
    return_(opened)
    assert opened.accepted == ["one\ntwo"]


def test_only_the_first_line_is_selected_at_first_and_an_end_of_blanks_changes_nothing(view):
    opened = Opened(view, lines=True, text="title\nnote")
    opened.type("other")
    return_(opened)
    assert opened.accepted == ["other\nnote"]
    opened = Opened(view, lines=True, text="\nnote")
    field = opened.editor.field
    assert not field.textCursor().selectedText()
    field.setPlainText("\nnote \n")
    return_(opened)
    assert opened.accepted == []


@pytest.mark.parametrize(
    ("place", "left", "top"),
    [
        (QRect(40, 60, 120, 20), "place", "place"),
        (QRect(40, 60, 300, 20), "place", "place"),
        (QRect(-80, -30, 120, 20), "edge", "edge"),
        (QRect(470, 290, 120, 20), "far edge", "far edge"),
        (QRect(-10, 20, 2000, 20), "edge", "place"),
    ],
)
def test_it_opens_at_its_place_inside_of_the_viewport(view, place, left, top):
    """At least 200 pixels wide and at most as wide as the viewport."""
    editor = Opened(view, lines=False, place=place).editor
    around = view.viewport().rect()
    assert around.contains(editor.geometry())
    assert editor.width() == min(max(place.width(), 200), around.width())
    wanted = {"place": place.left(), "edge": 0, "far edge": around.right() - editor.width()}[left]
    assert editor.x() == wanted
    wanted = {"place": place.top(), "edge": 0, "far edge": around.bottom() - editor.height()}[top]
    assert editor.y() == wanted
    assert editor.field.hasFocus()
    assert (editor.accessibleName(), editor.field.accessibleName()) == ("Name", "Name")
    assert (editor.objectName(), editor.field.objectName()) == ("edit", "edit.text")


def test_the_field_grows_with_its_lines_up_to_eight(view):
    opened = Opened(view, lines=True, text="a")
    field = opened.editor.field
    spacing = field.fontMetrics().lineSpacing()
    least = field.height()
    for count in range(1, 13):
        field.setPlainText("\n".join("a" * count))
        assert field.height() - least == (min(count, 8) - 1) * spacing
    opened.editor.discard()


@pytest.mark.parametrize("end", [return_, escape, turn, discard])
def test_the_view_has_the_keyboard_afterwards_whatever_else_is_in_the_window(qtbot, end):
    window = QWidget()
    box = QVBoxLayout(window)
    view = QGraphicsView(QGraphicsScene())
    for widget in (QLineEdit(), view, QLineEdit()):
        box.addWidget(widget)
    qtbot.addWidget(window)
    window.resize(500, 400)
    window.show()
    with qtbot.waitActive(window):
        window.activateWindow()
    opened = Opened(view, lines=False)
    assert opened.editor.field.hasFocus()
    opened.type("new")
    end(opened)
    assert opened.state == "closed"
    assert view.hasFocus()


@pytest.mark.parametrize("reason", Qt.FocusReason)
def test_only_another_window_and_a_menu_leave_the_field_open_when_it_loses_the_keyboard(view, reason):
    opened = Opened(view, lines=False)
    opened.type("new")
    QApplication.sendEvent(opened.editor.field, QFocusEvent(QEvent.Type.FocusOut, reason))
    stays = reason in (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason)
    assert opened.state == ("open" if stays else "closed")
    assert opened.accepted == ([] if stays else ["new"])
