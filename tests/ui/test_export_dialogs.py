"""The export dialogs without exporting: what begins, stops and ends an export, what is asked of the user, and what is written."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from engine_kit import ScriptedEngine
from PySide6.QtCore import QByteArray, QProcess, Qt
from PySide6.QtGui import QDesktopServices, QHideEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.engine.protocol import ExportVideoReply, ExportVideoRequest, OpenRequest, ProgressEvent
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.network_image import IMAGE_FORMATS
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.playback import Track
from app.ui.shell.export import command, pytorch, tensorrt, video
from app.ui.shell.export import picture as picture_module
from app.ui.shell.export.command import CommandExportDialog
from app.ui.shell.export.deploy import DeployExportDialog
from app.ui.shell.export.dialog import ExportDialog
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.export.video import VideoExportDialog
from app.ui.widgets import theme
from designer.files.document import read_document
from designer.files.settings import read_settings, settings_path
from designer.files.variants import Variant
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from designer.runtime.engines import trt
from exporters.pytorch import EditedFilesError
from exporters.tensorrt import EngineFile, EngineLayer

WAIT = 10_000
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path) -> Context:
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("conv", "convolution", (320, 0), (Source("image"),), {"features": "3"}),
        Layer("last", "convolution", (640, 0), (Source("conv"),), {"features": "3"}),
        Layer("result", "output", (960, 0), (Source("last"),)),
    ]
    made = Context(default_registry())
    made.set_document(Document(Graph(layers, name="small"), made.registry, tmp_path / "small.xml", parent=made))
    return made


# --- beginning, stopping, ending -------------------------------------------------------------------------------------


class Plain(ExportDialog):
    """A dialog whose export the test ends."""

    def __init__(self, context: Context, name: str = "plain", parent: QWidget | None = None) -> None:
        super().__init__(context, name, "Plain", "a b/c.txt", parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        self.said: list[str] = []
        self.add_target("&File")
        self.check()

    def write(self, path: Path) -> None:
        self.said.append(f"write {path}")

    def interrupt(self) -> None:
        self.said.append(f"interrupt while {'working' if self.working else 'idle'}")


def state(dialog: ExportDialog) -> dict[str, Any]:
    return {
        "export": dialog.export.isEnabled(),
        "cancel": dialog.cancel.isVisible(),
        "folder": dialog.show_folder.isVisible(),
        "bar": dialog.bar.isVisible(),
        "says": dialog.message._text.accessibleName(),
    }


def test_an_export_from_its_beginning_to_its_end(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    said: list[tuple[str, str]] = []
    context.message.connect(lambda role, text: said.append((role, text)))
    dialog = shown(qtbot, Plain(context), 500, 200)
    assert Path(dialog.target.text()).parent == tmp_path
    assert "/" not in Path(dialog.target.text()).name
    idle = {"export": True, "cancel": False, "folder": False, "bar": False, "says": ""}
    assert state(dialog) == idle
    (tmp_path / "made.txt").write_text("of yesterday")
    dialog.target.setText("made.txt")
    assert state(dialog) == {**idle, "says": "note: The file exists and will be overwritten."}
    dialog.target.setText(" ")
    assert state(dialog) == {**idle, "export": False, "says": "warning: Choose a target file or folder."}
    dialog.target.setText("made.txt")
    dialog.export.click()
    assert dialog.said == [f"write {tmp_path / 'made.txt'}"]
    works = {"export": False, "cancel": True, "folder": False, "bar": True, "says": "note: Exporting ..."}
    assert state(dialog) == works
    assert dialog.bar.maximum() == 0
    dialog.show_progress(3, 7, "3 of 7")
    assert (dialog.bar.value(), dialog.bar.maximum()) == (3, 7)
    dialog.target.setText("other.txt")  # for the next one
    assert state(dialog) == {**works, "says": "note: 3 of 7"}
    dialog.written("Written", ["one", "two"])
    assert state(dialog) == {**idle, "folder": True, "says": "done: Written\none\ntwo"}
    assert said == [("info", "Written")]
    dialog.show_folder.click()
    (tmp_path / "made.txt").unlink()
    (tmp_path / "made.txt").mkdir()
    dialog.show_folder.click()
    assert opened == [str(tmp_path), str(tmp_path / "made.txt")]
    dialog.show_progress(1, 2, "late")
    dialog.written("late")
    dialog.failed("late")
    assert state(dialog) == {**idle, "folder": True, "says": "done: Written\none\ntwo"}
    dialog.export.click()
    assert not dialog.show_folder.isVisible()
    assert (dialog.bar.value(), dialog.bar.maximum()) == (0, 0)  # not those of the export before
    found = [Diagnostic("broken", f"problem {number}") for number in range(6)]
    dialog.failed(found)
    assert state(dialog)["export"]
    assert [f"problem {number}" in dialog.message.text() for number in range(6)] == [True] * 4 + [False] * 2
    dialog.export.click()
    dialog.target.setText("")
    dialog.failed("It failed.")
    assert state(dialog) == {**idle, "export": False, "says": "error: It failed."}
    assert said == [("info", "Written")]


@pytest.mark.parametrize("how", ["cancel", "close", "reject", "window hides", "window closes"])
def test_an_export_is_stopped_once(qtbot: QtBot, context: Context, tmp_path: Path, how: str) -> None:
    window = shown(qtbot, QWidget(), 300, 200)
    dialog = Plain(context, parent=window)
    dialog.open()
    dialog.target.setText(str(tmp_path / "there" / "a.txt"))
    dialog.export.click()
    dialog.said.clear()
    window.setWindowTitle("still there")
    assert dialog.said == []
    {
        "cancel": dialog.cancel.click,
        "close": dialog.close,
        "reject": dialog.reject,
        "window hides": window.hide,
        "window closes": window.close,
    }[how]()
    assert dialog.said == ["interrupt while working"]
    assert not dialog.working
    if how == "cancel":
        assert state(dialog)["says"] == "note: Cancelled. Nothing was written."
    dialog.written("late")
    dialog.reject()
    assert dialog.said == ["interrupt while working"]
    again = Plain(context)
    qtbot.addWidget(again)
    assert Path(again.target.text()).parent == tmp_path  # nothing was written there


class Minimized(QHideEvent):
    """What the window system sends when a window is minimized."""

    def spontaneous(self) -> bool:
        return True


def test_an_export_goes_on_while_its_window_is_minimized(qtbot: QtBot, context: Context, tmp_path: Path) -> None:
    window, other = shown(qtbot, QWidget(), 300, 200), QWidget()
    qtbot.addWidget(other)
    dialog = Plain(context, parent=window)
    dialog.open()
    dialog.target.setText(str(tmp_path / "a.txt"))
    dialog.export.click()
    dialog.said.clear()
    for watched, event in ((window, Minimized()), (window, QShowEvent()), (other, QHideEvent())):
        assert not dialog.eventFilter(watched, event)
        assert (dialog.said, dialog.working) == ([], True)
    assert not dialog.eventFilter(window, QHideEvent())
    assert (dialog.said, dialog.working) == (["interrupt while working"], False)


def test_the_last_folder_is_that_of_the_dialog_and_the_window(qtbot: QtBot, context: Context, tmp_path: Path) -> None:
    other = Context(context.registry)
    other.set_document(Document(Graph(name="x"), context.registry, tmp_path / "x.xml", parent=other))
    first = Plain(context)
    qtbot.addWidget(first)
    first.target.setText(str(tmp_path / "here" / "a.txt"))
    first.export.click()
    (tmp_path / "here" / "a.txt").mkdir(parents=True)  # the next one is proposed next to a folder, not in it
    first.written("Written")
    found = []
    for where, name in ((context, "plain"), (context, "another"), (other, "plain")):
        dialog = Plain(where, name)
        qtbot.addWidget(dialog)
        found.append(Path(dialog.target.text()).parent)
    assert found == [tmp_path / "here", tmp_path, tmp_path]


# --- exports by a command --------------------------------------------------------------------------------------------


def test_the_whole_document_is_exported_inside_a_template_too(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.document.do(lambda g: make_template(g, ["conv", "last"], "Pair"))
    (instance,) = (name for name, layer in context.document.graph.layers.items() if layer.type == "template")
    variants = (Variant("quick", "fp16"), Variant("slow"))
    context.root.restore_settings(variants=variants, input_files={"image": str(tmp_path / "a.png")}, variant="quick")
    context.enter(instance)
    written: list[Any] = []

    def module_command(module: str, *words: str) -> tuple[str, ...]:
        graph = read_document(Path(words[2])).graph
        settings = read_settings(settings_path(Path(words[2]))).settings
        assert graph is not None
        written.append((set(graph.layers), settings.variants, dict(settings.input_files)))
        return ("/no/such/program",)

    monkeypatch.setattr(command, "module_command", module_command)
    dialog = shown(qtbot, OnnxExportDialog(context), 500, 300)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    assert dialog.variant.currentData() == "quick"
    dialog.target.setText(str(tmp_path / "a.onnx"))
    for _ in range(2):
        dialog.export.click()
        qtbot.waitUntil(lambda: not dialog.working, timeout=WAIT)
        dialog.variant.setCurrentIndex(0)
    layers = set(context.root.graph.layers)
    files = {"image": str(tmp_path / "a.png")}
    assert written == [(layers, variants[:1], files), (layers, (), files)]
    assert isinstance(dialog, CommandExportDialog)


@pytest.mark.parametrize("kind", [OnnxExportDialog, DeployExportDialog])
def test_weights_variant_model_and_seed_are_words_of_the_command(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[CommandExportDialog]
) -> None:
    monkeypatch.chdir(tmp_path)
    own, quick = str(tmp_path / "own.pt"), str(tmp_path / "quick.pt")
    context.root.restore_settings(variants=(Variant("quick", "fp16", weights=quick), Variant("plain")), weights=own)
    started: list[list[str]] = []
    monkeypatch.setattr(command, "module_command", lambda module, *words: ("program", module))
    monkeypatch.setattr(command.QProcess, "start", lambda _self, program, words: started.append([program, *words]))
    dialog = shown(qtbot, kind(context), 600, 400)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    dialog.target.setText(str(tmp_path / "made.onnx"))
    assert [dialog.variant.itemData(row) for row in range(3)] == ["", "quick", "plain"]
    for variant, proposed in (("", own), ("quick", quick), ("plain", own), ("", own)):
        dialog.variant.setCurrentIndex(dialog.variant.findData(variant))
        assert dialog.weights.text() == proposed
        for weights in ("", " sub/other.pt "):
            for random in (False, True):
                for model in ("", "half.onnx") if kind is DeployExportDialog else ("",):
                    dialog.weights.setText(weights)
                    dialog.random.setChecked(random)
                    dialog.model.setText(model)
                    both = bool(variant and model)
                    assert dialog.export.isEnabled() is not both
                    assert ("both choose the model" in dialog.message.text()) is both
                    if both:
                        continue
                    dialog.export.click()
                    expected = ["program", "app.cli.main"]
                    expected += ["--weights", str(tmp_path / "sub" / "other.pt")] if weights else []
                    expected += ["--variant", variant] if variant else []
                    expected += ["--onnx", str(tmp_path / "half.onnx")] if model else []
                    expected += ["--random-weights", "0"] if random else []
                    assert started.pop() == expected
                    dialog.cancel.click()
                    assert not dialog.working
        dialog.model.setText("")
    assert started == []


class Ended:
    """A process that has ended with these outputs."""

    def __init__(self, printed: str, error: str) -> None:
        self.printed, self.error = printed.encode(), error.encode()
        self.deleted = 0

    def readAllStandardOutput(self) -> QByteArray:
        return QByteArray(self.printed)

    def readAllStandardError(self) -> QByteArray:
        return QByteArray(self.error)

    def errorString(self) -> str:
        return "Not found"

    def deleteLater(self) -> None:
        self.deleted += 1


KILLED = "The export was killed (signal 9), possibly because memory ran out. Nothing was written. Try again with a smaller input."
EXITED, CRASHED = QProcess.ExitStatus.NormalExit, QProcess.ExitStatus.CrashExit


@pytest.mark.parametrize(
    ("code", "status", "printed", "error", "says"),
    [
        (0, EXITED, "one\nwidths 8 to 64\n", "a warning", "done: ONNX model written to {path}\nwidths 8 to 64"),
        (0, EXITED, "", "", "done: ONNX model written to {path}"),
        (0, CRASHED, "one", "late", "error: " + KILLED.replace("9", "0")),
        (9, CRASHED, "one", "late", f"error: {KILLED}"),
        (9, CRASHED, "", "", f"error: {KILLED}"),
        (1, EXITED, "wrote half", " layer 'conv' is wrong \n", "error: layer 'conv' is wrong"),
        (1, EXITED, "", "it failed", "error: it failed"),
        (3, EXITED, "wrote half", " \n", "error: The export exited with status 3 and no message. Try again."),
        (3, EXITED, "", "", "error: The export exited with status 3 and no message. Try again."),
    ],
)
def test_what_is_said_of_the_end_of_a_command(
    qtbot: QtBot,
    context: Context,
    tmp_path: Path,
    code: int,
    status: QProcess.ExitStatus,
    printed: str,
    error: str,
    says: str,
) -> None:
    dialog = shown(qtbot, OnnxExportDialog(context), 500, 300)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    path = tmp_path / "a.onnx"
    dialog.target.setText(str(path))
    dialog.write = lambda _path: None
    dialog.export.click()
    dialog._folder = tempfile.TemporaryDirectory(dir=tmp_path)
    folder = Path(dialog._folder.name)
    process = dialog._process = Ended(printed, error)
    dialog._on_finished(code, status)
    assert dialog.message._text.accessibleName() == says.format(path=path)
    assert (dialog.working, dialog._process, dialog._folder, folder.exists()) == (False, None, None, False)
    assert process.deleted == 1
    dialog._on_finished(code, status)  # nothing is running
    dialog._on_error(QProcess.ProcessError.FailedToStart)
    assert dialog.message._text.accessibleName() == says.format(path=path)


def test_a_command_that_cannot_start_is_reported_and_other_errors_are_not(
    qtbot: QtBot, context: Context, tmp_path: Path
) -> None:
    dialog = shown(qtbot, OnnxExportDialog(context), 500, 300)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    dialog.target.setText(str(tmp_path / "a.onnx"))
    dialog.write = lambda _path: None
    dialog.export.click()
    dialog._process = Ended("", "")
    for error in QProcess.ProcessError:
        if error is not QProcess.ProcessError.FailedToStart:
            dialog._on_error(error)
            assert dialog.working
            assert state(dialog)["says"] == "note: Exporting ..."
    dialog._on_error(QProcess.ProcessError.FailedToStart)
    assert state(dialog)["says"] == (
        "error: The export could not be started: Not found. Free some memory and try again."
    )
    assert not dialog.working
    assert dialog._process is None


def test_lines_of_a_deployment_are_its_notes(qtbot: QtBot, context: Context, tmp_path: Path) -> None:
    dialog = shown(qtbot, DeployExportDialog(context), 600, 400)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    dialog.target.setText(str(tmp_path / "there"))
    dialog.write = lambda _path: None
    dialog.export.click()
    dialog.succeeded("wrote a\nmodel 3 MB\nwrote b\ndone in 2 s")
    assert dialog.message.text().splitlines() == [
        f"Deployment folder written to {tmp_path / 'there'}", "model 3 MB", "done in 2 s",
    ]  # fmt: skip


def test_every_browse_button_of_the_command_exports_asks_and_fills_its_line(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each dialog begins, and that a cancelled dialog changes nothing."""
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    asked: list[tuple[str, ...]] = []
    answer = [""]

    def note(kind: str) -> Callable[..., Any]:
        def ask(_parent: QWidget, title: str, begin: str, *more: str) -> Any:
            asked.append((kind, title, begin, *more[:1]))
            return answer[0] if kind == "folder" else (answer[0], "")

        return ask

    for name, kind in (("getExistingDirectory", "folder"), ("getOpenFileName", "open"), ("getSaveFileName", "save")):
        monkeypatch.setattr(QFileDialog, name, note(kind))
    monkeypatch.chdir(tmp_path)
    for kind, suffix in ((OnnxExportDialog, ".onnx"), (DeployExportDialog, ""), (TensorRtExportDialog, ".engine")):
        dialog = shown(qtbot, kind(context), 600, 500)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        target = tmp_path / "out" / f"made{suffix}"
        dialog.target.setText(str(target))
        lines = {
            "target": dialog.target,
            "weights": dialog.weights,
            "weights_file": dialog.weights,
            "model": dialog.model,
        }
        expected = {
            "target": {
                OnnxExportDialog: ("save", "ONNX File", str(target)),
                DeployExportDialog: ("folder", "Output Folder", str(tmp_path / "out")),
                TensorRtExportDialog: ("save", "Engine File", str(target)),
            }[kind],
            "weights": ("folder", "Weights Folder", str(tmp_path)),
            "weights_file": ("open", "Weights File", str(tmp_path)),
            "model": ("open", "ONNX Model", str(tmp_path)),  # of the target that was chosen
        }
        for name, line in lines.items():
            button = dialog.findChild(QPushButton, f"{dialog.objectName()}.{name}.browse")
            assert (button is None) is (name == "model" and kind is OnnxExportDialog)
            if button is None:
                continue
            before = line.text()
            answer[0] = ""
            button.click()
            assert line.text() == before
            assert asked.pop()[:3] == expected[name], name
            answer[0] = str(tmp_path / f"chosen{suffix or '.onnx'}")
            button.click()
            assert line.text() == answer[0]
            assert asked.pop()[:3] == expected[name], name
            assert asked == []
        if kind is not OnnxExportDialog:
            dialog.model.setText(" half.onnx ")
            dialog._browse_model()
            kind_, title, begin, filters = asked.pop()
            assert (kind_, title, begin) == ("open", "ONNX Model", "half.onnx")
            assert "*.onnx" in filters


def engine(*layers: EngineLayer) -> EngineFile:
    return EngineFile("", "trt", "10", "small", {}, False, 1.0, "trtexec", layers, {})


def test_the_layers_of_an_engine_are_listed_and_select_those_of_the_network(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    dialog = shown(qtbot, TensorRtExportDialog(context), 700, 600)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    monkeypatch.setattr(dialog, "write", lambda path: None)
    fused = EngineLayer("one", "Convolution", "FP16", ("conv", "last"), ("a/Conv", "a/Relu"))
    conversion = EngineLayer("two", "Reformat", "FP32", (), ("copy",))
    single = EngineLayer("three", "Pool", "INT8", ("last", "gone"), ("b/MaxPool",))
    replies = [engine(fused, conversion, single), engine(conversion)]
    monkeypatch.setattr(tensorrt, "read_engine_file", lambda path: replies.pop(0))
    dialog.target.setText(
        str(tmp_path / "a.engine") if tensorrt.SUFFIX == ".engine" else str(tmp_path / f"a{tensorrt.SUFFIX}")
    )
    assert not dialog.table.isVisible()
    header = dialog.table.headerItem()
    assert [header.text(column) for column in range(header.columnCount())] == [
        "Layers of the network", "Precision", "Kind", "Nodes",
    ]  # fmt: skip

    def build() -> list[list[str]]:
        dialog.export.click()
        dialog.succeeded("")
        items = [dialog.table.topLevelItem(row) for row in range(dialog.table.topLevelItemCount())]
        return [[item.text(column) for column in range(4)] for item in items if item is not None]

    assert build() == [
        ["conv, last", "FP16", "Convolution", "Conv + Relu"],
        ["(conversion)", "FP32", "Reformat", "copy"],
        ["last, gone", "INT8", "Pool", "MaxPool"],
    ]
    assert dialog.message.text() == f"Engine with 3 layers written to {dialog._written_to}"
    dialog.table.setSelectionMode(dialog.table.SelectionMode.MultiSelection)
    for rows, names in (((1,), ()), ((2,), ("last",)), ((0, 2), ("conv", "last")), ((0,), ("conv", "last"))):
        dialog.table.clearSelection()
        for row in rows:
            item = dialog.table.topLevelItem(row)
            assert item is not None
            item.setSelected(True)
        assert context.selection == names
    assert build() == [["(conversion)", "FP32", "Reformat", "copy"]]
    assert dialog.message.text() == f"Engine with 1 layer written to {dialog._written_to}"
    dialog.export.click()
    dialog.failed("[not-in-tensorrt] layer 'last': no\n[not-in-tensorrt] layer 'conv': no")
    assert context.selection == ("last", "conv")
    for line in (dialog.smallest, dialog.largest):
        line.setText("8 by 8")
        assert not dialog.export.isEnabled()
        line.setText("16x8")
        assert dialog.export.isEnabled()
    dialog.smallest.setText("8x4")
    dialog.batch.setValue(3)
    words = dialog.command(Path("a.xml"), Path("b"))
    options = ["--max-batch", "3", "--min-size", "8x4", "--max-size", "16x8"]
    assert list(words) == ["export", trt.NAME, "a.xml", "--output", "b", *options]
    dialog.sparse.setChecked(True)
    assert list(dialog.command(Path("a.xml"), Path("b"))) == [*words, "--sparse"]


# --- PyTorch ---------------------------------------------------------------------------------------------------------


def test_edited_files_are_kept_or_replaced_as_the_user_answers(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported: list[str] = []

    def export_project(
        graph: Any, registry: Any, path: Path, name: str, training: Any, *, edited: str
    ) -> tuple[Path, ...]:
        exported.append(edited)
        if edited == "refuse":
            raise EditedFilesError(path, {"model.py": "-old\n+new", "train.py": "-1\n+2"})
        return (path / "model.py", path / "train.py")

    monkeypatch.setattr(pytorch, "export_project", export_project)
    dialog = shown(qtbot, PyTorchExportDialog(context), 600, 400)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    dialog.target.setText(str(tmp_path / "project"))

    def answer(text: str) -> None:
        dialog.export.click()
        qtbot.waitUntil(lambda: bool(dialog.findChildren(QMessageBox)), timeout=WAIT)
        (box,) = dialog.findChildren(QMessageBox)
        assert box.detailedText() == "-old\n+new\n-1\n+2"
        next(each for each in box.buttons() if each.text().replace("&", "") == text).click()
        qtbot.waitUntil(lambda: not dialog.findChildren(QMessageBox) and not dialog.working, timeout=WAIT)

    answer("Cancel")
    assert exported == ["refuse"]
    assert context.root.settings.project == ""
    for text, edited in (("Keep My Files", "keep"), ("Replace Them", "replace")):
        exported.clear()
        answer(text)
        assert exported == ["refuse", edited]  # asked again the next time
        assert dialog.message.text() == f"PyTorch project of 2 files written to {tmp_path / 'project'}"
    assert context.root.project == tmp_path / "project"
    assert context.root.settings.project == str(tmp_path / "project")


def test_what_became_of_the_weights_is_noted_for_each_project(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytorch, "export_project", lambda *args, **more: (tmp_path / "model.py",))
    results = [(0, ""), (1, "first line\nno room\n"), (1, "")]
    ran: list[tuple[str, ...]] = []

    class Done:
        def __init__(self, code: int, text: str) -> None:
            self.returncode, self.stderr = code, text

    monkeypatch.setattr(pytorch, "module_command", lambda module, *words: ran.append(words) or ["program"])
    monkeypatch.setattr(pytorch.subprocess, "run", lambda *args, **more: Done(*results.pop(0)))
    context.root.restore_settings(weights="own.pt")
    dialog = shown(qtbot, PyTorchExportDialog(context), 600, 400)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    dialog.target.setText(str(tmp_path / "project"))
    dialog.name.setText(" Net ")
    notes = []
    for _ in range(3):
        dialog.export.click()
        qtbot.waitUntil(lambda: not dialog.working, timeout=WAIT)
        notes.append(dialog.message.text().split("\n")[1:])
    assert notes == [
        ["Its weights to begin with: initial_weights.pt"],
        ["Without initial_weights.pt: no room"],
        ["Without initial_weights.pt: "],
    ]
    assert ran[0][:2] == ("export", "pytorch")
    assert ran[0][3:] == (
        "--output", str(tmp_path / "project"), "--name", "Net", "--task", "", "--edited", "keep", "--weights", "own.pt"
    )  # fmt: skip


# --- images ------------------------------------------------------------------------------------------------------------


def test_an_image_that_cannot_be_written_gives_the_pointer_back(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    dialog = shown(qtbot, PictureDialog(context, canvas), 500, 400)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    dialog.target.setText(str(tmp_path / "a.png"))
    found: list[Any] = []

    def save(document: Document, path: Path, look: Any) -> None:
        found.append((document, path, QApplication.overrideCursor() is not None))
        if len(found) == 1:
            raise DiagnosticError.of("no-room", "there is no room", file=str(path))

    monkeypatch.setattr(picture_module, "save", save)
    for text in ("there is no room", "Image written to"):
        dialog.export.click()
        assert text in dialog.message.text()
        assert QApplication.overrideCursor() is None
    assert found == [(context.document, tmp_path / "a.png", True)] * 2


@pytest.mark.parametrize("mode", ["dark", "light"])
@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_an_image_begins_with_the_look_of_the_window_and_a_print_with_that_of_paper(
    qtbot: QtBot, qapp: QApplication, context: Context, tmp_path: Path, mode: str, suffix: str
) -> None:
    theme.apply(qapp, mode)
    try:
        canvas = Canvas(context)
        qtbot.addWidget(canvas)
        dialog = shown(qtbot, PictureDialog(context, canvas, suffix), 500, 400)
    finally:
        theme.apply(qapp, "dark")
    assert dialog.windowTitle() == ("Print to PDF" if suffix == ".pdf" else "Export Image")
    assert dialog.target.text() == str(tmp_path / f"small{suffix}")
    assert [dialog.part.itemData(row) for row in range(dialog.part.count())] == ["all", "seen"]  # nothing is selected
    look = dialog.look()
    assert look.dark is (mode == "dark" and suffix == ".png")
    assert (look.scale, look.page, look.transparent, look.names, look.area) == (2.0, "A4", False, (), None)
    visible = {name: field.isVisible() for name, field in (("scale", dialog.scale), ("page", dialog.page))}
    assert visible == {"scale": suffix == ".png", "page": suffix == ".pdf"}
    for name, right in (("a.svg", True), ("a.jpg", False), ("a", False)):
        dialog.target.setText(str(tmp_path / name))
        assert dialog.export.isEnabled() is right
        words = [each for each in IMAGE_FORMATS.write_suffixes if each in dialog.message.text()]
        assert words == ([] if right else list(IMAGE_FORMATS.write_suffixes))
    dialog.target.setText(str(tmp_path / "a.svg"))
    assert dialog.pixels.text() == "Vector graphics: sharp at any size."


def test_the_size_of_an_image_follows_its_part_and_scale(qtbot: QtBot, context: Context, tmp_path: Path) -> None:
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.resize(400, 300)
    canvas.show()
    qtbot.waitUntil(lambda: canvas.projection.measured, timeout=WAIT)
    context.select(("conv",))
    dialog = shown(qtbot, PictureDialog(context, canvas), 500, 400)
    dialog.target.setText(str(tmp_path / "a.png"))
    parts = [dialog.part.itemData(row) for row in range(dialog.part.count())]
    assert parts == ["all", "selection", "seen"]
    sizes = {}
    for scale in (1.0, 2.0):
        dialog.scale.setValue(scale)
        for row, part in enumerate(parts):
            dialog.part.setCurrentIndex(row)
            look = dialog.look()
            assert look.names == (("conv",) if part == "selection" else ())
            assert (look.area is not None) is (part == "seen")
            width, _, height = dialog.pixels.text().removesuffix(" pixels").replace(",", "").partition(" x ")
            sizes[scale, part] = int(width), int(height)
    assert len({sizes[1.0, part] for part in parts}) == 3
    for part in parts:
        for one, two in zip(sizes[1.0, part], sizes[2.0, part], strict=True):
            assert two == pytest.approx(2 * one, abs=3)
    assert sizes[1.0, "selection"][0] < sizes[1.0, "all"][0]


# --- videos ------------------------------------------------------------------------------------------------------------


class Engine:
    """An engine of exports that keeps what is asked."""

    made: ClassVar[list[Engine]] = []

    def __init__(self, _parent: object) -> None:
        self.asked: list[Any] = []
        self.closed = False
        Engine.made.append(self)

    def ask(self, request: Any, _owner: object, done: Any, failed: Any, progress: Any = None) -> None:
        self.asked.append((request, done, failed, progress))

    def close(self, *, kill: bool) -> None:
        assert kill
        self.closed = True

    def deleteLater(self) -> None:
        pass


@pytest.mark.parametrize("number", range(len(video.kinds())))
def test_a_video_is_asked_for_as_it_was_chosen(
    qtbot: QtBot, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    context.engine = ScriptedEngine()  # type: ignore[assignment]
    monkeypatch.setattr(video, "EngineClient", Engine)
    monkeypatch.setattr(secrets, "token_hex", lambda count: "token")
    Engine.made.clear()
    analysis = analysis_of(context)
    analysis.playback.tracks = {"image": Track(tmp_path / "film.mp4", "video", frames=12, fps=30.0)}
    paused: list[bool] = []
    monkeypatch.setattr(analysis.playback, "pause", lambda: paused.append(True))
    monkeypatch.setattr(analysis.inputs, "path", lambda layer: tmp_path / "film.mp4")
    monkeypatch.setattr(analysis.inputs, "layers", lambda: ["image"])
    dialog = shown(qtbot, VideoExportDialog(context), 600, 400)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    kind = dialog._kinds[number]
    dialog.kind.setCurrentIndex(number)
    assert Path(dialog.target.text()).name == f"film_small{kind.suffix}"
    answers: list[Callable[..., tuple[str, str]]] = [lambda *a, **k: (str(tmp_path / "chosen.txt"), "")]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", answers[0])
    dialog.browse()
    assert dialog.target.text() == str(tmp_path / f"chosen{kind.suffix}")
    dialog.start.setValue(3)
    dialog.stop.setValue(9)
    dialog.fps.setValue(12.5)
    dialog.quality.setValue(70)
    dialog.export.click()
    (made,) = Engine.made
    (opening, *_), (request, done, failed, progress) = made.asked
    assert isinstance(opening, OpenRequest)
    assert paused == [True]
    assert request == ExportVideoRequest(
        {"image": str(tmp_path / "film.mp4")},
        {"result": str(tmp_path / f"chosen{kind.suffix}")},
        2,
        9,
        12.5 if kind.suffix else 0.0,
        kind.codec if kind.suffix else "",
        70 if kind.codec == "mjpeg" else 0,
        ".png" if kind.suffix else kind.codec,
        "token",
    )
    progress(ProgressEvent(0, 0, 0, ""))
    assert (dialog.bar.maximum(), dialog.message.text()) == (0, "Exporting ...")
    progress(ProgressEvent(0, 4, 7, ""))
    assert (dialog.bar.value(), dialog.bar.maximum(), dialog.message.text()) == (4, 7, "4 of 7 frames")
    part = video.part_of(dialog._written_to, "token")
    if number % 2:
        part.mkdir(parents=True)
        (part / "0.png").touch()
        failed((Diagnostic("broken", "no room"),))
        assert "no room" in dialog.message.text()
    else:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        done(ExportVideoReply(7, 30.0, 1.5, ("a note",)))
        written = tmp_path / f"chosen{kind.suffix}"
        assert dialog.message.text() == f"7 frames in 1.50 s, written to {written}\na note"
    assert not part.exists()
    assert made.closed
    assert not dialog.working
    assert [button.text() for button in dialog.findChildren(QPushButton) if button is dialog.export] == ["&Export"]
