"""What the window shows after each event of an import whose process the test plays."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pathlib import Path

from PySide6.QtCore import QTimer

from app.ui.engine.import_run import ImportedDocument, ImportRun, ImportSource
from app.ui.shell.model_import import DIFFERS, ONE_SIZE
from app.ui.shell.window import MainWindow
from designer.files.document import Reading
from designer.graph.commands import add_layer
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry


class Played:
    """An import of one file, whose events the test sends."""

    def __init__(self, window: MainWindow, monkeypatch: pytest.MonkeyPatch, file: Path, *, code: bool = False) -> None:
        self.window = window
        self.said: list[str] = []
        window.context.message.connect(lambda severity, text: self.said.append(f"{severity}: {text}"))
        self.run = ImportRun(ImportSource(file.name, file.parent, runs_code=code), default_registry(), window)
        monkeypatch.setattr(window.models.imports, "start", lambda source: self.run)
        window.models.start(self.run.source)

    def open(self, engine: str = "", report: ImportReport | None = None) -> None:
        layers = [Layer("in", "input", params={"dims": "8x8x3"}), Layer("out", "output", inputs=(Source("in"),))]
        graph = Graph(layers, name="main_graph")
        found = ImportedDocument(
            Reading(graph, ()), graph, Inference(graph, default_registry()), report or ImportReport("file"), engine
        )
        self.run.is_opened = True
        self.run.opened.emit(found)

    def end(self) -> None:
        self.run.ended.emit()


@pytest.fixture
def played(window, monkeypatch, tmp_path) -> Played:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"")
    return Played(window, monkeypatch, file)


@pytest.mark.parametrize("size", ["", "the size is 8x8 only"])
@pytest.mark.parametrize("difference", [None, 1e-9, 0.5])
def test_warnings_of_a_comparison(played, difference, size):
    played.open()
    document = played.window.context.root
    record = document.imported
    assert record.comparing
    played.run.compared.emit(
        ImportReport("file", max_rel_difference=difference, max_abs_difference=difference, size_note=size)
    )
    codes = [found.code for found in document.diagnostics() if found.code in (DIFFERS, ONE_SIZE)]
    assert sorted(codes) == sorted([DIFFERS] * (difference == 0.5) + [ONE_SIZE] * bool(size))
    assert not record.comparing
    assert record.report.max_rel_difference == difference
    assert [text.startswith("warning: The import of file") for text in played.said[1:]] == [True] * (difference == 0.5)
    assert document.history.is_clean
    played.end()


@pytest.mark.parametrize("engine", ["", "torch"])
def test_an_import_is_named_after_its_file_and_has_its_weights_and_engine(played, engine, tmp_path):
    played.open(engine)
    window = played.window
    document = window.context.root
    assert (document.graph.name, document.path) == ("model", None)
    assert document.settings.engine == (engine or type(document.settings)().engine)
    assert window.files.recent() == [(tmp_path / "model.onnx").resolve()]
    assert played.said[0].startswith("info: Imported model.onnx: ")
    played.run.weights_written.emit(None)
    assert document.settings.weights == ""
    played.run.weights_written.emit(tmp_path / "weights.safetensors")
    assert document.settings.weights == str(tmp_path / "weights.safetensors")
    assert document.imported.weights == tmp_path / "weights.safetensors"
    assert document.history.is_clean
    document.imported.weights = None
    played.end()


def test_weights_that_arrive_after_an_edit_are_kept_for_the_next_start(played, tmp_path, monkeypatch):
    played.open()
    opened = played.window.tabs.shown
    opened.document.do(lambda graph: add_layer(graph, Layer("more", "identity")))
    kept = []
    monkeypatch.setattr(opened, "keep_settings", lambda: kept.append(opened.document.settings.weights))
    played.run.weights_written.emit(tmp_path / "weights.safetensors")
    assert kept == [str(tmp_path / "weights.safetensors")]
    opened.document.imported.weights = None
    played.end()


@pytest.mark.parametrize("event", ["weights_written", "ended"])
def test_saving_waits_until_weights_are_written_or_the_import_ends(played, event):
    played.open()
    opened = played.window.tabs.shown
    waited = []
    arguments = (None,) if event == "weights_written" else ()
    QTimer.singleShot(20, played.window, lambda: (waited.append(1), getattr(played.run, event).emit(*arguments)))
    QTimer.singleShot(5_000, played.run, played.end)  # it hangs only here if the event is not heard
    played.window.models.wait_for_weights(opened)
    assert waited
    assert played.run not in played.window.models._runs.values() or event == "weights_written"
    played.run.has_weights = True
    played.window.models.wait_for_weights(opened)  # at once
    played.end()


def test_an_import_that_was_edited_is_not_asked_to_start_twice_until_it_is_saved(played, tmp_path, monkeypatch):
    played.open()
    window, opened = played.window, played.window.tabs.shown
    started = []
    monkeypatch.setattr(window.models, "start", lambda source, **_: started.append(source.name))
    window.files.new_from("denoiser")
    window.files.open(tmp_path / "model.onnx", show=False)
    assert window.tabs.shown is not opened
    window.files.open(tmp_path / "model.onnx")
    assert window.tabs.shown is opened
    assert not started
    (tmp_path / "model.onnx").write_bytes(b"another model")
    window.files.open(tmp_path / "model.onnx")
    assert started == ["model.onnx"]
    played.end()
