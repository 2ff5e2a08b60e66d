"""What the shell does in states that are seldom: nothing open, nothing installed, edits and files that are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from light_shell import LightShell, network
from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QMainWindow, QWidget
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.shell import model_import
from app.ui.shell import recovery as recovery_module
from app.ui.shell.docks import Docks
from app.ui.shell.export import command, tensorrt, video
from app.ui.shell.export.exports import Exports
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.export.video import VideoExportDialog
from app.ui.shell.live_totals import LiveTotals
from designer.files.recovery import Unfinished
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.operators.registry import default_registry
from designer.runtime.engines import trt

WRONG = Diagnostic("wrong", "the disk is full", remedy="free some room")


def refuse(*_: object, **__: object) -> None:
    raise DiagnosticError((WRONG,))


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path) -> LightShell:
    return LightShell(qtbot, tmp_path)


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path) -> Context:
    made = Context(default_registry())
    made.set_document(Document(network(name="small"), made.registry, tmp_path / "small.xml", parent=made))
    return made


# --- files and recovery --------------------------------------------------------------------------------------------------


def test_nothing_is_saved_or_closed_while_nothing_is_open(shell: LightShell, tmp_path: Path) -> None:
    assert not shell.files.save_to(tmp_path / "a.xml")
    assert not (tmp_path / "a.xml").exists()
    assert not shell.files.close()
    assert shell.files.closed == 0
    shell.files.reopen()
    assert shell.names == []
    assert shell.files.confirm_close()
    assert shell.said == []


def test_what_the_document_refuses_to_recover_stays_for_later(shell: LightShell, tmp_path: Path, monkeypatch) -> None:
    """The document and the list of what was left are as before, and nothing is said of a recovery."""
    path = tmp_path / "net.xml"
    tab = shell.add(network(), path)
    tab.document.do(lambda g: commands.set_params(g, {"conv": {"features": "6"}}))
    before = tab.document.graph.copy()
    done: list[str] = []
    entry = replace(
        Unfinished(Path("/j/a.journal"), path, "net.xml", 0.0, 1e9, "", network(features="8"), "same", network(), {"iterations": 3}, (), -1),
        findings=(WRONG,),
    )  # fmt: skip
    monkeypatch.setattr(Unfinished, "discard", lambda _self: done.append("discard"))
    monkeypatch.setattr(Unfinished, "release", lambda _self: done.append("release"))
    monkeypatch.setattr(recovery_module, "ask_discard", lambda *_: pytest.fail("it can be an edit"))
    shell.recovery.left = [entry]
    monkeypatch.setattr(type(tab.document), "do", lambda _document, _edit: False)
    shell.said.clear()
    shell.recovery.recover(entry)
    assert tab.document.graph == before
    assert tab.document.reading == ()
    assert (shell.recovery.left, done, shell.said) == ([entry], [], [])
    monkeypatch.undo()
    monkeypatch.setattr(Unfinished, "discard", lambda _self: done.append("discard"))
    shell.recovery.recover(entry)
    assert tab.document.graph == network(features="8")
    assert tab.document.settings.iterations == 3
    assert (shell.recovery.left, done) == ([], ["discard"])
    assert shell.said == [("info", "Recovered net.xml. Save it to keep the changes.")]
    tab.document.history.mark_clean()


def test_code_that_cannot_be_agreed_to_is_a_warning(shell: LightShell, monkeypatch) -> None:
    class Found:
        graph = network()

    monkeypatch.setattr(model_import, "not_agreed", lambda graph, registry: [graph])
    agreed: list[object] = []
    monkeypatch.setattr(model_import, "agree", agreed.append)
    shell.models._agree(Found())
    assert agreed == [[Found.graph]]
    assert shell.said == []
    monkeypatch.setattr(model_import, "agree", refuse)
    shell.models._agree(Found())
    assert shell.said == [("warning", "the disk is full")]


# --- menus, panels, totals -----------------------------------------------------------------------------------------------


def test_a_layout_that_was_stored_without_its_panels_keeps_what_qt_restored(
    qtbot: QtBot, settings: QSettings, monkeypatch
) -> None:
    monkeypatch.setattr(Docks, "_build", lambda _docks, spec: QWidget())
    window = QMainWindow()
    qtbot.addWidget(window)
    window.resize(1200, 800)
    window.show()
    docks = Docks(window, Context(default_registry(), window), settings)
    docks.set_workspace("Design")
    before = [dock.objectName() for dock in docks.all if not dock.isHidden()]
    assert before
    kept = docks.arrangement()
    assert docks.restore(replace(kept, panels=""))
    assert [dock.objectName() for dock in docks.all if not dock.isHidden()] == before
    first = kept.panels.split(",")[0]
    assert docks.restore(replace(kept, panels=f"{first},gone:10:10"))
    assert [dock.objectName() for dock in docks.all if not dock.isHidden()] == [f"dock.{first.split(':')[0]}"]


def test_totals_of_a_network_that_is_open_already_are_counted(qtbot: QtBot, context: Context) -> None:
    totals = LiveTotals(context)
    heard: list[tuple[str, str]] = []
    totals.changed.connect(lambda text, more: heard.append((text, more)))
    assert totals.total is None
    qtbot.waitUntil(lambda: len(heard) == 1)
    assert totals.total is not None
    assert "112 parameters" in heard[0][0]
    context.root.do(lambda g: commands.set_params(g, {"conv": {"features": "8"}}))
    qtbot.waitUntil(lambda: len(heard) == 2)
    assert "224 parameters" in heard[1][0]
    old = context.root
    context.set_document(Document(Graph(), context.registry, parent=context))
    qtbot.waitUntil(lambda: len(heard) == 3)
    assert heard[2][0] == ""
    old.do(lambda g: commands.set_params(g, {"conv": {"features": "16"}}))
    assert not totals._timer.isActive(), "it is not shown any more"


def test_totals_without_a_network_are_none(qtbot: QtBot) -> None:
    context = Context(default_registry())
    totals = LiveTotals(context)
    totals._count()
    totals._on_change(object())
    totals._on_states(frozenset({"a"}))
    assert totals.total is None
    assert not totals._timer.isActive()


# --- exports -------------------------------------------------------------------------------------------------------------


def test_every_export_opens_its_dialog_above_the_window(qtbot: QtBot, context: Context) -> None:
    """Those whose result is looked at on the canvas leave the window usable."""
    window = QMainWindow()
    qtbot.addWidget(window)
    canvas = Canvas(context)
    window.setCentralWidget(canvas)
    window.show()
    exports = Exports(context, canvas, window)
    expected = {
        "pytorch": ("export_pytorch", True), "onnx": ("export_onnx", True), "deploy": ("export_deploy", True),
        "tensorrt": ("export_tensorrt", False), "picture": ("picture", True), "video": ("export_video", False),
    }  # fmt: skip
    for name, (dialog_name, modal) in expected.items():
        getattr(exports, name)()
        (dialog,) = [each for each in window.findChildren(QWidget, dialog_name) if each.isVisible()]
        assert dialog.isModal() is modal, name
        assert dialog.windowModality() is (Qt.WindowModality.WindowModal if modal else Qt.WindowModality.NonModal)
        assert dialog.parent() is window
        dialog.close()


@pytest.mark.parametrize("what", ["save_document", "save_settings"])
def test_a_command_export_that_cannot_write_its_source_says_why_and_starts_nothing(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch, what: str
) -> None:
    monkeypatch.setattr(command.QProcess, "start", lambda *_: pytest.fail("nothing is started"))
    place = "designer.files.document.save_document" if what == "save_document" else f"{command.__name__}.{what}"
    monkeypatch.setattr(place, refuse)
    monkeypatch.setattr(command.tempfile, "tempdir", str(tmp_path))
    dialog = shown(qtbot, OnnxExportDialog(context), 500, 300)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    dialog.target.setText(str(tmp_path / "a.onnx"))
    dialog.export.click()
    assert "the disk is full" in dialog.message.text().casefold()
    assert (dialog.working, dialog._process, dialog._folder) == (False, None, None)
    assert list(tmp_path.glob("layerwright-export-*")) == []
    assert dialog.export.isEnabled()


def test_a_video_of_a_variant_that_cannot_be_opened_is_not_begun(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(video, "open_variant", refuse)
    monkeypatch.setattr(video, "EngineClient", lambda *_: pytest.fail("no engine is needed"))
    dialog = shown(qtbot, VideoExportDialog(context), 500, 300)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    monkeypatch.setattr(dialog, "problem", lambda: "")
    dialog.target.setText(str(tmp_path / "a.mkv"))
    dialog.check()
    dialog.export.click()
    assert "the disk is full" in dialog.message.text().casefold()
    assert not dialog.working
    dialog.interrupt()
    assert dialog._engine is None


def test_a_project_is_written_to_its_end_before_its_dialog_closes(qtbot: QtBot, context: Context, monkeypatch) -> None:
    dialog = shown(qtbot, PyTorchExportDialog(context), 500, 300)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    done: list[str] = []
    monkeypatch.setattr(dialog._job, "wait", lambda: done.append("wait"))
    monkeypatch.setattr(dialog, "write", lambda path: done.append("write"))
    dialog.export.click()
    dialog.close()
    assert done == ["write", "wait"]


def test_an_engine_is_not_built_without_tensorrt_and_a_file_that_cannot_be_read_is_a_failure(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch
) -> None:
    missing = Diagnostic("no-tensorrt", "TensorRT is not installed", Severity.ERROR, remedy="install it")
    monkeypatch.setattr(trt, "unavailable", lambda: missing)
    dialog = shown(qtbot, TensorRtExportDialog(context), 600, 500)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    assert dialog.message.text() == "TensorRT is not installed. What to do: install it."
    assert not dialog.export.isEnabled()
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    dialog.target.setText(str(tmp_path / "a.engine"))
    for line in (dialog.smallest, dialog.largest):
        for text, fits in (("12x", False), ("1920x1080", True), ("  ", True), ("64x48", True)):
            line.setText(text)
            assert dialog.export.isEnabled() is fits, text
    monkeypatch.setattr(tensorrt, "read_engine_file", refuse)
    monkeypatch.setattr(dialog, "write", lambda _path: None)
    context.select(("conv",))
    dialog.export.click()
    dialog.succeeded("")
    assert "the disk is full" in dialog.message.text().casefold()
    assert not dialog.working
    assert not dialog.table.isVisible()
    dialog._select_layers()
    assert context.selection == ("conv",), "no engine is listed"
