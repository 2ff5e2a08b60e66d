"""Opening models of other programs as documents: in a process, with consent for code, and compared in the background."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QWidget

from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.document.locations import resolved
from app.ui.document.open_document import OpenDocument
from app.ui.engine.context import Context
from app.ui.engine.import_run import ImportedDocument, ImportRun, Imports, ImportSource
from app.ui.shell.tabs import Tabs
from app.ui.widgets.code_consent import CodeConsent
from app.ui.widgets.findings import show_findings
from app.ui.widgets.sentences import sentence
from designer.files.agreements import agree, not_agreed
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.model import unwritable
from designer.importers.formats import PROGRAMS
from designer.importers.report import ImportReport
from designer.texts import tr

DIFFERS, ONE_SIZE = "import-differs", "import-one-size"  # codes of findings
REPORT_MS = 100  # until the report opens: the first picture of the network is painted before


class ModelImport:
    """Imports of one window. An import becomes a document without a file of its own, with its weights and report."""

    def __init__(self, window: QWidget, context: Context, tabs: Tabs) -> None:
        self._window = window
        self._context = context
        self._tabs = tabs
        self.on_shown: Callable[[], None] = lambda: None  # an imported document is shown, after its first picture
        self.on_opened: Callable[[Path], None] = lambda file: None
        self.on_refused: Callable[[Path], None] = lambda file: None
        self.imports = Imports(context.registry, window)
        self._runs: dict[OpenDocument, ImportRun] = {}  # whose weights or comparison are not complete

    def open(self, path: Path, *, show: bool = True, trusted: bool = False) -> None:
        """Import a file. A file that can contain code is imported after the user's consent, or if it is `trusted`."""
        known = self._find(path)
        if known is not None:
            if show:
                self._tabs.show(known)
            return
        path = path.absolute()

        def start() -> None:
            self.start(source, show=show)

        source = ImportSource(path.name, path.parent, runs_code=PROGRAMS.reads(path))
        if source.runs_code and not trusted:
            text = tr(
                "{name} is an exported program. Opening it can execute Python code that is stored in the file, on your "
                "machine and with your permissions. Open it only if you trust its source.",
                name=path.name,
            )
            CodeConsent(
                "agree_import",
                text,
                [],
                start,
                self._window,
                action=tr("&Agree and Import"),
            ).open()
        else:
            start()

    def start(self, source: ImportSource, *, show: bool = True) -> ImportRun:
        """Import a source; the user has agreed if it runs code."""
        run = self.imports.start(source)
        run.opened.connect(lambda found: self._on_opened(run, found, show))
        run.failed.connect(lambda found: self._on_failed(source, found))
        return run

    def wait_for_weights(self, opened: OpenDocument) -> None:
        """Wait until the weights of a document are written; the window takes no input until then."""
        run = self._runs.get(opened)
        if run is None or run.has_weights:
            return
        loop = QEventLoop()
        run.weights_written.connect(loop.quit)
        run.ended.connect(loop.quit)
        loop.exec(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)

    def _find(self, path: Path) -> OpenDocument | None:
        """The open import of this file, if neither has been saved since."""
        for opened in self._tabs.all:
            record = opened.document.imported
            if record is not None and record.current and opened.document.path is None:
                assert record.source is not None
                if resolved(record.source) == resolved(path):
                    return opened
        return None

    def _on_opened(self, run: ImportRun, found: ImportedDocument, show: bool) -> None:
        source = run.source
        if unwritable(source.stem) is None:
            found.graph.properties["name"] = source.stem  # exporters write names such as main_graph
        document = Document(
            found.graph, self._context.registry, None, found.reading.diagnostics, inference=found.inference
        )
        record = ImportRecord(source.file, found.report, document)
        document.imported = record
        if found.engine:
            document.restore_settings(engine=found.engine)
        opened = OpenDocument(document, "")
        self._runs[opened] = run
        run.weights_written.connect(lambda weights: self._on_weights(opened, weights))
        run.compared.connect(lambda report: self._on_compared(opened, report))
        run.ended.connect(lambda: self._runs.pop(opened, None))
        record.ended.connect(run.abandon)
        self._tabs.add(opened, show=show)
        if source.runs_code:
            self._agree(found)
            opened.keep_unsaved({"engine": found.engine} if found.engine else {})
        self._context.message.emit(
            "info", tr("Imported {name}: {counts}", name=source.name, counts=found.report.counts())
        )
        if source.file is not None:
            self.on_opened(source.file)
        if show:
            QTimer.singleShot(REPORT_MS, self._window, self.on_shown)

    def _agree(self, found: ImportedDocument) -> None:
        """Custom layers of the import make calls of the code that the user agreed to run."""
        try:
            agree(not_agreed(found.graph, self._context.registry))
        except DiagnosticError as error:
            self._context.message.emit("warning", error.diagnostics[0].message)

    def _on_weights(self, opened: OpenDocument, weights: Path | None) -> None:
        record = opened.document.imported
        if record is None or weights is None:
            return
        record.weights = weights
        opened.document.restore_settings(weights=str(weights))
        opened.keep_settings()

    def _on_compared(self, opened: OpenDocument, report: ImportReport) -> None:
        record = opened.document.imported
        assert record is not None
        if not report.agrees:
            message = tr("the import of {source}: {result}", source=report.source, result=report.comparison())
            remedy = tr("see the Import Report; do not rely on the results of this document")
            opened.document.add_finding(Diagnostic(DIFFERS, message, Severity.WARNING, remedy=remedy))
            self._context.message.emit("warning", sentence(message))
        if report.size_note:
            opened.document.add_finding(Diagnostic(ONE_SIZE, report.size_note, Severity.WARNING))
        record.compared(report)

    def _on_failed(self, source: ImportSource, found: tuple[Diagnostic, ...]) -> None:
        if source.file is not None:
            self.on_refused(source.file)
        text = tr("{name} could not be opened.", name=source.name)
        show_findings(tr("Not Opened"), text, found, self._window)
