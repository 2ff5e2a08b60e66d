"""Opening and saving: which document is open, where it stands, and what the person is asked before one goes away."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QFileDialog, QWidget

import samples
from app.ui.context import Context
from app.ui.dialogs.findings import ask_unsaved, show_findings
from app.ui.document import Document
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph.diagnostics import DiagnosticError, Severity
from designer.graph.graph import Graph

ENDINGS = (".xml", ".nv-neural-model")
OPEN_FILTER = "Networks (*.xml *.nv-neural-model);;All files (*)"
SAVE_FILTER = "Network (*.xml);;Network of the 2022 tool (*.nv-neural-model)"
RECENT = 10


def sample_files() -> tuple[Path, ...]:
    """The sample documents that come with the program, the one to begin with in front."""
    return tuple(samples.documents())


def is_sample(path: Path) -> bool:
    """Whether a document came with the program; nothing is written beside it."""
    return path.resolve() in _resolved_samples()


@lru_cache(maxsize=1)
def _resolved_samples() -> frozenset[Path]:
    return frozenset(path.resolve() for path in sample_files())


def start_folder(document: Path | None) -> Path:
    """Where a dialog begins that asks for a place: beside the document, or the person's home."""
    return document.resolve().parent if document is not None and not is_sample(document) else Path.home()


class Files:
    """File operations of one window."""

    def __init__(self, window: QWidget, context: Context, settings: QSettings) -> None:
        self._window = window
        self._context = context
        self._settings = settings
        self.on_recent: Callable[[], None] = lambda: None

    # --- opening ---------------------------------------------------------------------------------------------

    def new(self) -> None:
        """Show an empty network."""
        if self.may_leave():
            self._show(Document(Graph(), self._context.registry))

    def open_first(self, path: Path | None) -> None:
        """What the window shows when it starts: `path`, else the analysed sample, else an empty network."""
        if not self.open(path if path is not None else sample_files()[0]):
            self._show(Document(Graph(), self._context.registry))

    def ask_open(self) -> None:
        """File > Open."""
        name, _ = QFileDialog.getOpenFileName(self._window, "Open Network", str(self._folder()), OPEN_FILTER)
        if name:
            self.open(Path(name))

    def open(self, path: Path) -> bool:
        """Open a document in place of the present one; False when it could not be read or the person stayed."""
        from designer.files.document import read_document

        reading = read_document(path)
        if reading.graph is None:
            self.forget(path)
            show_findings(
                "Not Opened",
                f"{path.name} could not be opened. The present network stays as it is.",
                reading.diagnostics,
                self._window,
            )
            return False
        if not self.may_leave():
            return False
        self._show(Document(reading.graph, self._context.registry, path, reading.diagnostics))
        if not is_sample(path):
            self.remember(path)
        worst = [d for d in reading.diagnostics if d.severity is not Severity.INFO]
        if worst:
            self._context.message.emit("warning", f"Opened {path.name} with {len(worst)} findings: see Type Checking")
        else:
            self._context.message.emit("info", f"Opened {path.name}")
        return True

    def _show(self, document: Document) -> None:
        old = self._context.root if self._context.has_document else None
        document.setParent(self._context)
        self._context.set_document(document)
        if old is not None:
            old.deleteLater()

    # --- saving ----------------------------------------------------------------------------------------------

    def save(self) -> bool:
        """Save where the document stands; a new one or a sample asks for a place. False when it was not saved."""
        path = self._context.root.path
        return self.save_to(path) if path is not None and not is_sample(path) else self.save_as()

    def save_as(self) -> bool:
        """Ask for a place and save there."""
        document = self._context.root
        base = document.path.name if document.path is not None else f"{document.graph.name}.xml"
        name, _ = QFileDialog.getSaveFileName(self._window, "Save Network", str(self._folder() / base), SAVE_FILTER)
        if not name:
            return False
        path = Path(name)
        return self.save_to(path if path.suffix in ENDINGS else path.with_name(path.name + ".xml"))

    def save_to(self, path: Path) -> bool:
        """Save to `path`. When that fails the document stays as it is and a dialog says why."""
        from designer.files.document import save_document

        document = self._context.root
        try:
            save_document(document.graph, path)
        except DiagnosticError as error:
            show_findings(
                "Not Saved",
                f"The network was not saved to {path}. It is whole in the window; the old file is untouched.",
                error.diagnostics,
                self._window,
            )
            return False
        document.mark_saved(path)
        if document.settings != Settings() or settings_path(path).is_file():
            self.save_settings()
        self.remember(path)
        self._context.message.emit("info", f"Saved {path.name}")
        return True

    def save_settings(self) -> None:
        """Write the settings beside the document, where it has a place of its own. A failure is told, nothing is lost."""
        document = self._context.root
        if document.path is None or is_sample(document.path):
            return
        try:
            save_settings(document.settings, settings_path(document.path), document.graph.layers)
        except DiagnosticError as error:
            self._context.message.emit("warning", f"The settings were not saved: {error.diagnostics[0].message}")

    def may_leave(self) -> bool:
        """Whether the open document may go away: it is saved, or the person decided."""
        if not self._context.has_document or self._context.root.history.is_clean:
            return True
        answer = ask_unsaved(self._context.root.title, self._window)
        return self.save() if answer == "save" else answer == "discard"

    # --- places ----------------------------------------------------------------------------------------------

    def _folder(self) -> Path:
        path = self._context.root.path if self._context.has_document else None
        if path is not None and not is_sample(path):
            return path.parent
        recent = self.recent()
        return recent[0].parent if recent else Path.home()

    def recent(self) -> list[Path]:
        """Documents that were open before and are still there, newest first."""
        stored = self._settings.value("recent")
        names = [stored] if isinstance(stored, str) else stored if isinstance(stored, list) else []
        return [p for p in (Path(str(n)) for n in names) if p.is_file()]

    def remember(self, path: Path) -> None:
        path = path.resolve()
        self._store([path, *(p for p in self.recent() if p != path)])

    def forget(self, path: Path) -> None:
        path = path.resolve()
        self._store([p for p in self.recent() if p != path])

    def clear_recent(self) -> None:
        self._store([])

    def _store(self, paths: list[Path]) -> None:
        self._settings.setValue("recent", [str(p) for p in paths[:RECENT]])
        self.on_recent()
