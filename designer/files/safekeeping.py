"""Saving an open document, its recovery journal, and detection of changes of the file by other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from designer.files.atomic import write_atomic
from designer.files.disk_watch import Disk, OnDisk, digest_of
from designer.files.document import DOCUMENTS
from designer.files.journal import Journal
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.history import History


class Safekeeping:
    """Follows one document's history until `close`. `digest` is that of the bytes that were read from `path`."""

    def __init__(
        self,
        history: History,
        path: Path | None = None,
        digest: str = "",
        *,
        folder: Path | None = None,
        on_failure: Callable[[Diagnostic], None] = lambda finding: None,
    ) -> None:
        self._history = history
        self.on_disk = OnDisk(path, digest) if path is not None else None
        self.journal = Journal(history.graph, path, digest, folder=folder, on_failure=on_failure)
        self._end: Callable[[], None] | None = history.subscribe(self.journal.record)

    def save(self, path: Path, settings: Settings | None = None) -> tuple[Diagnostic, ...]:
        """Write the document to `path` and the settings next to it. Returns diagnostics about the settings.

        Raises DiagnosticError ("cannot-save", "unknown-format") if the document cannot be written; file and journal are unchanged
        then. The journal is removed only after the files are complete.
        """
        data = DOCUMENTS.writer(path)(self._history.graph)
        self.journal.wait()  # its first record is the opened network, which is replaced on the disk now
        write_atomic(path, data)
        found: tuple[Diagnostic, ...] = ()
        if settings is not None:
            try:
                save_settings(settings, settings_path(path), self._history.graph.layers)
            except DiagnosticError as error:
                found = error.diagnostics
        self.on_disk = OnDisk(path, digest_of(data))
        self.journal.saved(path, self.on_disk.digest)
        return found

    def took_over(self, path: Path, digest: str) -> None:
        """The document now equals the file with this digest, and nothing else that the file contained before."""
        self.on_disk = OnDisk(path, digest)
        self.journal.saved(path, digest)

    def disk_state(self) -> Disk:
        """Whether the file changed since it was read or written here. Never for a document without a file."""
        return self.on_disk.state() if self.on_disk is not None else "same"

    def close(self) -> None:
        """The document was closed, saved or discarded: remove its journal."""
        if self._end is not None:
            self._end()
            self._end = None
        self.journal.close()
