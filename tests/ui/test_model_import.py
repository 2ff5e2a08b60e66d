"""Models of other programs in the window: opened by every gesture, imported in a process, compared, saved, and refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import test_onnx_bad_input as bad_files
import torch
from onnx import helper
from onnx_models import model, random, saved, small_network
from PySide6.QtCore import QMimeData, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot
from test_torch_import import BAD

from app import import_process
from app.ui.design.import_report import ImportReportPanel
from app.ui.document.document import Document
from app.ui.engine import import_run
from app.ui.engine.analysis import analysis_of
from app.ui.engine.import_run import ImportSource
from app.ui.engine.result import Phase
from app.ui.shell import session
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.shell.window import MainWindow
from app.ui.widgets.code_consent import CodeConsent
from app.ui.widgets.findings import FindingsDialog, located_finding
from app.ui.widgets.sentences import sentence
from designer.files.weight_versions import weight_versions
from designer.files.weights import load_weights, required_weights
from designer.graph import commands
from designer.importers.report import ImportReport, Outcome

WAIT = 120_000
NONE = Qt.KeyboardModifier.NoModifier
LEFT = Qt.MouseButton.LeftButton


def drop(window: MainWindow, *paths: Path) -> None:
    """Drag files over the window and drop them."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    place, copy = window.rect().center(), Qt.DropAction.CopyAction
    QApplication.sendEvent(window, QDragEnterEvent(place, copy, mime, LEFT, NONE))
    QApplication.sendEvent(window, QDropEvent(QPointF(place), copy, mime, LEFT, NONE))


def imported(qtbot: QtBot, window: MainWindow, *, compared: bool = True) -> Document:
    """The shown document, once it is an import with its weights."""
    qtbot.waitUntil(lambda: window.context.root.imported is not None, timeout=WAIT)
    record = window.context.root.imported
    assert record is not None
    if compared:
        qtbot.waitUntil(lambda: not record.comparing, timeout=WAIT)
    return window.context.root


def refusal(qtbot: QtBot, window: MainWindow) -> str:
    """The text of the dialog that says why something was not opened; it is closed."""
    qtbot.waitUntil(lambda: window.findChild(FindingsDialog, "findings") is not None, timeout=WAIT)
    dialog = window.findChild(FindingsDialog, "findings")
    text = "\n".join(located_finding(found) for found in dialog._findings)
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    return text


def consent(qtbot: QtBot, parent, button: str) -> None:
    qtbot.waitUntil(lambda: parent.findChild(CodeConsent, "agree_import") is not None, timeout=WAIT)
    dialog = parent.findChild(CodeConsent, "agree_import")
    with qtbot.waitSignal(dialog.destroyed):
        qtbot.mouseClick(dialog.findChild(QPushButton, f"agree_import.{button}"), LEFT)


@pytest.fixture
def weights_folder() -> Path:
    return weight_versions()


def test_an_import_that_was_closed_and_opened_by_hand_is_not_reopened_again(qtbot, window, tmp_path) -> None:
    path = saved(small_network(), tmp_path)
    window.files.open(path)
    imported(qtbot, window)
    window.files.close()
    assert window.files.closed == 1
    window.files.open(path)
    imported(qtbot, window)
    assert window.files.closed == 0
    assert not window.actions_["file.reopen"].isEnabled()


def test_a_dropped_onnx_file_opens_runs_and_is_saved_with_its_weights(
    qtbot, window, tmp_path, monkeypatch, weights_folder
) -> None:
    path = saved(small_network(), tmp_path)
    before = path.read_bytes()
    drop(window, path)
    document = imported(qtbot, window)
    assert document.path is None
    assert document.history.is_clean, "looking at a file is no change"
    assert window.windowTitle().startswith("model (unsaved)")
    report = document.imported.report
    assert (report.nodes, report.known, report.opaque) == (8, 8, 0)
    assert report.agrees
    assert report.max_rel_difference is not None, report.not_compared_because
    qtbot.waitUntil(window.docks["import_report"].isVisible)
    shown = window.docks.panel("import_report").findChild(object, "import_report.result")
    assert shown.text() == sentence(report.comparison())
    (weights,) = weights_folder.iterdir()
    assert document.settings.weights == str(weights)

    window.run_analysis()
    analysis = analysis_of(window.context)
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    assert analysis.result.outputs["logits"].shape == (1, 10)

    (tmp_path / "mine.safetensors").write_bytes(b"the user's")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "mine.xml"), ""))
    window.actions_["file.save"].trigger()
    assert document.path == tmp_path / "mine.xml"
    assert document.settings.weights == str(tmp_path / "mine-2.safetensors")
    assert (tmp_path / "mine.safetensors").read_bytes() == b"the user's"
    assert path.read_bytes() == before
    window.files.close()
    assert not list(weights_folder.iterdir()), "the weights are the user's file now"
    assert (tmp_path / "mine-2.safetensors").stat().st_size > 0
    window.files.open(tmp_path / "mine.xml")
    assert window.context.root.settings.weights == str(tmp_path / "mine-2.safetensors")


def test_several_files_are_dropped_and_the_bad_one_is_named(qtbot, window, tmp_path) -> None:
    paths = []
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
        path = saved(small_network(), tmp_path / name)
        paths.append(path.rename(tmp_path / f"{name}.onnx"))
    paths[1].write_bytes(paths[1].read_bytes()[:-100])
    drop(window, *paths)
    assert "second.onnx is not an ONNX file, or it is truncated" in refusal(qtbot, window)
    qtbot.waitUntil(lambda: len(window.tabs) == 2 and not window.models.imports.runs, timeout=WAIT)
    assert {path.name for path in window.files.recent()} == {"first.onnx", "third.onnx"}
    assert [opened.document.imported.report.source for opened in window.tabs.all] == ["first.onnx", "third.onnx"]
    assert window.context.root.imported.report.source == "first.onnx"


def test_recent_files_reopened_tabs_and_the_last_session(qtbot, window, tmp_path) -> None:
    path = saved(small_network(), tmp_path)
    window.files.open_all([path])
    first = imported(qtbot, window)
    window.menus.fill_recent()
    entries = {action.toolTip(): action for action in window.menus.named["<recent>"].actions()}
    entries[str(path)].trigger()
    assert window.context.root is first, "it is open already"
    assert len(window.tabs) == 1
    window.files.new()
    new = window.tabs.shown
    window.files.open(path, show=False)
    assert window.tabs.shown is new
    window.files.open(path)
    assert window.context.root is first
    window.tabs.remove(new)
    session.store_tabs(window.settings, window.tabs)
    assert session.stored_tabs(window.settings) == [(path, True)]
    window.files.close()
    assert window.context.root is not first
    window.settings.setValue("tabs", [str(path)])  # as the next start finds it
    window.begin()
    again = imported(qtbot, window)
    assert again is not first
    os.utime(path, (1, 1))
    window.files.open(path)
    qtbot.waitUntil(lambda: len(window.tabs) == 2, timeout=WAIT)


def test_events_of_an_import_wait_until_its_document_is_handled(qtbot, window, tmp_path, monkeypatch) -> None:
    """The thread that reads the document can end long before its result is delivered."""
    run = import_run.ImportRun(ImportSource("model.onnx", tmp_path), window.context.registry, window)
    monkeypatch.setattr(run._reader, "start", lambda work: None)
    report = ImportReport("model.onnx")
    seen = []
    run.opened.connect(lambda _found: seen.append("opened"))
    run.opened.connect(lambda _found: run._take(import_process.Finished(report)))  # while the window handles it
    run.weights_written.connect(lambda _path: seen.append("weights"))
    run.compared.connect(lambda _report: seen.append("compared"))
    run._take(import_process.DocumentWritten(report))
    run._take(import_process.WeightsWritten(any=True))
    assert seen == []
    run._on_read(None)
    assert seen == ["opened", "weights", "compared"]
    assert run.is_over


def test_an_edited_import_is_recovered_with_its_weights(qtbot, window, tmp_path) -> None:
    from designer.files.recovery import unfinished

    window.files.open(saved(small_network(), tmp_path))
    document = imported(qtbot, window)
    document.do(lambda graph: commands.rename_layer(graph, "logits", "classes"))
    opened = window.tabs.shown
    opened.journal.wait()
    opened.journal.abandon()
    found = []

    def is_found() -> bool:  # not while another process looks at the file
        found[:] = (each for each in unfinished() if each.settings.get("weights") == document.settings.weights)
        return bool(found)

    qtbot.waitUntil(is_found, timeout=10_000)
    (left,) = found
    assert "classes" in left.graph
    left.discard()


BAD_FILES = [(make, words) for make, _, words in bad_files.CASES]


@pytest.mark.timeout(400)  # a process for each file
def test_bad_onnx_files_are_explained_and_open_nothing(qtbot, window, tmp_path) -> None:
    mine = window.context.root
    for number, (make, words) in enumerate(BAD_FILES[::10]):  # the reasons of all are tested without a window
        folder = tmp_path / str(number)
        folder.mkdir()
        window.files.open(make(folder))
        text = refusal(qtbot, window)
        assert words in text
        assert "What to do: " in text
        assert window.context.root is mine
        assert len(window.tabs) == 1
    assert not weight_versions().exists()


def test_a_file_that_is_missing_is_named(qtbot, window, tmp_path) -> None:
    window.files.open(tmp_path / "gone.onnx")
    assert refusal(qtbot, window).startswith("gone.onnx cannot be imported: the file does not exist\n")
    assert window.files.recent() == []


def test_an_unknown_domain_opens_with_the_reason_why_it_is_not_compared(qtbot, window, tmp_path) -> None:
    node = helper.make_node("Sparkle", ["x"], ["y"], name="sparkle", domain="com.example", amount=3)
    window.files.open(saved(model([node], {"x": [2, 3]}, {"y": [2, 3]}, domains={"com.example": 1}), tmp_path))
    document = imported(qtbot, window)
    panel: ImportReportPanel = window.docks.panel("import_report")
    assert "com.example" in document.imported.report.not_compared_because
    (row,) = panel.nodes.source.rows
    assert row.marked
    assert panel.nodes.source.index(0, 0).data(Qt.ItemDataRole.DecorationRole) is not None
    assert panel.nodes.source.index(0, 1).data(Qt.ItemDataRole.DecorationRole) is None
    assert "Sparkle" in row.texts[4]


class Code:
    def __reduce__(self):
        return (open, ("ran", "w"))


def test_checkpoints_open_and_code_in_them_never_runs(qtbot, window, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": torch.ones(1), "hook": Code()}, tmp_path / "bad.pth")
    window.files.open(tmp_path / "bad.pth")
    text = refusal(qtbot, window)
    assert "bad.pth" in text
    assert "What to do: " in text
    assert not (tmp_path / "ran").exists()
    torch.save({"head.weight": torch.ones(4, 3), "head.bias": torch.zeros(4)}, tmp_path / "good.pt")
    window.files.open(tmp_path / "good.pt")
    document = imported(qtbot, window)
    assert document.imported.report.weights == {"head.weight": "head.kernel", "head.bias": "head.bias"}
    assert "no links" in document.imported.report.facts


def test_a_program_is_opened_after_consent_only(qtbot, window, tmp_path) -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(module, (torch.rand(1, 3, 8, 8),), strict=False), path)
    window.files.open(path)
    consent(qtbot, window, "later")
    assert not window.models.imports.runs
    window.files.open(path)
    consent(qtbot, window, "agree")
    document = imported(qtbot, window)
    assert not document.history.is_clean, "it cannot be opened again without the user"
    assert document.imported.report.agrees
    session.store_tabs(window.settings, window.tabs)
    assert session.stored_tabs(window.settings) == []


def test_the_window_of_show_opens_with_weights_and_report(qtbot, empty_window, tmp_path) -> None:
    """`layerwright.show` starts `app.show_program`, which calls `begin` like this."""
    path = tmp_path / "Sequential.pt2"
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    torch.export.save(torch.export.export(module, (torch.rand(1, 3, 8, 8),), strict=False), path)
    empty_window.begin([path], trusted=True)
    document = imported(qtbot, empty_window)
    assert document.imported.report.agrees
    needed = required_weights(document.inference)
    (kernel,) = (
        tensor for tensor in load_weights(Path(document.settings.weights), needed).tensors.values() if tensor.ndim == 4
    )
    assert kernel.tolist() == module[0].weight.tolist()
    assert len(empty_window.tabs) == 1, "the empty network gave way"
    qtbot.waitUntil(empty_window.docks["import_report"].isVisible)


# --- PyTorch modules ----------------------------------------------------------------------------------------------


def module_dialog(window: MainWindow) -> ModuleDialog:
    window.actions_["file.import_module"].trigger()
    dialog = window.findChild(ModuleDialog, "import_module")
    assert dialog is not None
    return dialog


def dismiss(qtbot: QtBot, dialog: ModuleDialog) -> None:
    with qtbot.waitSignal(dialog.destroyed):
        dialog.reject()


def test_a_file_that_was_written_in_an_editor_is_read_when_the_dialog_is_active_again(
    qtbot: QtBot, settings: QSettings, tmp_path: Path
) -> None:
    """A chosen callable stays as long as the file has it, and a typed one as long as nothing was written."""
    file = tmp_path / "model.py"
    dialog = ModuleDialog(settings, tmp_path, lambda _source: None, None)
    qtbot.addWidget(dialog)
    with qtbot.waitExposed(dialog):
        dialog.open()
    dialog.module.setText(str(file))
    assert not dialog.go.isEnabled()

    def come_back() -> tuple[bool, str, list[str]]:
        other = QWidget()
        qtbot.addWidget(other)
        other.show()
        other.activateWindow()
        qtbot.waitUntil(lambda: not dialog.isActiveWindow())
        dialog.activateWindow()
        qtbot.waitUntil(dialog.isActiveWindow)
        other.close()
        names = [dialog.callable.itemText(row) for row in range(dialog.callable.count())]
        return dialog.go.isEnabled(), dialog.callable.currentText(), names

    file.write_text("def make():\n    pass\n")
    assert come_back() == (True, "make", ["make"])
    file.write_text("def other():\n    pass\ndef make():\n    pass\n")
    assert come_back() == (True, "make", ["other", "make"])
    dialog.callable.setEditText("inner.made")
    assert come_back() == (True, "inner.made", ["other", "make"])
    file.unlink()
    assert come_back() == (False, "inner.made", [])


def test_a_file_that_went_away_is_reported_when_the_code_is_to_be_reviewed(
    qtbot: QtBot, settings: QSettings, tmp_path: Path
) -> None:
    """Nothing is reviewed or started, the field of the lost file is named, and the button waits for another file."""
    file, state, started = tmp_path / "model.py", tmp_path / "net.pt", []
    for lost in (state, file):
        file.write_text("def make():\n    pass\n")
        state.write_bytes(b"")
        dialog = ModuleDialog(settings, tmp_path, started.append, None)
        qtbot.addWidget(dialog)
        dialog.module.setText(str(file))
        dialog.callable.setEditText("make")
        dialog.state.setText(str(state))
        assert dialog.go.isEnabled()
        assert not dialog.message.text()
        lost.unlink()
        dialog.go.click()
        assert not dialog.findChildren(CodeConsent)
        assert dialog.message.text() == f"The file {lost} does not exist. Choose another one."
        assert not dialog.go.isEnabled()
    assert not started


def ask(qtbot: QtBot, window: MainWindow, file: Path, name: str, inputs: str = "1x3x8x8", state: str = "") -> None:
    """Fill in the dialog, review the code and agree."""
    dialog = module_dialog(window)
    dialog.module.setText(str(file))
    dialog.callable.setEditText(name)
    dialog.inputs.setText(inputs)
    dialog.state.setText(state)
    assert dialog.go.isEnabled(), dialog.problem()
    qtbot.mouseClick(dialog.go, LEFT)
    with qtbot.waitSignal(dialog.destroyed, timeout=WAIT):
        consent(qtbot, dialog, "agree")


GOOD = """
import torch
from torch import nn
open("ran", "w").close()
class Helper:
    pass
class Net(nn.Module):
    def __init__(self, features=4):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, features, 3), nn.Conv2d(features, 3, 3)
    def forward(self, image):
        return torch.special.bessel_j0(self.second(self.first(image).relu()))
class Sized(nn.Module):
    def __init__(self, features):
        super().__init__()
def make():
    return Net(8)
"""


def test_a_module_is_imported_after_its_code_was_read(qtbot, window, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "models.py"
    file.write_text(GOOD)
    torch.save(
        torch.nn.ModuleDict({"first": torch.nn.Conv2d(3, 8, 3), "second": torch.nn.Conv2d(8, 3, 3)}).state_dict(),
        tmp_path / "state.pth",
    )
    dialog = module_dialog(window)
    assert not dialog.go.isEnabled()
    dialog.module.setText(str(tmp_path / "missing.py"))
    assert "does not exist" in dialog.message.text()
    dialog.module.setText(str(file))
    assert [dialog.callable.itemText(i) for i in range(dialog.callable.count())] == ["Net", "make"]
    dialog.inputs.setText("1x3xa")
    assert "not a shape" in dialog.message.text()
    dismiss(qtbot, dialog)
    ask(qtbot, window, file, "make", "1x3x12x12", str(tmp_path / "state.pth"))
    document = imported(qtbot, window)
    report = document.imported.report
    assert report.agrees
    assert report.max_rel_difference is not None, report.not_compared_because
    assert set(report.weights) == {"first.weight", "first.bias", "second.weight", "second.bias"}
    (outcome,) = [item for item in report.outcomes if item.outcome is Outcome.OPAQUE]
    assert "models.py:12: return torch.special.bessel_j0" in outcome.reason
    assert document.settings.engine == "torch"
    window.run_analysis()
    analysis = analysis_of(window.context)
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)  # without another question about code
    again = module_dialog(window)
    assert (again.callable.currentText(), again.inputs.text()) == ("make", "1x3x12x12")
    dismiss(qtbot, again)


DIVIDES_BY_THE_SIZE = """
from torch import nn
class Mean(nn.Module):
    def forward(self, image):
        return image.sum((2, 3), keepdim=True) / (image.shape[2] * image.shape[3])
"""


def test_a_module_that_computes_with_its_size_has_a_warning_of_the_only_right_size(qtbot, window, tmp_path) -> None:
    (tmp_path / "mean.py").write_text(DIVIDES_BY_THE_SIZE)
    ask(qtbot, window, tmp_path / "mean.py", "Mean", "1x3x8x6")
    document = imported(qtbot, window)
    assert document.imported.report.agrees
    (finding,) = [found for found in document.diagnostics() if found.code == "import-one-size"]
    assert "1 x 3 x 8 x 6" in finding.message
    panel = window.docks.panel("import_report")
    assert sentence(finding.message) in panel._warnings.text()


def test_without_consent_no_code_runs(qtbot, window, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(GOOD)
    dialog = module_dialog(window)
    dialog.module.setText(str(tmp_path / "models.py"))
    dialog.callable.setEditText("Net")
    qtbot.mouseClick(dialog.go, LEFT)
    consent(qtbot, dialog, "later")
    dismiss(qtbot, dialog)
    assert not window.models.imports.runs
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Raises", ["bad.py:6: return x.reshape(7, -1)", "shape '[7, -1]' is invalid"]),
        ("Gpu", ["CUDA", "without a GPU"]),
        ("Trains", ["changes its own tensor 'gain'"]),
        ("Exits", ["status 3"]),
        ("Large", ["allocate memory", "smaller input"]),
    ],
)
def test_modules_that_cannot_be_imported_are_explained(name: str, said: list[str], qtbot, window, tmp_path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    mine = window.context.root
    window.models.start(
        ImportSource(f"bad.py:{name}", tmp_path, (import_run.InputShape((1, 3, 8, 8)),), runs_code=True)
    )
    text = refusal(qtbot, window)
    assert all(words in text for words in said), text
    assert "What to do: " in text
    assert window.context.root is mine


def test_a_module_that_depends_on_values_is_shown_in_part_with_its_line(qtbot, window, tmp_path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    ask(qtbot, window, tmp_path / "bad.py", "Depends")
    document = imported(qtbot, window)
    assert len(document.graph) > 2
    panel: ImportReportPanel = window.docks.panel("import_report")
    assert "bad.py:28: if x.sum() > 0" in panel.findChild(object, "import_report.warnings").text()


def test_what_a_module_prints_does_not_disturb_the_import(qtbot, window, tmp_path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    source = ImportSource("bad.py:Prints", tmp_path, (import_run.InputShape((1, 3, 8, 8)),), runs_code=True)
    window.models.start(source)
    assert imported(qtbot, window).imported.report.agrees


def test_a_module_that_never_returns_is_cancelled_or_stopped(qtbot, window, tmp_path, monkeypatch) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    mine = window.context.root
    source = ImportSource("bad.py:Endless", tmp_path, (import_run.InputShape((1, 3, 8, 8)),), runs_code=True)
    run = window.models.start(source)
    with qtbot.waitSignal(run.progress, timeout=WAIT):
        pass
    cancel = window.findChild(QToolButton, "import_bar.cancel")
    qtbot.waitUntil(cancel.isVisible, timeout=WAIT)
    assert window.findChild(QLabel, "import_bar.text").text() == "Importing bad.py:Endless: running its code"
    pid = int(run._process.processId())
    with qtbot.waitSignal(run.ended):
        qtbot.mouseClick(cancel, LEFT)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not cancel.isVisible()
    assert window.findChild(FindingsDialog, "findings") is None
    monkeypatch.setattr(import_run, "TIMEOUT", 1.0)
    window.models.start(source)
    assert "longer than 1 s" in refusal(qtbot, window)
    assert window.context.root is mine


# --- the report ---------------------------------------------------------------------------------------------------


def test_a_row_selects_its_layers_and_the_report_is_copied_and_saved(qtbot, window, tmp_path, monkeypatch) -> None:
    window.files.open(saved(small_network(), tmp_path))
    document = imported(qtbot, window)
    panel: ImportReportPanel = window.docks.panel("import_report")
    table = panel.nodes
    rows = [table.row_at(table.model().index(row, 0)) for row in range(table.model().rowCount())]
    number = next(i for i, row in enumerate(rows) if row.texts[1] == "Gemm")
    place = table.visualRect(table.model().index(number, 0)).center()
    qtbot.mouseClick(table.viewport(), LEFT, pos=place)
    assert window.context.selection == rows[number].layers
    panel._tabs.setCurrentWidget(panel.weights)
    panel._filter.setText("head.weight")
    assert panel.weights.model().rowCount() == 1
    assert panel.weights.row_at(panel.weights.model().index(0, 0)).texts[2] == "kernel"
    panel.copy()
    assert "8 known" in QGuiApplication.clipboard().text()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "r.json"), ""))
    panel.save()
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["max_rel_difference"] == document.imported.report.max_rel_difference
    window.files.new()
    assert panel._stack.currentIndex() == 0, "the new network was not imported"


WRONG = """
import numpy as np
from designer.importers import imported
from designer.files.weights import Weights
from dataclasses import replace
verified = imported.Imported.verified
def damaged(self, registry):
    weights = Weights({key: array + np.float32(0.1) for key, array in self.weights.tensors.items()})
    return verified(replace(self, weights=weights), registry)
imported.Imported.verified = damaged
from app.import_process import main
main()
"""


def test_a_difference_from_the_original_is_a_warning_at_the_document(qtbot, window, tmp_path, monkeypatch) -> None:
    """A defect of the import: the document that is compared has other weights than the file."""
    (tmp_path / "wrong.py").write_text(WRONG)
    monkeypatch.setattr(import_run, "import_command", lambda warm: [sys.executable, str(tmp_path / "wrong.py")])
    window.files.open(saved(small_network(), tmp_path))
    document = imported(qtbot, window)
    (finding,) = [found for found in document.diagnostics() if found.code == "import-differs"]
    assert "model.onnx" in finding.message
    assert "relative" in finding.message
    assert finding.remedy
    assert window.status.problems.text() == "1 warning"
    checking = window.docks.panel("type_checking")
    qtbot.waitUntil(lambda: any(f.code == "import-differs" for f in checking._model.findings))


def test_the_picture_does_not_wait_for_the_comparison(qtbot, window, tmp_path) -> None:
    """The document is shown and can be edited while its original still runs."""
    nodes = [helper.make_node("Conv", [f"x{i}", "w"], [f"x{i + 1}"], pads=[1, 1, 1, 1]) for i in range(400)]
    proto = model(nodes, {"x0": [1, 3, 512, 512]}, {"x400": [1, 3, 512, 512]}, {"w": random(3, 3, 3, 3) / 5})
    window.files.open(saved(proto, tmp_path))
    document = imported(qtbot, window, compared=False)
    assert document.imported.comparing
    assert document.do(lambda graph: commands.rename_layer(graph, "x400", "y"))
    window.models.imports.runs[0].cancel()
    assert not document.imported.comparing
    assert "stopped" in document.imported.report.not_compared_because


def test_saving_at_once_includes_the_weights(qtbot, window, tmp_path) -> None:
    """Save waits for weights that are still being written; it does not wait for the comparison."""
    path = saved(small_network(), tmp_path)
    window.models.open(path)
    (run,) = window.models.imports.runs
    with qtbot.waitSignal(run.opened, timeout=WAIT):
        pass
    assert window.files.save_to(tmp_path / "mine.xml")
    assert (tmp_path / "mine.safetensors").stat().st_size > 0
    assert window.context.root.settings.weights == str(tmp_path / "mine.safetensors")
    assert window.context.root.history.is_clean


def test_closing_the_document_ends_its_process(qtbot, window, tmp_path) -> None:
    window.files.open(saved(small_network(), tmp_path))
    imported(qtbot, window, compared=False)
    window.files.close()
    qtbot.waitUntil(lambda: not window.models.imports.runs, timeout=WAIT)
    qtbot.waitUntil(lambda: not list(weight_versions().glob("*")), timeout=WAIT)
