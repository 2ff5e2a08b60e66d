"""What is refused before or instead of an answer: by an engine of another version, of sizes, of formats, and by a program that is not there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from engine_kit import ScriptedEngine
from PySide6.QtCore import QObject, QProcess
from pytestqt.qtbot import QtBot
from runtime_networks import chain

from app.engine.protocol import Asked, FailedEvent, PingRequest, QuitRequest, RunRequest, line_of
from app.ui.document.document import Document
from app.ui.engine import analysis as analysis_module
from app.ui.engine import size_rules as size_rules_module
from app.ui.engine.analysis import AnalysisController
from app.ui.engine.call import EngineCall
from app.ui.engine.client import QUIT_MS, EngineClient
from app.ui.engine.context import Context
from app.ui.engine.import_run import ImportRun, ImportSource
from app.ui.engine.result import Phase
from app.ui.engine.size_rules import size_rules_of
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.registry import default_registry
from designer.runtime.shared import SharedFolder

REFUSED = Diagnostic("other-protocol", "another version", remedy="install the same one")


def test_an_engine_that_refuses_the_greeting_fails_every_request(qtbot: QtBot) -> None:
    client, owner = EngineClient(command=("absent",)), QObject()
    failed: list[Any] = []
    calls = [EngineCall(each, owner, None, failed.append, None, None) for each in (RunRequest(), PingRequest())]
    client._calls = dict(enumerate(calls, 1))
    said: list[object] = []
    client.crashed.connect(said.append)
    client.busy_changed.connect(said.append)
    client._event(FailedEvent(0, (REFUSED, Diagnostic("more", "and more"))))
    assert said == ["Another version. Install the same one.", False]
    assert failed == [(Diagnostic("engine-crashed", REFUSED.message, remedy=REFUSED.remedy),)] * 2
    assert (client.busy, client.running, client.folder) == (False, False, None)
    client.close()


class Process:
    """A process that notes what is done with it, and leaves by itself or not."""

    def __init__(self, leaves: bool = True, running: bool = True, errors: bytes = b"") -> None:
        self.done: list[Any] = []
        self.leaves, self.running, self.errors = leaves, running, errors
        for name in ("finished", "errorOccurred", "readyReadStandardOutput", "readyReadStandardError"):
            setattr(self, name, SimpleNamespace(disconnect=lambda name=name: self.done.append(name)))

    def state(self) -> QProcess.ProcessState:
        return QProcess.ProcessState.Running if self.running else QProcess.ProcessState.NotRunning

    def write(self, line: bytes) -> None:
        self.done.append(line)

    def closeWriteChannel(self) -> None:
        self.done.append("no more requests")

    def waitForFinished(self, milliseconds: int) -> bool:
        self.done.append(milliseconds)
        return self.leaves

    def kill(self) -> None:
        self.done.append("kill")

    def deleteLater(self) -> None:
        self.done.append("deleted")

    def readAllStandardError(self) -> SimpleNamespace:
        text, self.errors = self.errors, b""
        return SimpleNamespace(data=lambda: text)


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("running", [True, False])
def test_a_process_is_asked_to_leave_before_it_is_killed(
    qtbot: QtBot, tmp_path: Path, leaves: bool, kill: bool, running: bool
) -> None:
    client, process = EngineClient(command=("absent",)), Process(leaves, running)
    client.folder = tmp_path / "folder"
    client.folder.mkdir()
    client._process, client._shared, client.opened = process, SharedFolder(client.folder), SimpleNamespace()  # type: ignore[assignment]
    client._end_process(kill=kill)
    ended: list[Any] = []
    if running and not kill:
        ended += [line_of(Asked(0, QuitRequest())), "no more requests", QUIT_MS]
    if running and (kill or not leaves):
        ended += ["kill", 5000]
    signals = ["finished", "errorOccurred", "readyReadStandardOutput", "readyReadStandardError"]
    assert process.done == [*signals, *ended, "deleted"]
    assert (client.running, client.opened, client.folder, client._shared) == (False, None, None, None)
    assert list(tmp_path.iterdir()) == []


def test_the_last_words_of_a_process_are_read_before_it_is_named(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    client = EngineClient(command=("absent",))
    said: list[str] = []
    client.crashed.connect(said.append)
    monkeypatch.setattr(client, "_end_process", lambda *, kill: None)
    client._process = Process(errors=b"one\n \nthe shelf broke\n")  # type: ignore[assignment]
    client._finished(3, QProcess.ExitStatus.NormalExit)
    assert said[0].startswith("The engine process ended by itself with code 3: the shelf broke. ")
    client._process = None


def test_the_first_array_that_is_lent_starts_the_engine(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = EngineClient(command=("absent",))
    started: list[SharedFolder] = []

    def start() -> None:
        started.append(SharedFolder(tmp_path))
        client._shared, client._process = started[-1], SimpleNamespace()  # type: ignore[assignment]

    monkeypatch.setattr(client, "_start", start)
    arrays = [np.full((1, 2), value, np.float32) for value in (3, 4)]
    handles = [client.put(array) for array in arrays]
    assert len(started) == 1
    assert len(list(tmp_path.iterdir())) == 2
    for array, handle in zip(arrays, handles, strict=True):
        assert np.array_equal(client.take(handle), array)
    assert list(tmp_path.iterdir()) == []
    client._process = None


def test_an_edit_of_sizes_that_cannot_be_made_is_refused_by_the_document(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Context(default_registry())
    rules = size_rules_of(context)
    assert not rules.fix(), "nothing is open"
    document = Document(chain(("same", "identity", {})), context.registry, parent=context)
    context.set_document(document)
    assert not rules.fix(), "nothing is known of its sizes"
    before, said = document.graph.copy(), []
    document.refused.connect(said.append)

    def refuses(*given: object) -> None:
        raise DiagnosticError(REFUSED)

    monkeypatch.setattr(size_rules_module, "accept_every_size", refuses)
    rules.contract = SimpleNamespace()  # type: ignore[assignment]
    assert not rules.fix()
    assert said == [(REFUSED,)]
    assert document.graph == before


def test_formats_that_a_variant_cannot_have_end_the_analysis_with_the_reason(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Context(default_registry())
    context.engine = ScriptedEngine()  # type: ignore[assignment]
    analysis = AnalysisController(context)
    said: list[tuple[Phase, str]] = []
    analysis.phase_changed.connect(lambda *_: said.append((analysis.phase, analysis.message)))
    analysis.launch()
    assert (context.engine.calls, said) == ([], []), "nothing is open"
    context.set_document(Document(chain(("same", "identity", {})), context.registry, parent=context))
    tried: list[object] = []

    def refuses(document: Document) -> None:
        tried.append(document)
        raise DiagnosticError(REFUSED)

    monkeypatch.setattr(analysis_module, "variant_options", refuses)
    analysis._on_formats()
    assert tried == [], "an analysis that was not launched has no formats"
    analysis._active = True
    said.clear()
    analysis._on_formats()
    assert tried == [context.root]
    assert said == [(Phase.FAILED, "Another version. Install the same one.")]


@pytest.mark.parametrize("error", QProcess.ProcessError)
def test_an_import_whose_program_does_not_start_fails_with_the_reason_of_the_system(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: QProcess.ProcessError
) -> None:
    owner = QObject()
    run = ImportRun(ImportSource("net.onnx", tmp_path), default_registry(), owner)
    failed: list[Any] = []
    ended: list[bool] = []
    run.failed.connect(failed.append)
    run._on_error(error)
    assert failed == [], "of no process"
    run._process = SimpleNamespace(errorString=lambda: "no such file")  # type: ignore[assignment]
    monkeypatch.setattr(run, "_end", lambda: ended.append(True))
    run._on_error(error)
    if error is QProcess.ProcessError.FailedToStart:
        assert "net.onnx" in failed[0][0].message
        assert "no such file" in f"{failed[0][0].message} {failed[0][0].remedy}"
        assert ended == [True]
    else:
        assert (failed, ended) == ([], [])
    run._process = None
    run._folder.cleanup()
