"""One open document of a window: what keeps it safe, and how it was left when another tab was shown."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QObject, QPointF, QTimer, Signal

from app.ui.document.document import Document
from designer.files.journal import Journal
from designer.files.safekeeping import Safekeeping
from designer.files.settings import Settings, settings_path
from designer.files.watching import Disk, digest_of
from designer.graph.diagnostics import Diagnostic

SYNC_AFTER = 2000  # ms after a change until its record is brought to the disk itself


class _Bell(QObject):
    """Carries failures of journals, which may happen in threads, to the windows; it lives as long as the process."""

    rung = Signal(object)  # Diagnostic

    def __init__(self) -> None:
        super().__init__()
        self.told = False

    def ring(self, finding: Diagnostic) -> None:
        """Tell the first failure; one folder is behind all of them."""
        if not self.told:
            self.told = True
            self.rung.emit(finding)


@lru_cache(maxsize=1)
def bell() -> _Bell:
    """The one of this process."""
    return _Bell()


class Opened(QObject):
    """Goes with its document: `close` takes both away. `digest` is that of the bytes that were read."""

    disk_changed = Signal()  # `disk` is another one

    def __init__(self, document: Document, digest: str | None = None) -> None:
        super().__init__(document)
        self.document = document
        self.view: tuple[QPointF, float] | None = None  # the middle of the canvas and its scale
        self.selection: tuple[str, ...] = ()
        self.disk: Disk = "same"  # as it was found last; "same" again when the person decided
        path = document.path
        self._keeping = Safekeeping(
            document.history, path, digest if digest is not None else _digest(path), on_failure=bell().ring
        )
        self._sync = QTimer(self, singleShot=True, interval=SYNC_AFTER, timeout=self.journal.sync)
        document.changed.connect(self._on_change)

    @property
    def journal(self) -> Journal:
        """What a crash leaves of the changes that are not saved."""
        return self._keeping.journal

    @property
    def is_blank(self) -> bool:
        """Whether it is a new network that nothing was done to: another document may take its place."""
        return self.document.path is None and self.is_clean and len(self.document.graph) == 0

    @property
    def is_clean(self) -> bool:
        return self.document.history.is_clean

    def save(self, path: Path) -> tuple[Diagnostic, ...]:
        """Save there. Raises DiagnosticError where the document cannot be; returns findings about its settings."""
        settings = self.document.settings
        wanted = settings != Settings() or os.path.isfile(settings_path(path))
        found = self._keeping.save(path, settings if wanted else None)
        self.document.mark_saved(path)
        self._set_disk("same")
        return found

    def keep_unsaved(self, settings: dict[str, object] | None = None) -> None:
        """What is open stands nowhere else: it counts as not saved, and the journal has all of it."""
        self.journal.keep(settings)
        self.document.mark_unsaved()

    def check_disk(self) -> Disk:
        """How the file stands now."""
        self._set_disk(self._keeping.disk_state())
        return self.disk

    def accept_disk(self, digest: str = "") -> None:
        """The file counts as known: as it is now, or as the bytes with this digest."""
        on_disk = self._keeping.on_disk
        if on_disk is not None:
            on_disk.accept(digest)
        self._set_disk("same")

    def took_over(self, digest: str) -> None:
        """The document is what the file holds now: nothing is unsaved."""
        self.accept_disk(digest)
        path = self.document.path
        if path is not None:
            self.journal.saved(path, digest)
            self.document.mark_saved(path)

    def end(self) -> None:
        """The document was saved or given up: nothing is kept of it any more."""
        self._sync.stop()
        self._keeping.close()

    def close(self) -> None:
        """The document goes away."""
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
