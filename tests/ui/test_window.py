"""The window: menus and reasons, workspaces, the process."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import canvas_kit as kit
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QTabBar,
    QToolButton,
    QTreeWidget,
    QWidget,
)
from window_kit import action, open_window, press, show, shown

from app.main import opens_window
from app.ui.engine.context import Context
from app.ui.shell.menus import CONTEXT_MENU, MENUS, TOOLBAR
from app.ui.shell.panels import PANELS, WORKSPACES
from app.ui.shell.shortcuts_dialog import ShortcutsDialog
from app.ui.shell.window import GROUPS, MainWindow, declared_actions
from app.ui.widgets import theme
from app.ui.widgets.action import Action, ActionGroup, Need
from app.ui.widgets.empty_state import EmptyState
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

# --- actions -----------------------------------------------------------------------------------------------------


def test_every_action_is_in_one_menu_and_every_section_has_actions():
    actions = declared_actions()
    ids = [action.id for action in actions]
    assert len(ids) == len(set(ids))
    keys = [key for action in actions for key in action.keys]
    assert len(keys) == len(set(keys))

    def named(entries):
        for entry in entries:
            if isinstance(entry, tuple):
                yield from named(entry[1])
            elif entry is not None and not entry.startswith("<"):
                yield entry

    in_menus = [name for _, entries in MENUS for name in named(entries)]
    assert len(in_menus) == len(set(in_menus))
    assert all(sum(section in in_menus for section in action.menus) == 1 for action in actions)
    assert {section for action in actions for section in action.menus} == {*in_menus, *TOOLBAR, *CONTEXT_MENU}


def test_one_declaration_puts_an_action_everywhere(qtbot, tmp_path, monkeypatch):
    done = []
    never = Need(lambda state: state.layers > 0, "there is nothing to count")
    count = Action(
        "view.count", "&Count Layers", "How many there are", done.append, ("View/zoom", "Tools/run", "Canvas/arrange"),
        ("F12",), (never,),
    )  # fmt: skip
    monkeypatch.setattr("app.ui.shell.window.GROUPS", (*GROUPS, ActionGroup(MainWindow, (count,))))
    window = open_window(qtbot, tmp_path)
    made = action(window, "view.count")
    assert made in window.findChild(QMenu, "menu.view").actions()
    assert window.findChild(QToolButton, "toolbar.view.count").accessibleName() == "Count Layers"
    window.commands.open_over(window)
    QTest.keyClicks(window.commands.findChild(QLineEdit), "count layers")
    listed = window.commands.findChild(QTreeWidget, "commands.list")
    assert [listed.topLevelItem(n).text(0) for n in range(listed.topLevelItemCount())] == ["Count Layers"]
    window.commands.close()
    dialog = ShortcutsDialog(window.actions_.shortcuts, window)
    assert dialog.list.findItems("Count Layers", Qt.MatchFlag.MatchExactly)[0].text(1) == "F12"
    assert "there is nothing to count" in made.toolTip()
    window.files.new()
    window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    qtbot.waitUntil(made.isEnabled)
    assert made.shortcut().toString() == "F12"
    made.trigger()
    assert done == [window]


def test_disabled_actions_say_why(window):
    QApplication.processEvents()
    assert not action(window, "edit.undo").isEnabled()
    assert "there is nothing to undo" in action(window, "edit.undo").toolTip()
    assert not action(window, "run.analysis").isEnabled()
    assert "no layers" in action(window, "run.analysis").toolTip()
    window.context.document.do(lambda g: commands.add_layer(g, Layer("c", "convolution")))
    QApplication.processEvents()
    assert action(window, "edit.undo").isEnabled()
    assert "Add c" in action(window, "edit.undo").toolTip()
    assert "errors" in action(window, "export.pytorch").toolTip()
    assert window.status.problems.text() == "1 error"


def test_shortcuts_edit(window):
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    document.do(lambda g: commands.add_layer(g, Layer("b", "identity", (320, 0), (Source("a"),))))
    QApplication.processEvents()
    press(window, "Ctrl+A")
    assert window.context.selection == ("a", "b")
    QApplication.processEvents()
    press(window, "Ctrl+D")
    assert len(document.graph) == 4
    QApplication.processEvents()
    press(window, "Del")
    assert set(document.graph.layers) == {"a", "b"}
    QApplication.processEvents()
    press(window, "Ctrl+Z")
    assert len(document.graph) == 4
    QApplication.processEvents()
    press(window, "Ctrl+Shift+Z")
    assert len(document.graph) == 2
    QApplication.processEvents()
    press(window, "Ctrl+Z")
    QApplication.processEvents()
    press(window, "Ctrl+Y")
    assert len(document.graph) == 2


def test_delete_in_a_text_field_leaves_the_network_alone(window):
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    window.context.select(("a",))
    QApplication.processEvents()
    field = window.docks.panel("palette").findChild(QLineEdit, "palette.search")
    field.setFocus()
    field.setText("conv")
    field.setCursorPosition(0)
    QTest.keyClick(field, Qt.Key.Key_Delete)
    assert field.text() == "onv"
    assert "a" in document.graph


def test_rename_by_key(window, qtbot):
    window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    window.context.select(("a",))
    QApplication.processEvents()
    press(window, "F2")
    kit.write(window, "picture")
    assert "picture" in window.context.document.graph
    assert window.context.selection == ("picture",)


# --- workspaces --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1280, 720), (1366, 768)])
@pytest.mark.parametrize("name", WORKSPACES)
def test_every_workspace_shows_its_panels_on_a_small_screen(window, qtbot, name, size):
    window.resize(*size)
    window.docks.set_workspace(name)
    wanted = {spec.id for spec in PANELS if name in spec.workspaces}
    qtbot.waitUntil(lambda: {s.id for s in PANELS if window.docks[s.id].toggleViewAction().isChecked()} == wanted)
    assert window.width() <= size[0]
    assert window.height() <= size[1]
    assert window.canvas.width() >= 300
    assert window.canvas.height() >= 200
    for spec in PANELS:
        if spec.area == "left" and spec.id in wanted:
            assert window.docks[spec.id].width() >= 210, spec.id


def test_a_problem_does_not_change_the_heights_of_panels(window, qtbot):
    window.resize(1366, 768)
    show(window, Graph([Layer("in", "input", params={"dims": "16x16x3"})]))
    before = window.docks["type_checking"].height()
    window.context.document.do(lambda g: commands.add_layer(g, Layer("sum", "element_wise", (300, 0), (Source("in"),))))
    fixes = window.docks.panel("type_checking").findChild(QWidget, "type_checking.fixes")
    qtbot.waitUntil(fixes.isVisible)
    QApplication.processEvents()
    assert window.docks["type_checking"].height() == before


def test_placeholders_are_whole_in_low_panels(qtbot):
    empty = EmptyState("low", "chart-bar", "Launch Analysis to see the layers that ran.")
    shown(qtbot, empty, 300, 200)
    icon, text = empty.findChildren(QLabel)
    assert icon.isVisible()
    empty.resize(300, empty.minimumSizeHint().height() + text.heightForWidth(300))
    QApplication.processEvents()
    assert not icon.isVisible()
    assert text.height() >= text.heightForWidth(text.width())


def test_titles_of_tabs_are_whole(window):
    for spec in PANELS:
        window.docks.show(spec.id)
    QApplication.processEvents()
    bars = [bar for bar in window.findChildren(QTabBar) if bar.parent() is window and bar.count() > 1]
    assert len(bars) == 3
    for bar in bars:
        for number in range(bar.count()):
            assert bar.tabRect(number).width() > bar.fontMetrics().horizontalAdvance(bar.tabText(number))
        assert bar.tabRect(bar.currentIndex()).intersected(bar.rect()) == bar.tabRect(bar.currentIndex())


def test_arrangement_is_remembered(qtbot, settings):
    first = MainWindow(default_registry(), settings)
    qtbot.addWidget(first)
    first.show()
    qtbot.waitExposed(first)
    first.docks.set_workspace("Profile")
    first.docks["run_logger"].close()
    first.close()
    second = MainWindow(default_registry(), settings)
    qtbot.addWidget(second)
    second.show()
    qtbot.waitExposed(second)
    assert second.docks.workspace == "Profile"
    assert not second.docks["run_logger"].toggleViewAction().isChecked()
    second.docks.arrange()
    assert second.docks["run_logger"].toggleViewAction().isChecked()
    second.close()


def test_every_panel_opens_from_the_menu(window, qtbot):
    for spec in PANELS:
        toggle = window.docks[spec.id].toggleViewAction()
        if not toggle.isChecked():
            toggle.trigger()
        assert window.docks[spec.id].widget() is not None
        panel = window.docks.panel(spec.id)
        assert type(panel).__name__ == spec.class_name
        assert not window.docks[spec.id].isFloating()


def test_inspect_opens_the_inspector(window):
    window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    window.context.inspect_requested.emit("a")
    assert window.docks["channel_inspector"].isVisible()


def test_what_was_said_of_a_dead_engine_goes_when_another_works(window, qtbot):
    window.status.show_crash("The engine process was killed.")
    assert "killed" in window.status.currentMessage()
    window.status.show_busy(True)
    qtbot.waitUntil(lambda: window.status.currentMessage() == "")
    window.status.show_busy(False)


def test_messages_and_refusals_reach_the_status_bar(window):
    window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    assert not window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    assert "taken" in window.status.currentMessage()


def test_themes_switch(window):
    from app.ui.widgets import theme

    try:
        action(window, "view.theme_light").trigger()
        assert not theme.is_dark()
        action(window, "view.theme_dark").trigger()
        assert theme.is_dark()
        assert window.settings.value("theme") == "dark"
    finally:
        theme.apply(QApplication.instance(), "system")


def test_help_dialogs_open(window):
    action(window, "help.shortcuts").trigger()
    action(window, "help.about").trigger()
    for name in ("shortcuts", "about"):
        dialog = next(w for w in QApplication.topLevelWidgets() if w.objectName() == name)
        assert dialog.isVisible()
        dialog.close()


# --- the process -------------------------------------------------------------------------------------------------


def test_the_command_line_is_told_apart():
    assert opens_window([])
    assert opens_window(["a.xml"])
    assert opens_window(["b.nv-neural-model"])
    assert opens_window(["a.xml", "b.xml"])
    assert not opens_window(["a.xml", "--check"])
    assert not opens_window(["check", "a.xml"])
    assert not opens_window(["--help"])


def test_the_window_loads_no_heavy_library():
    code = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication\n"
        "app = QApplication([])\n"
        "from app.ui.shell.window import MainWindow\n"
        "from designer.operators.registry import default_registry\n"
        "window = MainWindow(default_registry())\n"
        "window.show()\n"
        "app.processEvents()\n"
        "window.files.open_first(None)\n"
        "app.processEvents()\n"
        "names = ['torch', 'onnx', 'onnxruntime', 'matplotlib', 'lxml']\n"
        "assert not sys.modules.keys() & names, sys.modules.keys() & names\n"
        "if sys.platform == 'linux':\n"
        "    mapped = open('/proc/self/maps').read()\n"
        "    assert not [n for n in ('libtorch', 'onnxruntime', 'matplotlib', 'lxml') if n in mapped]\n"
    )
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_without_a_display_the_command_says_so():
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    done = subprocess.run(
        [sys.executable, "-m", "app.main"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    if sys.platform.startswith("linux"):
        assert done.returncode == 1
        assert "no display" in done.stderr


def test_first_start_analyses_the_sample(window, qtbot):
    asked = []
    window.docks.fill = lambda name: False  # the panels, and with them the engine, are tested elsewhere
    window.context.analysis_requested.connect(lambda: asked.append(True))
    window.begin(None)
    assert window.context.document.path.name == "denoiser_analyze.xml"
    assert "(sample)" in window.windowTitle()
    assert asked == [True]
    assert window.docks.workspace == "Analysis"


def test_a_sample_is_never_written_to(window, tmp_path, monkeypatch):
    window.files.open_first(None)
    path = window.context.document.path
    before = path.read_bytes()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: ("", ""))
    window.context.document.do(lambda g: commands.remove_layers(g, ["noise_0"], heal=True))
    assert not window.files.save()
    assert path.read_bytes() == before


def test_a_mistake_of_ours_is_told(window, capsys):
    from app.main import report_error

    error = KeyError("x")
    report_error(type(error), error, None)
    assert "KeyError" in window.status.currentMessage()
    assert "KeyError" in capsys.readouterr().err


def test_every_window_shows_a_mistake_of_ours(qapp, capsys, monkeypatch):
    from app.main import report_error

    contexts, said = [Context(default_registry()) for _ in range(3)], []
    for number, context in enumerate(contexts):
        context.message.connect(lambda *words, number=number: said.append((number, *words)))
    windows = [SimpleNamespace(context=context) for context in contexts]
    monkeypatch.setattr("app.ui.shell.window.shown_windows", lambda: windows)
    report_error(ValueError, ValueError("a", 1), None)
    text = "Something went wrong inside the program (ValueError: ('a', 1)). Save your work and report this."
    assert said == [(number, "error", text) for number in range(3)]
    assert "ValueError: ('a', 1)" in capsys.readouterr().err


def test_keys_of_the_canvas(window):
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    document.do(lambda g: commands.add_layer(g, Layer("b", "identity", (3200, 1600), (Source("a"),))))
    window.context.select(("b",))
    QApplication.processEvents()
    viewer = window.canvas.viewer
    press(window, "F")
    assert window.canvas.projection["b"].sceneBoundingRect().contains(viewer.visible_center())
    press(window, "Home")
    shown = viewer.mapToScene(viewer.viewport().rect()).boundingRect()
    assert all(shown.contains(window.canvas.projection[name].box()) for name in ("a", "b"))
    press(window, "Ctrl+C")
    QApplication.processEvents()
    press(window, "Ctrl+V")
    assert document.graph["b_0"].inputs == ()
    QApplication.processEvents()
    press(window, "Ctrl+Shift+V")
    assert document.graph["b_1"].inputs == (Source("a"),)
    QApplication.processEvents()
    press(window, "Ctrl+X")
    assert "b_1" not in document.graph
    link = window.canvas.projection.link("b", 0)
    viewer.select_link(link)
    QApplication.processEvents()
    press(window, "Del")
    assert document.graph["b"].inputs == ()


def test_every_workspace_comes_back_as_it_was_left(window):
    """Qt's stored states also contain docks that were removed: none of another workspace may come back with them."""

    def seen() -> set[str]:
        return {dock.objectName() for dock in window.docks.all if not dock.isHidden()}

    first = {}
    for name in WORKSPACES:
        window.docks.set_workspace(name)
        first[name] = seen()
    window.docks.set_workspace("Design")
    window.docks["type_checking"].hide()
    first["Design"] = seen()
    for name in (*WORKSPACES, *reversed(WORKSPACES), "Profile", "Design", "Analysis", "Profile"):
        window.docks.set_workspace(name)
        assert seen() == first[name], name


def test_the_status_bar_follows_the_theme_and_colors_the_message_alone(window, qapp):
    def ink(widget) -> QColor:
        return widget.palette().color(widget.foregroundRole())

    labels = [window.status.findChild(QLabel, name) for name in ("status.engine", "status.totals")]
    try:
        for mode in ("dark", "light", "dark", "light"):
            theme.apply(qapp, mode)
            window.status.say("error", "It failed.")
            assert window.status.palette().color(QPalette.ColorRole.WindowText) == theme.color("error")
            assert {ink(label).name() for label in labels} == {theme.color("text").name()}
            window.status.say("info", "It works.")
            assert window.status.palette().color(QPalette.ColorRole.WindowText) == theme.color("text")
    finally:
        theme.apply(qapp, "system")


def test_every_button_of_a_panel_has_a_name_and_says_what_it_does(window):
    for spec in PANELS:
        window.docks.show(spec.id)
    QApplication.processEvents()
    silent = []
    for spec in PANELS:
        for button in window.docks.panel(spec.id).findChildren(QAbstractButton):
            name = button.objectName()
            if not name.startswith(f"{spec.id}.") or isinstance(button.parent(), EmptyState):
                continue
            if "&" in button.accessibleName() or not (button.accessibleName() or button.text() or button.isHidden()):
                silent.append(f"{name}: {button.accessibleName()!r}")
            if isinstance(button, QToolButton | QPushButton) and not button.toolTip():
                silent.append(f"{name} has no tooltip")
    assert silent == []


@pytest.mark.parametrize(
    ("stored", "mode"),
    [(None, "system"), ("system", "system"), ("dark", "dark"), ("light", "light"), ("Light", "system"), ("", "system")],
)
@pytest.mark.parametrize("trusted", [False, True])
def test_the_program_starts_in_its_order_with_the_stored_theme(monkeypatch, qtbot, stored, mode, trusted):
    """The language comes before any text and the theme before the window, which begins when events are handled."""
    from app import main
    from app.ui.shell import focus_ring, language
    from app.ui.shell import window as module
    from app.ui.widgets import garbage

    done = []

    class Program:
        def __getattr__(self, name):
            return lambda *values: done.append((name, *values))

        def exec(self):
            done.append("exec")
            qtbot.waitUntil(lambda: done[-1][0] == "begin")
            return 7

    program = Program()

    class Window(QWidget):
        def __init__(self, registry, settings):
            super().__init__()
            qtbot.addWidget(self)
            done.append(("window", registry.get("convolution") is not None, settings))

        def show(self):
            done.append("show")

        def begin(self, paths, *, trusted):
            done.append(("begin", paths, trusted))

    class Stored:
        def value(self, name):
            return stored if name == "theme" else "of another name"

    settings, before = Stored(), sys.excepthook
    monkeypatch.setattr(module, "MainWindow", Window)
    monkeypatch.setattr(module, "window_settings", lambda: settings)
    monkeypatch.setattr("signal.signal", lambda *how: done.append(how))
    for part in (garbage, focus_ring):
        monkeypatch.setattr(part, "install", lambda app, name=part.__name__: done.append((name, app)))
    monkeypatch.setattr(language, "apply", lambda app: done.append(("language", app)))
    monkeypatch.setattr(theme, "apply", lambda app, mode: done.append(("theme", app, mode)))
    with monkeypatch.context() as here:
        here.setattr("PySide6.QtWidgets.QApplication", lambda words: program)
        here.setattr(sys, "excepthook", before)
        assert main.run_window(["a.xml", "b.onnx"], trusted=trusted) == 7
        assert sys.excepthook is main.report_error
    assert done == [
        ("setApplicationName", "layerwright"), ("setApplicationDisplayName", ""), ("setDesktopFileName", "layerwright"),
        (garbage.__name__, program), ("language", program), ("theme", program, mode), (focus_ring.__name__, program),
        ("window", True, settings), "show", (signal.SIGINT, signal.SIG_DFL), "exec",
        ("begin", ["a.xml", "b.onnx"], trusted),
    ]  # fmt: skip
