"""Named layouts in the settings: each is restored as it was saved, by this window and by the next one."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QByteArray, QSettings
from PySide6.QtWidgets import QInputDialog, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.ui.engine.context import Context
from app.ui.shell.docks import Arrangement
from app.ui.shell.layouts import Layouts
from designer.operators.registry import default_registry

KEPT = {
    "two": Arrangement("analyze", QByteArray(b"\x00state two"), "a:10:20,b:30:40"),
    "One": Arrangement("design", QByteArray(b"state one"), ""),
    "Zeta": Arrangement("design", QByteArray(b"fourth"), "d:5:6"),
    "with / and & % <b>": Arrangement("train", QByteArray(b"third"), "c:1:2"),
}


class Docks:
    """The panels of a window, whose arrangement the test sets."""

    def __init__(self) -> None:
        self.now = Arrangement("", QByteArray(), "")
        self.restored: list[Arrangement] = []
        self.readable = True

    def arrangement(self) -> Arrangement:
        return self.now

    def restore(self, kept: Arrangement) -> bool:
        self.restored.append(kept)
        return self.readable


class Bench:
    def __init__(self, window: QWidget, settings: QSettings) -> None:
        self.docks, self.said = Docks(), []
        self.context = Context(default_registry())
        self.context.message.connect(lambda kind, text: self.said.append((kind, text)))
        self.layouts = Layouts(window, self.context, self.docks, settings)  # type: ignore[arg-type]

    def save(self, name: str, kept: Arrangement) -> None:
        self.docks.now = kept
        self.layouts.save(name)

    def shown(self, name: str) -> Arrangement:
        self.layouts.show(name)
        return self.docks.restored.pop()


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def bench(window: QWidget, settings: QSettings) -> Bench:
    return Bench(window, settings)


def test_layouts_are_restored_as_they_were_saved(bench: Bench, window: QWidget, settings: QSettings) -> None:
    assert bench.layouts.names() == []
    for name, kept in KEPT.items():
        bench.save(name, kept)
        assert bench.said.pop() == ("info", f"Saved layout “{name}”")
    settings.sync()
    again = Bench(window, QSettings(settings.fileName(), QSettings.Format.IniFormat))
    for each in (bench, again):
        assert each.layouts.names() == ["One", "two", "with / and & % <b>", "Zeta"]
        for name, kept in KEPT.items():
            assert each.shown(name) == kept
        assert each.said == []
    bench.save("two", KEPT["One"])
    assert bench.shown("two") == KEPT["One"]
    assert bench.shown("with / and & % <b>") == KEPT["with / and & % <b>"]
    assert len(bench.layouts.names()) == 4


def test_what_cannot_be_saved_or_read_is_said(bench: Bench) -> None:
    bench.save("", KEPT["two"])
    assert bench.said == [("error", "The layout was not saved because it has no name. Enter one.")]
    assert bench.layouts.names() == []
    bench.said.clear()
    bench.save("two", KEPT["two"])
    bench.said.clear()
    bench.docks.readable = False
    bench.layouts.show("two")
    assert bench.said == [("error", "Layout “two” cannot be read. Delete it and save it again.")]
    assert bench.shown("gone") == Arrangement("None", QByteArray(), "")


def test_the_menu_restores_and_deletes_each_layout(bench: Bench, window: QWidget) -> None:
    menu = QMenu(window)
    bench.layouts.fill(menu)
    (alone,) = menu.actions()
    assert (alone.text(), alone.isEnabled()) == ("No saved layouts", False)
    for name, kept in KEPT.items():
        bench.save(name, kept)
    names = bench.layouts.names()
    for turn, gone in enumerate(reversed(names)):
        bench.layouts.fill(menu)
        left = names[: len(names) - turn]
        (delete,) = menu.findChildren(QMenu, "menu.delete_layout")
        entries, deleting = menu.actions()[: len(left)], delete.actions()
        assert [action.text() for action in entries] == [name.replace("&", "&&") for name in left]
        assert [action.text() for action in deleting] == [name.replace("&", "&&") for name in left]
        assert len(menu.actions()) == len(left) + 2
        for action, name in zip(entries, left, strict=True):
            action.trigger()
            assert bench.docks.restored.pop() == KEPT[name]
        bench.said.clear()
        deleting[-1].trigger()
        assert bench.said == [("info", f"Deleted layout “{gone}”")]
        assert bench.layouts.names() == left[:-1]
        delete.deleteLater()
        delete.setObjectName("")


def test_a_typed_name_is_saved_without_blanks_around_it(bench: Bench, window: QWidget) -> None:
    for name in ("two", "Zeta"):
        bench.save(name, KEPT[name])
    bench.said.clear()
    for typed, message in (
        ("  mine  ", "Saved layout “mine”"),
        ("   ", "The layout was not saved because it has no name. Enter one."),
    ):
        bench.layouts.ask_name()
        (dialog,) = [d for d in window.findChildren(QInputDialog) if d.isVisible()]
        assert dialog.comboBoxItems() == bench.layouts.names()
        assert dialog.textValue() == ""
        dialog.setTextValue(typed)
        dialog.accept()
        assert [text for _, text in bench.said] == [message]
        bench.said.clear()
    assert bench.layouts.names() == ["mine", "two", "Zeta"]
