"""Crash recovery: offers the documents left with unsaved changes. No file is changed until the user saves."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.ui.document.document import Document
from app.ui.document.open_document import OpenDocument
from app.ui.document.recovery_dialog import RecoveryDialog
from app.ui.document.unsaved import ask_discard
from app.ui.engine.context import Context
from app.ui.shell.tabs import Tabs
from app.ui.widgets.background import Background
from designer.files.recovery import Unfinished, unfinished
from designer.texts import tr


class Recovery(QObject):
    """Searches once at startup, in a thread, then shows a non-modal dialog."""

    searched = Signal()  # the search is complete, and its dialog is shown if something was found

    def __init__(self, window: QWidget, context: Context, tabs: Tabs) -> None:
        super().__init__(window)
        self._window = window
        self._context = context
        self._tabs = tabs
        self.left: list[Unfinished] = []
        self.dialog: RecoveryDialog | None = None
        self._search = Background(self)
        self._search.done.connect(self._on_found)

    def search(self) -> None:
        """Search for documents that a crash left unsaved."""
        self._search.start(unfinished)

    def _on_found(self, found: Any) -> None:
        self.left = list(found)
        if self.left:
            self.dialog = RecoveryDialog(self.left, self._window)
            self.dialog.recover_asked.connect(self.recover)
            self.dialog.discard_asked.connect(self.discard)
            self.dialog.finished.connect(self.later)
            self.dialog.show()
        self.searched.emit()

    def recover(self, left: Unfinished) -> None:
        """Open the recovered network as an unsaved document, replacing an unchanged tab of the same file."""
        if left.graph is None:
            return
        known = self._tabs.find(left.path) if left.path is not None else None
        document = Document(left.graph, self._context.registry, left.path, left.findings)
        if left.settings:
            document.restore_settings(**left.settings)
        opened = OpenDocument(document, left.digest)
        opened.keep_unsaved(dict(left.settings))
        if known is not None and known.is_clean:
            self._tabs.replace(known, opened)
            self._tabs.show(opened)
        else:
            self._tabs.add(opened)
        opened.check_disk()
        left.discard()
        self._take(left)
        self._context.message.emit("info", tr("Recovered {name}. Save it to keep the changes.", name=left.title))

    def discard(self, left: Unfinished) -> None:
        """Discard the unsaved changes, after a confirmation."""
        if ask_discard(left.title, self.dialog or self._window):
            left.discard()
            self._take(left)

    def later(self) -> None:
        """Keep the rest for the next start."""
        for left in self.left:
            left.release()
        self.left = []
        self.dialog = None

    def _take(self, left: Unfinished) -> None:
        self.left.remove(left)
        if self.dialog is not None:
            self.dialog.take(left)
