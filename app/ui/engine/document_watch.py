"""When values that were measured of the open document no longer hold."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.requests import run_settings
from designer.graph.edits import ChangeSet


class DocumentWatch(QObject):
    """`outdated` comes when the open document computes something else: after an edit of the network, or with other weights, inputs or
    options of the engine. Variants do not count, and neither does another document.
    """

    outdated = Signal()
    edited = Signal()  # the network itself, also before `outdated`

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._document: Document | None = None
        self._settings: tuple[object, ...] = ()
        context.root_changed.connect(self._follow)
        if context.has_document:
            self._follow(context.root)

    def _follow(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_changed)
            self._document.settings_changed.disconnect(self._on_settings)
        self._document, self._settings = document, run_settings(document.settings)
        document.changed.connect(self._on_changed)
        document.settings_changed.connect(self._on_settings)

    def _on_changed(self, change: ChangeSet) -> None:
        if change.computed or change.removed:
            self.edited.emit()
            self.outdated.emit()

    def _on_settings(self) -> None:
        assert self._document is not None
        before, self._settings = self._settings, run_settings(self._document.settings)
        if before != self._settings:
            self.outdated.emit()
