"""The window: menus and reasons, files, unsaved work, workspaces, bad input."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import os
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, QSettings, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QMessageBox,
    QPushButton,
)

from app.main import opens_window
from app.ui.actions import ACTIONS
from app.ui.dialogs.findings import FindingsDialog
from app.ui.document import Document
from app.ui.menus import CONTEXT_MENU, MENUS, TOOLBAR
from app.ui.panels import PANELS, WORKSPACES
from app.ui.requirements import NEEDS
from app.ui.window import MainWindow
from designer.files.document import read_document
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

XML = """<?xml version="1.0"?>
<NetworkModel name="tiny" version="2" user_version_tag="1">
\t<Layer name="input" type="input" edit_pos="0,0">
\t\t<Parameters dims="64x48x3" rgba="false" scale="1.0" shift="0" tiling="1" />
\t</Layer>
\t<Layer name="output" type="output" edit_pos="320,0" input="input">
\t\t<Parameters analysis_view="image" channels="0" height="0" label_path="" offset="0x0x0" width="0" />
\t</Layer>
</NetworkModel>
"""


@pytest.fixture
def tiny(tmp_path) -> Path:
    path = tmp_path / "tiny.xml"
    path.write_text(XML)
    return path


@pytest.fixture
def settings(tmp_path) -> QSettings:
    return QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)


def keep_nothing(window) -> None:
    """The test is over: its changes may go."""
    for opened in window.tabs.all:
        opened.document.history.mark_clean()


@pytest.fixture
def window(qtbot, settings):
    window = MainWindow(default_registry(), settings)
    window.resize(1366, 768)
    qtbot.addWidget(window, before_close_func=keep_nothing)
    window.show()
    qtbot.waitExposed(window)
    window.files.new()
    return window


def action(window, name: str):
    return window.actions_[name]


def press(window, text: str) -> None:
    """A shortcut, pressed while the canvas has the focus."""
    window.canvas.viewer.setFocus()
    QTest.keySequence(window.canvas.viewer, text)


# --- actions -----------------------------------------------------------------------------------------------------


def test_the_tables_name_only_what_is_there():
    ids = [spec.id for spec in ACTIONS]
    assert len(ids) == len(set(ids))
    keys = [key for spec in ACTIONS for key in spec.shortcuts]
    assert len(keys) == len(set(keys))
    assert {need for spec in ACTIONS for need in spec.needs} <= NEEDS.keys()

    def named(entries):
        for entry in entries:
            if isinstance(entry, tuple):
                yield from named(entry[1])
            elif entry is not None and not entry.startswith("<"):
                yield entry

    in_menus = [name for _, entries in MENUS for name in named(entries)]
    assert sorted(in_menus) == sorted(ids)  # everything is in the menus, once
    assert {e for e in (*TOOLBAR, *CONTEXT_MENU) if e is not None} <= set(ids)


def test_disabled_actions_say_why(window):
    window._refresh()
    assert not action(window, "edit.undo").isEnabled()
    assert "nothing was changed" in action(window, "edit.undo").toolTip()
    assert not action(window, "run.analysis").isEnabled()
    assert "no layers" in action(window, "run.analysis").toolTip()
    window.context.document.do(lambda g: commands.add_layer(g, Layer("c", "convolution")))
    window._refresh()
    assert action(window, "edit.undo").isEnabled()
    assert "Add c" in action(window, "edit.undo").toolTip()
    assert "errors" in action(window, "export.pytorch").toolTip()
    assert window.status.problems.text() == "1 error"


def test_shortcuts_edit(window):
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    document.do(lambda g: commands.add_layer(g, Layer("b", "identity", (320, 0), (Source("a"),))))
    window._refresh()
    press(window, "Ctrl+A")
    assert window.context.selection == ("a", "b")
    window._refresh()
    press(window, "Ctrl+D")
    assert len(document.graph) == 4
    window._refresh()
    press(window, "Del")
    assert set(document.graph.layers) == {"a", "b"}
    window._refresh()
    press(window, "Ctrl+Z")
    assert len(document.graph) == 4
    window._refresh()
    press(window, "Ctrl+Shift+Z")
    assert len(document.graph) == 2
    window._refresh()
    press(window, "Ctrl+Z")
    window._refresh()
    press(window, "Ctrl+Y")
    assert len(document.graph) == 2


def test_delete_in_a_text_field_leaves_the_network_alone(window):
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    window.context.select(("a",))
    window._refresh()
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
    window._refresh()
    press(window, "F2")
    edit = next(w for w in QApplication.topLevelWidgets() if w.objectName() == "canvas.rename").findChild(QLineEdit)
    edit.setText("picture")
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert "picture" in window.context.document.graph
    assert window.context.selection == ("picture",)


# --- files -------------------------------------------------------------------------------------------------------


def test_open_edit_save_byte_for_byte(window, tiny, monkeypatch):
    before = tiny.read_bytes()
    assert window.files.open(tiny)
    assert "tiny.xml" in window.windowTitle()
    assert not window.isWindowModified()
    action(window, "file.save").trigger()
    assert tiny.read_bytes() == before
    window.context.document.do(lambda g: commands.rename_layer(g, "output", "result"))
    window._refresh()
    assert window.isWindowModified()
    action(window, "file.save").trigger()
    window._refresh()
    assert not window.isWindowModified()
    assert b'name="result"' in tiny.read_bytes()
    assert window.files.recent() == [tiny.resolve()]


def test_save_as_adds_the_ending(window, tmp_path, monkeypatch):
    target = tmp_path / "made"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(target), ""))
    window.context.document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    action(window, "file.save").trigger()
    assert read_document(tmp_path / "made.xml").graph == window.context.document.graph
    assert window.context.document.path == tmp_path / "made.xml"


@pytest.mark.parametrize("data", [b"", b"<NetworkModel", b"no xml at all", XML[:200].encode()])
def test_unreadable_document_is_explained_and_nothing_changes(window, tmp_path, data, qtbot):
    window.context.document.do(lambda g: commands.add_layer(g, Layer("mine", "input")))
    bad = tmp_path / "bad.xml"
    bad.write_bytes(data)
    document = window.context.document
    assert not window.files.open(bad)
    dialog = window.findChild(FindingsDialog, "findings")
    assert dialog.isVisible()
    assert dialog.findChild(QListWidget).count() >= 1
    assert window.context.document is document
    assert "mine" in document.graph
    QTest.mouseClick(dialog.findChild(QPushButton, "findings.copy"), Qt.MouseButton.LeftButton)
    assert "error" in QApplication.clipboard().text()
    dialog.close()


def test_missing_document_is_explained(window, tmp_path):
    assert not window.files.open(tmp_path / "gone.xml")
    dialog = window.findChild(FindingsDialog, "findings")
    assert "gone.xml" in dialog.findChild(QLabel, "findings.sentence").text()
    assert "What to do" in dialog.findChild(QListWidget).item(0).text()
    dialog.close()


@pytest.mark.skipif(os.name != "posix", reason="needs a folder that cannot be written")
def test_failed_save_keeps_both(window, tmp_path, tiny):
    window.files.open(tiny)
    before = tiny.read_bytes()
    window.context.document.do(lambda g: commands.rename_layer(g, "output", "result"))
    assert not window.files.save_to(tmp_path / "missing" / "folder" / "x.xml")
    dialog = window.findChild(FindingsDialog, "findings")
    assert dialog.isVisible()
    assert tiny.read_bytes() == before
    assert "result" in window.context.document.graph
    window._refresh()
    assert window.isWindowModified()
    dialog.close()


def test_file_dropped_on_the_window_opens(window, tiny, qtbot):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tiny))])
    place, buttons, keys = window.rect().center(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place, Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    event = QDropEvent(QPointF(place), Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(window, event)
    qtbot.waitUntil(lambda: window.context.document.path == tiny)


def answer(qtbot, button: QMessageBox.StandardButton) -> None:
    """Press a button of the question about unsaved work as soon as it stands there."""

    def press_button() -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, QMessageBox):
            QTest.mouseClick(box.button(button), Qt.MouseButton.LeftButton)
        else:
            QTimer.singleShot(20, press_button)

    QTimer.singleShot(20, press_button)


def test_unsaved_work_is_asked_about(window, tiny, qtbot):
    window.files.open(tiny)
    document = window.context.document
    document.do(lambda g: commands.rename_layer(g, "output", "result"))
    answer(qtbot, QMessageBox.StandardButton.Cancel)
    assert not window.close()
    answer(qtbot, QMessageBox.StandardButton.Cancel)
    assert not window.files.close()
    assert window.context.document is document
    answer(qtbot, QMessageBox.StandardButton.Save)
    assert window.files.close()
    assert b'name="result"' in tiny.read_bytes()
    window.files.open(tiny)
    window.context.document.do(lambda g: commands.rename_layer(g, "result", "other"))
    answer(qtbot, QMessageBox.StandardButton.Discard)
    assert window.files.close()
    assert b'name="result"' in tiny.read_bytes()


def test_recent_files_menu(window, tiny):
    window.files.open(tiny)
    window.files.new()
    window.menus.fill_recent()
    entries = window.menus.named["<recent>"].actions()
    assert entries[0].text().endswith("tiny.xml")
    assert entries[0].toolTip() == str(tiny.resolve())
    entries[0].trigger()
    assert window.context.document.path == tiny.resolve()
    window.files.clear_recent()
    window.menus.fill_recent()
    assert not window.menus.named["<recent>"].actions()[0].isEnabled()


# --- workspaces --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORKSPACES)
def test_every_workspace_shows_its_panels_on_a_small_screen(window, qtbot, name):
    window.docks.set_workspace(name)
    wanted = {spec.id for spec in PANELS if name in spec.workspaces}
    qtbot.waitUntil(lambda: {s.id for s in PANELS if window.docks[s.id].toggleViewAction().isChecked()} == wanted)
    assert window.width() <= 1366
    assert window.height() <= 768
    assert window.canvas.width() >= 300
    assert window.canvas.height() >= 200


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
    from app.ui import theme

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


# --- export ------------------------------------------------------------------------------------------------------


def network() -> Graph:
    params = {"features": "3", "kernel": "3x3", "padding": "same"}
    return Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3"}),
            Layer("conv", "convolution", (320, 0), (Source("input"),), params),
            Layer("output", "output", (640, 0), (Source("conv"),)),
        ],
        name="tiny",
    )


def test_pytorch_export(window, qtbot, tmp_path):
    from app.ui.dialogs.export_pytorch import PyTorchExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    window._refresh()
    action(window, "export.pytorch").trigger()
    dialog = window.findChild(PyTorchExportDialog, "export_pytorch")
    dialog.name.setText("not a name")
    assert not dialog.generate.isEnabled()
    assert "Python name" in dialog.message.text()
    dialog.name.setText("Tiny")
    dialog.folder.setText(str(tmp_path / "project"))
    QTest.mouseClick(dialog.generate, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "written" in dialog.message.text(), timeout=10_000)
    assert "class Tiny" in (tmp_path / "project" / "model.py").read_text()
    assert (tmp_path / "project" / "train.py").is_file()
    dialog.close()


def test_pytorch_export_that_fails_says_why(window, qtbot, tmp_path):
    from app.ui.dialogs.export_pytorch import PyTorchExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    dialog = PyTorchExportDialog(window.context, window)
    dialog.open()
    dialog.folder.setText(str(blocked / "project"))
    QTest.mouseClick(dialog.generate, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "What to do" in dialog.message.text(), timeout=10_000)
    dialog.close()


@pytest.mark.slow
def test_onnx_export(window, qtbot, tmp_path):
    from app.ui.dialogs.export_onnx import OnnxExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    dialog = OnnxExportDialog(window.context, window)
    dialog.open()
    dialog.file.setText(str(tmp_path / "tiny.onnx"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.export.isEnabled, timeout=60_000)
    assert "weights" in dialog.message.text()  # missing: they are never filled silently
    assert not (tmp_path / "tiny.onnx").exists()
    dialog.random.setChecked(True)
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    dialog.file.setText(str(tmp_path / "next.onnx"))  # typed while the first one is written
    qtbot.waitUntil(dialog.export.isEnabled, timeout=60_000)
    assert (tmp_path / "tiny.onnx").stat().st_size > 100, dialog.message.text()
    assert dialog.message.text() == f"Written to {tmp_path / 'tiny.onnx'}"
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
        "from app.ui.window import MainWindow\n"
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
    from app.main import _tell

    error = KeyError("x")
    _tell(type(error), error, None)
    assert "KeyError" in window.status.currentMessage()
    assert "KeyError" in capsys.readouterr().err


def test_keys_of_the_canvas(window):
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("a", "input")))
    document.do(lambda g: commands.add_layer(g, Layer("b", "identity", (3200, 1600), (Source("a"),))))
    window.context.select(("b",))
    window._refresh()
    viewer = window.canvas.viewer
    press(window, "F")
    assert window.canvas.projection["b"].sceneBoundingRect().contains(viewer.visible_centre())
    press(window, "Home")
    shown = viewer.mapToScene(viewer.viewport().rect()).boundingRect()
    assert all(shown.contains(window.canvas.projection[name].box()) for name in ("a", "b"))
    press(window, "Ctrl+C")
    window._refresh()
    press(window, "Ctrl+V")
    assert document.graph["b_0"].inputs == ()
    window._refresh()
    press(window, "Ctrl+Shift+V")
    assert document.graph["b_1"].inputs == (Source("a"),)
    window._refresh()
    press(window, "Ctrl+X")
    assert "b_1" not in document.graph
    link = window.canvas.projection.link("b", 0)
    viewer.select_link(link)
    window._refresh()
    press(window, "Del")
    assert document.graph["b"].inputs == ()


def test_every_workspace_comes_back_as_it_was_left(window):
    """Qt's stored states also tell of docks that were taken out: none of another workspace may come back with them."""

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
