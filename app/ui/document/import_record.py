"""Where an open document was imported from, and what the import found."""

from __future__ import annotations

from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from designer.importers.report import ImportReport


class ImportRecord(QObject):
    """The report of one import. `comparing` until the document has been compared with its original.

    `source` is the imported file, None for PyTorch code. `weights` is the file that the import wrote, in the user's data folder.
    """

    changed = Signal()
    ended = Signal()  # the document is closed

    def __init__(self, source: Path | None, report: ImportReport, parent: QObject) -> None:
        super().__init__(parent)
        self.source = source
        self.report = report
        self.comparing = True
        self.weights: Path | None = None
        self._state = _state(source)

    @property
    def current(self) -> bool:
        """Whether the source is the file that was imported: it has not been written since."""
        return self.source is not None and self._state == _state(self.source)

    def compared(self, report: ImportReport) -> None:
        """The comparison has ended, with or without a result."""
        self.report = report
        self.comparing = False
        self.changed.emit()

    def not_compared(self, reason: str) -> None:
        """The comparison was stopped."""
        self.compared(msgspec.structs.replace(self.report, not_compared_because=reason))

    def end(self, *, keep_weights: bool) -> None:
        """The document is closed: delete the weights unless it was saved with them."""
        self.ended.emit()
        if self.weights is not None and not keep_weights:
            self.weights.unlink(missing_ok=True)


def _state(source: Path | None) -> tuple[int, int] | None:
    try:
        found = source.stat() if source is not None else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if found is not None else None
