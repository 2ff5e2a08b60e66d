"""Imports of models as the window sees them: each in a process of its own, which can be stopped at any time."""

from __future__ import annotations

import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QProcess, QTimer, Signal

from app.import_process import (
    TIMEOUT,
    AnyEvent,
    DocumentWritten,
    Failed,
    Finished,
    ImportRequest,
    InputShape,
    Progress,
    WeightsWritten,
    end_process,
    import_command,
    read_event,
    stopped,
    too_slow,
)
from app.ui.widgets.background import Background
from designer.files import json_text
from designer.files.document import Reading, read_document
from designer.files.weight_versions import import_path
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.importers.report import ImportReport
from designer.operators.registry import Registry
from designer.texts import tr

MOST = 3  # processes at the same time; further imports wait
SPARE_MS = 120_000  # how long a process that was started ahead waits for its request
END_MS = 5000


@dataclass(frozen=True)
class ImportSource:
    """What to import: a file, or code as `package.module:callable` in `folder`, with its inputs and a state dict."""

    name: str
    folder: Path
    inputs: tuple[InputShape, ...] = ()
    state: Path | None = None
    runs_code: bool = False

    @property
    def file(self) -> Path | None:
        """The file; None for code."""
        return None if ":" in self.name and self.runs_code else self.folder / self.name

    @property
    def stem(self) -> str:
        """A name for the document and its weights."""
        return self.name.rpartition(":")[2] if self.file is None else self.file.stem


@dataclass(frozen=True)
class ImportedDocument:
    """The network of an import, read and inferred, with the report before the comparison."""

    reading: Reading
    graph: Graph
    inference: Inference
    report: ImportReport
    engine: str


class ImportRun(QObject):
    """One import. `failed` or `opened` is emitted once; after `opened` follow `weights_written` and `compared`.

    `ended` is the last signal; the process is gone then. A run that is cancelled emits only `ended`, if it was not opened.
    """

    progress = Signal(int, int, str)
    opened = Signal(object)  # ImportedDocument
    weights_written = Signal(object)  # Path, None for a model without weights
    compared = Signal(object)  # ImportReport
    failed = Signal(object)  # tuple of Diagnostic
    ended = Signal()

    def __init__(self, source: ImportSource, registry: Registry, parent: QObject) -> None:
        super().__init__(parent)
        self.source = source
        self.is_opened = False
        self.is_over = False
        self.has_weights = False  # they are written
        self.step: tuple[int, int, str] = (0, 0, tr("reading the file"))  # the latest progress
        self.weights: Path | None = None  # None if the model has none
        self._weights_path: Path | None = None
        self._registry = registry
        self._process: QProcess | None = None
        self._report: ImportReport | None = None
        self._opening = False  # the document is being read, or `opened` is handled
        self._held: deque[AnyEvent] = deque()  # events that wait for that
        self._errors: deque[str] = deque(maxlen=20)
        self._folder = tempfile.TemporaryDirectory(prefix="layerwright-import-", ignore_cleanup_errors=True)
        self._reader = Background(self)
        self._reader.done.connect(self._on_read)
        self._reader.failed.connect(self._fail)
        self._limit = QTimer(self, singleShot=True, interval=int(TIMEOUT * 1000), timeout=self._on_limit)

    def start(self, process: QProcess) -> None:
        """Send the request to a process that was started with `import_command`."""
        self._process = process
        process.setParent(self)
        process.readyReadStandardOutput.connect(self._read)
        process.readyReadStandardError.connect(self._read_errors)
        process.finished.connect(self._on_exit)
        process.errorOccurred.connect(self._on_error)
        self._weights_path = import_path(self.source.stem)
        request = ImportRequest(
            self.source.name,
            str(self.source.folder),
            str(self._document),
            self.source.inputs,
            str(self.source.state) if self.source.state is not None else "",
            str(self._weights_path),
            early=True,
        )
        process.write(json_text.encode(request) + b"\n")
        if self.source.runs_code:
            self._limit.start()
        self._read()

    def cancel(self) -> None:
        """Stop the process. An opened document stays, without the comparison."""
        if self.is_over:
            return
        if self.is_opened:
            self._compare_ended(tr("it was stopped"))
        else:
            self._end()

    def abandon(self) -> None:
        """Stop the process: nobody needs the document any more."""
        self._end()

    @property
    def _document(self) -> Path:
        return Path(self._folder.name) / "network.xml"

    # --- events --------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        process = self._process
        while process is not None and process is self._process and process.canReadLine():
            event = read_event(bytes(process.readLine().data()))
            if event is not None:
                self._take(event)

    def _take(self, event: AnyEvent) -> None:
        if self._opening or self._held:
            self._held.append(event)
        else:
            self._act(event)

    def _act(self, event: AnyEvent) -> None:
        match event:
            case Progress(done=done, total=total, text=text):
                self.step = (done, total, text)
                self.progress.emit(*self.step)
            case DocumentWritten():
                self._report = event.report
                self._opening = True
                self._reader.start(lambda: _read_network(self._document, self._registry, event))
            case WeightsWritten(any=found):
                self.has_weights = True
                self.weights = self._weights_path if found else None
                self.weights_written.emit(self.weights)
            case Finished(report=report):
                self.compared.emit(report)
                self._end()
            case Failed(diagnostics=problems):
                self._fail(problems)

    def _on_read(self, found: object) -> None:
        if self.is_over:
            return
        self.is_opened = True
        self._limit.start()  # of the comparison
        self.opened.emit(found)
        self._opening = False
        while self._held and not self.is_over:
            self._act(self._held[0])
            self._held.popleft()
        if self._process is not None and self._process.state() is QProcess.ProcessState.NotRunning:
            self._on_exit(self._process.exitCode())

    def _fail(self, found: Any) -> None:
        """The import failed, or only what follows the document."""
        if self.is_opened:
            self._compare_ended(found[0].message)
        else:
            self.failed.emit(tuple(found))
            self._end()

    def _compare_ended(self, reason: str) -> None:
        assert self._report is not None
        self.compared.emit(msgspec.structs.replace(self._report, not_compared_because=reason))
        self._end()

    # --- the process ---------------------------------------------------------------------------------------------

    def _read_errors(self) -> None:
        if self._process is not None:
            text = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
            self._errors.extend(line for line in text.splitlines() if line.strip())

    def _on_exit(self, code: int) -> None:
        self._read()
        if not self.is_over and not self._opening and not self._held:
            last = f": {self._errors[-1].strip()}" if self._errors else ""
            reason = tr("its process ended with status {code}{last}", code=code, last=last)
            self._fail(stopped(self.source.name, reason).diagnostics)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            self._fail(stopped(self.source.name, self._process.errorString()).diagnostics)

    def _on_limit(self) -> None:
        self._fail(stopped(self.source.name, too_slow(TIMEOUT)).diagnostics)

    def _end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._limit.stop()
        process, self._process = self._process, None
        if process is not None:
            _end(process)
        self._folder.cleanup()
        if not self.has_weights and self._weights_path is not None:
            self._weights_path.unlink(missing_ok=True)
        self.ended.emit()


class Imports(QObject):
    """The imports of a window. A process can be started ahead, since its libraries take a second to load."""

    started = Signal(object)  # ImportRun

    def __init__(self, registry: Registry, parent: QObject) -> None:
        super().__init__(parent)
        self._registry = registry
        self._spare: QProcess | None = None
        self._waiting: deque[ImportRun] = deque()
        self._running: list[ImportRun] = []
        self._closed = False
        self._drop = QTimer(self, singleShot=True, interval=SPARE_MS, timeout=self._drop_spare)

    @property
    def runs(self) -> tuple[ImportRun, ...]:
        """The imports that are not over, in the order in which they were asked for."""
        return (*self._running, *self._waiting)

    def prepare(self) -> None:
        """A model will probably be opened: start a process for it."""
        if self._spare is None and not self._closed:
            self._spare = self._process(warm=True)
            self._drop.start()

    def start(self, source: ImportSource) -> ImportRun:
        """Import `source`, at once or when other imports are over."""
        run = ImportRun(source, self._registry, self)
        run.ended.connect(lambda: self._on_ended(run))
        self._waiting.append(run)
        QTimer.singleShot(0, self, self._next)  # the caller connects first
        self.started.emit(run)
        return run

    def end(self) -> None:
        """Stop everything: the window closes."""
        self._closed = True
        self._drop_spare()
        for run in self.runs:
            run.cancel()

    def _next(self) -> None:
        """Start the imports that may start: one at a time, next to comparisons of earlier ones."""
        while self._waiting and len(self._running) < MOST and all(run.is_opened for run in self._running):
            run = self._waiting.popleft()
            self._running.append(run)
            run.opened.connect(self._next)
            spare, self._spare = self._spare, None
            self._drop.stop()
            if spare is not None and spare.state() is QProcess.ProcessState.NotRunning:  # it ended while it waited
                spare.deleteLater()
                spare = None
            run.start(spare or self._process(warm=run.source.name.lower().endswith(".onnx")))

    def _on_ended(self, run: ImportRun) -> None:
        if run in self._running:
            self._running.remove(run)
        elif run in self._waiting:
            self._waiting.remove(run)
        run.deleteLater()
        if not self._closed:
            self._next()

    def _process(self, *, warm: bool) -> QProcess:
        process = QProcess(self)
        command = import_command(warm=warm)
        process.start(command[0], command[1:])
        return process

    def _drop_spare(self) -> None:
        self._drop.stop()
        if self._spare is not None:
            _end(self._spare)
            self._spare = None


def _read_network(path: Path, registry: Registry, event: DocumentWritten) -> ImportedDocument:
    reading = read_document(path)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    return ImportedDocument(reading, reading.graph, Inference(reading.graph, registry), event.report, event.engine)


def _end(process: QProcess) -> None:
    """End a process with its children, and wait until it is gone."""
    if process.state() is not QProcess.ProcessState.NotRunning:
        end_process(int(process.processId()))
        process.kill()  # also if it has not become the leader of its group yet
        process.waitForFinished(END_MS)
    process.deleteLater()
