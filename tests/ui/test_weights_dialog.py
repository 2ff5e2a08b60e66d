"""The dialogs that ask for weights where a run lacks them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6")
from canvas_kit import small_graph
from PySide6.QtWidgets import QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.document.weights_dialog import probable_folder
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.profile.run_logger import RunLoggerPanel
from designer.graph.graph import Graph
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
PANELS = {"analysis": (AnalysisPanel, analysis_of), "run_logger": (RunLoggerPanel, profiling_of)}


@pytest.mark.parametrize("name", PANELS)
def test_weights_are_a_folder_or_a_file_and_are_searched_at_the_generated_project(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make, owner_of = PANELS[name]
    context = Context(default_registry())
    panel = make(context)
    qtbot.addWidget(panel)
    document = Document(small_graph(), context.registry, tmp_path / "net.xml", parent=context)
    context.set_document(document)
    project = tmp_path / f"{document.graph.name}_pytorch" / "weights"
    project.mkdir(parents=True)
    begun: list[str] = []
    used: list[Path] = []
    monkeypatch.setattr(owner_of(context), "choose_weights", used.append)
    for answer in (str(tmp_path / "chosen"), ""):
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *given, a=answer: begun.append(given[2]) or a)
        monkeypatch.setattr(
            QFileDialog,
            "getOpenFileName",
            lambda *given, a=answer: (begun.append(given[2]), (f"{a}.pt" if a else "", ""))[1],
        )
        for key in ("weights", "file"):
            panel.findChild(QPushButton, f"{name}.notice.{key}").click()
    assert used == [tmp_path / "chosen", tmp_path / "chosen.pt"]
    assert begun == [str(project)] * 4


def test_weights_are_first_looked_for_in_the_project_of_the_document(qapp, tmp_path) -> None:
    document = Document(Graph(name="net"), default_registry(), tmp_path / "net.xml")
    for name in ("net_pytorch", "mine"):
        (tmp_path / name / "weights").mkdir(parents=True)
    assert probable_folder(None) == ""
    assert probable_folder(document) == str(tmp_path / "net_pytorch" / "weights")
    document.project = tmp_path / "mine"
    assert probable_folder(document) == str(tmp_path / "mine" / "weights")
    document.project = tmp_path / "gone"
    assert probable_folder(document) == str(tmp_path)
    document.restore_settings(weights="/elsewhere/best.pt")
    assert probable_folder(document) == "/elsewhere"


def test_weights_of_an_imported_model_are_looked_for_next_to_it(qapp, tmp_path) -> None:
    """Until the document is saved: then next to its own file."""
    (tmp_path / "models").mkdir()
    document = Document(Graph(name="net"), default_registry())
    assert probable_folder(document) == str(Path.home())
    document.imported = ImportRecord(None, ImportReport("net.py"), document)
    assert probable_folder(document) == str(Path.home())
    document.imported = ImportRecord(tmp_path / "models" / "net.onnx", ImportReport("net.onnx"), document)
    assert probable_folder(document) == str(tmp_path / "models")
    document.mark_saved(tmp_path / "net.xml")
    assert probable_folder(document) == str(tmp_path)
