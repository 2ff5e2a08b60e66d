"""What each chooser of files asks for, that nothing changes where one cancels it, and what a chosen file changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QFileDialog, QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare, lines, plain
from shown_state import named, of_tree
from side_kit import network, photograph
from window_kit import shown

from app.reports.comparison_page import COMPARISONS
from app.reports.votes import VOTES
from app.ui.analysis import report
from app.ui.analysis.input_row import InputRow
from app.ui.canvas.canvas import Canvas
from app.ui.compare.folder_view import FolderView
from app.ui.compare.variants import VariantChoice
from app.ui.compare.window import SideWindow
from app.ui.design.differences import DifferencesPanel
from app.ui.document.document import Document
from app.ui.document.weights_dialog import ask_weights_file, ask_weights_folder
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.precision_dialog import PrecisionDialog
from app.ui.shell.export.deploy import DeployExportDialog
from app.ui.shell.export.onnx import OnnxExportDialog
from app.ui.shell.export.picture import PictureDialog
from app.ui.shell.export.pytorch import PyTorchExportDialog
from app.ui.shell.export.tensorrt import TensorRtExportDialog
from app.ui.shell.module_dialog import ModuleDialog
from app.ui.train.training_panel import TrainingPanel
from app.ui.widgets import file_dialogs, run_choices
from app.ui.widgets.run_choices import Choice
from designer.files.document import read_document
from designer.operators.registry import default_registry

Act = Callable[[], object]


@dataclass
class Choosers:
    """Plays the choosers of the system: notes what is asked and gives `answer`."""

    answer: str = ""
    asked: list[str] = field(default_factory=list)

    def of(self, kind: str) -> Callable[..., Any]:
        def ask(_parent: object, title: str = "", start: str = "", filters: str = "", chosen: str = "") -> Any:
            self.asked.append(f"{kind} {title!r} in {plain(f' {start}').strip()!r} of {filters!r} {chosen!r}")
            if kind == "folder":
                return self.answer
            return ([self.answer] if self.answer else []) if kind == "files" else self.answer, ""

        return ask


@pytest.fixture
def choosers(monkeypatch: pytest.MonkeyPatch) -> Choosers:
    made = Choosers()
    for name, kind in (
        ("getOpenFileName", "open"),
        ("getOpenFileNames", "files"),
        ("getSaveFileName", "save"),
        ("getExistingDirectory", "folder"),
    ):
        monkeypatch.setattr(QFileDialog, name, made.of(kind))
    monkeypatch.setattr(file_dialogs, "_saved_in", [Path("saved before")])
    return made


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """Has the same name in every run."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.setattr(run_choices, "engines", lambda: (Choice("one", "One"),))
    monkeypatch.setattr(run_choices, "devices", lambda engine: (Choice("cpu", "CPU"),))
    monkeypatch.setattr(run_choices, "precisions", lambda engine, device: (Choice("fp32", "FP32"),))
    host = QWidget()
    qtbot.addWidget(host)
    made = Context(default_registry(), host)
    path = network(tmp_path, "open")
    graph = read_document(path).graph
    assert graph is not None
    made.set_document(Document(graph, made.registry, path, parent=made))
    yield made
    host.close()


def state(widget: QWidget) -> Any:
    for _ in range(3):
        QApplication.processEvents()
    return named("", of_tree(widget))


def session(name: str, widget: QWidget, acts: dict[str, Act], choosers: Choosers, files: Path) -> None:
    """Take each way to a chooser twice: cancelled, and with a file or folder of the name of that way."""
    found = []
    for what, act in acts.items():
        choosers.answer = ""
        choosers.asked.clear()
        before = state(widget)
        act()
        assert choosers.asked, what
        assert lines(state(widget), since=before, icons=True) == [], f"{what}: it was cancelled"
        found += [f"# {what}", *choosers.asked]
        choosers.asked.clear()
        choosers.answer = str(files / what)
        act()
        now = state(widget)
        found += lines(now, since=before, icons=True) or ["nothing changes"]
        assert choosers.asked, what
        again = list(choosers.asked)
        choosers.asked.clear()
        choosers.answer = ""
        act()
        assert lines(state(widget), since=now, icons=True) == [], f"{what}: it was cancelled later"
        if choosers.asked != again:
            found += ["then", *choosers.asked]
    compare(f"choosers_{name}", found)


def button(widget: QWidget, name: str) -> Act:
    found = widget.findChild(QAbstractButton, name)
    assert found is not None, [each.objectName() for each in widget.findChildren(QAbstractButton)]
    return found.click


EXPORTS = {
    "onnx": OnnxExportDialog,
    "pytorch": PyTorchExportDialog,
    "deploy": DeployExportDialog,
    "tensorrt": TensorRtExportDialog,
}


@pytest.mark.parametrize("kind", EXPORTS)
def test_of_an_export(qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path, kind: str) -> None:
    dialog = EXPORTS[kind](context)
    shown(qtbot, dialog, 700, 500)
    name = dialog.objectName()
    acts: dict[str, Act] = {"chosen.bin": button(dialog, f"{name}.target.browse")}
    if dialog.findChild(QAbstractButton, f"{name}.model.browse") is not None:
        acts["model.onnx"] = button(dialog, f"{name}.model.browse")
    session(f"export_{kind}", dialog, acts, choosers, tmp_path)


def test_of_a_picture(qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path) -> None:
    canvas = Canvas(context)
    shown(qtbot, canvas, 600, 400)
    dialog = PictureDialog(context, canvas)
    shown(qtbot, dialog, 700, 500)
    browse = button(dialog, "picture.target.browse")
    session("export_picture", dialog, {"a.svg": browse, "b": browse}, choosers, tmp_path)


def test_of_a_module(qtbot: QtBot, choosers: Choosers, tmp_path: Path) -> None:
    dialog = ModuleDialog(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat), tmp_path, print, None)
    shown(qtbot, dialog, 700, 500)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "net.py").write_text("import torch\nclass Net(torch.nn.Module):\n    pass\n")
    acts = {
        "here/net.py": button(dialog, "import_module.module.browse"),
        "weights.pt": button(dialog, "import_module.state.browse"),
    }
    session("module", dialog, acts, choosers, tmp_path)


def test_of_training(qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path) -> None:
    panel = TrainingPanel(context)
    shown(qtbot, panel, 700, 900)
    acts: dict[str, Act] = {"project": panel._browse}
    for each in panel.findChildren(QAbstractButton):
        if each.objectName().endswith(".browse") and each.isVisibleTo(panel):
            acts[each.objectName()] = each.click
    session("training", panel, acts, choosers, tmp_path)


def test_of_files_that_are_written(
    qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled, nothing is written; a name without a suffix gets that of the button."""
    window = SideWindow(context, lambda: [context.root])
    shown(qtbot, window, 1000, 700)
    folder = window.findChild(FolderView)
    assert folder is not None
    found: list[str] = []
    monkeypatch.setattr(folder, "save", lambda path: found.append(plain(f"folder {path}")))
    monkeypatch.setattr(window.voting, "save", lambda path: found.append(plain(f"votes {path}")))
    monkeypatch.setattr(window, "save_report", lambda path: found.append(plain(f"report {path}")))
    monkeypatch.setattr(report, "save_report", lambda _window, _context, path: found.append(plain(f"analysis {path}")))
    window.report_button.setEnabled(True)
    kinds = [f"side.folder.{format.suffixes[0][1:]}" for format in COMPARISONS.writable]
    kinds += [f"side.voting.{format.suffixes[0][1:]}" for format in VOTES.writable]
    ways: list[Act] = [button(window, kind) for kind in kinds]
    for save in (*folder.save_buttons.values(), *window.voting.save_buttons.values()):
        save.setEnabled(True)
    ways += [button(window, "side.report"), partial(report.ask_report, window, context)]
    for way in ways:
        for choosers.answer in ("", str(tmp_path / "chosen"), str(tmp_path / "chosen.txt")):
            way()
    window.report_button.setEnabled(False)
    window._ask_report()
    found += choosers.asked
    compare("choosers_written", found)


def test_of_differences(qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path) -> None:
    panel = DifferencesPanel(context)
    shown(qtbot, panel, 500, 400)
    network(tmp_path, "other", 5)
    session("differences", panel, {"other.xml": panel.ask_file}, choosers, tmp_path)


def test_of_precision(qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path) -> None:
    host = QWidget()
    qtbot.addWidget(host)
    dialog = PrecisionDialog(context, "int8", host)
    shown(qtbot, dialog, 700, 500)
    session("precision", dialog, {"images": dialog._on_browse}, choosers, tmp_path)
    panel = BlamePanel(context)
    shown(qtbot, panel, 700, 500)
    session("blame", panel, {"other.onnx": panel._on_file}, choosers, tmp_path)


def choose(box: QComboBox, place: int) -> Act:
    def act() -> None:
        number = place % box.count()
        box.setCurrentIndex(number)
        box.activated.emit(number)

    return act


def test_of_side_by_side(
    qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = context.root
    window = SideWindow(context, lambda: [document])
    compared: list[int] = []
    monkeypatch.setattr(window.model, "compare", lambda: compared.append(1))  # nothing runs
    shown(qtbot, window, 1000, 700)
    window.model.choices = [VariantChoice(document), VariantChoice(network(tmp_path, "other"), weights="random")]
    window.setup.show_choices()
    setup = window.setup
    setup.kind.setCurrentIndex(setup.kind.findData(""))
    setup._on_noise()
    setup.set_picture(photograph(tmp_path / "here.png"))
    network(tmp_path, "third")
    photograph(tmp_path / "photo.png")
    acts: dict[str, Act] = {
        "third.xml": choose(setup.rows[1].source, -1),
        "weights": choose(setup.rows[0].weights, -1),
        "photo.png": choose(setup.picture, -1),
        "here.png": choose(setup.clean, -1),
        "images": button(window, "side.folder.browse"),
    }
    session("side", window, acts, choosers, tmp_path)
    setup._on_clean(0)
    assert window.model.clean_file is None
    setup._on_clean(0)
    setup.set_clean(tmp_path / "here.png")
    setup._on_clean(1)
    assert window.model.clean_file == tmp_path / "here.png"


@pytest.mark.parametrize("present", [None, "pattern:checker", "camera:0", "here/photo.png"])
def test_of_an_input(qtbot: QtBot, context: Context, choosers: Choosers, tmp_path: Path, present: str | None) -> None:
    row = InputRow("image", analysis_of(context).playback)
    shown(qtbot, row, 300, 200)
    row._path = Path(present) if present is not None else None
    given: list[str] = []
    row.chosen.connect(lambda layer, path: given.append(plain(f"{layer}: {path}")))
    found = []
    for act in (button(row, "analysis.input.image.open"), button(row, "analysis.input.image.folder")):
        for choosers.answer in ("", str(tmp_path / "chosen")):
            act()
            found += [*choosers.asked, *given]
            choosers.asked.clear()
            given.clear()
    compare(f"choosers_input_{(present or 'none').partition(':')[0].partition('/')[0]}", found)


def test_of_weights(context: Context, choosers: Choosers, tmp_path: Path) -> None:
    found = []
    given: list[Path] = []
    trained = Document(context.root.graph, context.registry, tmp_path / "trained.xml", parent=context)
    trained.change_settings(weights=str(tmp_path / "kept" / "weights"))
    for document in (None, context.root, trained):
        for ask in (ask_weights_folder, ask_weights_file):
            for choosers.answer in ("", str(tmp_path / "chosen")):
                ask(context.parent(), document, given.append)
                found += [*choosers.asked, *(plain(f"given {path}") for path in given)]
                choosers.asked.clear()
                given.clear()
    compare("choosers_weights", found)
