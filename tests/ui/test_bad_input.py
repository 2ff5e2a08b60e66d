"""Bad input in the window: every case ends in a message with thing, rule and remedy, and the open document stays whole."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import numpy as np
from PySide6.QtCore import QMimeData, QPointF, QProcess, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QListWidget, QPushButton

from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.profiling import State, profiling_of
from app.ui.engine.result import Phase
from app.ui.shell.window import MainWindow
from app.ui.widgets.findings import FindingsDialog
from designer.files import atomic, limits
from designer.files.document import read_document, save_document, write_document
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source

BAD = Path(__file__).parent.parent / "data" / "bad"
DOCUMENTS = sorted(BAD.glob("*.xml"))
WEIGHTS = sorted((BAD / "weights").iterdir())
WAIT = 60_000


def network() -> Graph:
    """The network that the bad weights of the corpus are for."""
    params = {"features": "4", "kernel": "3x3", "padding": "same"}
    return Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3", "tiling": "1"}),
            Layer("conv 1", "convolution", (320, 0), (Source("input"),), params),
            Layer("output", "output", (640, 0), (Source("conv 1"),)),
        ],
        name="mine",
    )


class Bench:
    """A window, and what a user does in it."""

    def __init__(self, qtbot, window: MainWindow, patch: pytest.MonkeyPatch) -> None:
        self.qtbot, self.window, self.patch = qtbot, window, patch

    def show(self, graph: Graph, path: Path | None = None) -> Document:
        document = Document(graph, self.window.context.registry, path, parent=self.window.context)
        self.window.context.set_document(document)
        QApplication.processEvents()
        return document

    @property
    def document(self) -> Document:
        return self.window.context.document

    def trigger(self, action: str) -> None:
        QApplication.processEvents()
        self.window.actions_[action].trigger()

    def open(self, path: Path) -> None:
        """File > Open with this file chosen."""
        self.patch.setattr(QFileDialog, "getOpenFileNames", lambda *a, **k: ([str(path)], ""))
        self.trigger("file.open")

    def explained(self) -> tuple[str, list[str], set[str]]:
        """The sentence of the shown dialog, its findings and their codes; closed by its button."""
        dialog = self.window.findChild(FindingsDialog, "findings")
        assert dialog is not None
        assert dialog.isVisible()
        sentence = dialog.findChild(QLabel, "findings.sentence").text()
        listed = dialog.findChild(QListWidget, "findings.list")
        items = [listed.item(row) for row in range(listed.count())]
        texts, codes = [item.text() for item in items], {item.toolTip().removeprefix("code: ") for item in items}
        dialog.close()
        QApplication.sendPostedEvents(dialog, 52)  # deferred deletion: the next dialog must not be mistaken for it
        return sentence, texts, codes


@pytest.fixture
def bench(qtbot, empty_window, monkeypatch):
    bench = Bench(qtbot, empty_window, monkeypatch)
    bench.show(network())
    return bench


# --- documents -----------------------------------------------------------------------------------------------------


def test_every_bad_document_is_explained(bench: Bench) -> None:
    """Those that cannot be read change nothing; those that are merely wrong open with their problem marked."""
    for path in DOCUMENTS:
        code = path.name.partition("__")[0]
        mine = bench.show(network())
        before = write_document(mine.graph)
        bench.open(path)
        if read_document(path).graph is None:
            sentence, texts, codes = bench.explained()
            assert path.name in sentence, path.name
            assert code in codes, path.name
            assert all("What to do" in text for text in texts), path.name
            assert bench.document is mine
            assert write_document(mine.graph) == before
        else:
            assert bench.document.path == path
            found = [d for d in bench.document.diagnostics() if d.code == code]
            assert found, path.name
            assert all(d.message for d in found)
            QApplication.processEvents()
            assert bench.window.status.problems.text() != "No problems", path.name
            assert write_document(bench.document.graph)
        bench.window.canvas.viewer.viewport().repaint()


def test_a_bad_document_that_is_dropped_on_the_window(bench: Bench) -> None:
    mine = bench.document
    mine.do(lambda g: commands.rename_layer(g, "output", "result"))
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(BAD / "dtd__entity_bomb.xml"))])
    place, buttons, keys = bench.window.rect().center(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(bench.window, QDragEnterEvent(place, Qt.DropAction.CopyAction, mime, buttons, keys))
    QApplication.sendEvent(bench.window, QDropEvent(QPointF(place), Qt.DropAction.CopyAction, mime, buttons, keys))
    bench.qtbot.waitUntil(lambda: bench.window.findChild(FindingsDialog, "findings") is not None)
    assert "dtd" in bench.explained()[2]
    assert bench.document is mine
    assert "result" in mine.graph


def test_two_hundred_megabytes_of_nesting(bench: Bench, tmp_path: Path) -> None:
    mine = bench.document
    large, deep = tmp_path / "large.xml", tmp_path / "deep.xml"
    with large.open("wb") as stream:
        for _ in range(200):
            stream.write(b"<Layer>" * 150_000)
    deep.write_bytes(b'<NetworkModel name="n" version="2">' + b"<a>" * ((limits.MAX_DOCUMENT_BYTES - 100) // 3))
    for path, code in ((large, "file-too-large"), (deep, "too-deep")):
        bench.open(path)
        sentence, texts, codes = bench.explained()
        assert codes == {code}
        assert path.name in sentence
        assert len(texts[0]) < 600
        path.unlink()
    assert bench.document is mine


def test_bad_settings_beside_a_document_do_not_keep_it_closed(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    save_document(network(), path)
    bomb = '<!DOCTYPE a [<!ENTITY b "boom">]><Settings>&b;</Settings>'
    for text in ("", "<Settings", bomb, "<other/>"):
        (tmp_path / "net.settings.xml").write_text(text)
        bench.open(path)
        assert bench.document.path == path
        reported = [d for d in bench.document.diagnostics() if d.file and "settings" in d.file]
        assert reported, text
        assert all(d.remedy for d in reported)
        bench.show(network())
    found = Diagnostic("unknown-element", "a finding of the reader")
    document = Document(network(), bench.document.registry, path, (found,))
    assert found in document.diagnostics()
    assert any(d.file and "settings" in d.file for d in document.diagnostics())


# --- weights -------------------------------------------------------------------------------------------------------


def test_bad_weights_are_asked_about_and_never_run(bench: Bench, tmp_path: Path, capfd) -> None:
    """Launch Analysis with each bad file: the notice names it; the document is whole, and good weights go on."""
    document = bench.document
    document.change_settings(random_seed=None)
    before = write_document(document.graph)
    analysis = analysis_of(bench.window.context)
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 16, 16), np.float32))
    analysis.inputs.set_file("input", tmp_path / "in.npy")
    for number, path in enumerate(WEIGHTS):
        source = path
        if path.suffix in (".npy", ".bin"):
            source = tmp_path / f"bad{number}"
            source.mkdir()
            for name in ("kernel", "bias"):
                (source / f"conv 1_{name}{path.suffix}").write_bytes(path.read_bytes())
        document.change_settings(weights=str(source))
        if number == 0:
            bench.trigger("run.analysis")
        else:
            bench.qtbot.mouseClick(button(bench, "analysis.launch"), Qt.MouseButton.LeftButton)
        bench.qtbot.waitUntil(lambda: analysis.phase in (Phase.WEIGHTS, Phase.FAILED), timeout=WAIT)
        notice = label(bench, "analysis.notice.text")
        assert analysis.phase is Phase.WEIGHTS, f"{path.name}: {notice}"
        assert button(bench, "analysis.notice.weights").isVisible()
        names = (source.name, "conv 1_bias", "conv 1_kernel", "missing or of the wrong shape")
        assert any(name in notice for name in names), f"{path.name}: {notice}"
    assert "never run" not in capfd.readouterr().out
    assert write_document(document.graph) == before
    good = tmp_path / "good"
    good.mkdir()
    np.save(good / "conv 1_kernel.npy", np.ones((4, 3, 3, 3), np.float32))
    np.save(good / "conv 1_bias.npy", np.ones(4, np.float32))
    bench.patch.setattr(QFileDialog, "getExistingDirectory", lambda *a, **k: str(good))
    QTest.mouseClick(button(bench, "analysis.notice.weights"), Qt.MouseButton.LeftButton)
    bench.qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)


def button(bench: Bench, name: str) -> QPushButton:
    found = bench.window.findChild(QPushButton, name)
    assert found is not None, name
    return found


def label(bench: Bench, name: str) -> str:
    found = bench.window.findChild(QLabel, name)
    assert found is not None, name
    return found.text()


# --- pictures ------------------------------------------------------------------------------------------------------


def test_pictures_that_are_none_are_told_and_another_mends_it(bench: Bench, tmp_path: Path) -> None:
    document = bench.document
    document.change_settings(random_seed=0)
    before = write_document(document.graph)
    analysis = analysis_of(bench.window.context)
    bench.trigger("run.analysis")
    bench.qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    corpus = BAD / "weights"
    files = {
        "text.png": b"no picture at all",
        "empty.jpg": b"",
        "cut.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "pickled.npy": (corpus / "pickled-weights__objects.npy").read_bytes(),
        "huge.npy": (corpus / "weight-size__huge_header.npy").read_bytes(),
        "cut.npy": (corpus / "bad-weights__cut_in_the_header.npy").read_bytes(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder.png").mkdir()
    for name in (*files, "folder.png", "gone.png"):
        bench.patch.setattr(QFileDialog, "getOpenFileName", lambda *a, n=name, **k: (str(tmp_path / n), ""))
        bench.qtbot.mouseClick(button(bench, "analysis.input.input.open"), Qt.MouseButton.LeftButton)
        bench.qtbot.waitUntil(lambda: analysis.phase is Phase.BLOCKED, timeout=WAIT)
        assert name in label(bench, "analysis.notice.text")
        assert analysis.inputs.errors["input"]
        assert analysis.result is not None  # the last good picture stays, dimmed
        np.save(tmp_path / "good.npy", np.zeros((1, 3, 16, 16), np.float32))
        bench.patch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(tmp_path / "good.npy"), ""))
        bench.qtbot.mouseClick(button(bench, "analysis.input.input.open"), Qt.MouseButton.LeftButton)
        bench.qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
        assert not analysis.inputs.errors
    assert write_document(document.graph) == before


# --- saving and exporting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_save_that_fails_keeps_both(bench: Bench, tmp_path: Path, number: int) -> None:
    path = tmp_path / "net.xml"
    save_document(network(), path)
    before = path.read_bytes()
    bench.open(path)
    bench.document.do(lambda g: commands.rename_layer(g, "output", "result"))

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with bench.patch.context() as patch:
        patch.setattr(atomic.os, "fsync" if number == errno.ENOSPC else "open", fail)
        bench.trigger("file.save")
    sentence, texts, codes = bench.explained()
    assert codes == {"cannot-save"}
    assert str(path) in sentence
    assert os.strerror(number) in texts[0]
    assert "What to do" in texts[0]
    assert path.read_bytes() == before
    assert "result" in bench.document.graph
    QApplication.processEvents()
    assert bench.window.isWindowModified()
    bench.trigger("file.save")  # there is space again
    assert b'name="result"' in path.read_bytes()


def test_a_project_cannot_be_written(bench: Bench, tmp_path: Path) -> None:
    from app.ui.shell.export.pytorch import PyTorchExportDialog
    from exporters.pytorch import project

    bench.trigger("export.pytorch")
    dialog = bench.window.findChild(PyTorchExportDialog, "export_pytorch")
    (tmp_path / "file").write_text("in the way")
    dialog.target.setText(str(tmp_path / "file" / "project"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    bench.qtbot.waitUntil(lambda: "What to do" in dialog.message.text(), timeout=WAIT)
    assert "project" in dialog.message.text()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    dialog.target.setText(str(tmp_path / "project"))
    with bench.patch.context() as patch:
        patch.setattr(project.os, "fsync", full)
        QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
        bench.qtbot.waitUntil(lambda: "No space left" in dialog.message.text(), timeout=WAIT)
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".ini") == ["file"]
    bench.qtbot.waitUntil(dialog.export.isEnabled)
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    bench.qtbot.waitUntil(lambda: "written" in dialog.message.text(), timeout=WAIT)
    dialog.close()


def test_an_onnx_file_cannot_be_written_or_its_process_dies(bench: Bench, tmp_path: Path) -> None:
    from app.ui.shell.export.onnx import OnnxExportDialog

    bench.trigger("export.onnx")
    dialog = bench.window.findChild(OnnxExportDialog, "export_onnx")
    dialog.random.setChecked(True)
    (tmp_path / "file").write_text("in the way")
    dialog.target.setText(str(tmp_path / "file" / "x.onnx"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    bench.qtbot.waitUntil(dialog.export.isEnabled, timeout=WAIT)
    assert "x.onnx" in dialog.message.text()
    assert "cannot be saved" in dialog.message.text()
    assert "Traceback" not in dialog.message.text()
    dialog.target.setText(str(tmp_path / "y.onnx"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)

    def processes() -> list[int]:
        return [process.processId() for process in dialog.findChildren(QProcess) if process.processId()]

    bench.qtbot.waitUntil(lambda: bool(processes()), timeout=WAIT)
    os.kill(processes()[0], signal.SIGKILL)
    bench.qtbot.waitUntil(dialog.export.isEnabled, timeout=WAIT)
    assert "again" in dialog.message.text()
    assert not (tmp_path / "y.onnx").exists()
    dialog.close()


# --- a killed worker -----------------------------------------------------------------------------------------------


def test_a_killed_worker_is_told_and_the_next_launch_works(bench: Bench, tmp_path: Path) -> None:
    document = bench.document
    document.change_settings(random_seed=0, iterations=100_000)
    document.do(lambda g: commands.rename_layer(g, "output", "result"))
    before = write_document(document.graph)
    bench.window.start_engine_client()
    engine = bench.window.context.engine
    profiling = profiling_of(bench.window.context)
    bench.trigger("run.inference")
    bench.qtbot.waitUntil(lambda: engine.pid != 0 and engine.busy, timeout=WAIT)
    with bench.qtbot.waitSignal(engine.crashed, timeout=WAIT):
        os.kill(engine.pid, signal.SIGKILL)
    bench.qtbot.waitUntil(lambda: profiling.state is State.FAILED, timeout=WAIT)
    assert "killed" in profiling.message
    assert "Launch again" in profiling.message
    assert "killed" in bench.window.status.currentMessage()
    assert bench.document is document
    assert write_document(document.graph) == before
    document.undo()
    assert "output" in document.graph
    document.change_settings(iterations=1)
    with bench.qtbot.waitSignal(profiling.current_changed, timeout=WAIT):
        bench.trigger("run.inference")
