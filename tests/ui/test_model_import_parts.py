"""What an import does to the window it belongs to, with the events of its process played by the test."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from light_shell import LightShell, network
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.ui.engine.import_run import ImportedDocument, ImportRun, ImportSource
from app.ui.shell import model_import
from app.ui.shell.model_import import DIFFERS, ONE_SIZE, REPORT_MS
from app.ui.widgets.code_consent import CodeConsent
from designer.files.document import Reading
from designer.files.recovery import unfinished
from designer.files.settings import Settings
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.importers.report import ImportReport

NOTE = Diagnostic("odd", "something is odd", Severity.WARNING)
REPORT = ImportReport("net.onnx", "pytorch 2.9", 17, nodes=5, known=3, opaque=1, folded=1)


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LightShell]:
    made = LightShell(qtbot, tmp_path)
    monkeypatch.setattr(made.models.imports, "_next", lambda: None)  # no process is started
    yield made
    for run in made.models.imports.runs:
        run.abandon()
    for tab in made.tabs.all:
        tab.document.history.mark_clean()


@pytest.fixture
def heard(shell: LightShell) -> list[object]:
    """What the window is told: opened and refused files, and that the report is to be shown."""
    found: list[object] = []
    shell.models.on_opened = lambda file: found.append(("opened", file.name))
    shell.models.on_refused = lambda file: found.append(("refused", file.name))
    shell.models.on_shown = lambda: found.append("report")
    return found


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Any]]:
    """Delays of the report, in place of the delays themselves."""
    found: list[tuple[int, Any]] = []
    monkeypatch.setattr(
        model_import, "QTimer", type("Timer", (), {"singleShot": lambda ms, _owner, act: found.append((ms, act))})
    )
    return found


def source(tmp_path: Path, name: str = "net.onnx") -> Path:
    path = tmp_path / name
    path.write_bytes(b"model")
    return path


def imported(shell: LightShell, report: ImportReport = REPORT, engine: str = "", name: str = "main_graph"):
    graph = network(name=name)
    return ImportedDocument(
        Reading(graph, (NOTE,)), graph, Inference(graph, shell.context.registry), report, engine
    )  # fmt: skip


def started(shell: LightShell) -> ImportRun:
    return shell.models.imports.runs[-1]


def opens(shell: LightShell, run: ImportRun, **changes: Any) -> None:
    run.is_opened = True
    run._report = REPORT
    run.opened.emit(imported(shell, **changes))


def model_edit(graph: Graph) -> Edit:
    return commands.set_property(graph, "author_notes", "x")


@pytest.mark.parametrize("show", [True, False])
@pytest.mark.parametrize("engine", ["", "onnxruntime"])
def test_a_model_becomes_an_unsaved_document_of_its_name(shell, heard, timers, tmp_path, show, engine) -> None:
    shell.add(network(name="before")).document.do(model_edit)
    shell.models.open(source(tmp_path), show=show)
    run = started(shell)
    assert (run.source.name, run.source.folder, run.source.runs_code) == ("net.onnx", tmp_path, False)
    assert shell.names == ["[● before]"]
    opens(shell, run, engine=engine)
    assert shell.names == (["● before", "[net]"] if show else ["[● before]", "net"])
    tab = shell.tabs.all[-1]
    document = tab.document
    assert document.graph == network(name="net")
    assert (document.path, document.file) == (None, tmp_path / "net.onnx")
    assert document.reading == (NOTE,)
    assert document.settings == (Settings(engine=engine) if engine else Settings())
    assert document.imported.report == REPORT
    assert document.imported.comparing
    assert tab.is_clean, "its file can be imported again"
    assert shell.said[-1] == ("info", f"Imported net.onnx: {REPORT.counts()}")
    assert heard == [("opened", "net.onnx")]
    assert [ms for ms, _ in timers] == ([REPORT_MS] if show else [])
    for _, act in timers:
        act()
    assert heard[1:] == (["report"] if show else [])


def test_a_model_that_is_open_is_shown_unless_it_or_its_file_was_written_since(shell, heard, timers, tmp_path) -> None:
    path = source(tmp_path)
    shell.models.open(path)
    opens(shell, started(shell))
    first = shell.tabs.shown
    shell.add(network(name="other"))
    runs = shell.models.imports.runs
    link = tmp_path / "link.onnx"
    link.symlink_to(path)
    shell.models.open(link, show=False)
    assert shell.tabs.shown is not first
    shell.models.open(link)
    assert shell.tabs.shown is first
    assert shell.models.imports.runs == runs
    path.write_bytes(b"another model")
    shell.models.open(path)
    assert len(shell.models.imports.runs) == len(runs) + 1, "the file is another one"
    opens(shell, started(shell))
    second = shell.tabs.shown
    assert second is not first
    second.save(tmp_path / "net.xml")
    count = len(shell.models.imports.runs)
    shell.models.open(path)
    assert len(shell.models.imports.runs) == count + 1, "the document is that of another file now"


def consent(shell: LightShell) -> CodeConsent | None:
    found = [each for each in shell.findChildren(CodeConsent) if each.isVisible()]
    return found[0] if found else None


@pytest.mark.parametrize("answer", ["agree", "later"])
def test_a_file_that_can_run_code_is_imported_after_consent_only(shell, heard, timers, tmp_path, answer) -> None:
    shell.models.open(source(tmp_path, "net.pt2"), show=False)
    dialog = consent(shell)
    assert shell.models.imports.runs == ()
    assert dialog.findChild(QLabel, "agree_import.sentence").text() == (
        "net.pt2 is an exported program. Opening it can execute Python code that is stored in the file, on your machine and with your "
        "permissions. Open it only if you trust its source."
    )
    button = dialog.findChild(QPushButton, f"agree_import.{answer}")
    assert button.text() == {"agree": "&Agree and Import", "later": "&Not Now"}[answer]
    button.click()
    assert consent(shell) is None
    assert len(shell.models.imports.runs) == (answer == "agree")
    if answer == "agree":
        assert started(shell).source == ImportSource("net.pt2", tmp_path, runs_code=True)
        shell.add(network(name="other"))
        opens(shell, started(shell))
        assert shell.names == ["[other]", "● net"], "importing it again would run code again"


def test_a_trusted_file_is_imported_without_a_question(shell, heard, timers, tmp_path) -> None:
    shell.models.open(source(tmp_path, "net.pt2"), trusted=True)
    assert consent(shell) is None
    run = started(shell)
    assert run.source.runs_code
    opens(shell, run, engine="torch")
    tab = shell.tabs.shown
    assert not tab.is_clean, "importing it again would run code again"
    tab.journal.abandon()
    (left,) = unfinished()
    assert (left.graph, dict(left.settings)) == (tab.document.graph, {"engine": "torch"})
    left.release()


def test_code_of_a_module_has_neither_a_file_nor_a_place_among_the_recent_ones(shell, heard, timers, tmp_path) -> None:
    run = shell.models.start(ImportSource("model.py:Net", tmp_path, runs_code=True))
    opens(shell, run)
    document = shell.context.root
    assert (document.graph.name, document.file, document.imported.source) == ("Net", None, None)
    assert heard == []
    other = shell.models.start(ImportSource("model.py:Other", tmp_path, runs_code=True), show=False)
    shown: list[object] = []
    other.failed.emit((NOTE,))
    assert heard == shown == []


def test_a_name_that_no_document_can_have_leaves_that_of_the_model(shell, heard, timers, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(model_import, "unwritable", lambda text: "it cannot be written" if text == "net" else None)
    shell.models.open(source(tmp_path))
    opens(shell, started(shell))
    assert shell.context.root.graph.name == "main_graph"
    shell.models.open(source(tmp_path, "other.onnx"))
    opens(shell, started(shell))
    assert shell.context.root.graph.name == "other"


def test_an_import_that_fails_is_explained_and_forgotten(shell, heard, timers, tmp_path, monkeypatch) -> None:
    shown: list[tuple[object, ...]] = []
    monkeypatch.setattr(model_import, "show_findings", lambda *what: shown.append(what))
    shell.models.open(source(tmp_path))
    started(shell).failed.emit((NOTE,))
    assert shown == [("Not Opened", "net.onnx could not be opened.", (NOTE,), shell)]
    assert (heard, shell.names) == ([("refused", "net.onnx")], [])


def test_weights_of_an_import_are_those_of_its_document_and_survive_a_crash(shell, heard, timers, tmp_path) -> None:
    shell.models.open(source(tmp_path))
    run = started(shell)
    opens(shell, run)
    tab = shell.tabs.shown
    run.weights_written.emit(None)
    assert (tab.document.settings.weights, tab.document.imported.weights) == ("", None)
    weights = tmp_path / "w.safetensors"
    weights.write_bytes(b"w")
    tab.document.do(model_edit)
    run.weights_written.emit(weights)
    assert (tab.document.settings.weights, tab.document.imported.weights) == (str(weights), weights)
    tab.journal.abandon()
    (left,) = unfinished()
    assert left.settings["weights"] == str(weights)
    left.release()


@pytest.mark.parametrize(
    ("relative", "note", "codes"),
    [
        (0.0, "", []),
        (None, "", []),
        (0.5, "", [DIFFERS]),
        (0.0, "it is right at 8 x 8 only", [ONE_SIZE]),
        (0.5, "it is right at 8 x 8 only", [DIFFERS, ONE_SIZE]),
    ],
)
def test_the_result_of_the_comparison_is_a_finding_of_its_document(
    shell, heard, timers, tmp_path, relative, note, codes
) -> None:
    shell.models.open(source(tmp_path))
    run = started(shell)
    opens(shell, run)
    document = shell.context.root
    shell.add(network(name="other"))
    shell.said.clear()
    report = msgspec.structs.replace(
        REPORT, max_rel_difference=relative, max_abs_difference=relative, size_note=note, not_compared_because="no"
    )
    run.compared.emit(report)
    assert document.imported.report == report
    assert not document.imported.comparing
    assert document.reading[0] == NOTE
    assert [(d.code, d.severity) for d in document.reading[1:]] == [(code, Severity.WARNING) for code in codes]
    texts = {d.code: d for d in document.reading}
    if DIFFERS in codes:
        assert texts[DIFFERS].message == f"the import of net.onnx: {report.comparison()}"
        assert texts[DIFFERS].remedy == "see the Import Report; do not rely on the results of this document"
    if ONE_SIZE in codes:
        assert texts[ONE_SIZE].message == note
    said = [("warning", f"The import of net.onnx: {report.comparison()}")] if DIFFERS in codes else []
    assert [(severity, text.rstrip(".")) for severity, text in shell.said] == said
    assert shell.context.root.reading == ()


@pytest.mark.parametrize("end", ["weights", "end of the process"])
def test_saving_waits_until_the_weights_are_written(shell, heard, timers, tmp_path, end) -> None:
    shell.models.open(source(tmp_path))
    run = started(shell)
    opens(shell, run)
    tab, done = shell.tabs.shown, []

    def finish() -> None:
        done.append("finished")
        if end == "weights":
            run.has_weights = True
            run.weights_written.emit(None)
        else:
            run._end()

    QTimer.singleShot(20, shell, finish)
    shell.models.wait_for_weights(tab)
    assert done == ["finished"]
    shell.models.wait_for_weights(tab)
    shell.models.wait_for_weights(shell.add(network()))
    assert done == ["finished"], "nothing is waited for"


def test_closing_the_document_ends_its_import(shell, heard, timers, tmp_path) -> None:
    shell.add(network(name="other"))
    shell.models.open(source(tmp_path))
    run = started(shell)
    opens(shell, run)
    assert not run.is_over
    shell.tabs.remove(shell.tabs.shown)
    assert run.is_over
    assert shell.models._runs == {}
