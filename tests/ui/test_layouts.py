"""Arrangements of the windows with a name: kept by keys, brought back from the menu, over a restart, deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QInputDialog, QLabel
from window_kit import open_window

import app.ui
from app.ui.shell.panels import PANELS, WORKSPACES


def entries(window) -> dict[str, object]:
    """What the menu offers now."""
    menu = window.menus.named["<layouts>"]
    menu.aboutToShow.emit()
    return {action.text(): action for action in menu.actions() if action.text()}


def seen(window) -> set[str]:
    return {dock.objectName() for dock in window.docks.all if not dock.isHidden()}


def keep(window, name: str) -> None:
    window.actions_["view.save_layout"].trigger()
    field = window.findChild(QInputDialog, "layout_name").findChild(QComboBox, "layout_name.text")
    field.lineEdit().selectAll()
    QTest.keyClicks(field, name)
    QTest.keyClick(field, Qt.Key.Key_Return)
    QApplication.processEvents()


def test_a_layout_comes_back_with_its_workspace(window):
    assert not entries(window)["No saved layouts"].isEnabled()
    window.docks["code_view"].close()
    window.docks.show("utilisation")
    mine, right = seen(window), window.dockWidgetArea(window.docks["palette"])
    keep(window, "a/b & 100 %")
    window.docks.arrange()
    window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, window.docks["palette"])
    window.docks.set_workspace("Profile")
    profile = seen(window)
    entries(window)["a/b && 100 %"].trigger()
    assert window.docks.workspace == "Design"
    assert seen(window) == mine
    assert window.dockWidgetArea(window.docks["palette"]) is right
    window.docks.set_workspace("Profile")
    assert seen(window) == profile


@pytest.mark.parametrize(
    ("module", "text", "said"),
    [
        ("nowhere", "", "No module named 'app.ui.nowhere'"),
        ("broken", "raise ImportError('libGL.so.1: no such file')", "libGL.so.1: no such file"),
    ],
)
def test_a_panel_that_cannot_be_loaded_says_why_in_its_place(window, tmp_path, monkeypatch, module, text, said):
    """The rest of the window works."""
    if text:
        (tmp_path / f"{module}.py").write_text(text)
        monkeypatch.setattr(app.ui, "__path__", [*app.ui.__path__, str(tmp_path)])
    spec = next(spec for spec in PANELS if spec.id == "utilisation")
    monkeypatch.setitem(window.docks._specs, spec.id, replace(spec, module=module))
    label = window.docks.panel(spec.id)
    assert isinstance(label, QLabel)
    assert label.text() == f"{spec.title} is not available: {said}. Reinstall the program."
    assert label.wordWrap()


def test_layouts_are_there_at_the_next_start_until_they_are_deleted(window, qtbot, tmp_path):
    window.docks["palette"].setFloating(True)
    keep(window, "floating")
    window.docks["palette"].setFloating(False)
    keep(window, "docked")
    window.settings.sync()
    other = open_window(qtbot, tmp_path)
    assert list(entries(other)) == ["docked", "floating", "&Delete"]
    entries(other)["floating"].trigger()
    assert other.docks["palette"].isFloating()
    less = entries(other)["&Delete"].menu()
    next(action for action in less.actions() if action.text() == "floating").trigger()
    assert list(entries(other)) == ["docked", "&Delete"]


def test_the_same_name_replaces(window):
    keep(window, "mine")
    window.docks["palette"].close()
    keep(window, "mine")
    window.docks.arrange()
    assert list(entries(window)) == ["mine", "&Delete"]
    entries(window)["mine"].trigger()
    assert window.docks["palette"].isHidden()


def test_no_name_and_a_damaged_layout_are_told(window, qtbot):
    with qtbot.waitSignal(window.context.message, check_params_cb=lambda kind, text: "has no name" in text):
        keep(window, "  ")
    before = seen(window)
    window.settings.setValue("layouts/broken/workspace", "Nowhere")
    with qtbot.waitSignal(window.context.message, check_params_cb=lambda kind, text: "Delete it" in text):
        entries(window)["broken"].trigger()
    assert seen(window) == before


def test_a_window_does_not_grow_with_its_workspaces(qtbot, tmp_path):
    """Minimum sizes of panels that are hidden must not push the window."""
    window = open_window(qtbot, tmp_path)
    window.resize(1600, 1000)
    QApplication.processEvents()
    for name in (*WORKSPACES, *reversed(WORKSPACES), *WORKSPACES):
        window.docks.set_workspace(name)
        QApplication.processEvents()
        assert (window.width(), window.height()) == (1600, 1000), name


def test_settings_of_a_layout_are_plain(window, tmp_path):
    """A name with signs that mean something in a settings file stays one name."""
    keep(window, "[x]\\y=1;2")
    window.settings.sync()
    again = QSettings(window.settings.fileName(), QSettings.Format.IniFormat)
    again.beginGroup("layouts")
    assert len(again.childGroups()) == 1
    assert list(entries(window)) == ["[x]\\y=1;2", "&Delete"]
