"""The widgets that panels are made of, each in all its states and with every key: what they show, emit and paint is recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from painted import painted, strokes
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QAction, QGuiApplication, QImage, QKeyEvent, QStandardItem, QStandardItemModel
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot
from recorded_state import compare
from window_kit import wheel

from app.ui.analysis.recipe_edit import RecipeEdit
from app.ui.inspector.legend import Legend
from app.ui.inspector.look import Look
from app.ui.inspector.matrix_view import MatrixView
from app.ui.widgets import run_choices, theme
from app.ui.widgets.choice_box import ChoiceBox
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.export_button import ExportButton
from app.ui.widgets.expression import NUMBERS, ExpressionError, worked_out
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.findings import FindingsDialog
from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.frozen_tree import FrozenTree
from app.ui.widgets.image_view import ImageView
from app.ui.widgets.message import ICONS, Message
from app.ui.widgets.notice import Notice
from app.ui.widgets.notice_bar import NoticeBar
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.overlays import BoxOverlay, CrossOverlay, LabelOverlay
from app.ui.widgets.run_choices import Choice
from app.ui.widgets.search_popup import SearchMatch, SearchPopup
from app.ui.widgets.size_field import SizeField
from app.ui.widgets.slider import NumberSlider
from app.ui.widgets.split_line import SplitLine, SplitMode
from designer.graph.diagnostics import Diagnostic, Severity
from designer.runtime.engine_registry import default_engines

Key, Flag = Qt.Key, QAbstractSpinBox.StepEnabledFlag
KEYS = (Key.Key_Up, Key.Key_Down, Key.Key_PageUp, Key.Key_PageDown)


class Page(QWidget):
    """A window with one line that takes the focus, and the widgets of a test."""

    def __init__(self, qtbot: QtBot) -> None:
        super().__init__()
        self.qtbot = qtbot
        self.column = QVBoxLayout(self)
        self.line = QLineEdit()
        self.column.addWidget(self.line)
        qtbot.addWidget(self)
        self.resize(420, 320)
        self.show()
        qtbot.waitExposed(self)
        self.activateWindow()

    def put(self, widget: QWidget) -> QWidget:
        self.column.addWidget(widget)
        widget.show()
        return widget


@pytest.fixture
def page(qtbot: QtBot) -> Page:
    return Page(qtbot)


def steps_of(field: NumberField) -> str:
    flags = field.stepEnabled()
    return f"{'up ' if flags & Flag.StepUpEnabled else ''}{'down' if flags & Flag.StepDownEnabled else ''}".strip()


NUMBERS_OF_FIELDS: dict[str, dict[str, object]] = {
    "whole": {},
    "whole from 1 to 12": {"low": 1, "high": 12},
    "whole by 8 from 0": {"low": 0, "step": 8},
    "decimal": {"whole": False},
    "decimal by 0.25 up to 1": {"whole": False, "high": 1.0, "step": 0.25},
}
TEXTS = ("", "0", "1", "7", "12", "-3", "0.5", "1e3", "2*4", "3.", "1/0", "abc", "inf", "nan", " 5 ", "0.1")


def test_number_fields(page: Page) -> None:
    """Every kind of field x every text: what arrow keys, the wheel and the buttons of the field do."""
    lines = []
    for kind, options in NUMBERS_OF_FIELDS.items():
        field = page.put(NumberField("field", "Number", **options))
        heard: list[str] = []
        field.edited.connect(heard.append)
        field.finished.connect(lambda heard=heard: heard.append("finished"))
        lines += ["", f"# {kind}"]
        for text in TEXTS:
            done = []
            for name, act in {
                "up": partial(QTest.keyClick, field, Key.Key_Up),
                "down": partial(QTest.keyClick, field, Key.Key_Down),
                "page up": partial(QTest.keyClick, field, Key.Key_PageUp),
                "wheel": partial(wheel, field, 2),
            }.items():
                field.set_text(text)
                field.setFocus()
                heard.clear()
                act()
                done.append(f"{name} {field.text()!r} {heard}")
            page.line.setFocus()
            field.set_text(text)
            enabled = steps_of(field)
            field.setReadOnly(True)
            locked = steps_of(field)
            field.setReadOnly(False)
            heard.clear()
            wheel(field, 1)
            lines.append(
                f"{text!r}: steps {enabled or 'none'}, read-only {locked or 'none'}; {'; '.join(done)}; without focus {field.text()!r} {heard}"
            )
        field.set_text("12345")
        field.lineEdit().setCursorPosition(2)
        for text in ("12345", "98765", "9"):
            field.set_text(text)
            lines.append(f"cursor in {text}: {field.lineEdit().cursorPosition()}")
        field.hide()
    compare("widget_numbers", lines)


def test_size_fields(page: Page) -> None:
    lines = []
    for count, optional in ((2, False), (2, True), (3, False)):
        field = page.put(SizeField("size", "Kernel", count, low=1, high=9, optional=optional))
        heard: list[str] = []
        field.edited.connect(heard.append)
        field.finished.connect(lambda heard=heard: heard.append("finished"))
        lines += ["", f"# {count} numbers{' that may be missing' if optional else ''}"]
        lines += [f"{p.accessibleName()}: {p.lineEdit().placeholderText()} {p.toolTip()}" for p in field.fields]
        for text in ("", "3x5", "3x5x7", "9x9x9", "abc", "4"):
            field.set_text(text)
            shown = [part.text() for part in field.fields]
            heard.clear()
            field.fields[-1].setFocus()
            focus = field.has_focus()
            QTest.keyClick(field.fields[-1], Key.Key_Up)
            page.line.setFocus()
            lines.append(f"{text!r}: {shown} is {field.text()!r} after {heard}, focus {focus} {field.has_focus()}")
        field.fields[0].selectAll()
        QTest.keyClicks(field.fields[0], "2 x 4")
        lines.append(f"typed into the first: {field.text()!r}")
        field.hide()
    compare("widget_sizes", lines)


SLIDERS: dict[str, dict[str, object]] = {
    "0 to 1": {"low": 0.0, "high": 1.0},
    "-2 to 3 by 0.5": {"low": -2.0, "high": 3.0, "step": 0.5},
    "0 to 1 by 0.3": {"low": 0.0, "high": 1.0, "step": 0.3},
    "whole 1 to 9": {"low": 1, "high": 9, "whole": True},
    "whole 0 to 100 by 0.4": {"low": 0, "high": 100, "step": 0.4, "whole": True},
    "logarithmic": {"low": 0.01, "high": 100.0, "step": 0.01, "logarithmic": True, "significant": 4},
    "one value": {"low": 2.0, "high": 2.0},
}


def test_sliders(page: Page) -> None:
    """Every kind of slider: what it shows of values inside and outside of its range, and what keys on either part do."""
    lines = []
    for kind, options in SLIDERS.items():
        slider = page.put(NumberSlider("slider", "Amount", **options))
        heard: list[str] = []
        slider.changed.connect(lambda value, heard=heard: heard.append(f"{value:.6g}"))
        slider.released.connect(lambda heard=heard: heard.append("released"))

        def state(slider: NumberSlider = slider, heard: list[str] = heard) -> str:
            box, bar = slider.box, slider.slider
            text = f"{slider.value:.6g} as {box.text()!r} of {box.minimum():g} to {box.maximum():g}, tick {bar.value()} of {bar.maximum()}, {heard}"
            heard.clear()
            return text

        lines += [
            "",
            f"# {kind}",
            f"begin: {state()}, step {slider.box.singleStep():g}, page {slider.slider.pageStep()}",
        ]
        for value in (0.0, 1.0, 0.25, 2.5, 50.0, -7.0, 250.0, 0.5):
            slider.set_value(value)
            lines.append(f"{value:g}: {state()}")
        for place, widget in (("slider", slider.slider), ("number", slider.box)):
            slider.set_value(1.0)
            for key in (Key.Key_Right if place == "slider" else Key.Key_Up, *KEYS, Key.Key_Home, Key.Key_End):
                widget.setFocus()
                QTest.keyClick(widget, key)
                resting = "rests soon" if slider._rest.isActive() else "at rest"
                slider._rest.stop()
                lines.append(f"{key.name} on the {place}: {state()} {resting}")
        slider.box.setFocus()
        slider.box.selectAll()
        QTest.keyClicks(slider.box, "3/4")
        QTest.keyClick(slider.box, Key.Key_Return)
        lines.append(f"3/4 typed: {state()}")
        slider.slider.setSliderDown(True)
        slider.slider.setSliderPosition(slider.slider.maximum() // 3)
        slider.set_value(1.0)  # from elsewhere, while it is dragged
        lines.append(f"dragged: {state()} {'rests soon' if slider._rest.isActive() else 'goes on'}")
        slider.slider.setSliderDown(False)
        lines.append(f"let go: {state()}")
        if options.get("step") and not options.get("logarithmic"):
            slider.set_range(0.0, 4.0, 0.5)
            lines.append(f"another range: {state()}")
        slider._rest.stop()
        slider.hide()
    compare("widget_sliders", lines)


def test_sums_of_every_kind_of_parameter() -> None:
    lines = []
    for kind in NUMBERS:
        lines += ["", f"# {kind}"]
        for text in (
            "2*8", "7/2", "6/2", "-(3-5)", "2**10", "2**-1", "0**0", "0**-1", "2**0.5", "2**65", "7//2", "7%4", "1/0", "5%0",
            "2*8x3", "4x1+1x2", "1+1,3*2", "1/4,2", "2*", "(1", "a+1", "1e400*1", "9**64*9**64*9**64", "1+" * 70 + "1", "True+1",
        ):  # fmt: skip
            try:
                lines.append(f"{text[:24]}: {worked_out(kind, text)}")
            except ExpressionError as error:
                lines.append(f"{text[:24]}: {error}")
    compare("widget_expressions", lines)


def test_search_popups(page: Page) -> None:
    entries = [
        SearchMatch("a", "Alpha", "first", "tip of a", enabled=False),
        SearchMatch("b", "Beta", "second", icon=theme.icon("magnify", "text")),
        SearchMatch("c", "Gamma", enabled=False),
        SearchMatch("d", "Delta"),
        SearchMatch("e", "Epsilon"),
    ]
    popup = SearchPopup(
        "search",
        "Search",
        "type a name",
        "Nothing is called so",
        lambda t: (e for e in entries if t in e.text.lower()),
        page,
    )
    chosen: list[str] = []
    popup.chosen.connect(chosen.append)
    lines = []

    def state() -> str:
        rows = [
            f"{i.text(0)}|{i.text(1)}|{i.toolTip(0)}|{'' if i.icon(0).isNull() else 'icon'}{' gray' if i.isDisabled() else ''}"
            for i in (popup._list.topLevelItem(r) for r in range(popup._list.topLevelItemCount()))
        ]
        current = popup._list.currentItem()
        return f"{rows if popup._list.isVisibleTo(popup) else popup._nothing.text()}, at {current.text(0) if current else None}, visible {popup.isVisible()}, chosen {chosen}"

    popup.open_over(page, "")
    lines.append(f"opened: {state()}")
    for key in (Key.Key_Down, Key.Key_Down, Key.Key_Down, Key.Key_Up, Key.Key_PageDown, Key.Key_PageUp):
        QTest.keyClick(popup._edit, key)
        lines.append(f"{key.name}: {state()}")
    for text in ("alp", "zz", "a"):
        popup._edit.clear()
        QTest.keyClicks(popup._edit, text)
        lines.append(f"{text}: {state()}")
    for text in ("alp", "zz"):
        popup._edit.setText(text)
        QTest.keyClick(popup._edit, Key.Key_Return)
        lines.append(f"Return at {text}: {state()}")
    popup._edit.setText("e")
    QTest.keyClick(popup._edit, Key.Key_Down)
    QTest.keyClick(popup._edit, Key.Key_Return)
    lines.append(f"Return at the second of e: {state()}")
    popup.open_at(page.mapToGlobal(QPoint(10, 10)), "eps")
    lines.append(f"opened with eps: {state()}, selected {popup._edit.selectedText()!r}")
    popup.close()
    compare("widget_search", lines)


def test_messages_and_notices(page: Page) -> None:
    """Texts, roles and buttons, each after another one."""
    message, notice, bar = Message("message"), Notice("notice", "Problem"), NoticeBar("bar")
    pressed: list[str] = []
    for key in ("one", "two"):
        notice.add_button(key, key.title(), f"tip of {key}", lambda key=key: pressed.append(key))
    for widget in (message, notice, bar):
        page.column.addWidget(widget)
    lines = []

    def state(widget: QWidget) -> list[str]:
        if widget.isHidden():
            return ["hidden"]
        buttons = [b for b in widget.findChildren(QPushButton) + widget.findChildren(QToolButton) if not b.isHidden()]
        names = [f"{b.text()} ({b.toolTip()}, called {b.accessibleName()})" for b in buttons]
        images = [name for name in roles if _icon(name) == _pixmaps(widget)]
        made = [line for line in painted(widget) if line.startswith("rect filled") or " of " in line or "<b>" in line]
        made = [
            line.partition(" filled")[0] if "bar of" in line else line for line in made
        ]  # in the color of the application
        return [*made, f"icon {images}", f"buttons {names}", f"called {widget.accessibleName()!r}"]

    roles = ("error", "warning", "info", "positive")
    for role in roles:
        message.show_message(f"<b>a</b> {role}", role)
        lines += ["", f"# message {role}", *state(message), message._text.accessibleName()]
    message.show_message("")
    lines += ["", "# no message", *state(message), repr(message._text.accessibleName())]
    for role, shown in (("error", ("one", "two")), ("warning", ("two",)), ("info", ()), ("error", ("one",))):
        notice.say(f"text of {role}", role, shown)
        lines += ["", f"# notice {role}", *state(notice), notice._label.accessibleName()]
    notice.findChild(QPushButton, "notice.one").click()
    notice.say("")
    lines += ["", "# no notice", *state(notice), repr(notice._label.accessibleName())]
    for role in ("warning", "error", "info"):
        bar.show_message(f"bar of {role}", [("do", f"&Do {role}", "tip", lambda role=role: pressed.append(role))], role)
        lines += ["", f"# bar {role}", *state(bar)]
        next(b for b in bar.findChildren(QToolButton, "bar.do") if not b.isHidden()).click()
    bar.clear()
    lines += ["", "# no bar", *state(bar), f"pressed {pressed}"]
    compare("widget_messages", lines)


def test_a_notice_bar_replaces_its_buttons_and_follows_the_theme(page: Page) -> None:
    bar = NoticeBar("bar")
    page.column.addWidget(bar)
    QApplication.processEvents()  # a layout shows what is added and not hidden
    assert bar.isHidden()
    pressed: list[str] = []

    def buttons() -> list[QToolButton]:
        return [button for button in bar.findChildren(QToolButton) if not button.isHidden()]

    def say(*names: str) -> None:
        bar.show_message(
            f"text of {names}",
            [(name, f"&{name}", f"tip of {name}", lambda name=name: pressed.append(name)) for name in names],
        )

    say("one", "two", "three")
    assert bar.isVisible()
    assert [(b.objectName(), b.text(), b.toolTip()) for b in buttons()] == [
        (f"bar.{name}", f"&{name}", f"tip of {name}") for name in ("one", "two", "three")
    ]
    for button in buttons():
        assert button.focusPolicy() == Qt.FocusPolicy.StrongFocus
        button.click()
    assert pressed == ["one", "two", "three"]
    say("four")
    assert [button.text() for button in buttons()] == ["&four"]
    assert bar.text() == bar.accessibleName() == "text of ('four',)"
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert [button.text() for button in bar.findChildren(QToolButton)] == ["&four"]
    assert _icon("warning") == _pixmaps(bar)
    before = bar.palette().window().color()
    theme.apply(QApplication.instance(), "light")
    assert bar.palette().window().color() == theme.color("raised") != before
    assert _icon("warning") == _pixmaps(bar)
    bar.clear()
    assert bar.isHidden()
    assert bar.text() == bar.accessibleName() == ""
    assert buttons() == []


def _icon(name: str) -> bytes:
    return bytes(theme.icon(ICONS[name], name).pixmap(16, 16).toImage().constBits())


def _pixmaps(widget: QWidget) -> bytes:
    found = [label.pixmap() for label in widget.findChildren(QLabel) if not label.pixmap().isNull()]
    return bytes(found[0].toImage().constBits()) if found else b""


def test_placeholders_labels_and_menus(page: Page) -> None:
    lines = []
    state = EmptyState("panel", "layers-triple-outline", "Nothing is here.", "Open")
    page.put(state)
    before = _pixmaps(state)
    state.show_text("Still nothing.")
    lines.append(f"{state.text()}: icon {'the same' if _pixmaps(state) == before else 'another'}")
    state.show_text("Now something else.", "magnify")
    lines.append(f"{state.text()}: icon {'the same' if _pixmaps(state) == before else 'another'}")
    label = page.put(ElidedLabel())
    for text, tip in (
        ("short", ""),
        ("short", "tip"),
        ("long " * 60, "tip"),
        ("long " * 60, ""),
        ("a <b>\n" + "b" * 200, "&lt; <i>"),
    ):
        label.setText(text)
        label.setToolTip(tip)
        label.repaint()
        lines.append(f"{text[:12]!r} with tip {tip!r}: {label.toolTip()[:40]!r} ... {label.toolTip()[-20:]!r}")
        label.setText("other")
        label.repaint()
        lines.append(f"then other: {label.toolTip()!r}")
    box = page.put(ChoiceBox("choice", "Engine", "tip"))
    chosen: list[str] = []
    box.chosen.connect(chosen.append)
    choices = (Choice("a", "A"), Choice("b", "B", "not installed"), Choice("c", "C"))
    for value in ("a", "b", "z", "c"):
        reason = box.show_choices(choices, value)
        items = [
            (box.itemText(i), box.itemData(i, Qt.ItemDataRole.ToolTipRole), box.model().item(i).isEnabled())
            for i in range(box.count())
        ]
        lines.append(f"{value}: {reason!r} at {box.currentText()} of {items}")
    page.line.setFocus()
    wheel(box, -1)
    lines.append(f"wheel without focus: {box.currentText()} {chosen}")
    box.setFocus()
    QTest.keyClick(box, Key.Key_Home)
    lines.append(f"Home: {box.currentText()} {chosen}")
    button = page.put(ExportButton("view", statistics=True))
    heard: list[str] = []
    button.requested.connect(heard.append)

    def entries() -> list[str]:
        return [
            f"{a.text()}{'' if a.isEnabled() else ' (not now)'}{' checked' if a.isChecked() else ''}"
            if not a.isSeparator()
            else "-"
            for a in button.menu().actions()
        ]

    lines.append(f"export: {entries()} enabled {button.isEnabled()} recording {button.recording}")
    for action in button.menu().actions():
        if isinstance(action, QAction) and not action.isSeparator():
            action.trigger()
    lines.append(f"{heard} recording {button.recording}")
    for count in (0, 1, 12):
        button.show_recorded(count)
        lines.append(f"{count} recorded: {entries()[-1]}")
    dialog = FindingsDialog(
        "Export", "It failed.",
        [
            Diagnostic("a", "is wrong", Severity.ERROR, line=3, layer="conv", remedy="mend it"),
            Diagnostic("b", "may be wrong", Severity.WARNING, layer="mix"),
            Diagnostic("c", "is so", Severity.INFO, line=7, file="a.xml"),
        ],
        page,
    )  # fmt: skip
    lines += [
        f"finding {dialog.list.item(r).text()!r} tip {dialog.list.item(r).toolTip()}"
        for r in range(dialog.list.count())
    ]
    dialog.copy()
    lines.append(f"copied {QGuiApplication.clipboard().text()!r}")
    dialog.deleteLater()
    compare("widget_texts", lines)


def bars_of(view: FeatureView) -> list[str]:
    """Each bar: its color, its height as a share of the tallest one, and whether it is above or below the line of zero."""
    bars = [s for s in strokes(view) if s.kind == "rect" and ("positive" in s.fill or "negative" in s.fill)]
    tallest = max((s.area.height() for s in bars), default=1.0)
    zero = next((s.area.bottom() for s in bars if "positive" in s.fill), bars[0].area.top() if bars else 0.0)
    found = []
    for bar in bars:
        side = (
            "above" if abs(bar.area.bottom() - zero) < 1 else "below" if abs(bar.area.top() - zero) < 1 else "nowhere"
        )
        found.append(f"{bar.fill} {bar.area.height() / tallest:.2f} {side}")
    return found


def test_bars_of_values(page: Page) -> None:
    view = FeatureView("values", "Values")
    view.resize(700, 200)
    probed: list[object] = []
    view.probed.connect(probed.append)
    page.qtbot.addWidget(view)
    lines = []
    for name, values, labels in (
        ("nothing", np.zeros(0), ()),
        ("one", np.array([0.125]), ()),
        ("of both signs", np.array([[1.0, -2.0, 0.5, 0.0]]), ("cat", "", "dog")),
        ("negative", np.array([-1.0, -0.5]), ("a", "b")),
        ("not finite", np.array([np.nan, np.inf, 2.0, -np.inf]), ("nan", "inf", "two", "low")),
        ("zeros", np.zeros(3), ()),
        ("more than fit", np.sin(np.arange(2000.0)), ()),
    ):
        for note in ("", "random weights"):
            view.set_labels(labels)
            view.set_note(note)
            view.show_values(values)
            made = [line for line in painted(view) if name != "more than fit" or line.startswith("text")]
            lines += ["", f"# {name} {note}", *made]
        lines.append(
            f"top {view.top()[:4]} range {view.range} under the cursor {[view.index_at(x) for x in (0, 200, 459, 460, 699, -5)]}"
        )
        if 1 < values.size < 9:
            lines.append(f"bars {bars_of(view)}")
    view.resize(300, 120)
    view.set_labels(("x",))
    view.show_values(np.array([3.0, 4.0]))
    lines += ["", "# narrow", *painted(view), f"{[view.index_at(x) for x in (0, 149, 150, 299)]}"]
    compare("widget_bars", lines)


def test_maps_legends_and_recipes(page: Page) -> None:
    lines = []
    view = MatrixView("map", "Map")
    view.resize(400, 300)
    page.qtbot.addWidget(view)
    probed: list[object] = []
    view.probed.connect(probed.append)
    for data, axes, look, note in (
        (np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), ("filter", "input channel"), Look(), ""),
        (np.linspace(1, -1, 12, dtype=np.float32).reshape(3, 4), ("filter", "input channel"), Look(), "random weights"),
        (np.linspace(0, 4, 12, dtype=np.float32).reshape(3, 4), ("position", "feature"), Look("gray", each=True), ""),
        (
            np.linspace(0, 4, 2000, dtype=np.float32).reshape(200, 10),
            ("position", "feature"),
            Look("gray", 0.5, -2),
            "",
        ),
    ):
        view.set_look(look)
        view.set_note(note)
        view.show_values(data, axes)
        assert view.image is not None
        corner = [
            view.image.pixelColor(x, y).name()
            for x, y in ((0, 0), (view.image.width() - 1, 0), (0, view.image.height() - 1))
        ]
        texts = [line for line in painted(view) if line.startswith("text")]
        lines += [
            "",
            f"# {data.shape} {look} {note}",
            f"image {view.image.width()}x{view.image.height()} {corner}",
            *texts,
        ]
        area = view.area()
        places = (
            area.topLeft(),
            area.center(),
            area.bottomRight() - QPointF(1, 1),
            QPointF(1, 1),
            area.bottomRight() + QPointF(1, 1),
        )
        lines.append(f"under the cursor {[view.place_at(p) for p in places]}")
    view.set_dimmed(True)
    dimmed = view.grab().toImage().pixelColor(view.area().center().toPoint()).lightness()
    view.set_dimmed(False)
    lines.append(
        f"dimmed is darker: {dimmed < view.grab().toImage().pixelColor(view.area().center().toPoint()).lightness()}"
    )
    view.show_values(None)
    lines.append(f"nothing: {view.image} {view.place_at(QPointF(200, 100))}")
    legend = Legend()
    page.qtbot.addWidget(legend)
    for look in (
        Look(),
        Look(gain=2),
        Look(gain=2, shift=0.25),
        Look(shift=-1),
        Look(log=True),
        Look(log=True, gain=4, shift=1),
        Look(each=True),
        Look(gain=1e9, shift=1e-9),
        Look(gain=0.01, shift=-100),
    ):
        for unit in ("", "weight"):
            legend.show_look(look, unit)
            legend.resize(legend.sizeHint())
            wide = legend.middle()
            legend.resize(60, 30)
            lines.append(f"{look} {unit}: {legend.texts()} {wide!r} narrow {legend.middle()!r} tip {legend.toolTip()}")
    edit = RecipeEdit()
    edit.resize(240, 24)
    page.qtbot.addWidget(edit)
    for text in (
        "a",
        "",
        "a +",
        "a + foo * b",
        "where(x < alpha, a)",
        "abs(a - b",
        "a $ b",
        "3 * * 2",
        "a.real",
        "é + a",
        "a" * 60 + " +",
    ):
        edit.setText(text)
        lines.append(f"recipe {text[:24]!r}: {edit.problem} {edit.toolTip()[:90]}")
        if edit.problem is not None:
            edit.setCursorPosition(edit.problem[0])
            waves = [s.area.left() for s in strokes(edit) if "error" in s.pen]
            place = edit.cursorRect().center().x()  # scrolled while it is painted, where the text is long
            lines.append(f"  underlined where the cursor is: {[abs(left - place) < 4 for left in waves]}")
    compare("widget_maps", lines)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a + foo * b", "foo"),
        ("unknown", "unknown"),
        ("a.real", ""),
        ("a $ b", ""),
        ("alpha + beta1_x", "beta1_x"),
        ("a + beta - b", "beta"),
    ],
)
def test_all_of_a_wrong_name_is_underlined(qtbot: QtBot, text: str, wrong: str) -> None:
    edit = RecipeEdit()
    qtbot.addWidget(edit)
    edit.resize(400, 24)
    edit.setText(text)
    assert edit.problem is not None
    first, last = edit.problem
    assert not wrong or text[first:last] == wrong
    (wave,) = [s.area for s in strokes(edit) if "error" in s.pen]
    width = edit.fontMetrics().horizontalAdvance
    wanted = width(text[:last]) - width(text[:first])
    assert abs(wave.width() - max(wanted, edit.fontMetrics().averageCharWidth())) <= 4
    edit.setCursorPosition(first)
    assert abs(wave.left() - edit.cursorRect().center().x()) <= 4


def test_overlays_of_an_image(page: Page) -> None:
    """Boxes, crosses and labels inside, at the border and outside of what is seen."""
    lines = []

    def draw(overlay: BoxOverlay | CrossOverlay | LabelOverlay, scale: float) -> Callable:
        def paint(painter: object) -> None:
            painter.setWindow(0, 0, 300, 200)  # type: ignore[attr-defined]
            painter.setViewport(0, 0, 300, 200)  # type: ignore[attr-defined]
            overlay.paint(painter, lambda x, y: QPointF(x * scale + 10, y * scale + 20))  # type: ignore[arg-type]

        return paint

    for overlay in (
        BoxOverlay(2, 3, 6, 9), BoxOverlay(2, 8, 6, 12, "worst", "error"), BoxOverlay(0, 0, 4, 4, "top"), BoxOverlay(70, 8, 90, 12, "right"),
        BoxOverlay(-20, 8, 5, 12, "left"), CrossOverlay(4, 5), CrossOverlay(4, 5, "pin", "warning"), CrossOverlay(0, 0),
        LabelOverlay("A", (0, 0, 20, 20)), LabelOverlay("B", (0, 0, 20, 20), True), LabelOverlay("C", (0, 0, 20, 20), True, True),
        LabelOverlay("hidden", (0, 0, 1, 1)), LabelOverlay("far", (-40, -40, 200, 200), False, True), LabelOverlay("gone", (400, 0, 500, 20)),
        LabelOverlay("low", (0, 0, 40, 1)), LabelOverlay("cut", (0, 8, 60, 16), True),
    ):  # fmt: skip
        for scale in (4.0, 12.0):
            made = strokes(draw(overlay, scale))
            shapes = [
                f"{s.kind} {s.fill or s.pen} {s.area.left():.0f},{s.area.top():.0f} to {s.area.right():.0f},{s.area.bottom():.0f}"
                for s in made if s.kind != "text" and not s.fill
            ]  # fmt: skip
            notes = [
                f"{s.text!r} in {'left' if s.area.center().x() < 150 else 'right'} {'upper' if s.area.center().y() < 100 else 'lower'} part, whole {QRectF(0, 0, 300, 200).contains(s.area.center())}"
                for s in made
                if s.kind == "text"
            ]
            lines.append(f"{overlay} x {scale:g}: {shapes} {notes}")
    for way in SplitMode:
        for amount in (0.0, 0.3, 1.0):
            line, target = SplitLine(way, amount), QRectF(10, 20, 200, 100)
            places = [QPointF(x, y) for x in (2, 10, 70, 78, 210, 218) for y in (12, 20, 50, 57, 120, 128)]
            at = "".join("x" if line.is_at(p, target) else "." for p in places)
            moved = [line.moved(s) for s in (-0.5, 0.1, 0.9)]
            lines.append(
                f"{way.name} {amount}: {line.ends(target)} {line.cursor.name} grabbed {at} moved {moved} to {[line.amount_at(p, target) for p in places[::8]]}"
            )
    view = ImageView("view", "Image", "Nothing yet.")
    page.qtbot.addWidget(view)
    shortcuts = []
    for key in (Key.Key_Plus, Key.Key_Minus, Key.Key_Left, Key.Key_Space, Key.Key_A, Key.Key_Escape):
        event = QKeyEvent(QEvent.Type.ShortcutOverride, key, Qt.KeyboardModifier.NoModifier)
        event.ignore()
        QApplication.sendEvent(view, event)
        shortcuts.append(f"{key.name} {event.isAccepted()}")
    lines.append(f"keys that the view keeps from the window: {shortcuts}")
    view.resize(400, 300)
    view.show_image(QImage(4, 3, QImage.Format.Format_RGB32))
    places = [view.place_of(x, y) for x, y in ((-0.3, 1), (0.2, -0.4), (0.2, 0.1), (3.8, 2.9), (4.1, 1), (1, 3.2))]
    lines.append(f"pixels of an image of 4 x 3: {[view.pixel_at(place) for place in places]}")
    compare("widget_overlays", lines)


def test_tables_with_a_frozen_column(page: Page) -> None:
    model = QStandardItemModel(0, 3)
    model.setHorizontalHeaderLabels(["Name", "Time", "Long"])
    for name, time in (("b", "2"), ("a", "3"), ("c", "1")):
        group = QStandardItem(name)
        group.appendRow([QStandardItem(f"{name}1"), QStandardItem("9"), QStandardItem("inner")])
        model.appendRow([group, QStandardItem(time), QStandardItem("wide " * 60)])
    tree = page.put(FrozenTree("tree", "Layers"))
    lines = [f"{view.objectName()}: {view.accessibleName()}" for view in tree.views]
    tree.set_model(model)
    copied, activated = [], []
    tree.on_copy(lambda: copied.append(len(tree.selected_rows())))
    tree.activated.connect(lambda index: activated.append(index.data()))
    tree.fit_columns(150)
    lines.append(f"widths {max(tree.table.columnWidth(c) for c in (1, 2)) <= 150} {tree.table.columnWidth(2)}")
    for view in tree.views:
        columns = [c for c in range(3) if not view.isColumnHidden(c)]
        lines.append(f"{view.objectName()} columns {columns}")
    tree.set_grouped(True)
    for one, other in (tree.views, tree.views[::-1]):
        first = model.index(0, 0)
        one.expand(first)
        lines.append(f"expanded {one.isExpanded(first)} {other.isExpanded(first)}")
        one.collapse(first)
        lines.append(f"collapsed {one.isExpanded(first)} {other.isExpanded(first)}")
        one.expandAll()
        one.setCurrentIndex(model.index(1, 0))
        lines.append(f"selected {[i.data() for i in tree.selected_rows()]}")
        one.setFocus()
        QTest.keyClick(one, Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        QTest.keyClick(one, Key.Key_Return)
        lines.append(f"copied {copied} activated {activated}")
    for column, order in ((0, Qt.SortOrder.AscendingOrder), (1, Qt.SortOrder.DescendingOrder)):
        tree.sort_by(column, order)
        shown = [model.index(r, 0).data() for r in range(3)]
        arrows = [(v.header().sortIndicatorSection(), v.header().sortIndicatorOrder().name) for v in tree.views]
        lines.append(f"sorted {shown} {arrows}")
    long = QStandardItemModel(0, 2)
    for number in range(200):
        long.appendRow([QStandardItem(str(number)), QStandardItem("x")])
    tree.set_model(long)
    QApplication.processEvents()  # laid out
    tree.show_row(long.index(150, 0))
    bars = [view.verticalScrollBar().value() for view in tree.views]
    lines.append(f"scrolled {bars[0] > 0} {bars[0] == bars[1]}")
    compare("widget_tables", lines)


def test_choices_of_every_engine_on_a_machine_with_two_gpus_and_without_an_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = default_engines()
    kind, known = type(registry), {engine.name for engine in registry}
    lacking = "onnxruntime"
    real = kind.devices
    monkeypatch.setattr(
        kind,
        "devices",
        lambda self, found: [
            (device, 0 if device.kind == "cpu" else 2, "is not installed" if found.name == lacking else "")
            for device, _, _ in real(self, found)
        ],
    )
    problem = Diagnostic("engine-missing", "it is not installed", remedy="install it")
    monkeypatch.setattr(kind, "problem", lambda self, found: problem if found.name == lacking else None)
    lines = ["# engines", *map(str, run_choices.engines())]
    for name in (*sorted(known), "unknown"):
        lines += ["", f"# {name}", *map(str, run_choices.devices(name)), *map(str, run_choices.layouts(name))]
        for device in ("cpu", "cuda:1"):
            lines += [f"{device}: {choice}" for choice in run_choices.precisions(name, device)]
    for side in (-1, 0, 512, 300):
        lines.append(f"tiles {side}: {[choice.title for choice in run_choices.tiles(side)]}")
    compare("widget_run_choices", lines)


def test_a_device_is_as_available_as_it_is_to_the_chosen_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = default_engines()
    reasons = {engine.name: f"reason of {engine.name}" for engine in registry}
    lacking: set[str] = set()
    monkeypatch.setattr(
        type(registry),
        "devices",
        lambda self, found: [
            (device, 1, reasons[found.name] if found.name in lacking else "") for device in found.devices
        ],
    )
    for chosen in registry:
        own = {"cpu" if device.kind == "cpu" else f"{device.kind}:0" for device in chosen.devices}
        for lacking in (set(reasons) - {chosen.name}, {chosen.name}):
            found = {choice.value: choice.reason for choice in run_choices.devices(chosen.name)}
            assert {value: found[value] for value in own} == dict.fromkeys(
                own, reasons[chosen.name] if chosen.name in lacking else ""
            )
            others = {value: reason for value, reason in found.items() if value not in own}
            assert all(reason.startswith(f"not supported by {chosen.title}; choose ") for reason in others.values())


def test_the_letter_of_a_label_leads_to_its_field(qtbot: QtBot) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    flow = FlowLayout(page)
    fields = [QLineEdit(), QLineEdit()]
    for text, field in zip(("&One", "&Two"), fields, strict=True):
        flow.add_labelled(text, field)
    labels = page.findChildren(QLabel)
    assert [(label.text(), label.buddy()) for label in labels] == [("&One", fields[0]), ("&Two", fields[1])]
