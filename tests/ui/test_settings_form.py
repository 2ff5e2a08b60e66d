"""The fields of a new run, its place, and the questions about a run: texts, options and answers are compared with a model."""

from __future__ import annotations

import os
import random
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QInputDialog,
    QLineEdit,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.train import place_choice
from app.ui.train.place_choice import PlaceChoice
from app.ui.train.run_dialogs import MAX_STEPS, NotesDialog, ask_notes, ask_steps
from app.ui.train.settings_form import FIELDS, MORE, SettingsForm
from designer.graph.diagnostics import DiagnosticError
from designer.training.run_folder import Notes, RunFolder
from designer.training.watched_run import RunSnapshot

TASKS = ("denoising", "restoration", "super-resolution", "segmentation", "classification")
OF_TASK = {
    "data": {"denoising", "super-resolution", "classification"},
    "inputs": {"restoration", "segmentation"},
    "targets": {"restoration", "segmentation"},
    "noise": {"denoising"},
    "patch": {"denoising", "restoration", "segmentation", "super-resolution"},
}
DEFAULTS = {
    "validation": "every tenth image", "noise": "25", "steps": "100 epochs", "batch": "16", "patch": "64", "lr": "0.001",
    "validate_every": "250", "seed": "0", "device": "automatic", "stop_on": "not_finite",
}  # fmt: skip


@pytest.fixture
def form(qtbot: QtBot) -> SettingsForm:
    return shown(qtbot, SettingsForm(), 400, 700)


@pytest.mark.parametrize("task", TASKS)
def test_the_fields_of_a_task_are_shown_and_are_its_options(form: SettingsForm, task: str) -> None:
    chance = random.Random(task)
    form.show_task(task)
    names = [field.name for field in FIELDS]
    mine = [name for name in names if task in OF_TASK.get(name, {task})]
    assert [name for name in names if form.fields[name].isVisible()] == mine
    for _ in range(20):
        texts = {name: chance.choice(("", "  ", f" {name} value ")) for name in names if name != "amp"}
        on = chance.random() < 0.5
        more = chance.choice(("", "--ema 0.999 --clip=0.5", "--no-compile", "--batch 99", "--note 'two words'"))
        for name, text in texts.items():
            form.set_text(name, text)
        box = form.fields["amp"]
        assert isinstance(box, QCheckBox)
        box.setChecked(on)
        form.set_text(MORE, more)
        expected: dict[str, Any] = {name: texts[name].strip() for name in mine if name != "amp" and texts[name].strip()}
        if on:
            expected["amp"] = True
        expected |= {
            "": {},
            "--ema 0.999 --clip=0.5": {"ema": "0.999", "clip": "0.5"},
            "--no-compile": {"compile": False},
            "--batch 99": {"batch": "99"},  # the last word counts
            "--note 'two words'": {"note": "two words"},
        }[more]
        assert form.options() == expected
        assert {name: form.text(name) for name in texts} == {name: text.strip() for name, text in texts.items()}
    for name in mine:  # `~` in a folder is that of the user, not of the process that trains
        form.set_text(name, " ~/of mine ")
    home = os.path.join(os.path.expanduser("~"), "of mine")
    folders = {"data", "inputs", "targets", "validation"}
    options = {name: text for name, text in form.options().items() if name in mine and name != "amp"}
    assert options == {name: home if name in folders else "~/of mine" for name in mine if name != "amp"}
    assert {form.text(name) for name in mine if name != "amp"} == {"~/of mine"}
    form.set_text("validation", "~nobody-of-that-name/images")
    assert form.options()["validation"] == "~nobody-of-that-name/images"
    form.set_text(MORE, "--note 'two words")  # the quotation mark is not closed
    with pytest.raises(DiagnosticError):
        form.options()
    form.set_text(MORE, "--note 'two")
    assert form.options()["note"] == "'two"


@pytest.mark.parametrize(
    "recipe", [{}, {"epochs": "7"}, {"steps": "900", "lr": "0.5"}, {"epochs": "7", "steps": "900"}]
)
def test_an_empty_field_shows_the_value_that_is_used(form: SettingsForm, recipe: dict[str, str]) -> None:
    form.show_defaults({"batch": "1"})  # of another document before
    form.show_defaults(recipe)
    expected = {field.name: DEFAULTS.get(field.name, "") for field in FIELDS if field.name != "amp"}
    if "epochs" in recipe:
        expected["steps"] = "7 epochs"
    expected |= {name: text for name, text in recipe.items() if name in expected}
    found = {name: field.placeholderText() for name, field in form.fields.items() if isinstance(field, QLineEdit)}
    assert found == {**expected, MORE: "such as --ema 0.999"}


def test_the_settings_of_a_run_are_filled_in_and_give_the_same_options(form: SettingsForm) -> None:
    chance = random.Random(1)
    form.show_task("denoising")
    settings_seen = 0
    for _ in range(40):
        settings: dict[str, Any] = {
            "data": chance.choice(("/photos", "")),
            "noise": chance.choice(("25", "0-55")),
            "steps": chance.choice((0, 1000)),
            "epochs": 100,
            "batch": chance.choice((8, 16)),
            "lr": chance.choice((0.5, 0.001)),
            "seed": chance.choice((0, 3)),
            "stop_on": chance.choice(("", "dead", "not_finite")),
            "amp": chance.choice((True, False)),
            "ema": chance.choice((0.0, 0.999)),
            "note": chance.choice(("", "two words", "it's")),
            "compile": chance.choice((True, False)),
            "patch": None,
        }
        form.show_settings(settings)
        assert form.text("steps") == ("1000" if settings["steps"] else "")
        assert form.text("seed") == str(settings["seed"])
        assert form.text("patch") == ""
        box = form.fields["amp"]
        assert isinstance(box, QCheckBox)
        assert box.isChecked() is settings["amp"]
        words = shlex.split(form.text(MORE))
        options = form.options()
        expected = {
            name: str(settings[name])
            for name in ("data", "noise", "batch", "lr", "seed", "stop_on")
            if settings[name] != ""
        }
        if settings["stop_on"] == "":
            expected["stop_on"] = ""  # nothing stops the run, which is not the default
            assert "--stop-on" in words
        if settings["steps"]:
            expected["steps"] = "1000"
            assert "--epochs" not in words
        else:
            expected["epochs"] = "100"
        expected |= {"ema": str(settings["ema"]), "compile": settings["compile"]}
        expected |= {"note": settings["note"]} if settings["note"] else {}
        expected |= {"amp": True} if settings["amp"] else {}
        assert {name: value for name, value in options.items() if value != expected.get(name)} == {}
        assert set(expected) <= set(options)
        settings_seen += 1
    assert settings_seen == 40


def test_every_edit_is_reported_and_folders_are_chosen(
    qtbot: QtBot, form: SettingsForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    form.show_task("denoising")
    edits: list[bool] = []
    form.edited.connect(lambda: edits.append(True))
    for field in form.fields.values():
        edits.clear()
        field.toggle() if isinstance(field, QCheckBox) else field.setText("x")
        assert edits == [True]
    asked: list[tuple[str, str]] = []
    answers = ["/chosen", ""]
    monkeypatch.setattr(
        QFileDialog,
        "getExistingDirectory",
        lambda _parent, title, start: asked.append((title, start)) or answers.pop(0),
    )
    button = form.findChild(QToolButton, "training.data.browse")
    assert button is not None
    for _ in range(2):
        button.click()
        assert form.text("data") == "/chosen"  # a cancelled dialog changes nothing
    assert asked == [("Images", "x"), ("Images", "/chosen")]


def test_a_place_is_this_machine_or_a_host_that_stays_chosen(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ["one", "two"]
    monkeypatch.setattr(place_choice, "configured_hosts", lambda: list(hosts))
    window = QWidget()
    place = PlaceChoice(QFormLayout(window))
    shown(qtbot, window, 300, 100)

    def state() -> tuple[list[str], str, str, bool, str]:
        entries = [place.box.itemText(row) for row in range(place.box.count())]
        return entries, place.box.currentText(), place.host(), place.python_line.isVisible(), place.python()

    here = "This machine"
    assert state() == ([here, "one", "two"], here, "", False, "python3")
    place.box.setCurrentIndex(2)
    assert state() == ([here, "one", "two"], "two", "two", True, "python3")
    place.python_line.setText(" ~/venv/bin/python ")
    hosts[:] = ["three"]
    place.refresh()
    assert state() == ([here, "three"], "two", "two", True, "~/venv/bin/python")
    place.box.setEditText(" user@four ")
    assert place.host() == "user@four"
    place.box.setEditText(" ")
    assert (place.host(), place.python_line.isVisible()) == ("", False)
    place.box.setEditText(here)
    place.refresh()
    assert state() == ([here, "three"], here, "", False, "~/venv/bin/python")


@pytest.mark.parametrize("accepts", [True, False])
def test_the_name_and_the_notes_of_a_run_are_asked_for(qtbot: QtBot, tmp_path: Path, accepts: bool) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    shot = RunSnapshot(RunFolder(tmp_path / "runs" / "a"), notes=Notes("wide", "first\nsecond"))

    def answer() -> None:
        dialog = parent.findChild(NotesDialog)
        assert dialog is not None
        assert (dialog.name.text(), dialog.name.placeholderText(), dialog.text.toPlainText()) == (
            "wide",
            "a",
            "first\nsecond",
        )
        assert dialog.notes() == shot.notes
        dialog.name.setText("  narrow ")
        dialog.text.setPlainText(" third\n")
        box = dialog.findChild(QDialogButtonBox)
        assert box is not None
        kind = QDialogButtonBox.StandardButton.Ok if accepts else QDialogButtonBox.StandardButton.Cancel
        box.button(kind).click()

    QTimer.singleShot(0, answer)
    assert ask_notes(parent, shot) == (Notes("narrow", " third\n") if accepts else None)
    qtbot.waitUntil(lambda: parent.findChild(NotesDialog) is None)


@pytest.mark.parametrize(
    ("step", "total", "value"), [(10, 100, 200), (300, 100, 301), (0, 0, 1), (50, 26, 52), (51, 26, 52)]
)
def test_a_run_is_extended_to_twice_its_steps_and_at_least_by_one(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, total: int, value: int
) -> None:
    asked: list[tuple[Any, ...]] = []
    answers = [(value + 5, True), (value + 5, False)]
    monkeypatch.setattr(QInputDialog, "getInt", lambda *words: asked.append(words[1:]) or answers.pop(0))
    shot = replace(RunSnapshot(RunFolder(tmp_path / "a")), step=step, total_steps=total)
    parent = QWidget()
    qtbot.addWidget(parent)
    assert (ask_steps(parent, shot), ask_steps(parent, shot)) == (value + 5, 0)
    assert asked == [("Extend Run", f"Steps in total; {step} are done", value, step + 1, MAX_STEPS)] * 2
    assert QApplication.activeModalWidget() is None
