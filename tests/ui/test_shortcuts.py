"""Shortcuts that a user changes: presets, clashes, and keys that are refused."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

from pathlib import Path
from random import Random

from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTreeWidget

from app.ui.canvas.inline_editor import InlineEditor
from app.ui.shell.shortcuts import PRESETS, Shortcuts, clash, native, notifier
from app.ui.shell.shortcuts_dialog import ShortcutsDialog
from app.ui.shell.window import declared_actions
from designer.graph import commands
from designer.graph.model import Layer

pytestmark = pytest.mark.gui


@pytest.fixture
def shortcuts(qapp, settings) -> Shortcuts:
    return Shortcuts(settings, declared_actions())


@pytest.fixture
def window(qtbot, window):
    with qtbot.waitActive(window):
        window.activateWindow()
    return window


@pytest.mark.parametrize("preset", [p.id for p in PRESETS])
def test_a_preset_has_no_clash_and_breaks_no_rule(shortcuts, preset):
    shortcuts.choose(preset)
    assert shortcuts.preset.keys.keys() <= shortcuts.actions.keys()
    for spec in declared_actions():
        for key in shortcuts.keys(spec.id):
            assert not QKeySequence(key).isEmpty()
            assert shortcuts.using(key, spec.id) == [], f"{key} of {spec.id}"
            assert shortcuts.refused(spec.id, key) is None


def test_a_key_is_taken_from_the_action_that_had_it(shortcuts, settings):
    shortcuts.change("edit.bypass", ("M", "Ctrl+D"))
    assert shortcuts.keys("edit.duplicate") == ()
    again = Shortcuts(settings, declared_actions())
    assert again.keys("edit.bypass") == ("M", "Ctrl+D")
    assert again.keys("edit.duplicate") == ()
    again.reset("edit.duplicate")
    assert again.keys("edit.duplicate") == ("Ctrl+D",)
    assert again.keys("edit.bypass") == ("M",)
    assert not again.is_changed("edit.bypass")


@pytest.mark.parametrize(
    ("action", "key", "word"),
    [
        ("file.save", "S", "typed"),
        ("edit.delete", "X", "remove layers"),
        ("edit.delete", "Shift+X", "remove layers"),
        ("edit.copy", "Esc", "Esc"),
        ("edit.copy", "", "not a key"),
    ],
)
def test_keys_that_would_harm_are_refused(shortcuts, action, key, word):
    assert word in shortcuts.refused(action, key)


@pytest.mark.parametrize(("action", "key"), [("file.save", "F6"), ("edit.delete", "Backspace"), ("edit.bypass", "B")])
def test_other_keys_are_not(shortcuts, action, key):
    assert shortcuts.refused(action, key) is None


TYPED, RESERVED = "A key without a modifier would be typed into fields.", "Esc is reserved for cancel."
REMOVES = "Actions that remove layers need a modifier."
NOT_A_KEY = "This is not a key."
JUDGED = {  # for an action of the whole window, one of the canvas, and one of the canvas that removes layers
    "": (NOT_A_KEY, NOT_A_KEY, NOT_A_KEY),
    "B": (TYPED, "", REMOVES),
    "Shift+B": (TYPED, "", REMOVES),
    "Space": (TYPED, "", REMOVES),
    "Del": (TYPED, "", ""),
    "Shift+Del": (TYPED, "", ""),
    "Backspace": (TYPED, "", ""),
    "F1": ("", "", ""),
    "F35": ("", "", ""),
    "Shift+F6": ("", "", ""),
    "Ctrl+B": ("", "", ""),
    "Alt+B": ("", "", ""),
    "Ctrl+Shift+B": ("", "", ""),
    "Ctrl+K, B": ("", "", ""),
    "Esc": (TYPED, RESERVED, RESERVED),
    "Ctrl+Esc": (RESERVED, RESERVED, RESERVED),
}


@pytest.mark.parametrize("key", JUDGED)
def test_each_kind_of_key_is_judged_by_the_kind_of_action(shortcuts, key):
    removing = ["edit.delete", "edit.delete_heal", "edit.cut", "template.dissolve"]
    assert all(shortcuts.actions[name].on_canvas for name in removing)
    for kind, names in enumerate((["file.save", "help.commands"], ["edit.bypass", "edit.add"], removing)):
        for name in names:
            said = shortcuts.refused(name, key)
            assert (said or "").startswith(JUDGED[key][kind]), name
            assert (said is None) is (not JUDGED[key][kind]), name


def test_what_a_preset_does_not_name_keeps_its_declared_key(shortcuts, settings):
    declared = {spec.id: spec.keys for spec in declared_actions()}
    for preset in PRESETS:
        shortcuts.change("edit.bypass", ("Ctrl+Alt+Q",))
        shortcuts.change("edit.duplicate", ())
        assert shortcuts.keys("edit.duplicate") == ()
        assert shortcuts.is_changed("edit.duplicate")
        shortcuts.choose(preset.id)
        assert {name: shortcuts.keys(name) for name in declared} == {**declared, **preset.keys}
        assert settings.value("shortcuts/preset") == preset.id
        assert [key for key in settings.allKeys() if key.startswith("shortcuts/keys")] == []
    settings.setValue("shortcuts/preset", "gone")
    assert shortcuts.preset is PRESETS[0]


@pytest.mark.parametrize("preset", [p for p in PRESETS if p.keys], ids=lambda p: p.id)
def test_the_declared_key_of_an_action_is_a_change_where_the_preset_has_another(shortcuts, settings, preset):
    shortcuts.choose(preset.id)
    for action, keys in preset.keys.items():
        declared = shortcuts.actions[action].keys
        if keys == declared:
            continue
        for _ in range(2):  # the second time nothing is taken from others
            shortcuts.change(action, declared)
            assert (shortcuts.keys(action), shortcuts.is_changed(action)) == (declared, True)
        assert Shortcuts(settings, declared_actions()).keys(action) == declared
        shortcuts.reset(action)
        assert (shortcuts.keys(action), shortcuts.is_changed(action)) == (keys, False)
        assert settings.value(f"shortcuts/keys/{action}") is None


def test_every_window_hears_of_changed_keys(shortcuts, qtbot):
    for change in (
        lambda: shortcuts.change("edit.bypass", ("M",)),
        lambda: shortcuts.reset("edit.bypass"),
        lambda: shortcuts.choose("blender"),
    ):
        with qtbot.waitSignal(notifier().changed, timeout=1000):
            change()


def test_every_key_of_an_action_is_taken_from_the_actions_that_had_it(shortcuts):
    assert shortcuts.standard("edit.redo") == ("Ctrl+Shift+Z", "Ctrl+Y")
    shortcuts.change("edit.redo", ())
    shortcuts.change("file.new", ("Ctrl+Shift+Z", "Ctrl+N"))
    shortcuts.change("file.open", ("Ctrl+O", "Ctrl+Y"))
    shortcuts.reset("edit.redo")
    assert [shortcuts.keys(name) for name in ("edit.redo", "file.new", "file.open")] == [
        ("Ctrl+Shift+Z", "Ctrl+Y"),
        ("Ctrl+N",),
        ("Ctrl+O",),
    ]
    assert not any(shortcuts.is_changed(name) for name in ("edit.redo", "file.new", "file.open"))


def test_sequences_that_hide_each_other_clash():
    assert clash("Ctrl+K, Ctrl+S", "Ctrl+K")
    assert clash("Ctrl+K", "Ctrl+K, Ctrl+S")
    assert not clash("Ctrl+K, Ctrl+S", "Ctrl+K, Ctrl+D")
    assert not clash("Ctrl+S", "Ctrl+K, Ctrl+S")
    assert clash("ctrl+d", "Ctrl+D")
    assert not clash("Ctrl+D", "Ctrl+Shift+D")


def test_keys_are_named_as_the_platform_names_them():
    names = ["Ctrl+D", "F2", "Ctrl+K, Ctrl+S"]
    shown = [QKeySequence(name).toString(QKeySequence.SequenceFormat.NativeText) for name in names]
    assert native(tuple(names)) == ", ".join(shown)
    assert native(()) == ""


def test_changed_in_the_dialog_by_keys_and_then_used(window, qtbot):
    window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "identity")))
    dialog = ShortcutsDialog(window.actions_.shortcuts, window)
    dialog.open()
    qtbot.waitExposed(dialog)
    QTest.keyClicks(dialog.search, "rename")
    dialog.select("edit.rename")
    QTest.keyClick(dialog.editor, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert "Duplicate" in dialog.note.text()
    QTest.mouseClick(dialog.add, Qt.MouseButton.LeftButton)
    assert [k.toString() for k in window.actions_["edit.rename"].shortcuts()] == ["F2", "Ctrl+D"]
    assert window.actions_["edit.duplicate"].shortcuts() == []
    QTest.keyClick(dialog.editor, Qt.Key.Key_Escape)
    assert not dialog.add.isEnabled()
    with qtbot.waitActive(window):
        dialog.close()
        window.activateWindow()
    window.context.select(("a",))
    qtbot.waitUntil(window.actions_["edit.rename"].isEnabled)
    window.canvas.viewer.setFocus()
    QTest.keySequence(window.canvas.viewer, "Ctrl+D")
    editor = window.findChild(InlineEditor, "canvas.rename")
    assert editor.isVisible()
    editor.discard()
    assert len(window.context.document.graph) == 1


def test_the_search_hides_and_reset_brings_back(window, qtbot):
    dialog = ShortcutsDialog(window.actions_.shortcuts, window)
    qtbot.addWidget(dialog)
    dialog.show()
    QTest.keyClicks(dialog.search, "ctrl+shift+v")
    shown = [dialog.list.topLevelItem(n) for n in range(dialog.list.topLevelItemCount())]
    assert [item.text(0) for item in shown if not item.isHidden()] == ["Paste Keeping Links"]
    cells = [[item.text(column).casefold() for column in range(3)] for item in shown]
    for text in (
        "Layer",
        "layer SELECTED",
        "selected  layer",
        "ctrl paste",
        "theme dark",
        "ctrl+z undo",
        "no such action",
    ):
        dialog.search.setText(text)
        expected = [all(any(w in cell for cell in row) for w in text.casefold().split()) for row in cells]
        assert [not item.isHidden() for item in shown] == expected, text
        assert any(expected) is (text != "no such action")
    dialog.search.clear()
    assert not any(item.isHidden() for item in shown)
    dialog.select("view.theme_dark")
    assert dialog.list.currentItem().text(0) == dialog.chosen.text() == "Theme: Dark"
    dialog.select("edit.paste_linked")
    QTest.mouseClick(dialog.clear, Qt.MouseButton.LeftButton)
    assert window.actions_["edit.paste_linked"].shortcuts() == []
    QTest.mouseClick(dialog.reset, Qt.MouseButton.LeftButton)
    assert window.actions_["edit.paste_linked"].shortcut().toString() == "Ctrl+Shift+V"


@pytest.mark.parametrize("key", ["Space", "Tab", "Shift+A"])
def test_every_key_opens_the_search_on_the_canvas(window, qtbot, key):
    window.canvas.viewer.setFocus()
    QTest.keySequence(window.canvas.viewer, key)
    popup = QApplication.activePopupWidget()
    assert popup is not None
    assert popup.objectName() == "quick_add"
    popup.close()


@pytest.mark.parametrize("place", ["canvas", "panel"])
def test_keys_of_the_canvas_do_nothing_in_a_panel_and_all_others_work_everywhere(
    place, qtbot, empty_window, monkeypatch
):
    """Every key of every action, pressed on the canvas and on a list in a panel."""
    empty_window.files.new()
    window, fired = empty_window, []
    monkeypatch.setattr(type(window.actions_), "_do", lambda _self, declared, _owner: fired.append(declared.id))
    window.docks.show("palette")
    with qtbot.waitActive(window):
        window.activateWindow()
    target = window.canvas.viewer if place == "canvas" else window.docks.panel("palette").findChild(QTreeWidget)
    wrong = []
    QApplication.processEvents()
    window._refresh_timer.stop()
    for name, declared in window.actions_.declared.items():
        window.actions_[name].setEnabled(True)
        for key in window.actions_[name].shortcuts():
            target.setFocus()
            fired.clear()
            QTest.keySequence(target, key)
            expected = [] if declared.on_canvas and place == "panel" else [name]
            if fired != expected:
                wrong.append((name, key.toString(), list(fired)))
    assert not wrong


def test_keys_after_any_changes_are_of_one_action_each_and_stay(shortcuts, settings, tmp_path):
    """Whatever is changed, reset and chosen, in any spelling."""
    dice = Random(5)
    names = ["edit.bypass", "edit.duplicate", "edit.redo", "file.new", "file.open", "help.commands", "edit.add"]
    keys = ["Ctrl+D", "ctrl+d", "CTRL+Y", "Ctrl+Shift+Z", "ctrl+shift+z", "M", "Ctrl+P", "F3", "Space", "Ctrl+N"]
    for turn in range(60):
        what, name = dice.choice(("change", "change", "change", "reset", "preset")), dice.choice(names)
        if what == "change":
            wanted = tuple(dice.sample(keys, dice.randrange(0, 3)))
            if len({QKeySequence(key).toString() for key in wanted}) < len(wanted):
                continue
            shortcuts.change(name, wanted)
            assert shortcuts.keys(name) == wanted
        elif what == "reset":
            shortcuts.reset(name)
            assert shortcuts.keys(name) == shortcuts.standard(name)
            assert not shortcuts.is_changed(name)
        else:
            preset = dice.choice(PRESETS)
            shortcuts.choose(preset.id)
            assert shortcuts.preset is preset
            assert not any(shortcuts.is_changed(each) for each in shortcuts.actions)
        held = [QKeySequence(key).toString() for each in shortcuts.actions for key in shortcuts.keys(each)]
        assert len(held) == len(set(held)), "a key of two actions"
        again = Shortcuts(settings, declared_actions())
        assert {each: again.keys(each) for each in names} == {each: shortcuts.keys(each) for each in names}
        if turn % 6 == 5:  # as the next session reads it; Qt remembers what it has read from a file
            settings.sync()
            copy = tmp_path / f"copy_{turn}.ini"
            copy.write_bytes(Path(settings.fileName()).read_bytes())
            again = Shortcuts(QSettings(str(copy), QSettings.Format.IniFormat), declared_actions())
            assert {each: again.keys(each) for each in names} == {each: shortcuts.keys(each) for each in names}


def test_a_key_that_several_actions_use_names_them_all_and_is_taken_from_each(shortcuts, qtbot):
    shortcuts.change("edit.bypass", ("Ctrl+K, Ctrl+S", "F12"))
    shortcuts.change("edit.duplicate", ("Ctrl+K, Ctrl+D",))
    dialog = ShortcutsDialog(shortcuts, None)
    qtbot.addWidget(dialog)
    dialog.select("file.new")
    dialog.editor.setKeySequence(QKeySequence("Ctrl+K"))
    title = {name: dialog._title(name) for name in shortcuts.using("Ctrl+K")}
    assert sorted(title) == ["edit.bypass", "edit.duplicate"]
    names = ", ".join(title.values())
    assert dialog.note.text() == f"{native(('Ctrl+K',))} is used by {names}. Adding it here removes it there."
    dialog.add.click()
    assert dialog._action() == "file.new"
    assert shortcuts.keys("file.new") == ("Ctrl+N", "Ctrl+K")
    assert (shortcuts.keys("edit.bypass"), shortcuts.keys("edit.duplicate")) == (("F12",), ()), "the other key stays"
    assert shortcuts.using("Ctrl+K", "file.new") == []
    assert dialog.list.currentItem().text(1) == f"{native(('Ctrl+N', 'Ctrl+K'))} *"
    assert (dialog.note.text(), dialog.add.isEnabled()) == (
        "Press a key, then click Add. An action can have several keys.",
        False,
    )


def test_the_dialog_begins_with_its_search_and_the_first_action(shortcuts, qtbot):
    dialog = ShortcutsDialog(shortcuts, None)
    qtbot.addWidget(dialog)
    assert dialog.focusWidget() is dialog.search
    assert dialog._action() == next(iter(shortcuts.actions))


def test_the_search_holds_after_every_change_of_keys(shortcuts, qtbot):
    """The rows that are shown are those with all words in their title, keys or description, as they are now."""
    dialog = ShortcutsDialog(shortcuts, None)
    qtbot.addWidget(dialog)
    rows = range(dialog.list.topLevelItemCount())

    def check(text: str) -> None:
        items = [dialog.list.topLevelItem(row) for row in rows]
        lines = [" ".join(item.text(column) for column in range(3)).casefold() for item in items]
        found = [all(word in line for word in text.casefold().split()) for line in lines]
        assert [not item.isHidden() for item in items] == found
        assert 0 < sum(found) < len(found)

    for text in ("f12", "ctrl undo"):
        shortcuts.change("edit.undo", ("F12",))
        dialog.search.setText(text)
        dialog.select("edit.undo")
        dialog._fill()
        check(text)
        dialog.editor.setKeySequence(QKeySequence("Ctrl+D"))
        dialog.add.click()
        check(text)
        assert (dialog._action(), dialog.search.text()) == ("edit.undo", text)
        dialog.reset.click()
        dialog.preset.setCurrentIndex(1)
        dialog.preset.activated.emit(1)
        shortcuts.change("edit.copy", ("Ctrl+D", "F12"))
        dialog._fill()
        check(text)
