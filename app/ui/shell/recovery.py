"""Crash recovery: offers the documents left with unsaved changes. No file is changed until the user saves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
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
from designer.graph.compare import edit_between
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.texts import tr


class Recovery(QObject):
    """Searches once at startup, in a thread, then shows a non-modal dialog."""

    searched = Signal()  # the search is complete, and its dialog is shown if something was found

    def __init__(self, window: QWidget, context: Context, tabs: Tabs) -> None:
        super().__init__(window)
        self._window = window
        self._context = context
        self._tabs = tabs
        self.elsewhere: Callable[[Path], Tabs | None] = lambda path: None  # the tabs of another window with the file
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
        """Show the recovered network as an unsaved document, in the tab of the same file if there is one.

        In a document with other changes it is an undoable edit. What no edit can express replaces them after a confirmation.
        """
        if left.graph is None:
            return
        tabs = (self.elsewhere(left.path) if left.path is not None else None) or self._tabs
        known = tabs.find(left.path) if left.path is not None else None
        edit: Edit | None = None
        if known is not None and not known.is_clean:
            edit = edit_between(known.document.graph, left.graph, tr("Recover {name}", name=left.title))
            if edit is None and not ask_discard(left.title, self.dialog or self._window):
                return
        opened = known if known is not None and edit is not None else self._opened(left, left.graph)
        if edit is not None:
            if not _recover_into(opened, edit, left):
                return
        elif known is not None:
            tabs.replace(known, opened)
        else:
            tabs.add(opened)
        tabs.show(opened)
        window = tabs.parent()
        if tabs is not self._tabs and isinstance(window, QWidget):
            window.raise_()
            window.activateWindow()
        opened.check_disk()
        left.discard()
        self._take(left)
        self._context.message.emit("info", tr("Recovered {name}. Save it to keep the changes.", name=left.title))

    def _opened(self, left: Unfinished, graph: Graph) -> OpenDocument:
        """The recovered network as a document of its own."""
        document = Document(graph, self._context.registry, left.path, left.findings)
        if left.settings:
            document.restore_settings(**left.settings)
        opened = OpenDocument(document, left.digest)
        opened.keep_unsaved(dict(left.settings))
        return opened

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


def _recover_into(opened: OpenDocument, edit: Edit, left: Unfinished) -> bool:
    """Commit the edit that makes an open document the recovered one. False if it was refused."""
    document = opened.document
    before = {name: getattr(document.settings, name) for name in left.settings}
    steps = {name: (before[name], value) for name, value in left.settings.items() if before[name] != value}
    edit = replace(edit, settings=steps)
    if edit and not document.do(edit):
        return False
    document.reading = (*document.reading, *left.findings)
    opened.journal.keep()
    return True
