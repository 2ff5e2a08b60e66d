"""Arrangements of the windows with a name: kept by keys, brought back from the menu, over a restart, deleted."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QRect, QSettings, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QInputDialog, QLabel
from window_kit import open_window, settle

import app.ui
from app.ui.shell import window as shell
from app.ui.shell.panels import PANELS, WORKSPACES
from app.ui.shell.window import MainWindow
from designer.operators.registry import default_registry


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


def sizes(window) -> dict[str, tuple[int, int]]:
    """The sizes of the docks that can be seen."""
    QApplication.processEvents()
    return {
        dock.objectName(): (dock.width(), dock.height())
        for dock in window.docks.all
        if not dock.isHidden() and not dock.visibleRegion().isEmpty()
    }


@pytest.mark.parametrize("way", ["a layout", "a workspace", "a new start"])
def test_sizes_that_the_user_chose_come_back(qtbot, tmp_path, way):
    window = open_window(qtbot, tmp_path, size=(1600, 1000))
    QApplication.processEvents()
    docks = window.docks
    window.resizeDocks([docks["palette"], docks["parameters"]], [333, 444], Qt.Orientation.Horizontal)
    window.resizeDocks([docks["type_checking"]], [222], Qt.Orientation.Vertical)
    docks["parameters"].raise_()
    docks.show("differences")
    mine, opened = sizes(window), seen(window)
    assert mine["dock.palette"][0] == 333
    assert mine["dock.differences"][1] <= 222  # with its tabs
    if way == "a layout":
        keep(window, "mine")
        docks.set_workspace("Profile")
        docks.show("differences")
        entries(window)["mine"].trigger()
    elif way == "a workspace":
        docks.set_workspace("Analysis")
        docks.set_workspace("Design")
    else:
        window.close_now()
        window = open_window(qtbot, tmp_path, size=(1600, 1000))
    assert sizes(window) == {name: pytest.approx(size, abs=2) for name, size in mine.items()}
    assert seen(window) == opened


class Restored(QShowEvent):
    """What the window system sends when a minimized window is shown again."""

    def spontaneous(self) -> bool:
        return True


def test_a_minimized_window_comes_back_with_the_sizes_that_the_user_chose(qtbot, tmp_path):
    window = open_window(qtbot, tmp_path, size=(1600, 1000))
    docks = window.docks
    settle(window)
    default = sizes(window)
    window.resizeDocks([docks["palette"], docks["parameters"]], [333, 444], Qt.Orientation.Horizontal)
    window.resizeDocks([docks["type_checking"]], [222], Qt.Orientation.Vertical)
    mine, opened = sizes(window), seen(window)
    assert mine["dock.palette"][0] == 333
    assert mine != default
    QApplication.sendEvent(window, Restored())
    settle(window)
    assert sizes(window) == mine
    assert seen(window) == opened


@pytest.mark.parametrize(
    ("screen", "size"), [((3840, 2160), (1600, 1000)), ((1600, 1050), (1504, 945)), ((1500, 1400), (1410, 1000))]
)
def test_the_first_window_leaves_room_on_the_screen_and_later_ones_have_the_size_of_the_last(
    qtbot, tmp_path, monkeypatch, screen, size
):
    class Screen:
        def availableGeometry(self) -> QRect:
            return QRect(0, 0, *screen)

    monkeypatch.setattr(shell, "QGuiApplication", SimpleNamespace(primaryScreen=Screen))
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(default_registry(), settings)
    qtbot.addWidget(window, before_close_func=MainWindow.close_now)
    assert (window.width(), window.height()) == size
    window.resize(780, 760)  # the screen of the tests has 800 x 800 pixels
    window.close_now()
    again = MainWindow(default_registry(), settings)
    qtbot.addWidget(again, before_close_func=MainWindow.close_now)
    assert (again.width(), again.height()) == (780, 760)


def test_what_was_changed_in_a_workspace_is_there_after_a_layout_of_another_one(window):
    told: list[str] = []
    window.docks.workspace_changed.connect(told.append)
    keep(window, "mine")
    window.docks.set_workspace("Profile")
    window.docks["run_logger"].close()
    window.docks.show("code_view")
    profile = seen(window)
    entries(window)["mine"].trigger()
    assert window.docks.workspace == "Design"
    window.docks["palette"].close()
    design = seen(window)
    window.docks.set_workspace("Profile")
    assert seen(window) == profile
    window.docks.set_workspace("Profile")
    window.docks.set_workspace("Design")
    assert seen(window) == design
    entries(window)["mine"].trigger()
    assert "dock.palette" in seen(window)
    assert told == ["Profile", "Design", "Profile", "Design"], "choosing the same workspace emits nothing"
