"""Widgets that panels share: each compared with a table of cases or a second way to compute what it shows."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import gc
import itertools
import math
import threading
import weakref
from fractions import Fraction
from pathlib import Path

import numpy as np
from painted import strokes
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QIcon,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QStandardItem,
    QStandardItemModel,
    QTextDocument,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QStyledItemDelegate,
    QTabWidget,
    QToolButton,
    QToolTip,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot
from window_kit import shown, wheel

from app.ui.widgets import file_dialogs, file_output, garbage, heat, render, theme
from app.ui.widgets.background import Background, awaited
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.code_consent import CodeConsent
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.export_button import ExportButton
from app.ui.widgets.expression import (
    MAX_BITS,
    MAX_LENGTH,
    ExpressionError,
    evaluate,
    is_expression,
    worked_out,
)
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.file_dialogs import format_filter, open_filter, save_filter
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.frozen_tree import FrozenTree
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.highlighter import PythonHighlighter
from app.ui.widgets.image_view import LIMITS, ImageView, SplitMode
from app.ui.widgets.message import ICONS, Message
from app.ui.widgets.notice import Notice
from app.ui.widgets.notice_bar import NoticeBar
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.operator_search import search
from app.ui.widgets.overlays import BoxOverlay
from app.ui.widgets.run_choices import Choice
from app.ui.widgets.search_popup import SearchMatch, SearchPopup
from app.ui.widgets.slider import NumberSlider
from app.ui.widgets.split_line import GRAB, SplitLine
from app.ui.widgets.tooltips import plain_tip
from app.ui.widgets.typed_path import taken, typed_path
from designer.files.formats import Format, FormatTable
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.importers.formats import NETWORKS
from designer.operators.api import Category
from designer.texts import tr_data

LEFT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton


# --- messages and notices --------------------------------------------------------------------------------------------


def pixels(icon_or_label: QIcon | QLabel) -> bytes:
    pixmap = icon_or_label.pixmap(16, 16) if isinstance(icon_or_label, QIcon) else icon_or_label.pixmap()
    return bytes(pixmap.toImage().constBits())


@pytest.mark.parametrize("make", [lambda: Message("m"), lambda: Notice("n", "Title"), lambda: NoticeBar("b")])
def test_what_has_nothing_to_say_is_hidden_in_a_shown_panel(qtbot: QtBot, make) -> None:
    panel = QWidget()
    widget = make()
    widget.setParent(panel)
    shown(qtbot, panel, 200, 100)
    assert not widget.isVisible()
    assert widget.isHidden()
    text = widget.text
    assert (text() if callable(text) else text) == ""


def says(widget, role: str) -> None:
    if isinstance(widget, Message):
        widget.show_message("text", role)
    elif isinstance(widget, Notice):
        widget.say("text", role)
    else:
        widget.show_message("text", (), role)


@pytest.mark.parametrize("make", [lambda: Message("m"), lambda: Notice("n", "Title"), lambda: NoticeBar("b")])
def test_the_colors_of_a_message_are_those_of_its_role_in_the_present_theme(qtbot: QtBot, qapp, make) -> None:
    panel = QWidget()
    widget = make()
    widget.setParent(panel)
    shown(qtbot, panel, 200, 100)
    for mode, role in itertools.product(("light", "dark"), ("warning", "error", "info")):
        says(widget, role)
        theme.apply(qapp, mode)
        if isinstance(widget, Message | Notice):
            label = widget._text if isinstance(widget, Message) else widget._label
            assert label.palette().windowText().color() == theme.color(role)
        if isinstance(widget, Message | NoticeBar):
            assert pixels(widget._mark) == pixels(theme.icon(ICONS[role], role)), (mode, role)
        if isinstance(widget, Notice | NoticeBar):
            assert widget.palette().window().color() == theme.color("raised")
        if isinstance(widget, NoticeBar):
            image = widget.grab().toImage()
            assert image.pixelColor(1, 1) == theme.color(role)
            assert image.pixelColor(widget.width() // 2, widget.height() - 1) == theme.color("border")


def test_buttons_of_the_bar_are_those_of_the_latest_message(qtbot: QtBot) -> None:
    bar = NoticeBar("bar")
    shown(qtbot, bar, 500, 60)
    pressed: list[str] = []

    def actions(*names: str):
        return [(name, f"&{name.title()}", f"tip of {name}", lambda name=name: pressed.append(name)) for name in names]

    for text, names in (("first", ("one", "two")), ("second", ("three",)), ("third", ()), ("fourth", ("two", "one"))):
        bar.show_message(text, actions(*names))
        buttons = [each for each in bar.findChildren(QToolButton) if not each.isHidden()]
        assert [b.objectName() for b in buttons] == [f"bar.{name}" for name in names]
        assert [(b.text(), b.accessibleName(), b.toolTip()) for b in buttons] == [
            (f"&{name.title()}", name.title(), f"tip of {name}") for name in names
        ]
        assert all(b.focusPolicy() is Qt.FocusPolicy.StrongFocus for b in buttons)
        assert (bar.text(), bar.accessibleName(), bar.isVisible()) == (text, text, True)
        for button in buttons:
            button.click()
        assert pressed == list(names)
        pressed.clear()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        assert len(bar.findChildren(QToolButton)) == len(names), "earlier buttons are deleted"
    bar.clear()
    assert bar.isHidden()
    assert [each for each in bar.findChildren(QToolButton) if not each.isHidden()] == []


def test_a_notice_shows_the_buttons_of_its_text_and_names_its_role(qtbot: QtBot) -> None:
    notice = Notice("notice", "Problem")
    shown(qtbot, notice, 400, 100)
    assert notice._label.textFormat() == Qt.TextFormat.PlainText, "it can quote the content of a file"
    pressed: list[str] = []
    for key in ("a", "b"):
        notice.add_button(key, key.upper(), f"tip {key}", lambda key=key: pressed.append(key))
    buttons = {key: notice.findChild(QPushButton, f"notice.{key}") for key in "ab"}
    starts = {"error": "Problem: ", "warning": "Attention: ", "info": "", "positive": ""}
    for role, keys in itertools.product(starts, ((), ("a",), ("b",), ("a", "b"))):
        notice.say("it is so", role, keys)
        assert notice.text == notice._label.accessibleName() == f"{starts[role]}it is so"
        assert [key for key, button in buttons.items() if not button.isHidden()] == list(keys)
        assert not notice.isHidden()
    notice.say("", "error", ("a",))
    assert (notice.text, notice.isHidden()) == ("", True)
    notice.say("again", buttons=("b",))
    buttons["b"].click()
    assert pressed == ["b"]
    assert (buttons["b"].text(), buttons["b"].toolTip(), buttons["b"].accessibleName()) == ("B", "tip b", "B")


# --- placeholders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["", "Open"])
def test_a_placeholder_has_a_button_only_with_an_action(qtbot: QtBot, action: str) -> None:
    state = EmptyState("panel", "magnify", "Nothing is here.", action)
    shown(qtbot, state, 300, 300)
    button = state.findChild(QPushButton, "panel.empty.action")
    assert button.isVisible() is bool(action)
    assert (button.text(), button.accessibleName()) == (action, action)
    assert state.objectName() == "panel.empty"
    heard: list[int] = []
    state.triggered.connect(lambda: heard.append(1))
    button.click()
    assert heard == [1]


def test_the_icon_of_a_placeholder_follows_text_theme_and_room(qtbot: QtBot, qapp) -> None:
    state = EmptyState("panel", "magnify", "Nothing is here.")
    shown(qtbot, state, 300, 300)

    def drawn(name: str) -> bool:
        return bytes(state._mark.pixmap().toImage().constBits()) == bytes(
            theme.icon(name, "muted").pixmap(32, 32).toImage().constBits()
        )

    assert drawn("magnify")
    state.show_text("Still nothing.")
    assert (state.text(), drawn("magnify")) == ("Still nothing.", True)
    theme.apply(qapp, "light")
    assert drawn("magnify")
    state.show_text("Something else.", "alert")
    assert (state.text(), drawn("alert"), drawn("magnify")) == ("Something else.", True, False)
    assert state._mark.isVisible()
    state.resize(300, 40)
    assert not state._mark.isVisible()
    state.resize(300, 200)
    assert state._mark.isVisible()


def test_a_stack_shows_its_placeholder_until_there_is_content(qtbot: QtBot) -> None:
    panel, content = QWidget(), QLabel("content")
    empty = EmptyState("panel", "magnify", "Nothing")
    stack = EmptyStack(panel, empty, content)
    shown(qtbot, panel, 300, 200)
    for on in (None, True, False, True):
        if on is not None:
            stack.show_content(on)
        assert (content.isVisible(), empty.isVisible()) == (bool(on), not on)


# --- choices ---------------------------------------------------------------------------------------------------------


def test_the_wheel_changes_a_choice_only_with_the_focus(qtbot: QtBot) -> None:
    panel = QWidget()
    box, line = ChoiceBox("box", "Box"), QLineEdit(panel)
    box.setParent(panel)
    line.move(0, 60)
    shown(qtbot, panel, 200, 100)
    heard: list[str] = []
    box.chosen.connect(heard.append)
    box.show_choices([Choice(name, name.upper()) for name in "abc"], "b")
    for focused, notches in itertools.product((False, True), (1, -1)):
        box.setCurrentIndex(1)
        heard.clear()
        (box if focused else line).setFocus()
        qtbot.waitUntil((box if focused else line).hasFocus)
        wheel(box, notches)
        expected = {1: "a", -1: "c"}[notches] if focused else "b"
        assert box.currentData() == expected
        assert heard == ([expected] if focused else [])
    box.show_choices([Choice("a", "A")], "a")
    assert heard == ["c"], "what the program shows is not chosen"


def test_commands_of_the_export_button(qtbot: QtBot) -> None:
    plain, full = ExportButton("plain"), ExportButton("full", statistics=True)
    for button, count in ((plain, 3), (full, 7)):
        qtbot.addWidget(button)
        actions = [action for action in button.menu().actions() if not action.isSeparator()]
        names = [action.objectName().rpartition(".")[2] for action in actions]
        assert names == ["picture", "copy", "tensor", "statistics", "channels", "record", "runs"][:count]
        assert [name for name, action in zip(names, actions, strict=True) if action.isCheckable()] == (
            ["record"] if count > 3 else []
        )
        assert [name for name, action in zip(names, actions, strict=True) if not action.isEnabled()] == (
            ["runs"] if count > 3 else []
        )
        assert not button.isEnabled()
        assert not button.recording
        heard: list[str] = []
        button.requested.connect(heard.append)
        for action in actions:
            action.setEnabled(True)
            action.trigger()
        assert heard == names
    assert full.recording
    for number in (2, 1, 0, 3):
        full.show_recorded(number)
        runs = full._actions["runs"]
        assert (runs.isEnabled(), runs.text()) == (number > 0, f"Save {number} Recorded Runs as Animation...")


# --- consent ---------------------------------------------------------------------------------------------------------


class Consent:
    def __init__(self, qtbot: QtBot, sources: list[tuple[str, str]]) -> None:
        self.agreed: list[int] = []
        self.problem: DiagnosticError | None = None
        self.dialog = CodeConsent("ask", "Run it?", sources, self._agree, None, action="&Run It")
        self.dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        qtbot.addWidget(self.dialog)
        self.dialog.show()
        qtbot.waitExposed(self.dialog)
        self.dialog.activateWindow()
        qtbot.waitUntil(self.dialog.isActiveWindow)
        self.results: list[int] = []
        self.dialog.finished.connect(self.results.append)

    def _agree(self) -> None:
        self.agreed.append(1)
        if self.problem is not None:
            raise self.problem

    def button(self, name: str) -> QPushButton:
        return self.dialog.findChild(QPushButton, f"ask.{name}")


SOURCES = [("conv & more", "import os\nx = 1\u202e2"), ("second", "pass")]


def test_return_never_agrees_to_code(qtbot: QtBot) -> None:
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape, Qt.Key.Key_Space):
        asked = Consent(qtbot, SOURCES)
        assert asked.button("later").isDefault()
        assert not asked.button("agree").isDefault()
        assert not asked.button("agree").autoDefault()
        assert asked.dialog.focusWidget() is asked.button("later")
        QTest.keyClick(asked.dialog.focusWidget(), key)
        assert (asked.agreed, asked.results) == ([], [0])
        assert not asked.dialog.isVisible()


def test_what_a_consent_shows_and_does(qtbot: QtBot) -> None:
    asked = Consent(qtbot, SOURCES)
    tabs = asked.dialog.findChild(QTabWidget, "ask.layers")
    assert [tabs.tabText(number) for number in range(tabs.count())] == ["conv && more", "second"]
    views = [asked.dialog.findChild(QPlainTextEdit, f"ask.source_{number}") for number in range(2)]
    assert all(view.isReadOnly() and view.tabChangesFocus() for view in views)
    assert "\u202e" not in views[0].toPlainText(), "a text that shows another order than it has"
    assert views[0].toPlainText().startswith("import os\nx = 1")
    assert views[1].toPlainText() == "pass"
    assert [view.accessibleName() for view in views] == ["Source of conv & more", "Source of second"]
    assert asked.button("agree").text() == "&Run It"
    assert asked.dialog.findChild(QLabel, "ask.sentence").text() == "Run it?"
    asked.problem = DiagnosticError((Diagnostic("x", "no room", remedy="make room"), Diagnostic("y", "second")))
    asked.button("agree").click()
    assert asked.dialog.isVisible()
    assert asked.dialog._problem.text() == "No room. Make room.\nSecond."
    assert asked.results == []
    asked.problem = None
    asked.button("agree").click()
    assert (asked.agreed, asked.results) == ([1, 1], [1])
    without = Consent(qtbot, [])
    assert not without.dialog.findChild(QTabWidget, "ask.layers").isVisible()
    assert without.dialog.height() < asked.dialog.height()
    without.button("later").click()
    assert (without.agreed, without.results) == ([], [0])


# --- work in threads -------------------------------------------------------------------------------------------------


def test_the_result_of_earlier_work_does_not_end_the_present_one(qtbot: QtBot) -> None:
    owner = QObject()
    background, go, heard = Background(owner), threading.Event(), []
    background.done.connect(lambda answer: heard.append((answer, background.running)))
    background.start(lambda: "first")
    background.wait()
    assert background.running
    background.start(lambda: go.wait(30) and "second")
    qtbot.waitUntil(lambda: len(heard) == 1)
    assert heard == [("first", True)]
    with pytest.raises(RuntimeError, match="the previous work has not finished"):
        background.start(lambda: None)
    go.set()
    qtbot.waitUntil(lambda: len(heard) == 2)
    assert heard[1] == ("second", False)
    background.wait()


def test_failures_of_work_arrive_as_findings(qtbot: QtBot) -> None:
    owner, first, second = QObject(), Diagnostic("a", "one"), Diagnostic("b", "two")

    def fail() -> None:
        raise DiagnosticError((first, second))

    def mistake() -> None:
        raise ValueError("a mistake of ours")

    background, done, failed = Background(owner), [], []
    background.done.connect(done.append)
    background.failed.connect(failed.append)
    background.start(fail)
    qtbot.waitUntil(lambda: len(failed) == 1)
    assert failed.pop() == (first, second)
    background.start(mistake)
    qtbot.waitUntil(lambda: len(failed) == 1)
    ((finding,),) = failed
    assert (finding.code, finding.message) == ("unexpected", "ValueError: a mistake of ours")
    assert finding.remedy == "report this error with the steps that led to it"
    assert done == []
    assert awaited(lambda: 7, owner) == 7
    assert awaited(lambda: None, owner) is None
    with pytest.raises(DiagnosticError) as caught:
        awaited(fail, owner)
    assert caught.value.diagnostics == (first, second)


@pytest.mark.parametrize(
    ("counts", "generation"),
    [
        ((700, 0, 0), None),
        ((701, 0, 0), 0),
        ((701, 10, 0), 0),
        ((701, 11, 0), 1),
        ((9000, 11, garbage.FULL), 1),
        ((701, 11, garbage.FULL + 1), 2),
        ((701, 10, garbage.FULL + 1), 0),
        ((0, 11, garbage.FULL + 1), None),
    ],
)
def test_which_generation_is_collected(qapp, monkeypatch, counts, generation) -> None:
    collected: list[int] = []
    monkeypatch.setattr(gc, "get_count", lambda: counts)
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, 10))
    monkeypatch.setattr(gc, "collect", collected.append)
    qapp.findChild(garbage.GarbageCollector).timerEvent(None)
    monkeypatch.undo()
    assert collected == ([] if generation is None else [generation])
    garbage.install(qapp)
    assert len(qapp.findChildren(garbage.GarbageCollector)) == 1


def test_python_collects_no_garbage_by_itself_where_a_window_is(qapp, monkeypatch) -> None:
    """In another thread it would delete widgets; a timer of the application does it."""
    (installed,) = qapp.findChildren(garbage.GarbageCollector)
    was_enabled, started = gc.isenabled(), []
    monkeypatch.setattr(garbage.GarbageCollector, "startTimer", lambda self, milliseconds: started.append(milliseconds))
    installed.setParent(None)
    gc.enable()
    try:
        garbage.install(qapp)
        (made,) = qapp.findChildren(garbage.GarbageCollector)
        assert (gc.isenabled(), started) == (False, [garbage.INTERVAL])
    finally:
        (gc.enable if was_enabled else gc.disable)()
    made.setParent(None)
    installed.setParent(qapp)


# --- expressions -----------------------------------------------------------------------------------------------------


def test_powers_have_bounds_on_either_side() -> None:
    for text, value in (("2**64", Fraction(2**64)), ("2**-64", Fraction(1, 2**64)), ("(1/2)**3", Fraction(1, 8)), ("0**0", Fraction(1)), ("4**0", Fraction(1)), ("-2**2", Fraction(-4))):  # fmt: skip
        assert evaluate(text) == value
    for text in ("2**65", "2**-65", "1**65", "2**0.5", "2**(1/2)"):
        with pytest.raises(ExpressionError, match="an exponent must be an integer from -64 to 64"):
            evaluate(text)
    for text in ("0**-1", "1/0", "1//0", "1%0", "2/(3-3)"):
        with pytest.raises(ExpressionError, match="the expression divides by zero"):
            evaluate(text)


def test_sizes_of_expressions_and_of_their_numbers_have_bounds() -> None:
    least, half = "1" * MAX_LENGTH, MAX_BITS // 2
    assert evaluate(least) == int(least)
    with pytest.raises(ExpressionError, match=f"at most {MAX_LENGTH} characters, this one has {MAX_LENGTH + 1}"):
        evaluate(f"{least}1")
    largest = "*".join(["2**64"] * (MAX_BITS // 64 - 1)) + "*2**63"  # 2**511
    assert evaluate(largest) == 2 ** (MAX_BITS - 1)
    for text in (f"{largest}*2", f"-({largest})*2", f"1/({largest})/2", "1e999"):
        with pytest.raises(ExpressionError, match="a number in the expression is too large"):
            evaluate(text)
    assert half > 64


@pytest.mark.parametrize(
    ("kind", "text", "result"),
    [
        ("int", "3*16", "48"), ("int", "7//2", "3"), ("int", "-7//2", "-4"), ("int", "-7%4", "1"), ("int", "+5-8", "-3"),
        ("int", "6/4", None), ("float", "6/4", "1.5"), ("float", "3*2", "6.0"), ("float", "1/3", "0.3333333333333333"),
        ("size2d", "2*8 x 3", "16x3"), ("size2d", "2*8×3+1", "16x4"), ("size2d", "1/2x3", None), ("size2d?", "2*2x2", "4x2"),
        ("size3d", "1+1x2x6/2", "2x2x3"), ("ints", "1+1, 3*2,4", "2,6,4"), ("ints", "1,1/2", None), ("floats", "1/2,3", "0.5,3.0"),
    ],
)  # fmt: skip
def test_expressions_of_every_kind_of_parameter(kind: str, text: str, result: str | None) -> None:
    if result is None:
        with pytest.raises(ExpressionError, match="is not an integer"):
            worked_out(kind, text)
    else:
        assert worked_out(kind, text) == result


def test_what_looks_like_an_expression() -> None:
    yes = ("3*16", "2-1", "(3)", "1+", "2**5", "8%3", "3*", "1e3*2", "2x3*4")
    no = ("", "3", "-3", "+3", "1.5", "1e-3", "1e+3", " 4 ", "abc", "a-b", "-", "3x3", "1.", "1e-")
    assert [text for text in yes if not is_expression(text)] == []
    assert [text for text in no if is_expression(text)] == []


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_saved_image_has_its_pixels_and_its_comment(tmp_path: Path, qapp) -> None:
    image = QImage(3, 2, QImage.Format.Format_RGB32)
    image.fill(QColor("#123456"))
    image.setPixelColor(2, 1, QColor("#abcdef"))
    path = tmp_path / "image.png"
    (entry,) = file_output.VIEWS.writable
    assert (entry.title, entry.suffixes) == ("PNG image", (".png",))
    file_output.VIEWS.writer(path)(path, image, "seed 7 & more")
    read = QImage(str(path))
    assert read.text(file_output.PNG_COMMENT) == "seed 7 & more"
    assert [read.pixelColor(x, y).name() for y in range(2) for x in range(3)] == ["#123456"] * 5 + ["#abcdef"]
    assert image.text(file_output.PNG_COMMENT) == "", "the shown image has no comment"
    with pytest.raises(DiagnosticError) as caught:
        file_output.VIEWS.writer(path)(path, QImage(), "")
    assert caught.value.diagnostics[0].code == "cannot-write-picture"
    assert QImage(str(path)).width() == 3


def test_results_of_writing_are_said(qtbot: QtBot) -> None:
    said: list[tuple[bool, str]] = []

    def fail() -> None:
        raise DiagnosticError(Diagnostic("x", "it is full", file="/a/disk.png", remedy="make room"))

    def say(well: bool, text: str) -> None:
        said.append((well, text))

    file_output.report_result(lambda: None, say, "Saved it")
    file_output.report_result(fail, say, "Saved it")
    expected = [(True, "Saved it"), (False, "disk.png: it is full. Make room.")]
    assert said == expected
    owner = QObject()
    for work in (lambda: None, fail):
        job = file_output.write_in_thread(owner, work, say, "Saved it")
        qtbot.waitUntil(lambda job=job: not job.running)
    assert said[2:] == expected


def test_typed_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for text, expected in (("  a/b.xml ", Path("a/b.xml")), ("~/x", tmp_path / "x"), ("~", tmp_path), ("~nobody-here/x", Path("~nobody-here/x"))):  # fmt: skip
        assert typed_path(text) == expected
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert [taken(tmp_path / name) for name in ("file", "link", "gone", "")] == [True, True, False, False]


def test_tips_with_markup_are_escaped_line_by_line() -> None:
    for text, tip in (
        ("plain & simple\nsecond", "plain & simple\nsecond"),
        ("a > b", "a > b"),
        ("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>"),
        ('x < y\nz & "q"', "<p>x &lt; y<br>z &amp; &quot;q&quot;</p>"),
        ("&lt;img&gt;", "<p>&amp;lt;img&amp;gt;</p>"),
    ):
        assert plain_tip(text) == tip


# --- layout ----------------------------------------------------------------------------------------------------------


def flow_of(widths: list[int], width: int, spacing: int) -> list[tuple[int, int]]:
    """Left and line of each item of fixed width: as many as fit on a line."""
    places, x, line = [], 0, 0
    for wide in (min(each, width) for each in widths):
        if x and x + wide > width:
            x, line = 0, line + 1
        places.append((x, line))
        x += wide + spacing
    return places


@pytest.mark.parametrize("spacing", [0, 8])
@pytest.mark.parametrize("width", [90, 150, 158, 159, 308, 400, 1000])
def test_items_wrap_like_words(qtbot: QtBot, spacing: int, width: int) -> None:
    widths, height = [70, 80, 150, 20, 300, 40], 20
    page = QWidget()
    qtbot.addWidget(page)
    layout = FlowLayout(page, spacing)
    items = []
    for number, wide in enumerate((*widths, 60)):
        item = QLabel(page)
        item.setFixedSize(wide, height)
        layout.addWidget(item)
        items.append(item)
        if number == len(widths):
            item.hide()
    expected = flow_of(widths, width, spacing)
    lines = expected[-1][1] + 1
    assert layout.heightForWidth(width) == lines * height + (lines - 1) * spacing
    layout.setGeometry(QRect(5, 7, width, 500))
    for item, wide, (x, line) in zip(items, widths, expected, strict=False):
        assert (item.x(), item.y()) == (5 + x, 7 + line * (height + spacing)), wide
    assert layout.count() == len(widths) + 1
    assert layout.itemAt(99) is layout.takeAt(99) is None
    assert layout.takeAt(0).widget() is items[0]
    assert layout.count() == len(widths)


@pytest.mark.parametrize("order", list(itertools.permutations((60, 1000, 90))))
def test_items_that_can_grow_share_what_is_left_of_their_line(qtbot: QtBot, order: tuple[int, ...]) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    layout = FlowLayout(page, 8)
    fixed = QLabel(page)
    fixed.setFixedSize(100, 20)
    layout.addWidget(fixed)
    items = []
    for most in order:
        item = QWidget(page)
        item.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        item.setMinimumWidth(50)
        item.setMaximumWidth(most)
        item.setFixedHeight(20)
        layout.addWidget(item)
        items.append(item)
    layout.setGeometry(QRect(0, 0, 600, 100))
    widths = {60: 60, 90: 90, 1000: 600 - 100 - 60 - 90 - 3 * 8}
    assert [item.width() for item in items] == [widths[most] for most in order]
    assert fixed.width() == 100
    places = [item.x() for item in (fixed, *items)]
    assert places == [0, *itertools.accumulate((widths[most] + 8 for most in order[:-1]), initial=108)]
    layout.setGeometry(QRect(0, 0, 330, 100))
    assert sum(item.width() for item in items) + 100 + 3 * 8 == 330
    assert {item.y() for item in (fixed, *items)} == {fixed.y()}


# --- operators -------------------------------------------------------------------------------------------------------


def operator(title: str, kind: str, synonyms: tuple[str, ...] = (), text: str = "", category: Category = Category.DATA):
    return type("Operator", (), {"title": title, "type": kind, "synonyms": synonyms, "help": staticmethod(lambda: text), "category": category})  # fmt: skip


FOUND = (
    operator("Pool", "p_1"),
    operator("Reduce", "r_1", ("pool",)),
    operator("Pooling layer", "x_pool"),
    operator("Average", "r_2", ("pooled values",)),
    operator("Max whirlpool", "r_3"),
    operator("Crop", "r_4", ("antipool",)),
    operator("Blur", "r_5", text="Like a pool."),
    operator("Input", "r_6", category=Category.POOLING),
    operator("Anchor", "r_7", text="Nothing of the kind."),
)


def test_names_are_found_before_synonyms_and_both_before_descriptions() -> None:
    def found(query: str, recent: tuple[str, ...] = ()) -> list[str]:
        return [cls.title for cls in search(reversed(FOUND), query, recent)]

    whole = ["Pool", "Reduce", "Pooling layer", "Average", "Max whirlpool", "Crop", "Blur", "Input"]
    assert found("pool") == found(" POOL ") == whole
    assert found("") == sorted(cls.title for cls in FOUND), "nothing is asked for"
    assert found("pool layer") == ["Pooling layer"], "every word is in it"
    assert found("whirl pool") == ["Max whirlpool"]
    assert found("xpool") == ["Pooling layer"], "a type without its underscores"
    assert found("p_1") == ["Pool"]
    assert found("nowhere") == []
    assert found("nothing pool") == [], "no operator has both"
    assert found("pool like") == ["Blur"]
    same = [operator(title, title.lower()) for title in ("Zebra pool", "Apple pool", "Mango pool")]
    for recent, expected in (((), "AMZ"), (("zebra pool",), "ZAM"), (("mango pool", "zebra pool"), "MZA")):
        assert "".join(cls.title[0] for cls in search(same, "pool", recent)) == expected
    assert [cls.title for cls in search((*same, FOUND[0]), "pool", ("zebra pool",))][0:2] == ["Pool", "Zebra pool"]


# --- values as bars --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "drawn", "span"),
    [
        ([1, -2, 5], [1, -2, 5], (-2, 5)),
        ([np.inf, 3, -np.inf, -1, np.nan], [3, 3, -1, -1, 0], (-1, 3)),
        ([np.inf, 3, 2], [3, 3, 2], (2, 3)),
        ([-np.inf, 3, 2], [0, 3, 2], (2, 3)),
        ([-np.inf, np.inf, -4, -3], [-4, 0, -4, -3], (-4, -3)),
        ([np.nan, np.inf], [0, 0], (0, 0)),
    ],
)
def test_what_is_not_finite_is_as_high_as_the_largest_finite_value(qtbot: QtBot, values, drawn, span) -> None:
    view = FeatureView("values", "Values")
    qtbot.addWidget(view)
    for tensor in (np.array([values, [9] * len(values)]), np.array(values)):
        view.show_values(tensor)
        assert view._drawn.tolist() == drawn
        assert view.range == span
    order = sorted(
        range(len(values)), key=lambda i: (np.isnan(values[i]), -values[i] if not np.isnan(values[i]) else 0)
    )
    assert view.top() == order[:5]


def test_filters_of_dialogs_name_the_table_its_parts_and_their_suffixes() -> None:
    one = FormatTable("ones", (Format("First", (".a", ".b"), "read", write="write"), Format("Second", (".c",), "read")))
    two = FormatTable("twos", (Format("Third", (".d",), "read", write="write"),))
    both = FormatTable("all of them", tables=(one, two))
    assert open_filter(one) == "Ones (*.a *.b *.c);;All files (*)"
    assert open_filter(both) == "All of them (*.a *.b *.c *.d);;Ones (*.a *.b *.c);;Twos (*.d);;All files (*)"
    assert save_filter(both) == "First (*.a *.b);;Third (*.d)"
    assert format_filter(two.writable[0]) == "Third (*.d)"
    parts = [part.partition(" (")[0] for part in open_filter(NETWORKS).split(";;")]
    assert len(parts) > 2
    assert parts == [tr_data(NETWORKS.title), *(tr_data(table.title) for table in NETWORKS.tables), "All files"]


# --- code ------------------------------------------------------------------------------------------------------------


def spans(text: str) -> list[list[tuple[str, str]]]:
    """The colored parts of each line, each with the name of its color."""
    document = QTextDocument(text)
    highlighter = PythonHighlighter(document)
    highlighter.rehighlight()
    names = {theme.color(role).name(): role for role in ("keyword", "string", "number", "comment")}
    found = []
    for number, line in enumerate(text.split("\n")):
        formats = document.findBlockByNumber(number).layout().formats()
        found.append(
            [(line[f.start : f.start + f.length], names[f.format.foreground().color().name()]) for f in formats]
        )
    return found


def test_every_kind_of_word_of_python_has_its_color(qapp) -> None:
    text = (
        'class A(B):  # why "not"\n    x = f"a{1}" + \'b\\\'c\' if self.y_2 else 1_000.5e-3\nnone = None or not_a and 7'
    )
    assert spans(text) == [
        [("class", "keyword"), ('# why "not"', "comment")],
        [
            ('f"a{1}"', "string"),
            ("'b\\'c'", "string"),
            ("if", "keyword"),
            ("self", "keyword"),
            ("else", "keyword"),
            ("1_000.5e-3", "number"),
        ],
        [("None", "keyword"), ("or", "keyword"), ("and", "keyword"), ("7", "number")],
    ]


def test_code_has_the_colors_of_the_present_theme(qapp) -> None:
    document = QTextDocument('x = "text"  # why\nif 1: pass')
    highlighter = PythonHighlighter(document)
    highlighter.rehighlight()
    for mode in ("light", "dark", "light"):
        theme.apply(qapp, mode)
        found = [
            f.format.foreground().color() for n in range(2) for f in document.findBlockByNumber(n).layout().formats()
        ]
        assert found == [theme.color(role) for role in ("string", "comment", "keyword", "number", "keyword")]
    theme.apply(qapp, "system")


def test_texts_over_several_lines_end_where_they_end(qapp) -> None:
    text = '"""one"""\nx = """two\nif 3\nend""" if 4\n""""""\nr"""five\n"""\ndef six'
    assert spans(text) == [
        [('"""one"""', "string")],
        [('"""two', "string")],
        [("if 3", "string")],
        [('end"""', "string"), ("if", "keyword"), ("4", "number")],
        [('""""""', "string")],
        [('r"""five', "string")],
        [('"""', "string")],
        [("def", "keyword")],
    ]


def test_a_text_that_begins_at_the_end_of_a_line_goes_on_in_the_next(qapp) -> None:
    for opening in ('"""', 'x = """', 'r"""', '"""a"', '"""a""'):
        body = opening.removeprefix("x = ")
        found = spans(f'{opening}\nif 3 "\n""\n"""\nif 4')
        assert found == [
            [(body, "string")], [('if 3 "', "string")], [('""', "string")], [('"""', "string")], [("if", "keyword"), ("4", "number")],
        ], opening  # fmt: skip


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_a_number_field_steps_within_its_bounds(qtbot: QtBot) -> None:
    for whole, low, high, step in itertools.product((True, False), (None, 0, 1), (None, 0, 12), (None, 4)):
        field = NumberField("n", "Number", whole=whole, low=low, high=high, step=step)
        qtbot.addWidget(field)
        heard: list[str] = []
        field.edited.connect(heard.append)
        size = step if step is not None else 1 if whole else 0.1
        for value, steps in itertools.product((-3, 0, 1, 2, 11, 12, 40), (1, -1, 3)):
            field.set_text(str(value))
            flags = field.stepEnabled()
            up, down = flags & field.StepEnabledFlag.StepUpEnabled, flags & field.StepEnabledFlag.StepDownEnabled
            assert (bool(up), bool(down)) == (high is None or value < high, low is None or value > low)
            heard.clear()
            field.stepBy(steps)
            expected = value + size * steps
            expected = expected if low is None else max(expected, low)
            expected = expected if high is None else min(expected, high)
            assert float(field.text()) == pytest.approx(expected)
            assert ("." in field.text()) is not whole
            assert heard == ([field.text()] if field.text() != str(value) else [])
    field.setReadOnly(True)
    assert field.stepEnabled() == field.StepEnabledFlag.StepNone


def test_a_click_on_a_step_of_a_number_ends_the_gesture(qtbot: QtBot) -> None:
    field = NumberField("n", "Number")
    shown(qtbot, field, 120, 30)
    field.set_text("4")
    heard: list[str] = []
    field.edited.connect(heard.append)
    field.finished.connect(lambda: heard.append("finished"))
    QTest.mouseClick(field, LEFT, pos=QPoint(field.width() - 6, 6))
    assert heard == ["5", "finished"]


# --- images ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def view(qtbot: QtBot) -> ImageView:
    made = ImageView("view", "View", "nothing")
    shown(qtbot, made, 400, 300)
    image = QImage(40, 30, QImage.Format.Format_RGB32)
    image.fill(QColor("#808080"))
    made.show_image(image)
    return made


def near(a: QPointF, b: QPointF, within: float = 1.01) -> bool:
    return abs(a.x() - b.x()) <= within and abs(a.y() - b.y()) <= within


def test_a_point_stays_where_it_is_while_it_is_zoomed_at(view: ImageView) -> None:
    for zoom, place in itertools.product((10.0, 15.0, 40.0), (QPointF(100, 80), QPointF(333, 211), QPointF(200, 150))):
        view.fit()
        point = view._to_image(place)
        view.set_zoom(zoom, place)
        assert view.zoom == zoom
        assert near(view.place_of(point.x(), point.y()), place), (zoom, place)
    view.set_zoom(1e9)
    assert view.zoom == LIMITS[1]
    view.set_zoom(1e-9)
    assert view.zoom == LIMITS[0]


def test_a_double_click_goes_to_one_to_one_at_the_cursor_and_back(view: ImageView, qtbot: QtBot) -> None:
    view.show_image(QImage(800, 600, QImage.Format.Format_RGB32))
    place = QPoint(120, 200)
    point = view._to_image(QPointF(place))
    heard: list[str] = []
    view.double_clicked.connect(lambda: heard.append("double"))
    QTest.mouseDClick(view, LEFT, pos=place)
    assert view.zoom == 1.0
    assert near(view.place_of(point.x(), point.y()), QPointF(place))
    QTest.mouseDClick(view, LEFT, pos=place)
    assert view.view.fitted
    assert heard == ["double", "double"]


def test_what_is_looked_at_is_in_the_middle(view: ImageView) -> None:
    area = QRectF(10, 6, 8, 12)
    view.look_at(area)
    assert view.zoom == 25.0, "300 / 12, the smaller of both"
    assert near(view.place_of(14, 12), QPointF(200, 150))
    view.look_at(area, 3.0)
    assert (view.zoom, view.view.fitted) == (3.0, False)
    assert near(view.place_of(14, 12), QPointF(200, 150))
    view.look_at(QRectF(0, 0, 0, 0))
    assert view.zoom == LIMITS[1]
    follower = ImageView("other", "Other", "")
    follower.resize(view.size())
    follower.show_image(view.image)
    view.look_at(QRectF(2, 20, 4, 4), 7.0)
    follower.follow(view.view)
    assert follower.view == view.view
    assert near(follower.place_of(4, 22), view.place_of(4, 22))
    follower.deleteLater()


def test_another_image_of_the_same_size_keeps_the_view_and_one_of_another_size_is_fitted(view: ImageView) -> None:
    view.set_zoom(20.0, QPointF(10, 10))
    kept = view.view
    view.show_image(QImage(40, 30, QImage.Format.Format_RGB32))
    assert view.view == kept
    view.show_image(QImage(30, 40, QImage.Format.Format_RGB32))
    assert view.view.fitted
    assert view.zoom == 7.5
    view.set_zoom(20.0, QPointF(10, 10))
    view.show_image(None)
    view.show_image(QImage(30, 40, QImage.Format.Format_RGB32))
    assert view.view.fitted


def test_arrows_pan_by_a_share_of_the_view(view: ImageView, qtbot: QtBot) -> None:
    for shift, share in ((Qt.KeyboardModifier.NoModifier, 0.1), (Qt.KeyboardModifier.ShiftModifier, 0.5)):
        for key, x, y in (
            (Qt.Key.Key_Left, -1, 0),
            (Qt.Key.Key_Right, 1, 0),
            (Qt.Key.Key_Up, 0, -1),
            (Qt.Key.Key_Down, 0, 1),
        ):
            view.look_at(QRectF(20, 15, 0, 0), 40.0)
            before = view.place_of(20, 15)
            QTest.keyClick(view, key, shift)
            moved = before - view.place_of(20, 15)
            assert near(moved, QPointF(x * share * 400, y * share * 300), 2.0), (key, share)
    view.fit()
    for key, modifier in ((Qt.Key.Key_Plus, Qt.KeyboardModifier.ShiftModifier), (Qt.Key.Key_Plus, Qt.KeyboardModifier.KeypadModifier), (Qt.Key.Key_Equal, Qt.KeyboardModifier.NoModifier)):  # fmt: skip
        before = view.zoom
        QTest.keyClick(view, key, modifier)
        assert view.zoom == pytest.approx(before * 1.25)
    before = view.zoom
    QTest.keyClick(view, Qt.Key.Key_Minus)
    assert view.zoom == pytest.approx(before / 1.25)


def test_overlays_and_the_line_are_not_dimmed_with_the_image(view: ImageView) -> None:
    seen: list[float] = []

    class Probe:
        def paint(self, painter, place) -> None:
            seen.append(painter.opacity())

    view.set_overlays([Probe()])
    for dimmed in (False, True):
        view.set_dimmed(dimmed)
        seen.clear()
        color = view.grab().toImage().pixelColor(200, 20)
        assert seen == [1.0]
        assert (color == QColor("#808080")) is not dimmed
    view.set_split(SplitMode.VERTICAL, 0.5)
    assert view.grab().toImage().pixelColor(200, 40) == theme.color("accent")


def test_where_the_split_line_is_taken_and_how_far_it_goes() -> None:
    target = QRectF(100, 50, 200, 100)
    for way, amount in itertools.product((SplitMode.VERTICAL, SplitMode.HORIZONTAL, SplitMode.NONE), (0.0, 0.25, 1.0)):
        line = SplitLine(way, amount)
        vertical = way is SplitMode.VERTICAL
        at = 100 + 200 * amount if vertical else 50 + 100 * amount
        low, high = (50, 150) if vertical else (100, 300)
        for away, along in itertools.product(
            (-GRAB - 1, -GRAB, 0, GRAB, GRAB + 1), (low - GRAB - 1, low, high, high + GRAB + 1)
        ):
            place = QPointF(at + away, along) if vertical else QPointF(along, at + away)
            inside = low - GRAB <= along <= high + GRAB
            expected = way is not SplitMode.NONE and abs(away) <= GRAB and inside
            assert line.is_at(place, target) is expected, (way, amount, away, along)
        if way is not SplitMode.NONE:
            for value in (-50, 50, 100, 137, 150, 300, 1000):
                place = QPointF(value, 60) if vertical else QPointF(110, value)
                share = (value - 100) / 200 if vertical else (value - 50) / 100
                assert line.amount_at(place, target) == min(max(share, 0.0), 1.0)
        shape = Qt.CursorShape.SplitHCursor if vertical else Qt.CursorShape.SplitVCursor
        assert line.cursor is shape
        for step in (-0.3, 0.01, 2.0):
            assert line.moved(step) == pytest.approx(min(max(amount + step, 0.0), 1.0))


def test_the_middle_button_pans_where_the_line_is(view: ImageView) -> None:
    view.set_split(SplitMode.VERTICAL, 0.5)
    view.set_zoom(20.0)
    heard: list[float] = []
    view.split_moved.connect(heard.append)
    for button, moves in ((MIDDLE, False), (LEFT, True)):
        begin = view.place_of(20, 15)
        before = view.view
        QTest.mousePress(view, button, pos=begin.toPoint())
        at = begin + QPointF(40, 0)
        move = QMouseEvent(QEvent.Type.MouseMove, at, view.mapToGlobal(at), Qt.MouseButton.NoButton, button, Qt.KeyboardModifier.NoModifier)  # fmt: skip
        QApplication.sendEvent(view, move)
        QTest.mouseRelease(view, button, pos=at.toPoint())
        assert bool(heard) is moves
        assert (view.view == before) is moves


# --- search ----------------------------------------------------------------------------------------------------------


def test_a_search_chooses_what_can_be_chosen_after_it_has_closed(qtbot: QtBot) -> None:
    page = QWidget()
    shown(qtbot, page, 400, 300)
    rows = [SearchMatch("off", "Off", enabled=False), SearchMatch("on", "On", "Ctrl+O", "tip"), SearchMatch("no", "No", enabled=False), SearchMatch("last", "Last")]  # fmt: skip
    popup = SearchPopup("find", "Find", "type here", "Nothing.", lambda text: [r for r in rows if text in r.text], page)
    popup.setWindowFlag(Qt.WindowType.Popup, False)
    heard: list[tuple[str, bool]] = []
    popup.chosen.connect(lambda key: heard.append((key, popup.isVisible())))

    def current() -> str:
        item = popup._list.currentItem()
        return item.text(0) if item is not None else ""

    popup.open_at(QPoint(0, 0), "O")
    assert popup._edit.selectedText() == "O"
    assert [popup._list.topLevelItem(n).text(0) for n in range(popup._list.topLevelItemCount())] == ["Off", "On"]
    popup._edit.setText("")
    assert current() == "On"
    for key, expected in ((Qt.Key.Key_Down, "Last"), (Qt.Key.Key_Down, "Last"), (Qt.Key.Key_Up, "On"), (Qt.Key.Key_Up, "On"), (Qt.Key.Key_PageDown, "Last"), (Qt.Key.Key_PageUp, "On")):  # fmt: skip
        QTest.keyClick(popup._edit, key)
        assert current() == expected
    popup._edit.setText("Off")
    QTest.keyClick(popup._edit, Qt.Key.Key_Return)
    popup._list.itemClicked.emit(popup._list.topLevelItem(0), 0)
    assert (heard, popup.isVisible()) == ([], True)
    popup._edit.setText("O")
    popup._list.setCurrentItem(popup._list.topLevelItem(1))
    QTest.keyClick(popup._edit, Qt.Key.Key_Return)
    assert heard == [("on", False)]
    popup.open_at(QPoint(0, 0))
    popup._edit.setText("nothing of the kind")
    assert (popup._nothing.isVisible(), popup._list.isVisible()) == (True, False)
    screen = popup.screen().availableGeometry()
    for place in (QPoint(99999, 99999), QPoint(-500, -500), QPoint(20, 30)):
        popup.open_at(place)
        assert screen.contains(popup.geometry().adjusted(0, 0, -1, -1)), place
    assert popup.pos() == QPoint(20, 30)
    popup.close()


def test_a_click_on_a_row_of_a_search_chooses_it_at_once(qtbot: QtBot) -> None:
    page = QWidget()
    shown(qtbot, page, 400, 300)
    rows = [SearchMatch("a", "First"), SearchMatch("b", "Gray", enabled=False), SearchMatch("c", "Third")]
    popup = SearchPopup("find", "Find", "type here", "Nothing.", lambda text: rows, page)
    popup.setWindowFlag(Qt.WindowType.Popup, False)
    heard: list[str] = []
    popup.chosen.connect(heard.append)
    view = popup._list
    for row, expected in ((2, ["c"]), (1, []), (0, ["a"]), (2, ["c"])):
        popup.open_at(QPoint(0, 0))
        heard.clear()
        place = view.visualItemRect(view.topLevelItem(row)).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert (heard, popup.isVisible()) == (expected, not expected)
    popup.close()


# --- colors ----------------------------------------------------------------------------------------------------------


def test_amounts_have_the_colors_of_their_map() -> None:
    plain, signed = render.palette(heat.MAP), render.palette(heat.SIGNED_MAP)
    for share in (-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0):
        index = 1 + round(min(max(share, 0.0), 1.0) * 254)
        assert heat.heat_color(share).rgb() == int(plain[index])
        index = 128 + round(min(max(share, -1.0), 1.0) * 127)
        assert heat.heat_color(share, signed=True).rgb() == int(signed[index])
    assert heat.heat_color(-1, signed=True) != heat.heat_color(1, signed=True)


@pytest.mark.parametrize("name", render.PALETTES)
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("gain", "shift"), [(1.0, 0.0), (2.5, -0.2), (0.4, 0.7), (1e37, 0.0)])
def test_a_value_has_the_color_of_its_share(name: str, log: bool, gain: float, shift: float) -> None:
    rng = np.random.default_rng(3)
    values = (rng.standard_normal((7, 9)) / gain).astype(np.float32)
    values[0, :4] = np.nan, np.inf, -np.inf, -shift
    found = render.signed_pixels(values, name, gain, shift, log=log)
    share = np.clip((values.astype(np.float64) + shift) * gain, -1, 1)
    share[np.isnan(share)] = 0.0
    table = render.palette(name)
    if log:
        share = np.sign(share) * np.log1p(np.abs(share) * 1000) / np.log1p(1000)
    index = 128 + share * 127
    lower, upper = np.floor(index - 0.02 + 0.5).astype(int), np.floor(index + 0.02 + 0.5).astype(int)
    assert ((found == table[lower]) | (found == table[upper])).all()
    assert found[0, 0] == table[128]
    assert (found[0, 1], found[0, 2]) == (table[255], table[1])


def test_palettes_begin_and_end_with_their_anchors() -> None:
    for name, anchors in render._SIGNED.items():
        table = render.palette(name)
        for index, (r, g, b) in ((1, anchors[0]), (255, anchors[-1])):
            expected = QColor.fromRgbF(r, g, b)
            color = QColor.fromRgb(int(table[index]))
            assert max(abs(color.red() - expected.red()), abs(color.green() - expected.green()), abs(color.blue() - expected.blue())) <= 1, name  # fmt: skip
        assert table.dtype == np.uint32
        assert (table >> 24 == 255).all()


@pytest.mark.parametrize("block", [1, 2, 3, 5, 8, 40])
def test_a_block_is_the_mean_of_its_pixels(block: int) -> None:
    values = np.random.default_rng(1).random((2, 13, 17)).astype(np.float32)
    down, across = min(block, 13), min(block, 17)
    found = render.block_mean(values, block)
    assert found.shape == (2, 13 // down, 17 // across)
    for channel, y, x in itertools.product(range(2), range(found.shape[1]), range(found.shape[2])):
        part = values[channel, y * down : (y + 1) * down, x * across : (x + 1) * across]
        rows = [k * down // 6 for k in range(6)] if down > 6 else range(down)
        columns = [k * across // 6 for k in range(6)] if across > 6 else range(across)
        assert found[channel, y, x] == pytest.approx(part[np.ix_(list(rows), list(columns))].mean(), rel=1e-5)


def test_images_have_the_colors_of_their_channels() -> None:
    image = np.array([[[0.0, 0.5]], [[1.0, -2.0]], [[0.25, np.nan]], [[9.0, 9.0]]], np.float32)
    assert [hex(p) for p in render.picture_pixels(image).ravel()] == ["0xff00ff40", "0xff800000"]
    assert [hex(p) for p in render.picture_pixels(image[:2]).ravel()] == ["0xff000000", "0xff808080"]
    assert render.to_bytes(np.array([0.0, 1 / 255, 0.0019, 0.002, 2.0, -1.0, np.nan], np.float32)).tolist() == [0, 1, 0, 1, 255, 0, 0]  # fmt: skip
    found = render.to_image(render.picture_pixels(image))
    assert (found.width(), found.height(), found.pixelColor(0, 0).name()) == (2, 1, "#00ff40")


def test_classes_of_one_and_of_several_channels() -> None:
    one = np.array([[[0.2, 0.5, 0.51, -1.0]]], np.float32)
    assert render.classes(one).tolist() == [[0, 0, 1, 0]]
    three = np.array([[[0.1, 0.5, 0.2]], [[0.7, 0.2, 0.2]], [[0.2, 0.3, 0.6]]], np.float32)
    assert render.classes(three).tolist() == [[1, 0, 2]]
    colors = render.class_colors(3)
    assert render.class_pixels(three).tolist() == [[colors[1], colors[0], colors[2]]]
    assert render.class_pixels(one).tolist() == [[render.class_colors(2)[k] for k in (0, 0, 1, 0)]]
    assert colors[0] == 0xFF000000
    assert render.are_probabilities(three)
    assert not render.are_probabilities(three * 2)
    assert not render.are_probabilities(one)
    negative = three.copy()
    negative[:2, 0, 0] = 1.2, -0.4
    assert not render.are_probabilities(negative)


def test_tensors_become_channels() -> None:
    for shape, batch, expected in (
        ((2, 3, 4, 5), 1, (3, 4, 5)), ((2, 3, 4, 5), 9, (3, 4, 5)), ((2, 3, 2, 4, 5), 0, (6, 4, 5)), ((4, 6, 8), 3, (4, 6, 8)),
        ((3, 7), 0, None), ((7,), 0, None), ((), 0, None),
    ):  # fmt: skip
        tensor = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
        found = render.as_channels(tensor, batch)
        if expected is None:
            assert found is None
            continue
        assert found.shape == expected
        assert found.dtype == np.float32
        item = tensor if len(shape) == 3 else tensor[min(batch, shape[0] - 1)]
        assert (found.ravel() == item.ravel()).all()


def test_the_theme_comes_back_after_another_one_was_painted(qapp) -> None:
    dark = theme.is_dark()
    with theme.as_if(dark=not dark):
        assert theme.is_dark() is not dark
        inner = theme.color("surface")
    assert theme.color("surface") != inner
    with pytest.raises(ValueError, match="stop"), theme.as_if(dark=not dark):
        raise ValueError("stop")
    assert theme.is_dark() is dark


def test_an_icon_is_replaced_with_what_it_follows_and_gray_where_it_is_disabled(qtbot: QtBot, qapp) -> None:
    button = QToolButton()
    qtbot.addWidget(button)
    theme.set_icon(button, "redo", "error")
    theme.set_icon(button, "undo", "warning")
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(button.findChildren(theme._Follower)) == 1
    theme.apply(qapp, "light")
    assert pixels(button.icon()) == pixels(theme.icon("undo", "warning"))
    size = QSize(16, 16)
    normal, disabled = (button.icon().pixmap(size, mode).toImage() for mode in (QIcon.Mode.Normal, QIcon.Mode.Disabled))

    def ink(image: QImage) -> set[str]:
        opaque = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
        return {color.name() for color in opaque if color.alpha() == 255}

    assert theme.color("warning").name() in ink(normal)
    assert theme.color("disabled").name() in ink(disabled)
    assert theme.color("warning").name() not in ink(disabled)


def test_black_or_white_whichever_can_be_read() -> None:
    black, white = QColor(Qt.GlobalColor.black), QColor(Qt.GlobalColor.white)
    for name, expected in (
        ("#ffffff", black),
        ("#000000", white),
        ("#ffff00", black),
        ("#0000ff", white),
        ("#777777", black),
    ):
        ground = QColor(name)
        assert theme.ink_on(ground) == expected
        assert theme.contrast(theme.ink_on(ground), ground) >= 4.5
    assert theme.contrast(black, white) == theme.contrast(white, black) == pytest.approx(21)


def test_a_plot_has_plain_numbers_and_the_colors_of_the_theme(qtbot: QtBot, qapp) -> None:
    from app.ui.widgets.themed_plot import LEGEND_ALPHA, ThemedPlot

    class Drawn(ThemedPlot):
        count = 0

        def redraw(self) -> None:
            super().redraw()
            self.count += 1

    plot = Drawn("plot", "Plot")
    qtbot.addWidget(plot)
    legend = plot.add_legend((10, -10))
    plot.plot([0, 1], [0, 2e6], name="values")
    plot.redraw()
    for mode in ("light", "dark"):
        before = plot.count
        theme.apply(qapp, mode)
        assert plot.count == before + 1
        assert plot.backgroundBrush().color() == theme.color("surface")
        assert legend.labelTextColor() == theme.color("text")
        assert legend.brush().color().alpha() == LEGEND_ALPHA
        assert legend.brush().color().name() == theme.color("surface").name()
        for side in ("left", "bottom", "right"):
            axis = plot.getAxis(side)
            assert axis.pen().color() == theme.color("outline")
            assert axis.textPen().color() == theme.color("text")
    assert legend.opts["offset"] == (10, -10)
    assert legend.opts["labelTextSize"] == f"{plot.font().pointSizeF():.0f}pt"
    for side in ("bottom", "right", "left"):
        axis = plot.getAxis(side)
        plot.label_axis(side, f"of the {side}")
        assert (axis.labelText, axis.labelStyle["color"]) == (f"of the {side}", theme.color("text").name())
        assert axis.style["tickFont"] == plot.font()
        axis.setRange(0, 3e9)
        axis.updateAutoSIPrefix()
        assert (axis.autoSIPrefix, axis.autoSIPrefixScale) == (False, 1.0)
    plot.label_axis("left", "FLOP")
    axis.setRange(0, 2e6)
    axis.updateAutoSIPrefix()
    assert axis.autoSIPrefixScale == 1.0
    assert "M" not in axis.labelString().replace("FLOP", "")
    assert plot.objectName() == "plot"
    assert plot.getPlotItem().buttonsHidden


# --- what is drawn, laid out and saved ---------------------------------------------------------------------------------


def test_a_column_of_many_values_shows_the_extremes_of_all_of_them(qtbot: QtBot) -> None:
    """Every value is in one column; it ends at its largest and at its smallest value, and at zero if all have one sign."""
    view = FeatureView("values", "Values")
    qtbot.addWidget(view)
    view.resize(300, 200)
    rng = np.random.default_rng(5)
    for count in (300, 301, 450, 1000):
        values = rng.standard_normal(count).astype(np.float32)
        values[: count // 3] = np.abs(values[: count // 3])
        values[-count // 3 :] = -np.abs(values[-count // 3 :])
        view.show_values(values)
        starts = [count * column // 300 for column in range(301)]
        parts = [values[a:b] for a, b in itertools.pairwise(starts)]
        bars = [s for s in strokes(view) if s.kind == "rect" and s.fill in ("positive", "negative")]
        unit = max(s.area.height() for s in bars if s.fill == "positive") / values.max()
        found = {(s.fill, round(s.area.left())): s.area.height() / unit for s in bars}
        wanted = {("positive", x): part.max() for x, part in enumerate(parts) if part.max() > 0}
        wanted |= {("negative", x): -part.min() for x, part in enumerate(parts) if part.min() < 0}
        assert found.keys() == wanted.keys()
        assert all(abs(found[key] - wanted[key]) < 0.05 for key in wanted)


def test_lines_of_a_flow_are_as_high_as_their_highest_item_and_as_wide_as_the_widest_that_is_seen(qtbot: QtBot) -> None:
    sizes = [(60, 20), (70, 40), (50, 10), (90, 30), (40, 60)]
    for line, spacing in itertools.product((0, 100, 1000), (0, 6)):
        page = QWidget()
        qtbot.addWidget(page)
        layout = FlowLayout(page, spacing, line)
        items = []
        for width, height in (*sizes, (400, 99)):
            item = QWidget(page)
            item.setFixedSize(width, height)
            layout.addWidget(item)
            items.append(item)
        items[-1].hide()
        whole = sum(width for width, _ in sizes) + 4 * spacing
        assert layout.minimumSize() == layout.sizeHint() == QSize(max(90, min(whole, line)), 60)
        for width in (90, 136, 200, 1000):
            rows = flow_of([each for each, _ in sizes], width, spacing)
            tops, y = [], 0
            for number in range(rows[-1][1] + 1):
                high = max(h for (_, h), (_, row) in zip(sizes, rows, strict=True) if row == number)
                tops.append((y, high))
                y += high + spacing
            assert layout.heightForWidth(width) == y - spacing
            layout.setGeometry(QRect(3, 5, width, 500))
            for item, (wide, high), (x, row) in zip(items, sizes, rows, strict=False):
                top, tallest = tops[row]
                assert item.geometry() == QRect(3 + x, 5 + top + (tallest - high) // 2, wide, high)


def test_a_dialog_is_never_lower_than_what_it_shows(qtbot: QtBot) -> None:
    """It follows texts that come, wrap and go, up to a share of the screen."""
    dialog = GrowingDialog()
    box = QVBoxLayout(dialog)
    label, other = QLabel("word"), QLineEdit()
    label.setWordWrap(True)
    box.addWidget(label)
    box.addWidget(other)
    shown(qtbot, dialog, 300, 60)
    limit = round(dialog.screen().availableGeometry().height() * 0.9)
    least = dialog.minimumHeight()
    assert 0 < least < limit
    for words, width in ((60, 300), (60, 150), (60, 600), (9000, 300), (1, 300), (30, 300)):
        label.setText("word " * words)
        dialog.resize(width, dialog.height())
        QApplication.processEvents()
        needed = box.totalHeightForWidth(width)
        assert dialog.minimumHeight() == min(needed, limit)
        assert dialog.height() >= dialog.minimumHeight()
        assert (needed > limit) is (words == 9000)
    label.setWordWrap(False)
    label.setText("\n".join(["line"] * 12))
    QApplication.processEvents()
    assert dialog.minimumHeight() == box.totalMinimumSize().height() > least


def test_a_proposed_name_has_no_signs_that_file_systems_reject(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(file_dialogs, "_saved_in", [tmp_path])
    answer = lambda _owner, title, path, *_filters: asked.append((title, path)) or (str(tmp_path / "it.png"), "")  # noqa: E731
    monkeypatch.setattr(file_dialogs.QFileDialog, "getSaveFileName", answer)
    for name, proposed in (
        ("conv_1.png", "conv_1.png"), ("conv 1: a/b.png", "conv_1_a_b.png"), ("net-2.v1.png", "net-2.v1.png"),
        ("größe.png", "größe.png"), ('a<b>|"c".png', "a_b_c_.png"), ("x\\y?.npy", "x_y_.npy"),
    ):  # fmt: skip
        assert file_output.ask_path(owner, "Save", name, file_output.VIEWS) == tmp_path / "it.png"
        assert asked.pop() == ("Save", str(tmp_path / proposed))


def test_of_several_findings_about_writing_the_first_is_said(qtbot: QtBot) -> None:
    said: list[tuple[bool, str]] = []
    findings = (Diagnostic("a", "it is full", layer="conv"), Diagnostic("b", "and something else"))

    def fail() -> None:
        raise DiagnosticError(findings)

    owner = QObject()
    for write in (file_output.report_result, lambda *how: file_output.write_in_thread(owner, *how)):
        write(fail, lambda *how: said.append(how), "Saved it")
        qtbot.waitUntil(lambda: bool(said))
        assert said.pop() == (False, "conv: it is full.")


def test_a_picture_of_a_widget_is_what_it_shows(qtbot: QtBot) -> None:
    label = QLabel("text")
    qtbot.addWidget(label)
    label.resize(83, 21)
    made = QImage.fromData(file_output.png_of(label), "PNG")
    assert made.convertToFormat(QImage.Format.Format_RGB32) == label.grab().toImage().convertToFormat(
        QImage.Format.Format_RGB32
    )


def test_every_line_of_a_comment_is_in_a_saved_image(tmp_path: Path, qapp) -> None:
    image = QImage(2, 2, QImage.Format.Format_RGB32)
    image.fill(QColor("#010203"))
    for comment in ("", "one line", "first\nsecond: <a>\n\nlast", "größe"):
        path = tmp_path / "image.png"
        file_output.VIEWS.writer(path)(path, image, comment)
        assert QImage(str(path)).text(file_output.PNG_COMMENT) == comment


def test_both_parts_of_a_frozen_table_ask_for_a_menu_and_draw_their_columns(qtbot: QtBot) -> None:
    model = QStandardItemModel(3, 3)
    for row, column in itertools.product(range(3), range(3)):
        model.setItem(row, column, QStandardItem(f"{row}{column}"))
    large = QFont()
    large.setPointSizeF(4 * large.pointSizeF())
    model.item(1, 2).setFont(large)
    model.item(0, 2).setText("a long text that needs more room than there is")
    tree = shown(qtbot, FrozenTree("tree", "Rows"), 500, 200)
    model.setParent(tree)
    tree.set_model(model)
    model.item(2, 0).setText("the long name of a layer")
    for widest in (100, 300):
        tree.fit_columns(widest)
        assert tree.sizes()[0] == min(tree.frozen.sizeHintForColumn(0) + 24, widest)
        assert tree.frozen.sizeHintForColumn(0) > 76
        for column in (1, 2):
            needed = max(tree.table.sizeHintForColumn(column), tree.table.header().sectionSizeHint(column))
            assert tree.table.columnWidth(column) == min(needed, widest)
    QApplication.processEvents()
    for row in range(3):
        places = [view.visualRect(model.index(row, view is tree.table)) for view in tree.views]
        high = tree.fontMetrics().height() + 8
        assert [(place.top(), place.height()) for place in places] == [(row * high, high)] * 2, "side by side"
    heard: list[object] = []
    tree.menu_requested.connect(heard.append)
    tree.activated.connect(lambda index: heard.append(index.row()))
    for view, column in ((tree.frozen, 0), (tree.table, 1)):
        place = view.visualRect(model.index(1, column)).center()
        view.customContextMenuRequested.emit(place)
        assert heard == [view.viewport().mapToGlobal(place)]
        heard.clear()
        QTest.mouseClick(view.viewport(), LEFT, pos=place)
        assert [(index.row(), index.column()) for index in tree.selected_rows()] == [(1, 0)]
        assert all(other.selectionModel() is tree.selection() for other in tree.views)
        QTest.mouseDClick(view.viewport(), LEFT, pos=place)
        assert heard == [1]
        heard.clear()
        tree.selection().clear()
    delegates = [QStyledItemDelegate(tree) for _ in range(3)]
    for column, delegate in enumerate(delegates):
        tree.set_delegate(column, delegate)
    for view, columns in ((tree.frozen, (0,)), (tree.table, (1, 2))):
        for column in range(3):
            assert (view.itemDelegateForColumn(column) is delegates[column]) is (column in columns)


def shortest(value: float, step: float, significant: int | None) -> str:
    """The digits of a number: as many decimals as it has, at least those of the step, at most those that count."""
    most = (
        6 if significant is None or not value else min(max(significant - 1 - math.floor(math.log10(abs(value))), 0), 6)
    )
    least = min(max(2, min(6, 1 - math.floor(math.log10(step)))), most)
    texts = [f"{value:.{places}f}" for places in range(least, most + 1)]
    return next(text for text in texts if float(text) == float(texts[-1]))


def test_a_number_next_to_a_slider_has_as_many_digits_as_it_needs(qtbot: QtBot) -> None:
    for step, significant in itertools.product((1.0, 0.1, 0.05, 0.001), (None, 2, 4)):
        slider = NumberSlider("s", "S", -200.0, 2000.0, step, significant=significant)
        qtbot.addWidget(slider)
        for value in (0.0, 1.0, 10.0, 99.5, 100.0, 1999.0, 0.25, 1 / 3, 0.05, 0.012345, 0.0001, -2.5, -0.06, 25 / 255):
            slider.set_value(value)
            assert slider.box.text() == shortest(value, step, significant), (step, significant, value)
            assert slider.value == pytest.approx(value, abs=1e-9), "it keeps all of its digits"


@pytest.mark.parametrize(
    ("low", "high", "step", "ticks"),
    [(0, 1, 0.0005, 2000), (0, 50, 0.01, 5000), (0, 1, 1e-5, 10000), (-5, 5, 0.25, 40), (0, 1, 5, 1), (2, 2, 1, 1)],
)
def test_a_slider_has_a_place_for_every_step_up_to_ten_thousand(
    qtbot: QtBot, low: float, high: float, step: float, ticks: int
) -> None:
    slider = NumberSlider("s", "S", low, high, step)
    qtbot.addWidget(slider)
    assert (slider.slider.minimum(), slider.slider.maximum(), slider.slider.pageStep()) == (
        0,
        ticks,
        max(1, ticks // 10),
    )
    slider.set_value(high)
    for tick in (0, 1, 7, ticks // 3, ticks - 1, ticks):
        if tick <= ticks:
            slider.slider.setValue(tick)
            steps = round(tick / ticks * (high - low) / step)
            assert slider.value == pytest.approx(high if tick == ticks else min(low + steps * step, high), abs=1e-9)
            slider.set_value(slider.value)
            assert slider.slider.value() == tick or low == high
    slider._rest.stop()


def test_a_placeholder_needs_one_line_and_its_button(qtbot: QtBot) -> None:
    for action in ("", "Open"):
        panel, state, content = QWidget(), EmptyState("p", "magnify", "a long text " * 20, action), QLabel("content")
        qtbot.addWidget(panel)
        EmptyStack(panel, state, content, margin=5)
        line = state.fontMetrics().height()
        button = state.findChild(QPushButton).sizeHint().height() + 8 if action else 0
        assert state.minimumSizeHint().height() == 16 + line + button
        assert panel.minimumSizeHint().height() == max(16 + line + button, content.minimumSizeHint().height()) + 10
        panel.resize(400, 400)
        panel.show()
        assert state.geometry() == QRect(0, 0, 390, 390)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_zoom_one_is_one_pixel_of_the_screen(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, ratio: float) -> None:
    """Also on screens with several pixels per unit of the window's coordinates, which all places are in."""
    monkeypatch.setattr(ImageView, "devicePixelRatioF", lambda _view: ratio)
    view = ImageView("view", "View", "nothing")
    qtbot.addWidget(view)
    view.resize(400, 300)
    view.show_image(QImage(100, 60, QImage.Format.Format_RGB32))
    assert view.zoom == 4.0 * ratio
    assert near(view.place_of(0, 0), QPointF(0, 30))
    assert near(view.place_of(100, 60), QPointF(400, 270))
    view.one_to_one()
    assert near(view.place_of(100, 60) - view.place_of(0, 0), QPointF(100 / ratio, 60 / ratio))
    area = QRectF(20, 10, 40, 20)
    view.look_at(area)
    assert view.zoom == 10.0 * ratio
    assert near(view.place_of(20, 10), QPointF(0, 50))
    assert near(view.place_of(60, 30), QPointF(400, 250))
    view.look_at(area, 3.0)
    assert near(view.place_of(60, 30) - view.place_of(20, 10), QPointF(120 / ratio, 60 / ratio))
    view.fit()
    place = QPointF(90, 210)
    point = view._to_image(place)
    for zoom in (8.0, 64.0, 16.0):
        view.set_zoom(zoom, place)
        assert near(view.place_of(point.x(), point.y()), place)
        for x, y in ((0, 0), (99, 59), (37, 21)):
            assert view.pixel_at(view.place_of(x + 0.5, y + 0.5)) == (x, y)
    for key, x, y in ((Qt.Key.Key_Right, 40, 0), (Qt.Key.Key_Up, 0, -30)):
        view.look_at(QRectF(50, 30, 0, 0), 4.0)
        before = view.place_of(50, 30)
        QTest.keyClick(view, key)
        assert near(before - view.place_of(50, 30), QPointF(x, y)), "a tenth of the view"
    view.show_image(QImage(4000, 600, QImage.Format.Format_RGB32))
    assert view.zoom == pytest.approx(0.1 * ratio)


def test_the_handle_of_the_split_line_is_in_the_middle_of_what_is_seen_of_the_image() -> None:
    seen = QRectF(0, 0, 400, 300)
    for way, target, middle in (
        (SplitMode.VERTICAL, QRectF(50, 20, 300, 200), QPointF(50 + 0.25 * 300, 120)),
        (SplitMode.VERTICAL, QRectF(-300, -700, 1200, 900), QPointF(0, 100)),
        (SplitMode.VERTICAL, QRectF(0, 100, 400, 2000), QPointF(100, 200)),
        (SplitMode.HORIZONTAL, QRectF(50, 20, 300, 200), QPointF(200, 20 + 0.25 * 200)),
        (SplitMode.HORIZONTAL, QRectF(-1000, -100, 1200, 900), QPointF(100, 125)),
        (SplitMode.NONE, QRectF(50, 20, 300, 200), None),
    ):
        made = strokes(lambda painter, w=way, t=target: SplitLine(w, 0.25).paint(painter, t, seen))
        if middle is None:
            assert made == []
            continue
        *lines, handle = made
        assert near(handle.area.center(), middle)
        start, end = SplitLine(way, 0.25).ends(target)
        assert len(lines) == 2
        assert all(near(line.area.center(), (start + end) / 2, 2.0) for line in lines)


def test_what_is_exempt_from_collections_is_collected_after_it_is_not_needed_any_more(qapp) -> None:
    class Node:
        itself: object = None

    def cycle() -> weakref.ref:
        node = Node()
        node.itself = node
        return weakref.ref(node)

    gc.collect()
    before, plain = cycle(), Node()
    alone = weakref.ref(plain)
    garbage.exempt()
    try:
        after = cycle()
        gc.collect()
        assert (before() is not None, after()) == (True, None), "only what was there before is exempt"
        del plain
        assert alone() is None, "references free it still"
    finally:
        garbage.restore()
    gc.collect()
    assert before() is None


def test_a_search_keeps_the_keys_of_its_list_and_has_room_for_its_hint(qtbot: QtBot) -> None:
    page = QWidget()
    shown(qtbot, page, 400, 300)
    hint = "a long description of what can be typed here to find something by its name"
    rows = [SearchMatch(str(n), f"row {n}") for n in range(30)]
    popup = SearchPopup("find", "Find", hint, "Nothing.", lambda _text: rows, page)
    popup.setWindowFlag(Qt.WindowType.Popup, False)
    field = popup._edit
    for place in (QPoint(0, 0), QPoint(99999, 0)):
        popup.open_at(place)
        assert field.width() > field.fontMetrics().horizontalAdvance(hint)
        assert popup.screen().availableGeometry().contains(popup.geometry().adjusted(0, 0, -1, -1))
    row = 0
    for key, step in (
        (Qt.Key.Key_Down, 1), (Qt.Key.Key_PageDown, 8), (Qt.Key.Key_PageDown, 8), (Qt.Key.Key_Up, -1), (Qt.Key.Key_PageUp, -8),
        (Qt.Key.Key_PageDown, 8), (Qt.Key.Key_PageDown, 8), (Qt.Key.Key_PageDown, 8), (Qt.Key.Key_Right, 0), (Qt.Key.Key_Home, 0),
    ):  # fmt: skip
        event = QKeyEvent(QEvent.Type.ShortcutOverride, key, Qt.KeyboardModifier.NoModifier)
        event.ignore()
        assert popup.eventFilter(field, event) is bool(step), "the canvas uses the same keys"
        assert event.isAccepted() is bool(step)
        QTest.keyClick(field, key)
        row = min(max(row + step, 0), 29)
        assert popup._list.currentIndex().row() == row
    popup.close()


def test_a_file_is_replaced_only_with_the_button_that_says_so(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And asked about only if the dialog of the system did not know its name, which may end with a number after a point."""
    owner = QWidget()
    qtbot.addWidget(owner)
    table = FormatTable("files", (Format("Text", (".txt",), write=len), Format("Table", (".csv",), write=len)))
    monkeypatch.setattr(file_dialogs, "_saved_in", [tmp_path])
    names: list[str] = []
    answer = lambda *_asked: (str(tmp_path / names[-1]), format_filter(table.writable[1]))  # noqa: E731
    monkeypatch.setattr(file_dialogs.QFileDialog, "getSaveFileName", answer)
    keys: list[Qt.Key] = []

    def press(box: QMessageBox) -> None:
        assert box.defaultButton() is box.button(QMessageBox.StandardButton.Cancel)
        assert box.textFormat() is Qt.TextFormat.PlainText
        box.show()
        QTest.keyClick(box, keys.pop())

    monkeypatch.setattr(QMessageBox, "exec", press)
    for name, written in (
        ("a", "a.csv"), ("a.txt", "a.txt"), ("a.TXT", "a.TXT"), ("a.dat", "a.dat"), ("v1.2", "v1.2.csv"), ("a.7z", "a.7z.csv"),
    ):  # fmt: skip
        names.append(name)
        assert file_dialogs.ask_save_path(owner, "Save", "x", table) == tmp_path / written
    names.append("there")
    for kind in ("file", "link without target"):
        path = tmp_path / "there.csv"
        path.unlink(missing_ok=True)
        path.write_text("") if kind == "file" else path.symlink_to(tmp_path / "gone")
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape):
            keys.append(key)
            assert file_dialogs.ask_save_path(owner, "Save", "x", table) is None
            assert not keys, "the user was asked"


def test_the_tip_of_a_bar_is_the_value_below_the_pointer(qtbot: QtBot) -> None:
    view = shown(qtbot, FeatureView("values", "Values"), 400, 200)
    view.set_labels(("cat", "", "dog"))
    view.show_values(np.array([0.5, -2.0, 3000.0, np.nan], np.float32))
    heard: list[object] = []
    view.probed.connect(heard.append)
    for x, index, tip in ((10, 0, "0 cat: 0.5"), (150, 1, "1: -2"), (250, 2, "2 dog: 3000"), (399, 3, "3: nan")):
        place, none = QPointF(x, 50), Qt.MouseButton.NoButton
        move = QMouseEvent(QEvent.Type.MouseMove, place, view.mapToGlobal(place), none, none, Qt.KeyboardModifier.NoModifier)  # fmt: skip
        QApplication.sendEvent(view, move)
        assert heard == [index]
        heard.clear()
        assert QToolTip.text() == tip
    QToolTip.hideText()


def test_what_an_image_view_paints_over_and_instead_of_its_image(view: ImageView, qtbot: QtBot) -> None:
    """The image where its pixels are, a note at the lower left, a frame while it has the focus, or a text in the middle."""

    def painted_now() -> dict[str, QRectF]:
        made = strokes(view)
        found = {stroke.text or stroke.kind: stroke.area for stroke in made if stroke.kind in ("text", "image")}
        frames = [stroke.area for stroke in made if "accent" in stroke.pen and not stroke.fill]
        return found | ({"frame": frames[0]} if frames else {})

    view.clearFocus()
    for zoom, note, focus in itertools.product((None, 4.0, 20.0), ("", "random weights"), (False, True)):
        view.fit() if zoom is None else view.look_at(QRectF(10, 10, 4, 4), zoom)
        view.set_note(note)
        view.setFocus() if focus else view.clearFocus()
        qtbot.waitUntil(lambda focus=focus: view.hasFocus() is focus)
        found = painted_now()
        assert near(found["image"].topLeft(), view.place_of(0, 0))
        assert near(found["image"].bottomRight(), view.place_of(40, 30))
        assert found.keys() == {"image", *([note] if note else []), *(["frame"] if focus else [])}
        if note:
            assert QRectF(0, 250, 200, 50).contains(found[note].center())
        if focus:
            assert found["frame"] == QRectF(0, 0, 399, 299)
    view.clearFocus()
    view.show_image(None)
    assert painted_now().keys() == {"nothing", "random weights"}
    view.set_empty_text("not yet")
    view.set_note("")
    (area,) = painted_now().values()
    assert near(area.center(), QPointF(200, 150), 12.0)


def test_an_image_keeps_the_pixels_that_it_was_made_of() -> None:
    rng = np.random.default_rng(2)
    for shape in ((3, 5), (1, 1), (40, 7)):
        pixels = rng.integers(0, 1 << 24, shape, np.uint32) | np.uint32(0xFF000000)
        for made in (pixels, np.asfortranarray(pixels), np.repeat(pixels, 2, 1)[:, ::2], pixels[::-1][::-1]):
            image = render.to_image(made.copy(order="K") if made is pixels else made)
            np.full(shape, 7, np.uint32)  # would take the place of what is free
            found = [[image.pixel(x, y) for x in range(shape[1])] for y in range(shape[0])]
            assert found == pixels.tolist()


@pytest.mark.parametrize("signed", [False, True])
def test_the_bar_of_a_map_goes_from_its_lowest_to_its_highest_value(signed: bool, qapp) -> None:
    (made,) = strokes(lambda painter: heat.paint_heat_bar(painter, QRectF(10, 20, 200, 12), signed=signed))
    assert made.area == QRectF(10, 20, 200, 12)
    ends = [heat.heat_color(share, signed=signed).name() for share in (-1.0, 1.0)]
    assert made.fill == " to ".join(ends)


def test_a_search_over_a_widget_is_at_its_top_in_the_middle(qtbot: QtBot) -> None:
    page = QWidget()
    shown(qtbot, page, 600, 300)
    page.move(0, 0)
    popup = SearchPopup("find", "Find", "hint", "Nothing.", lambda _text: [], page)
    popup.setWindowFlag(Qt.WindowType.Popup, False)
    popup.open_over(page, "conv")
    place = page.mapFromGlobal(popup.pos())
    assert (place.x(), place.y()) == ((600 - popup.width()) // 2, 48)
    assert (popup.text, popup._edit.selectedText()) == ("conv", "conv")
    popup.close()


def test_the_label_of_a_box_is_above_it_or_below_it_where_there_is_no_room_and_always_seen(qapp) -> None:
    heights: list[int] = []

    def paint(painter: QPainter, overlay: BoxOverlay) -> None:
        painter.setWindow(0, 0, 300, 200)
        painter.setViewport(0, 0, 300, 200)
        heights.append(painter.fontMetrics().height())
        overlay.paint(painter, QPointF)

    for top, left in itertools.product((0, 4, 10, 16, 20, 24, 28, 32, 60, 120), (-40, 0, 100, 290)):
        box = BoxOverlay(left, top, left + 30, top + 20, "worst", "error")
        made = strokes(lambda painter, box=box: paint(painter, box))
        (text,) = [stroke.area for stroke in made if stroke.kind == "text"]
        assert text.top() >= 0
        assert text.bottom() <= 200
        assert 0 <= text.left() <= 280
        above = text.center().y() < top
        assert above or text.top() > top + 20
        assert above is (top - 4 >= heights[-1] + 8)
