"""One open document of a window with its journal, the state of its file, and its last view."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QObject, QPointF, QTimer, Signal

from app.ui.document.document import Document
from designer.files.disk_watch import Disk, digest_of
from designer.files.journal import Journal
from designer.files.safekeeping import Safekeeping
from designer.files.settings import Settings, settings_path
from designer.files.weight_versions import is_version, keep_next_to
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.model import unwritable

SYNC_AFTER = 2000  # ms after a change until its journal entry is synced to disk


class _JournalNotifier(QObject):
    """Reports journal failures, which can happen in threads, to the windows; lives as long as the process."""

    failed = Signal(object)  # Diagnostic

    def __init__(self) -> None:
        super().__init__()
        self.reported = False

    def report(self, finding: Diagnostic) -> None:
        """Report the first failure only: all journals are in one folder."""
        if not self.reported:
            self.reported = True
            self.failed.emit(finding)


@lru_cache(maxsize=1)
def journal_notifier() -> _JournalNotifier:
    """The notifier of this process."""
    return _JournalNotifier()


@dataclass(frozen=True, slots=True)
class ViewPlace:
    """What the canvas shows of a document."""

    center: QPointF
    zoom: float
    fitted_from: float | None  # the least scale of a zoom to fit, while everything is kept in view


class OpenDocument(QObject):
    """Owns its document: `close` deletes both. `digest` is the digest of the bytes that were read."""

    disk_changed = Signal()  # `disk` changed

    def __init__(self, document: Document, digest: str | None = None) -> None:
        super().__init__(document)
        self.document = document
        self.view: ViewPlace | None = None
        self.selection: tuple[str, ...] = ()
        self.disk: Disk = "same"  # the last known state of the file; reset to "same" when the user decides
        path = document.path
        self._keeping = Safekeeping(
            document.history,
            path,
            digest if digest is not None else _digest(path),
            on_failure=journal_notifier().report,
        )
        self._sync = QTimer(self, singleShot=True, interval=SYNC_AFTER, timeout=self.journal.sync)
        document.changed.connect(self._on_change)
        document.clean_changed.connect(self.keep_settings)
        document.project_changed.connect(self.keep_settings)

    @property
    def journal(self) -> Journal:
        """The journal of unsaved changes, from which a crash is recovered."""
        return self._keeping.journal

    @property
    def is_blank(self) -> bool:
        """Whether it is a new, unmodified network, which another document can replace."""
        return self.document.path is None and self.is_clean and len(self.document.graph) == 0

    @property
    def file(self) -> Path | None:
        """The file that opens the document again."""
        return self.document.file

    @property
    def is_clean(self) -> bool:
        return self.document.history.is_clean

    def save(self, path: Path) -> tuple[Diagnostic, ...]:
        """Save to `path`. Returns findings about the settings; raises DiagnosticError if the document cannot be saved.

        The network is named after its first file and follows that file's name; a name that differs from it stays. The
        weights of a network that is saved for the first time get a file next to it if they have none of the user.
        """
        document, name = self.document, self.document.graph.name
        version = Path(document.settings.weights)
        kept = keep_next_to(path, version) if document.path is None and is_version(version) else None
        if (document.path is None or document.path.stem == name) and unwritable(path.stem) is None:
            self._name(path.stem)
        settings = document.settings if kept is None else replace(document.settings, weights=str(kept))
        wanted = settings != Settings() or os.path.isfile(settings_path(path))
        try:
            found = self._keeping.save(path, settings if wanted else None)
        except DiagnosticError:
            self._name(name)
            if kept is not None:
                kept.unlink(missing_ok=True)
            raise
        if kept is not None:
            document.restore_settings(weights=str(kept))
        document.mark_saved(path)
        self._set_disk("same")
        return found

    def _name(self, name: str) -> None:
        if name != self.document.graph.name:
            self.document.name_after_file(name)

    def keep_unsaved(self, settings: dict[str, object] | None = None) -> None:
        """Mark the document as unsaved and write all of it to the journal."""
        self.journal.keep(settings)
        self.document.mark_unsaved()

    def keep_settings(self) -> None:
        """Write a modified document without a file to the journal with its settings: they are stored nowhere else."""
        if self.document.path is None and not self.is_clean:
            settings, usual = self.document.settings, Settings()
            changed = {
                f.name: value
                for f in fields(Settings)
                if (value := getattr(settings, f.name)) != getattr(usual, f.name)
            }
            if changed:
                self.journal.keep(changed)

    def check_disk(self) -> Disk:
        """Update and return the state of the file on disk."""
        self._set_disk(self._keeping.disk_state())
        return self.disk

    def accept_disk(self) -> None:
        """Accept the current file as known."""
        on_disk = self._keeping.on_disk
        if on_disk is not None:
            on_disk.accept()
        self._set_disk("same")

    def took_over(self, digest: str) -> None:
        """Mark the document as equal to the file with this digest."""
        path = self.document.path
        if path is not None:
            self._keeping.took_over(path, digest)
            self._set_disk("same")
            self.document.mark_as_file(path)

    def end(self) -> None:
        """Delete the journal, and weights of an import that were not saved: the document was saved or discarded."""
        self._sync.stop()
        self._keeping.close()
        document = self.document
        if document.imported is not None:
            used = document.settings.weights == str(document.imported.weights)
            document.imported.end(keep_weights=used and document.path is not None)

    def close(self) -> None:
        """Delete the document and this object."""
        self.end()
        self.document.deleteLater()

    def _set_disk(self, disk: Disk) -> None:
        if disk != self.disk:
            self.disk = disk
            self.disk_changed.emit()

    def _on_change(self) -> None:
        if not self._sync.isActive():
            self._sync.start()


def _digest(path: Path | None) -> str:
    try:
        return digest_of(path.read_bytes()) if path is not None else ""
    except OSError:
        return ""
