"""Sessions with the dialogs that export, import and change shortcuts: what a dialog shows after each step is recorded and compared."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QSettings, Qt, QTimer
from PySide6.QtGui import QDesktopServices, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot
from recorded_state import compare, lines, plain
from shown_state import named, of_tree

from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.document.recovery_dialog import DifferencesDialog, RecoveryDialog
from app.ui.document.unsaved import UnsavedDialog, ask_changed, ask_discard, ask_unsaved, ask_unsaved_many
from app.ui.engine.context import Context
from app.ui.shell.export import command
from app.ui.shell.export.deploy import DeployExportDialog
from app.ui.shell.export.dialog import ExportDialog
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.shell.shortcuts import Shortcuts
from app.ui.shell.shortcuts_dialog import ShortcutsDialog
from app.ui.shell.window import declared_actions
from app.ui.widgets.code_consent import CodeConsent
from designer.files.recovery import Unfinished
from designer.files.settings import find_settings, read_settings
from designer.files.variants import Variant
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry
from designer.runtime.engines import trt

WAIT = 30_000


def network() -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "16x16x3"}),
            Layer("conv", "convolution", (320, 0), (Source("image"),), {"features": "3"}),
            Layer("block", "template", (480, 0), (Source("conv"),), {"template": "part"}),
            Layer("result", "output", (640, 0), (Source("block"),)),
        ],
        name="small",
        templates=[
            Template(
                "part",
                (
                    Layer("x", "template_input"),
                    Layer("inner", "convolution", (160, 0), (Source("x"),), {"features": "3"}),
                    Layer("y", "template_output", (320, 0), (Source("inner"),)),
                ),
            )
        ],
    )


class Steps:
    """Takes steps in a dialog and writes down what each changes in it."""

    def __init__(self, qtbot: QtBot, dialog: QDialog, said: list[str] | None = None) -> None:
        self.dialog, self.said = dialog, said if said is not None else []
        qtbot.addWidget(dialog)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        dialog.show()
        qtbot.waitExposed(dialog)
        self.shown = self._read()
        self.lines = ["# at first", *lines(self.shown, icons=True)]

    def _read(self):
        for _ in range(3):
            QApplication.processEvents()
        return named("", of_tree(self.dialog))

    def step(self, what: str, act: Callable[[], object]) -> None:
        self.said.clear()
        act()
        now = self._read()
        found = lines(now, (" QLabel",), since=self.shown, icons=True)
        self.lines += ["", f"# {what}", *(found or ["nothing"]), *(plain(f"says {text}") for text in self.said)]
        self.shown = now

    def type(self, name: str, text: str) -> None:
        """Replace the text of a field by keys."""
        field = self.dialog.findChild(QLineEdit, name)
        assert field is not None, name

        def keys() -> None:
            field.selectAll()
            QTest.keyClick(field, Qt.Key.Key_Delete)
            QTest.keyClicks(field, text)

        self.step(f"type {name} {plain(text)}", keys)

    def press(self, name: str) -> None:
        button = self.dialog.findChild(QPushButton, name)
        assert button is not None, name
        self.step(f"press {name}", button.click)


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path) -> Context:
    made = Context(default_registry())
    document = Document(network(), made.registry, tmp_path / "small.xml", parent=made)
    made.set_document(document)
    quick = Variant("quick", "fp16", weights=str(tmp_path / "quick.pt"))
    document.restore_settings(
        variants=(quick, Variant("plain")), weights=str(tmp_path / "own.pt"), project="", input_files={"image": "a.png"}
    )
    return made


@pytest.fixture
def said(context: Context) -> list[str]:
    found: list[str] = []
    context.message.connect(lambda severity, text: found.append(f"{severity}: {text}"))
    return found


# --- unsaved work of a process that ended ----------------------------------------------------------------------------


def left_behind(folder: Path) -> list[Unfinished]:
    """What was opened from a file and changed, never saved, deleted since, or lost."""
    changed = network()
    changed.apply(commands.rename_layer(changed, "result", "end"))
    changed.apply(commands.set_params(changed, {"conv": {"features": "5"}}))
    finding = Diagnostic(
        "journal-damaged", "damaged records in the journal: 1 of 3", Severity.WARNING, remedy="compare it"
    )
    project = {"project": str(folder / "project"), "iterations": 12}
    entries = (
        (folder / f"{'long_' * 24}name & <b>.xml", changed, "changed", network(), project, (finding,)),
        (None, network(), "none", None, {}, ()),
        (folder / "same.xml", network(), "same", network(), {}, ()),
        (folder / "settings.xml", network(), "same", network(), project, ()),
        (folder / "gone.xml", changed, "gone", None, {}, ()),
        (folder / "lost.xml", None, "same", network(), {}, (finding, finding)),
    )
    return [
        Unfinished(folder / f"{n}.journal", path, f"network & <i>{n}</i>", 0.0, 1e9 + n, "", graph, disk, file, settings, found, -1)
        for n, (path, graph, disk, file, settings, found) in enumerate(entries)
    ]  # fmt: skip


def test_what_the_list_of_unsaved_work_says_and_asks(qtbot: QtBot, tmp_path: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "documents of a project with a long name"
    entries = left_behind(folder)
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = RecoveryDialog(entries, parent)
    dialog.recover_asked.connect(lambda left: said.append(f"recover {left.title}"))
    dialog.discard_asked.connect(lambda left: said.append(f"discard {left.title}"))
    dialog.finished.connect(lambda result: said.append(f"finished {result}"))
    steps = Steps(qtbot, dialog, said)
    assert dialog.list.columnViewportPosition(3) < dialog.list.viewport().width() - 40  # long names leave room

    def compare_with_file() -> None:
        dialog.compare.click()
        (found,) = [each for each in dialog.findChildren(DifferencesDialog) if each.isVisible()]
        said.append(f"{found.windowTitle()} | {found.findChild(QLabel).text()}")
        said.extend(found.findChild(QPlainTextEdit).toPlainText().splitlines())
        found.findChild(QPushButton, "recover_differences.copy").click()
        assert QApplication.clipboard().text() == found.findChild(QPlainTextEdit).toPlainText()
        found.close()

    for number in range(len(entries)):
        item = dialog.list.topLevelItem(number)
        steps.step(f"row {number}", lambda item=item: dialog.list.setCurrentItem(item))
        said.clear()
        if dialog.compare.isEnabled():
            steps.step("compare", compare_with_file)
        for name in ("recover.recover", "recover.discard"):
            steps.press(name)
    steps.step("Return on what is lost", lambda: QTest.keyClick(dialog.list, Qt.Key.Key_Return))
    steps.step("up", lambda: QTest.keyClick(dialog.list, Qt.Key.Key_Up))
    steps.step("Return in the list", lambda: QTest.keyClick(dialog.list, Qt.Key.Key_Return))
    place = dialog.list.visualItemRect(dialog.list.topLevelItem(1)).center()
    for click in (QTest.mouseClick, QTest.mouseDClick):
        steps.step(
            click.__name__, lambda click=click: click(dialog.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
        )
    steps.press("recover.all")
    for number in (1, 0, 5, 3, 4):
        steps.step(f"without {entries[number].name}", lambda number=number: dialog.take(entries[number]))
    dialog.activateWindow()
    dialog.later.setFocus()
    steps.step("without the last", lambda: dialog.take(entries[2]))
    compare("dialog_recovery", steps.lines)


# --- questions before work is lost -----------------------------------------------------------------------------------

QUESTIONS = {
    "one": lambda parent: ask_unsaved("a & <b>.xml", parent),
    "many": lambda parent: ask_unsaved_many(["a & b.xml", "two.xml", "three.xml"], parent),
    "changed": lambda parent: ask_changed("a & <b>.xml", parent),
    "discard": lambda parent: ask_discard("a & <b>.xml", parent),
}


def test_what_questions_before_work_is_lost_say_and_answer(qtbot: QtBot) -> None:
    """Every button, Return, Escape and, in the list of documents, some of the boxes."""
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.show()
    qtbot.waitExposed(parent)
    found: list[str] = []

    def answer(what: str, press: Callable[[QDialog], object]) -> Callable[[], None]:
        def act() -> None:
            dialog = QApplication.activeModalWidget()
            if not isinstance(dialog, QDialog):
                QTimer.singleShot(10, act)
                return
            if what == "Return":
                if isinstance(dialog, QMessageBox):
                    found.append(f"{dialog.textFormat().name} {dialog.icon().name}")
                found.extend(lines(named("", of_tree(dialog))))
                found.extend(f"default {b.text()}" for b in dialog.findChildren(QPushButton) if b.isDefault())
            press(dialog)

        return act

    for question, ask in QUESTIONS.items():
        buttons: list[str] = []
        ways: dict[str, Callable[[QDialog], object]] = {
            "Return": lambda dialog: QTest.keyClick(dialog, Qt.Key.Key_Return),
            "Escape": lambda dialog: QTest.keyClick(dialog, Qt.Key.Key_Escape),
        }

        def read(dialog: QDialog, buttons: list[str] = buttons) -> None:
            buttons.extend(b.text() for b in dialog.findChildren(QPushButton))
            dialog.reject()

        QTimer.singleShot(10, answer("read", read))
        ask(parent)

        def press(dialog: QDialog, text: str) -> None:
            next(b for b in dialog.findChildren(QPushButton) if b.text() == text).click()

        def uncheck(dialog: QDialog, numbers: Sequence[int], question: str = question) -> None:
            assert isinstance(dialog, UnsavedDialog)
            for number in numbers:
                dialog.boxes[number].click()
            found.append(f"{question} without {numbers}: save {dialog.save.isEnabled()} {dialog.save.toolTip()}")
            if not dialog.save.isEnabled():
                dialog.boxes[1].click()
                found.append(f"with 1 again: save {dialog.save.isEnabled()} {dialog.save.toolTip()}")
            press(dialog, "&Save")

        ways |= {text: (lambda dialog, text=text: press(dialog, text)) for text in buttons}
        if question == "many":
            for numbers in ((1,), (0, 2), (0, 1, 2)):
                ways[f"without {numbers}"] = lambda dialog, numbers=numbers: uncheck(dialog, numbers)
        for what, way in ways.items():
            QTimer.singleShot(10, answer(what, way))
            found.append(f"{question} {what}: {ask(parent)}")
    compare("dialog_questions", found)


# --- exports by a command --------------------------------------------------------------------------------------------


class Program:
    """Replaces the command line: keeps its words and settings, prints, and ends with the status that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[list[str]] = []
        self.settings: list[str] = []
        self.script = "print('wrote it\\nnote: one\\nnote: two')"
        monkeypatch.setattr(command, "module_command", self._command)

    def _command(self, module: str, *words: str) -> Sequence[str]:
        assert module == "app.cli.main"
        self.calls.append(list(words))
        stored = find_settings(Path(words[2]))
        settings = read_settings(stored).settings if stored is not None else None
        variants = [variant.name for variant in settings.variants] if settings is not None else []
        self.settings.append(f"variants {variants} inputs {dict(settings.input_files) if settings is not None else {}}")
        return (sys.executable, "-S", "-c", self.script) if self.script else ("/no/such/program",)


@pytest.mark.parametrize("kind", [OnnxExportDialog, DeployExportDialog, TensorRtExportDialog])
def test_exports_by_a_command(kind, qtbot, context, said, tmp_path, monkeypatch):
    monkeypatch.setattr(trt, "unavailable", lambda: None)
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    program = Program(monkeypatch)
    dialog: ExportDialog = kind(context)
    name = dialog.objectName()
    steps = Steps(qtbot, dialog, said)
    words: list[Sequence[str]] = []
    start = command.QProcess.start

    def started(process: command.QProcess, path: str, arguments: Sequence[str]) -> None:
        words.append(arguments[2 + bool(program.script) :] if program.script else arguments)
        start(process, path, arguments)

    monkeypatch.setattr(command.QProcess, "start", started)

    def export(what: str, script: str) -> None:
        program.script = script
        count = len(program.calls)

        def run() -> None:
            dialog.export.click()
            assert len(program.calls) == count + 1, dialog.message.text()
            qtbot.waitUntil(lambda: not dialog.working, timeout=WAIT)

        steps.step(f"export, {what}", run)
        call = [*program.calls[-1], *words[-1]]
        steps.lines += [plain(f"ran {' '.join(call)}"), plain(f"with {program.settings[-1]}")]

    suffix = Path(dialog.target.text()).suffix
    (tmp_path / f"old{suffix}").write_bytes(b"of yesterday") if suffix else (tmp_path / "old").mkdir()
    steps.type(f"{name}.target", "")
    steps.type(f"{name}.target", str(tmp_path / "made.wrong"))
    steps.type(f"{name}.target", str(tmp_path / f"old{suffix}"))
    steps.type(f"{name}.target", str(tmp_path / f"made{suffix}"))
    if kind is not TensorRtExportDialog:
        export("which prints what it wrote", "print('wrote it\\nnote: one\\nnote: two')")
        steps.press(f"{name}.show")
        assert opened == [str(tmp_path)]
    export("which fails with a message", "raise SystemExit('error: no room\\nwhat to do: make room')")
    export("which fails without one", "raise SystemExit(3)")
    export("which is killed", "import os; os.kill(os.getpid(), 9)")
    export("whose program is missing", "")
    steps.step("choose quick", lambda: dialog.variant.setCurrentIndex(1))
    export("of a variant with its weights", "raise SystemExit('error')")
    steps.step("choose plain", lambda: dialog.variant.setCurrentIndex(2))
    steps.type(f"{name}.weights", "")
    steps.step("random weights", dialog.random.click)
    if kind is not OnnxExportDialog:
        steps.type(f"{name}.model", str(tmp_path / "half.onnx"))
    steps.step("choose none", lambda: dialog.variant.setCurrentIndex(0))
    if kind is TensorRtExportDialog:
        steps.type(f"{name}.smallest", "16x8")
        steps.type(f"{name}.largest", "64 pixels")
        steps.type(f"{name}.largest", "64x32")
        steps.step("batch 4", lambda: dialog.batch.setValue(4))
        steps.step("sparse", dialog.sparse.click)
    refused = "\\n".join(f"[not-in-tensorrt] layer \\'{name}\\': no" for name in ("block.inner", "conv", "gone"))
    export("with all options", f"raise SystemExit('{refused}')")
    steps.lines.append(f"selected {context.selection}")
    program.script = "import time; time.sleep(60)"
    steps.step("export, which takes long", dialog.export.click)
    steps.type(f"{name}.target", str(tmp_path / f"old{suffix}"))
    steps.press(f"{name}.cancel")
    steps.step("export again", dialog.export.click)
    dialog.reject()
    assert not dialog.working
    left = [path.name for path in Path(program.calls[-1][2]).parents if path.name.startswith("layerwright-export-")]
    assert left
    assert not Path(program.calls[-1][2]).exists()
    compare(f"dialog_{name}", steps.lines)


# --- exports in the process ------------------------------------------------------------------------------------------


def test_export_of_an_image(qtbot, context, said, tmp_path):
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.resize(400, 300)
    context.select(("conv",))
    dialog = PictureDialog(context, canvas)
    steps = Steps(qtbot, dialog, said)
    for name in ("small", "small.gif", "small.svg", "small.pdf", "small.png"):
        steps.type("picture.target", str(tmp_path / name))
    for number in (1, 2, 0):
        steps.step(f"content {number}", lambda number=number: dialog.part.setCurrentIndex(number))
        look = dialog.look()
        steps.lines.append(f"names {look.names}, {'an area' if look.area is not None else 'no area'}")
    steps.step("dark", lambda: dialog.theme.setCurrentIndex(1 - dialog.theme.currentIndex()))
    steps.step("transparent", dialog.transparent.click)
    steps.lines.append(f"transparent {dialog.look().transparent}, scale {dialog.look().scale}")
    steps.press("picture.export")
    steps.press("picture.export")
    steps.type("picture.target", str(tmp_path / "none" / "small.png"))
    steps.press("picture.export")
    compare("dialog_picture", [line for line in steps.lines if not line.startswith(" picture.size")])


def test_generating_pytorch_files(qtbot, context, said, tmp_path):
    trained = PyTorchExportDialog(context)
    qtbot.addWidget(trained)
    said_of_weights = "The weights of the network are added (initial_weights.pt)."
    assert trained.findChild(QLabel, "export_pytorch.what").text().endswith(said_of_weights)
    context.root.restore_settings(weights="", variants=())
    dialog = PyTorchExportDialog(context)
    steps = Steps(qtbot, dialog, said)

    def export() -> None:
        dialog.export.click()
        qtbot.waitUntil(lambda: not dialog.working, timeout=WAIT)

    steps.type("export_pytorch.name", "two words")
    for name in ("", "class", "9lives", " Small "):
        steps.type("export_pytorch.name", name)
    steps.step("task", lambda: dialog.task.setCurrentIndex(2))
    steps.type("export_pytorch.target", "")
    steps.type("export_pytorch.target", str(tmp_path / "project"))
    steps.step("generate", export)
    task = dialog.task.currentData()
    assert (context.root.settings.project, context.root.settings.task) == (str(tmp_path / "project"), task)
    assert dialog.task.currentText() in (tmp_path / "project" / "README.md").read_text() or task
    (tmp_path / "file").write_text("no folder")
    steps.type("export_pytorch.target", str(tmp_path / "file"))
    steps.step("generate", export)
    assert context.root.settings.project == str(tmp_path / "project")
    again = PyTorchExportDialog(context)
    qtbot.addWidget(again)
    assert (again.target.text(), again.task.currentData()) == (str(tmp_path / "project"), task)
    steps.step("suggested task", lambda: dialog.task.setCurrentIndex(0))
    steps.type("export_pytorch.target", str(tmp_path / "other"))
    steps.step("generate", export)
    assert context.root.settings.task == task, "the suggestion leaves the task of the document"
    compare("dialog_pytorch", steps.lines)


# --- importing a module ----------------------------------------------------------------------------------------------

MODULE = """
from torch import nn
class Net(nn.Module):
    pass
class Other(nn.Module):
    pass
def make():
    return Net()
"""


def test_importing_a_module(qtbot, settings, tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "model.py").write_text(MODULE)
    (tmp_path / "code" / "second.py").write_text("def only():\n    pass\n")
    (tmp_path / "code" / "net.pt").write_bytes(b"")
    sources = []
    monkeypatch.chdir(tmp_path)

    def made() -> ModuleDialog:
        return ModuleDialog(settings, tmp_path / "code", sources.append, None)

    dialog = made()
    steps = Steps(qtbot, dialog)
    steps.press("import_module.import")
    for text in ("gone.py", "model", "no module", "model.py"):
        steps.type("import_module.module", text)
    steps.step("choose make", lambda: dialog.callable.setCurrentText("make"))
    steps.type("import_module.module", "second.py")
    steps.type("import_module.module", "model.py")
    for text in ("", "1x", "Net.inner"):
        steps.step(f"callable '{text}'", lambda text=text: dialog.callable.setEditText(text))
    for text in ("", "1x3xA", "1x3x8x8, 1x16:int64"):
        steps.type("import_module.inputs", text)
    steps.type("import_module.state", "code/net.pt")
    steps.lines.append(plain(f"would import {dialog.source()}"))
    steps.type("import_module.state", str(tmp_path / "gone.pt"))
    begun = []

    def choose(name: str):
        return lambda _parent, title, folder, kinds: (begun.append((title, folder, kinds)), (name, ""))[1]

    monkeypatch.setattr(QFileDialog, "getOpenFileName", choose(""))
    steps.press("import_module.state.browse")
    steps.press("import_module.module.browse")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", choose(str(tmp_path / "code" / "net.pt")))
    steps.press("import_module.state.browse")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "third.py").write_text("class Third:\n    pass\n")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", choose(str(tmp_path / "elsewhere" / "third.py")))
    steps.press("import_module.module.browse")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", choose(""))
    steps.press("import_module.module.browse")
    steps.lines += [plain(f"asks for {each}") for each in begun]
    steps.step("choose Third", lambda: dialog.callable.setCurrentText("Third"))
    steps.press("import_module.import")
    consent = dialog.findChild(CodeConsent)
    assert consent is not None
    assert not sources, "nothing is imported before the consent"
    next(b for b in consent.findChildren(QPushButton) if "Agree" in b.text()).click()
    (source,) = sources
    steps.lines += ["", plain(f"imports {source}")]
    assert not dialog.isVisible()
    later = made()
    steps.lines += ["", "# the next dialog", *lines(Steps(qtbot, later).shown, icons=True)]
    compare("dialog_import_module", steps.lines)


@pytest.mark.parametrize("module", ["model.py", "inner/deep.py", "model", "{folder}/inner/deep.py"])
def test_the_next_dialog_proposes_the_same_module(qtbot, settings, tmp_path, monkeypatch, module):
    (tmp_path / "code" / "inner").mkdir(parents=True)
    for name in ("model.py", "inner/deep.py"):
        (tmp_path / "code" / name).write_text(MODULE)
    (tmp_path / "net.pt").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    sources: list[object] = []
    dialogs = [ModuleDialog(settings, tmp_path / "code", sources.append, None)]
    qtbot.addWidget(dialogs[0])
    dialogs[0].module.setText(module.format(folder=tmp_path / "code"))
    dialogs[0].callable.setEditText("make")
    dialogs[0].inputs.setText("1x3x8x8, 2x16:int64")
    dialogs[0].state.setText("net.pt" if module == "model" else str(tmp_path / "net.pt"))
    assert dialogs[0].problem() == ""
    file, source = dialogs[0].file, dialogs[0].source()
    assert source.state == tmp_path / "net.pt", "a state dict is found from where the program runs, not from the module"
    dialogs[0]._agreed()
    dialogs.append(ModuleDialog(settings, tmp_path, sources.append, None))
    qtbot.addWidget(dialogs[1])
    assert (dialogs[1].problem(), dialogs[1].file, dialogs[1].source()) == ("", file, source)
    assert sources == [source]


# --- shortcuts -------------------------------------------------------------------------------------------------------


def test_changing_shortcuts(qtbot, settings: QSettings):
    shortcuts = Shortcuts(settings, declared_actions())
    dialog = ShortcutsDialog(shortcuts, None)
    steps = Steps(qtbot, dialog)

    def key(text: str) -> None:
        steps.step(f"key {text}", lambda: dialog.editor.setKeySequence(QKeySequence(text)))

    def select(action: str) -> None:
        steps.step(f"select {action}", lambda: dialog.select(action))

    steps.lines = [line for line in steps.lines if "shortcuts.list row" not in line]
    select("file.save")
    key("Ctrl+Alt+J")
    steps.press("shortcuts.add")
    key("Ctrl+Alt+J")
    steps.press("shortcuts.add")
    select("file.open")
    key("Ctrl+Alt+J")
    steps.press("shortcuts.add")
    steps.press("shortcuts.clear")
    select("file.save")
    select("file.open")
    steps.press("shortcuts.reset")
    key("A")
    select("edit.add")
    key("A")
    select("file.new")
    key("Ctrl+Z")
    steps.press("shortcuts.add")
    select("edit.undo")
    steps.press("shortcuts.reset")
    select("file.new")
    for number in (1, 2, 0):

        def choose(number: int = number) -> None:
            dialog.preset.setCurrentIndex(number)
            dialog.preset.activated.emit(number)

        steps.step(f"preset {number}", choose)
        steps.lines.append(f"stored {sorted(settings.allKeys())} {settings.value('shortcuts/preset')}")
    steps.type("shortcuts.search", "ctrl+s")
    hidden = [dialog.list.topLevelItem(row).isHidden() for row in range(dialog.list.topLevelItemCount())]
    seen = [dialog.list.topLevelItem(row).text(0) for row, each in enumerate(hidden) if not each]
    steps.lines.append(f"shows {seen}")
    pages = dialog.findChild(QTabWidget, "shortcuts.pages")
    steps.step("gestures", lambda: pages.setCurrentIndex(1))
    steps.lines = [line for line in steps.lines if not (line.startswith(" shortcuts.") and line.endswith(": (gone)"))]
    compare("dialog_shortcuts", steps.lines)
