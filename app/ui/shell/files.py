"""Opening, saving and closing documents, with the questions asked before unsaved work is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QFileDialog, QWidget

import samples
from app.ui.document.document import Document
from app.ui.document.locations import is_sample, resolved, sample_files
from app.ui.document.open_document import OpenDocument
from app.ui.document.unsaved import ask_changed, ask_unsaved, ask_unsaved_many
from app.ui.engine.context import Context
from app.ui.shell.model_import import ModelImport
from app.ui.shell.tabs import Tabs
from app.ui.widgets.background import Background, awaited
from app.ui.widgets.file_dialogs import ask_save_path, open_filter
from app.ui.widgets.findings import show_findings
from designer.files.document import DOCUMENTS, Reading, read_document
from designer.files.file_names import file_name
from designer.files.settings import find_settings, read_settings
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.importers.formats import MODELS, NETWORKS
from designer.texts import tr, trn
from exporters.pytorch import Training, outdated_files

RECENT = 10
CLOSED = 20  # documents that can be reopened
LARGE = 100_000  # bytes; larger documents are read and inferred in a thread


class Files:
    """File operations of one window."""

    def __init__(self, window: QWidget, context: Context, settings: QSettings, tabs: Tabs, models: ModelImport) -> None:
        self._window = window
        self._context = context
        self._settings = settings
        self._tabs = tabs
        self._models = models
        models.on_opened, models.on_refused = self._on_imported, self.forget
        self._closed: list[Path] = []
        self._comparison = Background(window)
        self._comparison.done.connect(self._on_compared)
        self._comparison.failed.connect(self._compare_next)
        self._compared_next: Document | None = None  # saved while another comparison was running
        self.on_new: Callable[[], None] = lambda: None  # a new network is shown
        self.elsewhere: Callable[[Path], bool] = lambda path: (
            False
        )  # shows the document in another window that has it open
        self.is_elsewhere: Callable[[Path], bool] = lambda path: False  # another window has the document open

    # --- opening ---------------------------------------------------------------------------------------------

    def new(self) -> None:
        """Show an empty network."""
        self._tabs.add(OpenDocument(Document(Graph(), self._context.registry), ""))
        self.on_new()

    def new_from(self, name: str) -> None:
        """Show a new network with the layers of a starting point."""
        path = samples.starting_point(name)
        reading = read_document(path)
        if reading.graph is None:
            self._show_unreadable(path, reading.diagnostics)
            return
        document = Document(reading.graph, self._context.registry)
        stored = find_settings(path)
        if stored is not None:
            settings = read_settings(stored).settings
            document.restore_settings(task=settings.task, recipe=settings.recipe)
        self._tabs.add(OpenDocument(document, ""))
        self.on_new()

    def open_first(self, path: Path | None) -> None:
        """Open the first document of a window: `path`, or the analyzed sample, or an empty network."""
        if not self.open(path if path is not None else sample_files()[0]) and not self._tabs.all:
            self.new()

    def ask_open(self) -> None:
        """File > Open."""
        self._models.imports.prepare()
        names, _ = QFileDialog.getOpenFileNames(
            self._window, tr("Open Networks"), str(self._folder()), open_filter(NETWORKS)
        )
        self.open_all([Path(name) for name in names])

    def import_module(self) -> None:
        """File > Import > PyTorch Module."""
        from app.ui.shell.module_dialog import ModuleDialog

        ModuleDialog(self._settings, self._folder(), self._models.start, self._window).open()

    def open_all(self, paths: Sequence[Path], *, trusted: bool = False) -> None:
        """Open several documents and show the first that could be read. Code in `trusted` files runs without consent."""
        shown = False
        for path in paths:
            shown |= self.open(path, show=not shown, trusted=trusted)

    def open(self, path: Path, *, show: bool = True, trusted: bool = False) -> bool:
        """Open a document in a tab, or show its tab if it is already open. False if it could not be read.

        The import of a model is only started.
        """
        if MODELS.reads(path):
            self._models.open(path, show=show, trusted=trusted)
            return True
        known = self._tabs.find(path)
        if known is not None:
            if show:
                self._tabs.show(known)
            return True
        if self.elsewhere(path):
            return True
        try:
            opened = self.read(path)
        except DiagnosticError as error:
            self.forget(path)
            self._show_unreadable(path, error.diagnostics)
            return False
        self._tabs.add(opened, show=show)
        self._forget_closed(path)
        if not is_sample(path):
            self.remember(path)
        worst = [d for d in opened.document.reading if d.severity is not Severity.INFO]
        if worst:
            self._context.message.emit(
                "warning",
                trn(
                    "Opened {name} with {count} problem: see Type Checking",
                    "Opened {name} with {count} problems: see Type Checking",
                    len(worst),
                    name=path.name,
                ),
            )
        else:
            self._context.message.emit("info", tr("Opened {name}", name=path.name))
        return True

    def _show_unreadable(self, path: Path, found: tuple[Diagnostic, ...]) -> None:
        show_findings(tr("Not Opened"), tr("{name} could not be opened.", name=path.name), found, self._window)

    def _on_imported(self, path: Path) -> None:
        self._forget_closed(path)
        self.remember(path)
        self._tabs.changed.emit()  # perhaps nothing is left to reopen

    def read(self, path: Path) -> OpenDocument:
        """Read a document without opening a tab. Raises DiagnosticError if it cannot be read."""
        registry = self._context.registry

        def work() -> tuple[Reading, Graph, Inference]:
            reading = read_document(path)
            if reading.graph is None:
                raise DiagnosticError(reading.diagnostics)
            return reading, reading.graph, Inference(reading.graph, registry)

        reading, graph, inference = awaited(work, self._window) if _is_large(path) else work()
        document = Document(graph, registry, path, reading.diagnostics, inference=inference)
        return OpenDocument(document, reading.digest)

    def expect(self, paths: Sequence[Path]) -> None:
        """One of these files will probably be opened."""
        if any(MODELS.reads(path) for path in paths):
            self._models.imports.prepare()

    # --- closing ---------------------------------------------------------------------------------------------

    def close(self, opened: OpenDocument | None = None) -> bool:
        """Close a tab, by default the current one. False if the user cancelled."""
        opened = opened if opened is not None else self._tabs.shown
        if opened is None or not self._may_close([opened]):
            return False
        path = opened.file
        if path is not None:
            self._note_closed(path)
        if len(self._tabs) == 1:
            if opened.is_blank:
                return False
            self._tabs.add(OpenDocument(Document(Graph(), self._context.registry), ""))
        self._tabs.remove(opened)
        return True

    def close_others(self, opened: OpenDocument) -> None:
        """Close all tabs but one."""
        self._tabs.show(opened)
        others = [o for o in self._tabs.all if o is not opened]
        if self._may_close(others):
            for other in others:
                if other.file is not None:
                    self._note_closed(other.file)
                self._tabs.remove(other)

    @property
    def closed(self) -> int:
        """Number of closed documents that can be reopened."""
        return len(self._closed)

    def reopen(self) -> None:
        """Reopen the document that was closed last."""
        while self._closed and not self.open(self._closed.pop()):
            pass
        self._tabs.changed.emit()  # perhaps nothing is left to reopen

    def _note_closed(self, path: Path) -> None:
        self._forget_closed(path)
        self._closed = [*self._closed, path][-CLOSED:]

    def _forget_closed(self, path: Path) -> None:
        """A document that is open again is not reopened."""
        file = resolved(path)
        self._closed = [each for each in self._closed if resolved(each) != file]

    def confirm_close(self) -> bool:
        """Whether the window can close: everything is saved, or the user chose to discard it."""
        return self._may_close(self._tabs.all)

    def _may_close(self, wanted: Sequence[OpenDocument]) -> bool:
        unsaved = [o for o in wanted if not o.is_clean]
        if not unsaved:
            return True
        if len(unsaved) == 1:
            self._tabs.show(unsaved[0])
            answer = ask_unsaved(self._tabs.title(unsaved[0]), self._window)
            return self.save() if answer == "save" else answer == "discard"
        chosen = ask_unsaved_many([self._tabs.title(o) for o in unsaved], self._window)
        if chosen is None:
            return False
        for number in chosen:
            self._tabs.show(unsaved[number])
            if not self.save():
                return False
        return True

    # --- saving ----------------------------------------------------------------------------------------------

    def save(self) -> bool:
        """Save to the document's file; a new document or a sample asks for one. False if it was not saved."""
        path = self._context.root.path
        return self.save_to(path) if path is not None and not is_sample(path) else self.save_as()

    def save_as(self) -> bool:
        """Ask for a file and save to it."""
        document = self._context.root
        base = document.path.name if document.path is not None else file_name(f"{document.graph.name}.xml")
        path = ask_save_path(self._window, tr("Save Network"), self._folder() / base, DOCUMENTS)
        return path is not None and self.save_to(path)

    def save_to(self, path: Path) -> bool:
        """Save to `path`, after a question if another program changed that file.

        On failure the document is unchanged and a dialog shows why.
        """
        opened = self._tabs.shown
        if opened is None:
            return False
        if self._is_open(path, opened):
            self._show_open(path)
            return False
        self._models.wait_for_weights(opened)
        if path == opened.document.path and opened.check_disk() == "changed":
            answer = ask_changed(path.name, self._window)
            if answer != "overwrite":
                return self.save_as() if answer == "elsewhere" else False
        try:
            found = opened.save(path)
        except DiagnosticError as error:
            show_findings(
                tr("Not Saved"),
                tr(
                    "The network could not be saved to {path}. It is still open, and the old file is unchanged.",
                    path=path,
                ),
                error.diagnostics,
                self._window,
            )
            return False
        self.remember(path)
        self._forget_closed(path)
        if found:
            self._context.message.emit(
                "warning", tr("The settings were not saved: {message}", message=found[0].message)
            )
        else:
            self._context.message.emit("info", tr("Saved {name}", name=path.name))
        self._compare_project(opened.document)
        return True

    def _is_open(self, path: Path, but: OpenDocument) -> bool:
        """Whether another tab or window shows the file."""
        own = but.document.path
        if own is not None and resolved(own) == resolved(path):
            return False
        return self._tabs.find(path) is not None or self.is_elsewhere(path)

    def _show_open(self, path: Path) -> None:
        finding = Diagnostic(
            "open-elsewhere",
            tr("'{name}' is open in another tab or window", name=path.name),
            remedy=tr("close it there first, or save under another name"),
        )
        text = tr(
            "The network could not be saved to {path}. It is still open, and the old file is unchanged.", path=path
        )
        show_findings(tr("Not Saved"), text, (finding,), self._window)

    def _compare_project(self, document: Document) -> None:
        """Report if the exported project of the document was generated from another network."""
        settings = document.settings
        if not settings.project:
            return
        if self._comparison.running:
            self._compared_next = document
            return
        graph, registry = document.graph.copy(), document.registry
        self._comparison.start(lambda: outdated_files(graph, registry, Path(settings.project), Training.of(settings)))

    def _on_compared(self, files: object) -> None:
        names = cast(tuple[str, ...], files)
        if names:
            text = tr(
                "The exported project differs from the network: {names}. File > Export > Generate PyTorch Files updates it.",
                names=", ".join(names),
            )
            self._context.message.emit("info", text)
        self._compare_next()

    def _compare_next(self) -> None:
        document, self._compared_next = self._compared_next, None
        if document is not None:
            self._compare_project(document)

    # --- folders and recent files ----------------------------------------------------------------------------------------------

    def _folder(self) -> Path:
        file = self._context.root.file if self._context.has_document else None
        if file is not None and not is_sample(file):
            return file.parent
        recent = self.recent()
        return recent[0].parent if recent else Path.home()

    def recent(self) -> list[Path]:
        """Recently opened documents whose files exist, newest first."""
        stored = self._settings.value("recent")
        names = [stored] if isinstance(stored, str) else stored if isinstance(stored, list) else []
        return [p for p in (Path(str(n)) for n in names) if os.path.isfile(p)]

    def remember(self, path: Path) -> None:
        path = resolved(path)
        self._store([path, *(p for p in self.recent() if p != path)])

    def forget(self, path: Path) -> None:
        path = resolved(path)
        self._store([p for p in self.recent() if p != path])

    def clear_recent(self) -> None:
        self._store([])

    def _store(self, paths: list[Path]) -> None:
        self._settings.setValue("recent", [str(p) for p in paths[:RECENT]])


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size > LARGE
    except OSError:
        return False
