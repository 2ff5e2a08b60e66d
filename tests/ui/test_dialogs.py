"""Dialogs keep room for what they say, and every widget in them has its names."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pathlib import Path

from PySide6.QtCore import QSettings, Qt, QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QLineEdit, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.import_process import parse_input
from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.shell.export.deploy import DeployExportDialog
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.export.video import VideoExportDialog
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.widgets import theme
from app.ui.widgets.file_dialogs import ask_save_path
from app.ui.widgets.findings import FindingsDialog
from app.ui.widgets.message import ICONS
from app.ui.widgets.sentences import finding_text
from designer.files.document import DOCUMENTS
from designer.files.tables import CSV
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

LONG = "A folder with a long name cannot be written: no space left on device; nothing was changed there. " * 5


@pytest.mark.parametrize("kind", [PyTorchExportDialog, OnnxExportDialog])
def test_a_dialog_grows_with_its_message(kind, qtbot) -> None:
    context = Context(default_registry())
    context.set_document(Document(Graph(name="net"), context.registry, parent=context))
    dialog = kind(context)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitExposed(dialog)
    before = [edit.height() for edit in dialog.findChildren(QLineEdit)]
    for text in ("Short.", LONG, "", LONG):
        dialog.message.show_message(text)
        QApplication.processEvents()
        QApplication.processEvents()
        assert [edit.height() for edit in dialog.findChildren(QLineEdit)] == before
        for label in (label for label in dialog.findChildren(QLabel) if label.isVisible()):
            needed = label.heightForWidth(label.width()) if label.wordWrap() else label.minimumSizeHint().height()
            assert label.height() >= needed, label.text()
    dialog.resize(dialog.minimumWidth(), 10)  # nobody can make it smaller than its text
    QApplication.processEvents()
    assert [edit.height() for edit in dialog.findChildren(QLineEdit)] == before


@pytest.mark.parametrize("kind", [PyTorchExportDialog, OnnxExportDialog, PictureDialog, VideoExportDialog])
def test_enter_means_what_the_dialog_is_for(kind, qtbot) -> None:
    """Qt makes the first button of the focus chain the default one where none was in the dialog in time."""
    context = Context(default_registry())
    context.set_document(Document(Graph([Layer("input", "input")]), context.registry, parent=context))
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    dialog = kind(context, canvas) if kind is PictureDialog else kind(context)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitExposed(dialog)
    default = [b.objectName() for b in dialog.findChildren(QPushButton) if b.isDefault()]
    assert default == [dialog.export.objectName()]


@pytest.mark.parametrize("kind", [PyTorchExportDialog, OnnxExportDialog, PictureDialog, VideoExportDialog])
def test_a_label_s_key_leads_to_its_field(kind, qtbot) -> None:
    context = Context(default_registry())
    context.set_document(Document(Graph([Layer("input", "input")]), context.registry, parent=context))
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    dialog = kind(context, canvas) if kind is PictureDialog else kind(context)
    qtbot.addWidget(dialog)
    labels = [label for label in dialog.findChildren(QLabel) if "&" in label.text()]
    assert labels
    for label in labels:
        assert label.buddy() is not None, label.text()
        assert label.buddy().objectName().startswith(f"{dialog.objectName()}.")


def test_the_onnx_dialog_says_that_a_file_will_be_replaced(qtbot, tmp_path) -> None:
    context = Context(default_registry())
    context.set_document(Document(Graph(name="net"), context.registry, parent=context))
    dialog = OnnxExportDialog(context)
    qtbot.addWidget(dialog)
    (tmp_path / "old.onnx").write_bytes(b"of yesterday")
    for name, there in (("old.onnx", True), ("new.onnx", False), ("old.onnx", True), ("", False)):
        dialog.target.setText(str(tmp_path / name))
        assert ("will be overwritten" in dialog.message.text()) == there
    assert dialog.export.isEnabled()
    dialog.target.clear()
    assert dialog.message.text() == "Choose a target file or folder."
    assert not dialog.export.isEnabled()


def test_the_pytorch_dialog_names_the_folder_that_was_written_to(qtbot, tmp_path) -> None:
    graph = Graph([Layer("in", "input", params={"dims": "8x8x3"}), Layer("out", "output", inputs=(Source("in"),))])
    context = Context(default_registry())
    context.set_document(Document(graph, context.registry, parent=context))
    dialog = PyTorchExportDialog(context)
    qtbot.addWidget(dialog)
    dialog.name.setText("Net")
    dialog.target.setText(str(tmp_path / "first"))
    assert dialog.message.text() == ""
    said: list[str] = []
    context.message.connect(lambda severity, text: said.append(text))
    dialog.export.click()
    dialog.target.setText(str(tmp_path / "second"))  # typed while the first one is written
    qtbot.waitUntil(lambda: bool(said))
    assert said == [dialog.message.text()]
    assert str(tmp_path / "first") in dialog.message.text()
    assert (tmp_path / "first" / "model.py").is_file()
    assert not (tmp_path / "second").exists()
    dialog.target.setText(str(tmp_path / "first"))
    assert "contains a project, which will be updated" in dialog.message.text()
    assert dialog.export.isEnabled()
    dialog.target.setText(str(tmp_path / "second"))
    assert dialog.message.text() == ""


def test_an_export_begins_in_the_folder_of_the_last_one(qtbot, tmp_path) -> None:
    graph = Graph([Layer("in", "input", params={"dims": "8x8x3"}), Layer("out", "output", inputs=(Source("in"),))])
    context = Context(default_registry())
    context.set_document(Document(graph, context.registry, parent=context))
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    dialog = PictureDialog(context, canvas)
    qtbot.addWidget(dialog)
    dialog.target.setText(str(tmp_path / "net.svg"))
    dialog.export.click()
    assert dialog.message.text() == f"Image written to {tmp_path / 'net.svg'}"
    assert not dialog.show_folder.isHidden()
    again = PictureDialog(context, canvas)
    qtbot.addWidget(again)
    assert again.path.parent == tmp_path
    other = PyTorchExportDialog(context)
    qtbot.addWidget(other)
    assert other.path.parent != tmp_path


def test_a_number_in_a_name_is_no_suffix_and_the_folder_is_kept(qtbot, tmp_path, monkeypatch) -> None:
    proposals = []

    def choose(parent, title, proposed, *rest) -> tuple[str, str]:
        proposals.append(Path(proposed))
        return str(tmp_path / "net v1.2"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    window = QWidget()
    qtbot.addWidget(window)
    assert ask_save_path(window, "Save", tmp_path / "net", DOCUMENTS) == tmp_path / "net v1.2.xml"
    assert ask_save_path(window, "Save", "table.csv", CSV) == tmp_path / "net v1.2.csv"
    assert proposals[1] == tmp_path / "table.csv"


@pytest.mark.parametrize(("button", "replaced"), [("replace.replace", True), ("", False)])
def test_a_file_is_not_replaced_without_a_question_because_its_suffix_was_added(
    qtbot, tmp_path, monkeypatch, button, replaced
) -> None:
    (tmp_path / "net.xml").write_text("mine")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "net"), ""))
    asked = []

    def answer(box: QMessageBox) -> int:
        assert box.textFormat() is Qt.TextFormat.PlainText  # the name of a file may look like markup
        asked.append(box.text())
        found = box.findChild(QPushButton, button) if button else box.button(QMessageBox.StandardButton.Cancel)
        QTimer.singleShot(0, found.click)
        return exec_(box)

    exec_ = QMessageBox.exec
    monkeypatch.setattr(QMessageBox, "exec", answer)
    window = QWidget()
    qtbot.addWidget(window)
    path = ask_save_path(window, "Save", tmp_path / "other.xml", DOCUMENTS)
    assert asked == ["“net.xml” already exists."]
    assert path == (tmp_path / "net.xml" if replaced else None)


@pytest.mark.parametrize(
    ("key", "replaced"),
    [(Qt.Key.Key_Return, False), (Qt.Key.Key_Enter, False), (Qt.Key.Key_Escape, False), (None, True)],
)
def test_a_key_that_is_pressed_too_early_keeps_the_file(qtbot, tmp_path, monkeypatch, key, replaced) -> None:
    """Enter and Escape are Cancel in the question; it takes the other button to replace the file."""
    (tmp_path / "net.xml").write_text("mine")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "net"), ""))

    def press(box: QMessageBox) -> None:
        replace = box.findChild(QPushButton, "replace.replace")
        if key is None:
            replace.setFocus()
        qtbot.keyClick(replace if key is None else box, Qt.Key.Key_Space if key is None else key)

    def answer(box: QMessageBox) -> int:
        QTimer.singleShot(0, lambda: press(box))
        return exec_(box)

    exec_ = QMessageBox.exec
    monkeypatch.setattr(QMessageBox, "exec", answer)
    window = QWidget()
    qtbot.addWidget(window)
    path = ask_save_path(window, "Save", tmp_path / "other.xml", DOCUMENTS)
    assert path == (tmp_path / "net.xml" if replaced else None)


def test_each_finding_of_a_dialog_has_the_mark_of_its_severity(qtbot) -> None:
    found = [Diagnostic("code", f"it is {severity.value}", severity) for severity in (*Severity, *reversed(Severity))]
    dialog = FindingsDialog("Not Opened", "It could not be opened.", found, None)
    qtbot.addWidget(dialog)
    for row, finding in enumerate(found):
        role = finding.severity.value
        assert dialog.list.item(row).icon().cacheKey() == theme.icon(ICONS[role], role).cacheKey()
        assert finding.message in dialog.list.item(row).text()


@pytest.mark.parametrize("kind", [PyTorchExportDialog, OnnxExportDialog, DeployExportDialog, TensorRtExportDialog])
def test_every_browse_button_fills_its_own_field(kind, qtbot, monkeypatch, tmp_path) -> None:
    context = Context(default_registry())
    context.set_document(Document(Graph([Layer("input", "input")]), context.registry, parent=context))
    dialog = kind(context)
    qtbot.addWidget(dialog)
    chosen = str(tmp_path / "chosen.onnx")
    for name in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *a: (chosen, ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *a: chosen)
    buttons = [button for button in dialog.findChildren(QPushButton) if button.objectName().endswith(".browse")]
    assert buttons
    for button in buttons:
        field = dialog.findChild(QLineEdit, button.objectName().removesuffix(".browse").removesuffix("_file"))
        before = {line.objectName(): line.text() for line in dialog.findChildren(QLineEdit)}
        button.click()
        after = {line.objectName(): line.text() for line in dialog.findChildren(QLineEdit)}
        assert {name for name in after if after[name] != before[name]} == {field.objectName()}
        assert field.text() == chosen
        field.setText("")


def test_weights_of_an_export_are_a_folder_or_a_file_and_asked_for_where_the_current_ones_are(
    qtbot, monkeypatch, tmp_path
) -> None:
    context = Context(default_registry())
    context.set_document(Document(Graph([Layer("input", "input")]), context.registry, parent=context))
    (tmp_path / "weights").mkdir()
    context.root.restore_settings(weights=str(tmp_path / "weights" / "own.pt"))
    dialog = OnnxExportDialog(context)
    qtbot.addWidget(dialog)
    begun = []

    def answer(name, chosen):
        monkeypatch.setattr(QFileDialog, name, lambda _parent, _title, folder, *rest: (begun.append(folder), chosen)[1])

    for button, method, chosen in (
        ("weights", "getExistingDirectory", "/some/folder"),
        ("weights_file", "getOpenFileName", ("/some/file.pt", "")),
    ):
        asked = dialog.findChild(QPushButton, f"export_onnx.{button}.browse")
        answer(method, chosen)
        asked.click()
        assert dialog.weights.text() == (chosen if isinstance(chosen, str) else chosen[0])
        answer(method, "" if isinstance(chosen, str) else ("", ""))
        asked.click()
        assert dialog.weights.text() == (chosen if isinstance(chosen, str) else chosen[0]), "cancelled"
    assert begun == [str(tmp_path / "weights")] * 4


def test_the_dialog_for_a_module_begins_where_the_last_import_was(
    qtbot: QtBot, settings: QSettings, tmp_path: Path
) -> None:
    last, usual = tmp_path / "last", tmp_path / "usual"
    for folder, name in ((last, "Last"), (usual, "Usual")):
        folder.mkdir()
        (folder / "model.py").write_text(f"def {name}():\n    pass\n")

    def made(**stored: str) -> ModuleDialog:
        settings.remove("import")
        for key, value in stored.items():
            settings.setValue(f"import/{key}", value)
        dialog = ModuleDialog(settings, usual, lambda _source: None, None)
        qtbot.addWidget(dialog)
        return dialog

    first = made()
    assert [first.module.text(), first.callable.currentText(), first.inputs.text(), first.state.text()] == [
        *("", "", "1x3x64x64", "")
    ]
    assert (first.message.isVisibleTo(first), first.go.isEnabled()) == (False, False)
    for module in ("model.py", " model.py ", "model"):
        first.module.setText(module)
        assert (first.file, first.callable.currentText(), first.go.isEnabled()) == (usual / "model.py", "Usual", True)
        assert first.source().folder == usual
    later = made(module="model.py", callable="Last", inputs="1x1x8x8", state="", folder=str(last))
    assert (later.file, later.callable.currentText(), later.problem()) == (last / "model.py", "Last", "")
    source = later.source()
    assert (source.folder, [str(shape) for shape in source.inputs]) == (last, [str(parse_input("1x1x8x8"))])
    assert later.go.isEnabled()
    renamed = made(module="model.py", callable="Gone", folder=str(last))
    assert renamed.callable.currentText() == "Gone", "what was typed is proposed as it was"
    settings.remove("import")


def test_why_a_module_cannot_be_imported(qtbot: QtBot, settings: QSettings, tmp_path: Path) -> None:
    """The first rule that a field breaks is said, in the order of the fields; a folder is neither a module nor a state dict."""
    (tmp_path / "model.py").write_text("def make():\n    pass\n")
    (tmp_path / "package.py").mkdir()
    (tmp_path / "net.pt").write_bytes(b"")
    dialog = ModuleDialog(settings, tmp_path, lambda _source: None, None)
    qtbot.addWidget(dialog)
    missing, name = (
        "Python does not find the module “{}”. Choose its file.",
        "Name the class or function that makes the module.",
    )
    shape = "1xA"
    with pytest.raises(DiagnosticError) as refused:
        parse_input(shape)
    gone, folder = tmp_path / "gone.pt", tmp_path / "package.py"
    there = "The file {} does not exist. Choose another one."
    good = {"module": "model.py", "callable": "make", "inputs": "1x3x8x8", "state": ""}
    cases: list[tuple[dict[str, str], str]] = [
        ({}, ""),
        ({"module": ""}, "Choose the Python file, or type the name of the module."),
        ({"module": "  "}, "Choose the Python file, or type the name of the module."),
        ({"module": "gone.py"}, there.format("gone.py")),
        ({"module": "package.py"}, there.format("package.py")),
        ({"module": "no module"}, missing.format("no module")),
        ({"module": " model "}, ""),
        ({"callable": ""}, name),
        ({"callable": "1x"}, name),
        ({"callable": "Net.1x"}, name),
        ({"callable": "Net."}, name),
        ({"callable": " Net.inner "}, ""),
        ({"inputs": shape}, finding_text(refused.value.diagnostics[0])),
        ({"inputs": f"1x3x8x8, {shape}"}, finding_text(refused.value.diagnostics[0])),
        ({"inputs": "1x3x8x8, 1x16:int64"}, ""),
        ({"state": str(tmp_path / "net.pt")}, ""),
        ({"state": str(gone)}, there.format(gone)),
        ({"state": str(folder)}, there.format(folder)),
        ({"callable": "", "inputs": shape, "state": str(gone)}, name),
        ({"inputs": shape, "state": str(gone)}, finding_text(refused.value.diagnostics[0])),
    ]
    for changed, expected in cases:
        fields = good | changed
        dialog.module.setText(fields["module"])
        dialog.callable.setEditText(fields["callable"])
        dialog.inputs.setText(fields["inputs"])
        dialog.state.setText(fields["state"])
        assert dialog.problem() == expected, changed
        assert dialog.go.isEnabled() is not bool(expected), changed
        shown = expected if fields["module"].strip() else ""
        assert dialog.message.isHidden() is not bool(shown), changed
