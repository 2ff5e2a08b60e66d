"""The editor of every kind of parameter: what it shows of one value, of several and of wrong ones, and what it says, is recorded."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare
from window_kit import shown

from app.ui.widgets.number_field import NumberField
from app.ui.widgets.param_editor import ParamEditor
from app.ui.widgets.param_section import ParamRow, ParamSection
from app.ui.widgets.size_field import SizeField
from designer.operators.api import Parameter
from designer.operators.params import ParamInfo
from designer.operators.registry import default_registry

TEXTS = {  # one value, several, and a wrong one
    "bool": ("true", ("true", "false"), "perhaps"),
    "int": ("12", ("128", "9", "x", "-3", "30"), "1.5"),
    "float": ("0.25", ("10", "9.5", "2"), "many"),
    "size2d": ("3x5", ("10x1", "3x3"), "3"),
    "size3d": ("3x5x7", ("1x1x1", "2x2x2"), "3x3"),
    "size2d?": ("", ("3x3", "auto"), "0x"),
    "ints": ("1,2", ("1,2", "3"), "1,a"),
    "str": ("a & <b>", ("one", "two"), ""),
}
MANY = tuple(str(1000 * n) for n in (12, 3, 25, 1, 47, 8, 19))


def of_every_kind() -> dict[str, Parameter]:
    """One parameter of each kind of editor, by a description of the kind."""
    found: dict[str, Parameter] = {}
    registry = default_registry()
    for cls in (*registry, *registry.activations.values()):
        for p in cls.parameters:
            info = p.info
            words = any("_" in str(choice) for choice in info.choices)
            choices = "of choices of several words" if words else "of choices" * bool(info.choices)
            marks = (choices, "multiline" * info.multiline, "with a unit" * bool(info.unit))
            bounds = ("at least" * (info.min is not None), "at most" * (info.max is not None))
            name = " ".join(filter(None, (p.kind, *marks, *bounds)))
            found.setdefault(name, p)
    return dict(sorted(found.items()))


def texts_of(p: Parameter) -> tuple[str, tuple[str, ...], str]:
    if p.info.choices and p.kind != "bool":
        names = [str(choice) for choice in p.info.choices]
        return names[-1], tuple(names[:2]), "no_choice"
    return TEXTS.get(p.kind, TEXTS["str"])


def seen(editor: ParamEditor) -> str:
    inner = editor.inner
    if isinstance(inner, SizeField):
        parts = [f"{field.lineEdit().text()!r} {field.lineEdit().placeholderText()!r}" for field in inner.fields]
    elif isinstance(inner, NumberField):
        parts = [f"{inner.lineEdit().text()!r} {inner.lineEdit().placeholderText()!r}"]
    elif isinstance(inner, QCheckBox):
        parts = [f"{inner.checkState().name} {inner.isTristate()}"]
    elif isinstance(inner, QComboBox):
        parts = [f"{inner.currentText()!r} {inner.placeholderText()!r}"]
    elif isinstance(inner, QPlainTextEdit):
        parts = [f"{inner.toPlainText()!r} {inner.placeholderText()!r}"]
    else:
        assert isinstance(inner, QLineEdit)
        parts = [f"{inner.text()!r} {inner.placeholderText()!r}"]
    return f"{' / '.join(parts)} says {editor.text()!r} {inner.statusTip()!r}"


def touch(editor: ParamEditor) -> None:
    """What a user does to make another value of it."""
    inner = editor.inner
    if isinstance(inner, QCheckBox):
        inner.click()
    elif isinstance(inner, QComboBox):
        inner.setCurrentIndex(0)
        inner.activated.emit(0)
    elif isinstance(inner, SizeField | NumberField):
        field = inner.fields[-1] if isinstance(inner, SizeField) else inner
        field.lineEdit().selectAll()
        QTest.keyClicks(field.lineEdit(), "6")
        QTest.keyClick(field.lineEdit(), Qt.Key.Key_Return)
    elif isinstance(inner, QPlainTextEdit):
        inner.selectAll()
        QTest.keyClicks(inner, "x")
    else:
        inner.selectAll()
        QTest.keyClicks(inner, "7")
        QTest.keyClick(inner, Qt.Key.Key_Return)


def turn(widget: QWidget) -> bool:
    """Turn the wheel over a widget without the focus. Whether the page around it gets the event."""
    place = QPointF(widget.rect().center())
    down, no, phase = QPoint(0, -120), Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(place, QPointF(widget.mapToGlobal(place.toPoint())), QPoint(), down, no, Qt.KeyboardModifier.NoModifier, phase, False)  # fmt: skip
    QApplication.sendEvent(widget, event)
    return not event.isAccepted()


def test_editors_of_every_kind(qtbot: QtBot) -> None:
    page = shown(qtbot, QWidget(), 300, 300)
    lines: list[str] = []
    for name, parameter in of_every_kind().items():
        editor = ParamEditor(f"p.{parameter.name}", parameter, page)
        editor.show()
        said: list[str] = []
        editor.edited.connect(lambda text, said=said: said.append(f"edited {text!r}"))
        editor.finished.connect(lambda said=said: said.append("finished"))
        editor.reverted.connect(lambda said=said: said.append("reverted"))
        one, several, wrong = texts_of(parameter)
        lines.append(f"# {name}: {type(editor.inner).__name__} {editor.inner.accessibleName()!r}")

        def note(what: str, editor: ParamEditor = editor, said: list[str] = said) -> None:
            lines.append(f"{what}: {seen(editor)}{''.join(f'; {text}' for text in said)}")
            said.clear()

        for what, text in (("default", parameter.format(parameter.default)), ("one", one), ("wrong", wrong)):
            editor.set_text(text)
            note(f"{what} {text!r}")
        for values in (several, several[:1], MANY, several):
            editor.set_several(values)
            editor.set_text(None)
            note(f"several {' '.join(values)}")
        touch(editor)
        note("touched")
        fields = editor.inner.fields[0].lineEdit() if isinstance(editor.inner, SizeField) else editor.inner
        QTest.keyClick(fields, Qt.Key.Key_Escape)
        note("escape")
        editor.set_text(one)
        lines.append(f"wheel: {turn(editor.inner)} {editor.text()!r}")
        said.clear()
        editor.hide()
    compare("param_editors", lines)


def row_of(row: ParamRow) -> str:
    message = "" if row._message.isHidden() else row._message.text()
    parts = (row._label, row.editor, row._reset, row._help, row._doc)
    hidden = " ".join(
        name for name, part in zip(("label", "editor", "reset", "help", "doc"), parts, strict=True) if part.isHidden()
    )
    return f"{seen(row.editor)} value {row.value()!r} draft {row.draft()!r} reset {row._reset.isEnabled()} message {message!r} hidden {hidden}"


def test_rows_of_every_kind(qtbot: QtBot) -> None:
    """Labels, tips and help, and what one value, several and a wrong one change in a row, with and without a single default."""
    lines: list[str] = []
    for name, parameter in of_every_kind().items():
        one, several, wrong = texts_of(parameter)
        for varied in ((), (parameter.name,)):
            section = ParamSection("p", [parameter], varied)
            qtbot.addWidget(section)
            row = section.rows[parameter.name]
            said: list[str] = []
            section.changed.connect(lambda key, text, said=said: said.append(f"{key} {text!r}"))
            section.finished.connect(lambda said=said: said.append("finished"))
            lines.append(f"# {name}{', varied' if varied else ''}: {row._label.text()!r} {row._label.toolTip()!r}")
            lines.append(f"doc {row._doc.text()!r} reset {row._reset.toolTip()!r} help {row._help.toolTip()!r}")
            default = parameter.format(parameter.default)
            for values in ((default,), (one,), (one, one), several, (wrong,)):
                section.show_texts({parameter.name: values})
                lines.append(f"{' '.join(values)!r}: {row_of(row)}")
            row._reset.click()
            lines.append(f"reset: {row_of(row)} {said}")
            said.clear()
            section.show_texts({parameter.name: (default,)})
            touch(row.editor)
            lines.append(f"touched: {row_of(row)} {said}")
            row._help.click()
            lines.append(f"help: {row_of(row)}")
            section.discard_drafts()
            lines.append(f"discarded: {row_of(row)}")
            lines.append(f"tab stops: {' '.join(each.objectName() for each in row.tab_stops())}")
            row.set_visible(False)
            lines.append(f"hidden: {row_of(row)}")
    compare("param_rows", lines)


def numbers(count: int) -> list[Parameter]:
    """Parameters that are whole numbers from 1 on, with the default 3."""
    info = ParamInfo(doc="A number.", min=1)
    return [Parameter(f"number_{index}", "int", 3, info) for index in range(count)]


@pytest.mark.parametrize("varied", [(), ("number_0",), ("number_1", "number_2"), ("number_0", "number_1", "number_2")])
def test_each_parameter_is_reset_that_has_one_default(qtbot: QtBot, varied: tuple[str, ...]) -> None:
    section = ParamSection("p", numbers(3), varied)
    qtbot.addWidget(section)
    section.show_texts(dict.fromkeys(section.rows, ("5",)))
    said: list[tuple[str, str]] = []
    section.changed.connect(lambda name, text: said.append((name, text)))
    for row in section.rows.values():
        row._reset.click()
    assert said == [(name, "3") for name in section.rows if name not in varied]
    assert [name for name, row in section.rows.items() if not row.has_default] == list(varied)


KEYS = {"<": Qt.Key.Key_Escape, ">": Qt.Key.Key_Return, "#": Qt.Key.Key_Backspace}


@pytest.mark.parametrize(
    ("typed", "changes", "text"),
    [
        ("12", ["1", "12"], "12"),
        ("12<", ["1", "12", "7"], "7"),
        ("12>", ["1", "12"], "12"),
        ("12><", ["1", "12"], "12"),
        ("12>#4<", ["1", "12", "4", "12"], "12"),
        ("12x", ["1", "12", "7"], "12x"),
        ("12x<", ["1", "12", "7"], "7"),
        ("12x#", ["1", "12", "7", "12"], "12"),
        ("12*2", ["1", "12", "7"], "12*2"),
        ("12*2<", ["1", "12", "7"], "7"),
        ("12*2<>", ["1", "12", "7"], "7"),
        ("12*2>", ["1", "12", "7", "24"], "24"),
        ("12*2><", ["1", "12", "7", "24"], "24"),
        ("0", [], "0"),
        ("0<", [], "7"),
        ("7<", [], "7"),
    ],
)
def test_what_is_typed_into_a_row_is_written_and_taken_back(
    qtbot: QtBot, typed: str, changes: list[str], text: str
) -> None:
    """The document follows what is written; Escape brings the value back that the field had before."""
    (parameter,) = numbers(1)
    section = ParamSection("p", [parameter])
    shown(qtbot, section, 300, 100)
    section.show_texts({parameter.name: ("7",)})
    said: list[str] = []

    def follow(name: str, written: str) -> None:
        if written != (said[-1] if said else "7"):
            said.append(written)
        section.show_texts({name: (written,)})

    section.changed.connect(follow)
    number = section.rows[parameter.name].editor.inner
    assert isinstance(number, NumberField)
    number.setFocus()
    qtbot.waitUntil(number.hasFocus)
    number.selectAll()
    for key in typed:
        QTest.keyClick(number, KEYS[key]) if key in KEYS else QTest.keyClicks(number, key)
    assert (said, number.text()) == (changes, text)
