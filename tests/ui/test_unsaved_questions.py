"""The questions before work is lost: every word and button of each, and the answer of each button."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QDialog, QDialogButtonBox, QLabel, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.document.unsaved import UnsavedDialog, ask_changed, ask_discard, ask_unsaved, ask_unsaved_many

NAME = "a & <b>net</b>.xml"
Role = QMessageBox.ButtonRole
QUESTIONS: dict[str, tuple[Callable[[str, QWidget], object], str, str, str, dict[str, object], str]] = {
    "unsaved": (
        ask_unsaved,
        "Unsaved Changes",
        f"“{NAME}” has unsaved changes.",
        "Your changes will be lost if you don't save them.",
        {"Save": "save", "Discard": "discard", "Cancel": "cancel"},
        "Save",
    ),
    "changed_on_disk": (
        ask_changed,
        "Changed by Another Program",
        f"“{NAME}” was changed by another program after it was opened.",
        "Saving overwrites those changes.",
        {"Overwrite": "overwrite", "Save As...": "elsewhere", "Cancel": "cancel"},
        "Cancel",
    ),
    "discard": (
        ask_discard,
        "Discard Unsaved Changes",
        f"Discard the unsaved changes of “{NAME}”?",
        "This cannot be undone. The file on disk is not changed.",
        {"Discard": True, "Cancel": False},
        "Cancel",
    ),
}


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def buttons_of(box: QMessageBox) -> dict[str, QPushButton]:
    return {button.text().replace("&", ""): button for button in box.buttons()}


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_button_of_a_question_has_its_answer(name: str, parent: QWidget, monkeypatch) -> None:
    ask, title, text, more, answers, usual = QUESTIONS[name]
    pressed = ""
    boxes: list[QMessageBox] = []

    def answer(box: QMessageBox) -> int:
        boxes.append(box)
        assert (box.objectName(), box.windowTitle()) == (name, title)
        assert (box.text(), box.informativeText()) == (text, more)
        assert box.textFormat() is Qt.TextFormat.PlainText, "a file name can contain markup"
        assert box.icon() is QMessageBox.Icon.Warning
        assert box.parent() is parent
        found = buttons_of(box)
        assert set(found) == set(answers)
        assert box.defaultButton() is found[usual]
        if pressed == "escape":
            box.show()
            box.reject()
            return int(QMessageBox.StandardButton.Cancel)
        if pressed == "nothing":
            return 0
        box.show()
        found[pressed].click()
        return box.standardButton(found[pressed]).value

    monkeypatch.setattr(QMessageBox, "exec", answer)
    for pressed, expected in answers.items():
        assert ask(NAME, parent) == expected, pressed
    for pressed in ("escape", "nothing"):  # noqa: B007 - `answer` reads it
        assert ask(NAME, parent) == answers["Cancel"]
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert parent.findChildren(QMessageBox) == [], "the questions are gone"
    assert len(boxes) == len(answers) + 2


NAMES = ["a & b.xml", "two", "three.xml"]


def test_the_list_of_documents_to_save(parent: QWidget, qtbot: QtBot) -> None:
    dialog = UnsavedDialog(NAMES, parent)
    dialog.show()
    assert (dialog.windowTitle(), dialog.accessibleName(), dialog.objectName()) == (
        "Unsaved Changes",
        "Unsaved Changes",
        "unsaved_many",
    )
    head = dialog.findChild(QLabel, "unsaved_many.sentence").text()
    assert head == "3 documents have unsaved changes. Save the checked ones?"
    assert dialog.findChild(QLabel, "unsaved_many.note").text() == "Changes in the other documents will be lost."
    assert [box.text() for box in dialog.boxes] == ["a && b.xml", "two", "three.xml"]
    assert [box.accessibleName() for box in dialog.boxes] == ["Save a & b.xml", "Save two", "Save three.xml"]
    assert [box.objectName() for box in dialog.boxes] == [f"unsaved_many.document_{n}" for n in range(3)]
    assert dialog.chosen() == [0, 1, 2]
    assert (dialog.save.text(), dialog.discard.text(), dialog.cancel.text()) == ("&Save", "&Discard All", "&Cancel")
    assert [dialog.save.isDefault(), dialog.discard.isDefault(), dialog.cancel.isDefault()] == [True, False, False]
    none = "No document is checked. Choose Discard All to save none"
    for checked in ({0, 1, 2}, {1}, set(), {0, 2}, set(), {2}):
        for number, box in enumerate(dialog.boxes):
            if box.isChecked() != (number in checked):
                box.click()
        assert dialog.chosen() == sorted(checked)
        assert dialog.save.isEnabled() is bool(checked)
        assert dialog.save.toolTip() == ("" if checked else none)
        assert dialog.discard.isEnabled()
        assert dialog.cancel.isEnabled()
    assert all(button.icon().isNull() for button in dialog.findChild(QDialogButtonBox).buttons())
    dialog.reject()
    dialog.deleteLater()  # fmt: skip


@pytest.mark.parametrize(
    ("press", "unchecked", "answer"),
    [
        ("save", (), [0, 1, 2]), ("save", (1,), [0, 2]), ("save", (0, 1), [2]), ("discard", (), []), ("discard", (1,), []),
        ("discard", (0, 1, 2), []), ("cancel", (), None), ("cancel", (0, 1, 2), None), ("escape", (), None),
    ],
)  # fmt: skip
def test_the_answer_of_the_list_is_what_is_to_be_saved(parent: QWidget, monkeypatch, press, unchecked, answer) -> None:
    def act(dialog: UnsavedDialog) -> int:
        dialog.show()
        for number in unchecked:
            dialog.boxes[number].click()
        if press == "escape":
            dialog.reject()
        else:
            getattr(dialog, press).click()
        assert not dialog.isVisible()
        return dialog.result()

    monkeypatch.setattr(UnsavedDialog, "exec", act)
    assert ask_unsaved_many(NAMES, parent) == answer
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert parent.findChildren(QDialog) == []
