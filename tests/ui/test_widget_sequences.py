"""Shared widgets step by step: what they show and report after values, keys, drags and other contents in turn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QImage, QStandardItem, QStandardItemModel
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QFileDialog, QLabel, QLineEdit, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from window_kit import shown, wheel

from app.ui.widgets import file_dialogs
from app.ui.widgets.background import Background
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.export_button import ExportButton
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.file_dialogs import ask_save_path, format_filter
from app.ui.widgets.file_output import write_in_thread
from app.ui.widgets.frozen_tree import FrozenTree
from app.ui.widgets.image_view import ImageView, SplitMode, Viewport
from app.ui.widgets.message import Message
from app.ui.widgets.notice import Notice
from app.ui.widgets.param_section import ParamSection
from app.ui.widgets.run_choices import Choice
from app.ui.widgets.size_field import SizeField
from app.ui.widgets.slider import NumberSlider
from designer.files.formats import Format, FormatTable
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.params import Parameter
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
LEFT, MIDDLE, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton
WAIT = 5000


# --- rows of parameters --------------------------------------------------------------------------------------------------


class Rows:
    """The rows of a convolution over a model that takes every change."""

    def __init__(self, qtbot: QtBot) -> None:
        cls = default_registry().get("convolution")
        assert cls is not None
        self.qtbot = qtbot
        self.section = shown(qtbot, ParamSection("p", cls.parameters), 380, 700)
        QTest.qWaitForWindowActive(self.section)
        self.model = {p.name: p.format(p.default) for p in cls.parameters}
        self.log: list[str] = []
        self.section.changed.connect(self._take)
        self.section.finished.connect(lambda: self.log.append("end"))
        self.show()

    def _take(self, name: str, text: str) -> None:
        self.log.append(f"{name} {text}")
        self.model[name] = text
        self.show()

    def show(self, **several: list[str]) -> None:
        self.section.show_texts({name: several.get(name, [text]) for name, text in self.model.items()})

    def row(self, name: str) -> Any:
        return self.section.rows[name]

    def taken(self) -> list[str]:
        found = list(self.log)
        self.log.clear()
        return found

    def type(self, name: str, text: str) -> None:
        """Replace what is in the field."""
        line = self.row(name).editor.inner.lineEdit()
        if not line.hasFocus():
            line.setFocus()
        line.selectAll()
        self.qtbot.keyClicks(line, text)

    def key(self, name: str, key: Qt.Key) -> None:
        self.qtbot.keyClick(self.row(name).editor.inner.lineEdit(), key)

    def state(self, name: str) -> tuple[str, str, bool, bool]:
        """The text, the message, whether it can be reset, and whether the row is seen."""
        row = self.row(name)
        message = row._message.text() if row._message.isVisible() else ""
        return row.editor.text(), message, row._reset.isEnabled(), row.editor.isVisible()


@pytest.fixture
def rows(qtbot: QtBot) -> Rows:
    return Rows(qtbot)


def test_a_number_from_its_first_key_to_the_next_gesture(rows: Rows) -> None:
    assert rows.state("features") == ("32", "", False, True)
    rows.type("features", "16")
    assert rows.taken()[-1] == "features 16"
    assert rows.state("features") == ("16", "", True, True)
    rows.key("features", Qt.Key.Key_Return)
    assert rows.taken() == ["end"]
    rows.type("features", "3*4")
    assert rows.state("features")[:2] == ("3*4", "= 12, press Enter to apply")
    assert rows.model["features"] == "16"  # what was before this gesture
    rows.key("features", Qt.Key.Key_Escape)
    assert rows.state("features") == ("16", "", True, True)
    rows.taken()
    rows.key("features", Qt.Key.Key_Return)
    assert (rows.model["features"], [each for each in rows.taken() if each != "end"]) == ("16", [])
    rows.type("features", "3*4")
    rows.row("features")._reset.click()
    assert rows.state("features") == ("32", "", False, True)
    rows.key("features", Qt.Key.Key_Return)
    assert (rows.model["features"], rows.state("features")[0]) == ("32", "32")
    rows.taken()
    rows.type("features", "2*5")
    rows.key("features", Qt.Key.Key_Return)
    assert rows.taken()[-2:] == ["features 10", "end"]
    assert rows.state("features") == ("10", "", True, True)
    rows.type("features", "x")
    assert rows.state("features")[0] == "x"
    assert rows.state("features")[1]
    rows.model["kernel"] = "5x5"
    rows.show()  # another edit
    assert rows.state("features")[0] == "x"
    assert rows.state("features")[1]
    assert rows.model["features"] == "10"
    rows.model["features"] = "11"
    rows.show()  # an edit of the same parameter, such as undo
    assert rows.state("features")[:2] == ("11", "")
    rows.type("features", "7*7")
    rows.section.discard_drafts()  # another layer
    assert rows.state("features")[:2] == ("11", "")
    rows.key("features", Qt.Key.Key_Return)
    assert rows.model["features"] == "11"
    rows.type("features", "4")
    rows.show()  # another layer, which has the number that was typed
    rows.section.discard_drafts()
    rows.taken()
    rows.type("features", "a")
    assert (rows.model["features"], rows.taken()) == ("4", [])  # it does not get what the first layer had before
    rows.key("features", Qt.Key.Key_Escape)
    assert rows.state("features")[:2] == ("4", "")
    rows.type("features", "21")
    rows.key("features", Qt.Key.Key_Return)
    rows.type("features", "b")
    assert rows.model["features"] == "21"  # not what was before the last gesture


@pytest.mark.parametrize("part", [None, 0, 1])
def test_what_is_being_typed_stays_while_something_else_changes(rows: Rows, part: int | None) -> None:
    """In a number and in either part of a size: an expression, a wrong text, and another way to write the same number."""
    name = "features" if part is None else "kernel"
    row, other = rows.row(name), "groups"
    line = (row.editor.inner if part is None else row.editor.inner.fields[part]).lineEdit()
    size = {None: "{}", 0: "{}x3", 1: "3x{}"}[part]

    def type_(text: str) -> None:
        line.setFocus()
        line.selectAll()
        rows.qtbot.keyClicks(line, text)

    def change_something_else() -> None:
        rows.model[other] = "2" if rows.model[other] == "1" else "1"
        rows.show()

    rows.row("apply_bias").editor.inner.setFocus()
    assert row.editor.has_focus() is False
    for text, number, message in (
        ("2*4", "8", f"= {size.format(8)}, press Enter to apply"),
        ("09", "9", ""),
        ("7", "7", ""),
    ):
        type_(text)
        assert row.editor.has_focus()
        for _ in range(2):
            assert (line.text(), row._message.text()) == (text, message)
            change_something_else()
        rows.qtbot.keyClick(line, Qt.Key.Key_Return)
        assert (rows.model[name], line.text(), row._message.text()) == (size.format(number), number, "")
    type_("a")
    said = row._message.text()
    assert said
    change_something_else()
    assert (line.text(), row._message.text(), rows.model[name]) == ("a", said, size.format(7))
    rows.qtbot.keyClick(line, Qt.Key.Key_Escape)
    assert (line.text(), row._message.text()) == ("7", "")
    type_("2*3")
    rows.row("apply_bias").editor.inner.setFocus()  # leaving the field applies the expression
    assert (rows.model[name], line.text()) == (size.format(6), "6")


def test_rows_that_do_not_apply_have_neither_help_nor_message(rows: Rows) -> None:
    padding = rows.row("padding_tuple")
    assert not padding.editor.isVisible()
    rows.model["padding"] = "tuple"
    rows.show()
    assert padding.editor.isVisible()
    padding._help.click()
    assert padding._doc.isVisible()
    rows.model["padding_tuple"] = "1xb"
    rows.show()
    assert padding._message.isVisible()
    rows.model["padding"] = "same"
    rows.show()
    assert not any(part.isVisible() for part in (padding.editor, padding._doc, padding._message, padding._reset))
    rows.model["padding"] = "tuple"
    rows.show()
    assert all(part.isVisible() for part in (padding.editor, padding._doc, padding._message, padding._reset))
    rows.model["padding_tuple"] = "0x0"
    rows.show()
    assert (padding._message.isVisible(), padding._reset.isEnabled()) == (False, False)
    padding._help.click()
    assert not padding._doc.isVisible()


def test_values_of_several_layers_and_of_one_again(rows: Rows) -> None:
    features, bias, padding = rows.row("features"), rows.row("apply_bias"), rows.row("padding")
    line = features.editor.inner.lineEdit()

    def state() -> tuple[str, str, bool, str]:
        return line.text(), line.placeholderText(), features._reset.isEnabled(), features.editor.inner.statusTip()

    rows.show(features=["8", "16"])
    assert state() == ("", "8, 16", True, "Values of the selected layers: 8, 16")
    rows.show(features=["100", "9", "20"])
    assert state() == ("", "9, 20, 100", True, "Values of the selected layers: 9, 20, 100")
    rows.show(features=["1000", "2000", "30", "4000"])
    assert state()[:2] == ("", "30 … 4000")
    for texts, hint in (
        (["100", "200", "3000"], "100, 200, 3000"), (["100", "200", "30000"], "100 … 30000"), (["1", "1000000", "30000000"], "1 … 30000000"),
        (["10000", "20000000"], "…"), (["-5", "5", "x"], "-5, 5, x"),
    ):  # fmt: skip
        rows.show(features=texts)
        assert state() == ("", hint, True, f"Values of the selected layers: {', '.join(texts)}")
    rows.show(features=["32", "32"])
    assert (state()[0], state()[2:]) == ("32", (False, ""))
    rows.show(features=["8", "32"])
    features._reset.click()
    assert rows.taken() == ["features 32", "end"]
    box = bias.editor.inner
    rows.show(apply_bias=["true", "false"])
    assert box.checkState() is Qt.CheckState.PartiallyChecked
    box.click()
    assert rows.taken()[-1] == "end"
    assert box.checkState() is not Qt.CheckState.PartiallyChecked
    for text, checked in (("false", False), ("true", True), ("false", False)):
        rows.model["apply_bias"] = text
        rows.show()
        assert (box.isTristate(), box.isChecked()) == (False, checked)
        box.click()
        assert (rows.model["apply_bias"] == "true") is not checked  # a click turns it over
        rows.taken()
    choice = padding.editor.inner
    assert isinstance(choice, QComboBox)
    rows.show(padding=["same", "valid"])
    assert (choice.currentIndex(), choice.placeholderText()) == (-1, "same, valid")
    rows.model["padding"] = "none of these"
    rows.show()
    assert (choice.currentIndex(), choice.placeholderText(), padding._message.isVisible()) == (
        -1,
        "none of these",
        True,
    )
    rows.model["padding"] = "valid"
    rows.show()
    assert (choice.currentText(), padding._message.isVisible()) == ("valid", False)
    rows.model["features"] = "x"
    rows.show()
    assert features._message.isVisible()
    rows.show(features=["8", "16"])
    assert (features._message.isVisible(), features._reset.isEnabled()) == (False, True), "the text of none of them"
    rows.show()
    assert features._message.isVisible()
    rows.model["features"] = "32"
    rows.show()
    assert (features._message.isVisible(), features._reset.isEnabled()) == (False, False)
    choice.clearFocus()
    for _ in range(2):
        wheel(choice, -1)
    assert (choice.currentText(), rows.taken()) == ("valid", [])  # the page scrolls


def test_a_size_is_typed_in_parts_or_pasted_as_a_whole(qtbot: QtBot) -> None:
    field = shown(qtbot, SizeField("size", "Size", 2, low=1, high=99), 200, 40)
    QTest.qWaitForWindowActive(field)
    told: list[str] = []
    field.edited.connect(told.append)

    def texts() -> list[str]:
        return [each.text() for each in field.fields]

    field.set_text("3x5")
    assert (texts(), field.text(), told) == (["3", "5"], "3x5", [])
    for number, pasted in ((0, "7x9"), (1, "4 × 6"), (0, "8x2")):
        field.set_text("3x5")
        line = field.fields[number].lineEdit()
        line.setFocus()
        line.selectAll()
        qtbot.keyClicks(line, pasted)
        assert told[-1] == pasted.replace(" × ", "x")
    field.set_text("3x5")
    for text in ("wrong", "1x2x3"):
        field.set_text(text)
        assert texts() == [text, ""]
    field.set_text("10x20")
    assert texts() == ["10", "20"]


def test_a_slider_over_ranges_values_and_gestures(qtbot: QtBot) -> None:
    slider = shown(qtbot, NumberSlider("s", "Scale", 0.0, 1.0, 0.3), 300, 40)
    QTest.qWaitForWindowActive(slider)
    log: list[object] = []
    slider.changed.connect(lambda value: log.append(round(value, 6)))
    slider.released.connect(lambda: log.append("end"))

    def taken() -> list[object]:
        found = list(log)
        log.clear()
        return found

    ticks = slider.slider.maximum()
    values = []
    for tick in range(ticks + 1):
        slider.slider.setValue(tick)
        values.append(round(slider.value, 6))
    assert values == [0.0, 0.3, 0.6, 1.0]  # the upper end, too
    taken()
    slider.slider.setFocus()
    for key in (Qt.Key.Key_Home, Qt.Key.Key_End):
        qtbot.keyClick(slider.slider, key)
    assert taken() == [0.0, 1.0]
    qtbot.waitUntil(lambda: log == ["end"], timeout=WAIT)  # once, after the last one
    taken()
    qtbot.keyClick(slider.slider, Qt.Key.Key_Home)
    slider.slider.sliderReleased.emit()
    assert taken() == [0.0, "end"]
    assert not slider._rest.isActive()  # the gesture has ended
    slider.set_value(2.5)
    assert (slider.value, slider.slider.value(), taken()) == (2.5, ticks, [])
    slider.set_value(-4.0)
    assert (slider.value, slider.slider.value(), slider.box.minimum()) == (-4.0, 0, -4.0)
    slider.set_value(0.5)
    assert (slider.box.minimum(), slider.box.maximum()) == (0.0, 1.0)
    slider.set_range(0.0, 8.0, 2.0)
    assert (slider.value, slider.box.singleStep(), slider.slider.maximum(), taken()) == (0.5, 2.0, 4, [])
    slider.box.stepUp()
    assert (slider.value, taken()) == (2.5, [2.5])
    slider.set_range(0.0, 1.0, 0.25)
    assert (slider.value, slider.slider.value(), slider.slider.maximum()) == (2.5, 4, 4)
    slider.slider.setValue(1)
    assert slider.value == 0.25
    slider.set_range(0.0, 1.0, 0.5)  # only the step is another one
    assert (slider.value, slider.box.singleStep(), slider.slider.maximum()) == (0.25, 0.5, 2)
    slider.slider.setValue(1)
    assert slider.value == 0.5


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_typed_into_the_box_of_a_slider_stays_until_it_is_applied(qtbot: QtBot, whole: bool) -> None:
    """Also when the present value is shown again; another value replaces it."""
    slider = shown(qtbot, NumberSlider("s", "Scale", 0, 100, 1, whole=whole), 300, 40)
    QTest.qWaitForWindowActive(slider)
    slider.set_value(5)
    box, changed = slider.box, []
    slider.changed.connect(changed.append)
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "70")
    for _ in range(2):
        slider.set_value(5)
        assert (box.text(), slider.slider.value(), changed) == ("70", 5, [])
    slider.set_value(8)
    assert (slider.value, slider.slider.value(), changed) == (8, 8, [])
    assert box.text() != "70"
    box.selectAll()
    qtbot.keyClicks(box, "70")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert (slider.value, slider.slider.value(), changed) == (70, 70, [70])
    for limit in ("0", "100", "25+75" if not whole else "100"):
        box.selectAll()
        qtbot.keyClicks(box, limit)
        qtbot.keyClick(box, Qt.Key.Key_Return)
        assert slider.value == (0 if limit == "0" else 100)
    box.selectAll()
    qtbot.keyClicks(box, "101")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert slider.value == 100 if not whole else slider.value <= 100


# --- images ----------------------------------------------------------------------------------------------------------------


class Seen:
    """An image view with all that it reports."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot = qtbot
        self.view = shown(qtbot, ImageView("view", "View", "nothing"), 400, 300)
        QTest.qWaitForWindowActive(self.view)
        self.log: list[str] = []
        view = self.view
        view.clicked.connect(lambda: self.log.append("click"))
        view.right_clicked.connect(lambda place: self.log.append(f"right {place}"))
        view.double_clicked.connect(lambda: self.log.append("double"))
        view.split_moved.connect(lambda amount: self.log.append(f"split {amount:.2f}"))
        view.split_released.connect(lambda: self.log.append("split end"))
        view.view_changed.connect(lambda _view: self.log.append("view"))
        view.zoom_changed.connect(lambda zoom: self.log.append(f"zoom {zoom:.2f}"))
        view.probed.connect(lambda place: self.log.append(f"at {place}"))

    def image(self, width: int = 40, height: int = 30) -> None:
        image = QImage(width, height, QImage.Format.Format_RGB32)
        image.fill(0xFF336699)
        self.view.show_image(image)

    def taken(self) -> list[str]:
        found = list(dict.fromkeys(self.log))
        self.log.clear()
        return found

    def drag(self, start: QPointF, *ends: QPointF, button: Qt.MouseButton = LEFT) -> list[str]:
        self.qtbot.mouseMove(self.view, start.toPoint())
        self.taken()
        self.qtbot.mousePress(self.view, button, pos=start.toPoint())
        for end in ends:
            self.qtbot.mouseMove(self.view, end.toPoint())
        self.qtbot.mouseRelease(self.view, button, pos=(ends or (start,))[-1].toPoint())
        return self.taken()


def test_each_gesture_on_an_image_reports_what_it_does(qtbot: QtBot) -> None:
    seen = Seen(qtbot)
    view = seen.view
    assert seen.taken() == []
    seen.image()
    assert seen.taken() == ["zoom 10.00"]
    seen.image()  # the next frame
    assert seen.taken() == []
    middle, aside = view.place_of(20, 15), view.place_of(30, 20)
    assert seen.drag(aside) == ["click"]
    assert seen.drag(aside, aside + QPointF(1, 1)) == ["click"]  # the hand trembled
    assert seen.drag(aside, aside + QPointF(20, 10), aside + QPointF(40, 10)) == ["view"]
    assert not view.view.fitted
    assert seen.drag(aside + QPointF(9, 9)) == ["click"]  # a click after a drag
    view.fit()
    assert seen.taken() == ["zoom 10.00", "view"]
    assert seen.drag(aside, aside + QPointF(30, 0), button=MIDDLE) == ["view"]
    view.fit()
    qtbot.mouseClick(view, RIGHT, pos=view.place_of(7.5, 8.5).toPoint())
    assert [each for each in seen.taken() if each.startswith("right")] == ["right (7, 8)"]
    view.set_split(SplitMode.VERTICAL, 0.5)
    left = view.place_of(10, 15)
    assert seen.drag(middle, left) == ["split 0.25", "split end"]
    assert seen.drag(middle, middle) in (["split 0.50", "split end"], ["split end"])  # never a click
    assert seen.drag(middle, left, button=MIDDLE) == ["view"]  # only the left button moves the line
    view.fit()
    seen.taken()
    view.setFocus()
    for key, expected in (
        (Qt.Key.Key_Right, ["split 0.51", "split end"]),
        (Qt.Key.Key_Left, ["split 0.49", "split end"]),
        (Qt.Key.Key_Down, ["zoom 10.00", "view"]),
    ):
        qtbot.keyClick(view, key)
        assert seen.taken() == expected
    view.set_split(SplitMode.VERTICAL, 0.995)
    qtbot.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert seen.taken() == ["split 1.00", "split end"]
    view.set_split(SplitMode.NONE, 0.5)
    view.fit()
    seen.taken()
    place = view.place_of(3.5, 4.5).toPoint()
    wheel(view, 1, QPointF(place))
    assert seen.taken() == ["zoom 12.50", "view", "at (3, 4)"]
    view.follow(Viewport(False, 3.0, 0.25, 0.75))
    assert seen.taken() == ["zoom 3.00"]  # the other view has reported it
    view.follow(Viewport(False, 3.0, 0.25, 0.75))
    assert seen.taken() == []
    seen.image(80, 60)
    assert seen.taken() == ["zoom 5.00"]
    assert view.view.fitted
    qtbot.mouseMove(view, place)
    seen.taken()
    QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))
    assert seen.taken() == ["at None"]
    qtbot.mousePress(view, LEFT, pos=place)
    view.show_image(None)
    seen.taken()
    qtbot.mouseRelease(view, LEFT, pos=place)
    assert "click" not in seen.taken()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Plus):
        qtbot.keyClick(view, key)
    wheel(view, 1)
    assert seen.taken() == []


def test_bars_are_those_of_the_present_values(qtbot: QtBot) -> None:
    view = shown(qtbot, FeatureView("values", "Values"), 720, 200)
    nan, inf = float("nan"), float("inf")
    for values, span, top in (
        ([1.0, -2.0, 5.0, 5.0], (-2.0, 5.0), [2, 3, 0, 1]),
        ([nan, 3.0, inf, -inf, 1.0, 2.0], (1.0, 3.0), [2, 1, 5, 4, 3]),
        ([nan, nan], (0.0, 0.0), [0, 1]),
        ([7.0], (7.0, 7.0), [0]),
        ([0.0, 0.0, 0.0], (0.0, 0.0), [0, 1, 2]),
    ):
        view.show_values(np.array([values], np.float32))
        assert (view.range, view.top()) == (span, top)
        count = len(values)
        across = view._across()
        assert across == (720 if count == 1 else 480)
        for index in range(count):
            assert view.index_at((index + 0.5) * across / count) == index
        assert view.index_at(across + 1) is None
        view.grab()
    view.set_labels(("cat", ""))
    assert [view.name_of(index) for index in range(3)] == ["0 cat", "1", "2"]
    view.set_labels(())
    assert view.name_of(0) == "0"


# --- choices, buttons, messages ----------------------------------------------------------------------------------------------


def test_choices_and_their_reasons_follow_what_is_offered(qtbot: QtBot) -> None:
    box = shown(qtbot, ChoiceBox("box", "Box"), 200, 40)
    none = "not available on this machine"

    def state() -> list[tuple[str, bool, str]]:
        items = [box._items.item(row) for row in range(box.count())]
        return [(item.text(), item.isEnabled(), item.toolTip()) for item in items]

    one, two = Choice("one", "One"), Choice("two", "Two")
    assert box.show_choices((one, two), "two") == ""
    assert (state(), box.currentData()) == ([("One", True, ""), ("Two", True, "")], "two")
    assert box.show_choices((one, two._replace(reason="no driver")), "two") == "no driver"
    assert (state()[1], box.currentData()) == (("Two - no driver", False, "no driver"), "two")
    assert box.show_choices((one, Choice("three", "Three")), "one") == ""  # as many, others
    assert (state(), box.currentData()) == ([("One", True, ""), ("Three", True, "")], "one")
    assert box.show_choices((one,), "gone") == none
    assert (state()[1], box.currentData()) == ((f"gone - {none}", False, none), "gone")
    assert box.show_choices((one,), "one") == ""
    assert state() == [("One", True, "")]


def test_recorded_runs_can_be_saved_while_there_are_some(qtbot: QtBot) -> None:
    button = shown(qtbot, ExportButton("b", statistics=True), 100, 40)
    told: list[str] = []
    button.requested.connect(told.append)
    runs = button._actions["runs"]
    assert (button.recording, runs.isEnabled()) == (False, False)
    for count in (1, 7, 0, 2):
        button.show_recorded(count)
        assert (runs.isEnabled(), runs.text()) == (count > 0, f"Save {count} Recorded Runs as Animation...")
    for name, action in button._actions.items():
        action.trigger()
        assert told.pop() == name
    assert button.recording
    button._actions["record"].trigger()
    assert not button.recording


def test_messages_and_notices_say_only_the_latest(qtbot: QtBot) -> None:
    page = QWidget()
    notice, message = Notice("notice", "Problem", page), Message("message", page)
    pressed: list[str] = []
    for key in ("again", "other"):
        notice.add_button(key, key.title(), f"{key} tip", lambda key=key: pressed.append(key))  # type: ignore[misc]
    shown(qtbot, page, 400, 300)

    def state() -> tuple[str, set[str], bool]:
        buttons = {each.text() for each in notice.findChildren(QPushButton) if each.isVisible()}
        return notice.text, buttons, notice.isVisible()

    for text, role, keys, expected in (
        ("It broke.", "error", ("again", "other"), "Problem: It broke."),
        ("It is slow.", "warning", ("other",), "Attention: It is slow."),
        ("It is fine.", "info", (), "It is fine."),
        ("", "error", (), ""),
        ("Again.", "error", ("again",), "Problem: Again."),
    ):
        notice.say(text, role, keys)  # type: ignore[arg-type]
        assert state() == (expected, {key.title() for key in keys}, bool(text))
    notice.findChild(QPushButton, "notice.again").click()
    assert pressed == ["again"]
    label = message.findChild(QLabel, "message")
    for text, role, spoken in (
        ("Wrong.", "error", "error: Wrong."),
        ("Slow.", "warning", "warning: Slow."),
        ("", "error", ""),
        ("Done.", "positive", "done: Done."),
    ):
        message.show_message(text, role)  # type: ignore[arg-type]
        assert (label.text(), label.accessibleName(), message.isVisible()) == (text, spoken, bool(text))


def test_the_tip_of_a_label_is_its_own_and_the_text_where_it_is_cut(qtbot: QtBot) -> None:
    label = shown(qtbot, ElidedLabel(), 400, 30)
    long = "a text that is much too long for a narrow label"
    for text, tip, width, expected in (
        ("short", "", 400, "short"),
        ("short", "its tip", 400, "its tip"),
        (long, "its tip", 60, f"{long}\nits tip"),
        (long, "its tip", 600, "its tip"),
        (long, long, 60, long),
        (long, "", 60, long),
        ("", "", 60, ""),
    ):
        label.resize(width, 30)
        label.setText(text)
        label.setToolTip(tip)
        label.grab()
        assert label.toolTip() == expected


# --- a table with a frozen column ------------------------------------------------------------------------------------------


def test_both_parts_of_a_frozen_table_move_together(qtbot: QtBot) -> None:
    model = QStandardItemModel(0, 8)
    for group in range(12):
        head = [QStandardItem(f"group {group} column {column}") for column in range(8)]
        for row in range(4):
            head[0].appendRow([QStandardItem(f"{group}.{row}.{column}") for column in range(8)])
        model.appendRow(head)
    tree = shown(qtbot, FrozenTree("t", "Table"), 300, 200)
    model.setParent(tree)
    tree.set_model(model)
    tree.set_grouped(True)
    frozen, table = tree.views
    for one, other in ((frozen, table), (table, frozen)):
        index = model.index(2, 0)
        one.expand(index)
        assert other.isExpanded(index)
        one.collapse(index)
        assert not other.isExpanded(index)
        table.expandAll()
        frozen.expandAll()
        for value in (40, 0, 90):
            one.verticalScrollBar().setValue(value)
            assert other.verticalScrollBar().value() == value
        table.collapseAll()
    for column, order in (
        (0, Qt.SortOrder.DescendingOrder),
        (3, Qt.SortOrder.AscendingOrder),
        (0, Qt.SortOrder.AscendingOrder),
    ):
        tree.sort_by(column, order)
        for view in tree.views:
            header = view.header()
            assert (header.sortIndicatorSection(), header.sortIndicatorOrder()) == (column, order)
    tree.fit_columns(200)
    QApplication.processEvents()
    across = table.horizontalScrollBar()
    assert across.maximum() > 0
    across.setValue(across.maximum())
    tree.show_row(model.index(11, 0))
    assert across.value() == across.maximum()
    assert frozen.verticalScrollBar().value() == table.verticalScrollBar().value() > 0


# --- files -------------------------------------------------------------------------------------------------------------------


def test_where_and_under_which_name_files_are_saved(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    formats = (Format("Text", (".txt",), write=lambda: None), Format("Table", (".csv", ".tsv"), write=lambda: None))
    table: FormatTable[Any, Any] = FormatTable("files", formats)
    filters = [format_filter(each) for each in formats]
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (second / "there.csv").write_text("")
    monkeypatch.setattr(file_dialogs, "_saved_in", [first])
    proposals: list[tuple[str, str]] = []
    answers: list[tuple[str, str]] = []
    replaced: list[bool] = []
    asked: list[str] = []

    def dialog(_parent: object, _title: str, proposed: str, _filters: str, usual: str) -> tuple[str, str]:
        proposals.append((proposed, usual))
        return answers.pop()

    def box(self: QMessageBox) -> None:
        asked.append(self.text())
        name = "&Replace" if replaced.pop() else "Cancel"
        next(button for button in self.buttons() if button.text().replace("&", "") == name.replace("&", "")).click()

    monkeypatch.setattr(QFileDialog, "getSaveFileName", dialog)
    monkeypatch.setattr(QMessageBox, "exec", box)

    def ask(proposed: Path | str, answer: Path | str, chosen: str = "") -> Path | None:
        answers.append((str(answer), chosen))
        return ask_save_path(parent, "Save", proposed, table)

    assert ask("a.csv", "") is None  # cancelled
    assert proposals.pop() == (str(first / "a.csv"), filters[1])
    assert ask("a.txt", second / "b.txt") == second / "b.txt"
    assert proposals.pop() == (str(first / "a.txt"), filters[0])
    assert ask("A.TSV", "") is None
    assert proposals.pop()[1] == filters[1]
    assert ask("a", second / "c", filters[1]) == second / "c.csv"
    assert proposals.pop() == (str(second / "a"), "")  # the folder of the last one
    assert ask("a.csv", second / "c") == second / "c.csv"  # the format that was proposed
    assert ask("a.csv", second / "c", filters[0]) == second / "c.txt"  # the one that was chosen
    assert ask("a", second / "net v1.2", filters[1]) == second / "net v1.2.csv"
    assert ask(first / "own.txt", first / "own.txt") == first / "own.txt"
    assert proposals.pop() == (str(first / "own.txt"), filters[0])
    for replace in (False, True):
        replaced.append(replace)
        found = ask("a.csv", second / "there")
        assert found == (second / "there.csv" if replace else None)
        assert asked.pop() == "“there.csv” already exists."
    assert ask("a.csv", second / "there.csv") == second / "there.csv"  # the dialog has asked
    assert asked == []
    assert os.path.lexists(second / "there.csv")


def test_a_file_that_is_written_in_a_thread_says_how_it_went(qtbot: QtBot) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)
    said: list[tuple[bool, str]] = []

    def broken() -> None:
        raise DiagnosticError(Diagnostic("full", "the disk is full", remedy="delete something"))

    for work, expected in (
        (lambda: None, (True, "Saved a.png")),
        (broken, (False, "The disk is full. Delete something.")),
        (lambda: None, (True, "Saved a.png")),
    ):
        write_in_thread(owner, work, lambda well, text: said.append((well, text)), "Saved a.png")
        qtbot.waitUntil(lambda: bool(said), timeout=WAIT)
        assert said.pop() == expected
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert owner.findChildren(Background) == []  # nothing is left of them


def test_long_texts_end_a_gesture_when_they_are_left(qtbot: QtBot) -> None:
    cls = next(cls for cls in default_registry() if any(p.info.multiline for p in cls.parameters))
    parameters: list[Parameter] = [p for p in cls.parameters if p.info.multiline]
    page = QWidget()
    section, other = ParamSection("p", parameters[:1], parent=page), QLineEdit(page)
    section.resize(360, 250)
    other.move(0, 260)
    shown(qtbot, page, 380, 300)
    QTest.qWaitForWindowActive(page)
    log: list[str] = []
    section.changed.connect(lambda name, text: log.append(text))
    section.finished.connect(lambda: log.append("end"))
    (row,) = section.rows.values()
    area = row.editor.inner
    area.setFocus()
    qtbot.keyClicks(area, "# a")
    assert log[-1].startswith("# a")
    assert "end" not in log
    other.setFocus()
    assert log[-1] == "end"
