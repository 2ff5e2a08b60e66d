"""Notices that another program changed, moved or deleted the file of an open document, and offers what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer
from PySide6.QtWidgets import QWidget

from app.ui.document.locations import is_sample
from app.ui.document.opened import Opened
from app.ui.document.unsaved import ask_discard
from app.ui.engine.context import Context
from app.ui.shell.files import Files
from app.ui.shell.tabs import Tabs
from app.ui.widgets.findings import show_findings
from app.ui.widgets.notice_bar import Choice, NoticeBar
from designer.files.document import read_document
from designer.graph.compare import edit_between
from designer.texts import tr

REST = 150  # ms after which the files are looked at: programs write in several steps


class DiskWatch(QObject):
    """Watches the files of all tabs of a window, and their folders: most editors replace a file instead of writing it.

    The watcher may miss what happens on network disks, so `look` is called too whenever the window becomes active.
    """

    def __init__(
        self, window: QWidget, context: Context, tabs: Tabs, files: Files, compare: Callable[[], object]
    ) -> None:
        super().__init__(window)
        self._window = window
        self._context = context
        self._tabs = tabs
        self._files = files
        self._compare = compare
        self.bar = NoticeBar("disk")
        self._ended = False
        self._told: tuple[Opened, str] | None = None  # what the bar says
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._soon)
        self._watcher.directoryChanged.connect(self._soon)
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self.look)
        tabs.changed.connect(self._follow)
        context.root_changed.connect(self._show)

    def look(self) -> None:
        """Look at all files now."""
        if self._ended:
            return
        for opened in self._tabs.all:
            opened.look()
        self._watch()

    def end(self) -> None:
        """The window goes: look no more."""
        self._ended = True
        self._rest.stop()
        watched = [*self._watcher.files(), *self._watcher.directories()]
        if watched:
            self._watcher.removePaths(watched)

    def _soon(self) -> None:
        if not self._rest.isActive():  # else a folder that is written to all the time would put it off for ever
            self._rest.start()

    def _follow(self) -> None:
        self._watch()
        self._show()

    def _watch(self) -> None:
        """Watch what is there to be watched: a file that was replaced is another one for the system."""
        paths = [o.document.path for o in self._tabs.all]
        files = {str(p) for p in paths if p is not None and not is_sample(p) and os.path.isfile(p)}
        folders = {str(p.parent) for p in paths if p is not None and not is_sample(p) and p.parent.is_dir()}
        before = {*self._watcher.files(), *self._watcher.directories()}
        gone, fresh = before - files - folders, (files | folders) - before
        if gone:
            self._watcher.removePaths(sorted(gone))
        if fresh:
            self._watcher.addPaths(sorted(fresh))

    # --- the bar ---------------------------------------------------------------------------------------------

    def _show(self) -> None:
        opened = self._tabs.shown
        if opened is None or opened.document is not self._context.root or opened.disk == "same":
            self._told = None
            self.bar.clear()
            return
        if self._told == (opened, opened.disk):
            return
        self._told = (opened, opened.disk)
        name = opened.document.path.name if opened.document.path is not None else ""
        if opened.disk == "changed":
            text = tr("“{name}” was changed by another program.", name=name)
            if not opened.is_clean:
                text = tr("“{name}” was changed by another program, and you have changes of your own.", name=name)
            choices: tuple[Choice, ...] = (
                ("reload", tr("&Reload"), tr("Take the file's version; Undo brings yours back"), self.reload),
                ("keep", tr("&Keep Mine"), tr("Go on with what is open; saving will replace the file"), self.keep_mine),
                ("compare", tr("&Compare"), tr("Show what is different"), self._compare),
            )
        else:
            text = tr("“{name}” was moved or deleted. The network is whole in this window.", name=name)
            choices = (
                ("save", tr("&Save Again"), tr("Write the file again where it was"), self.save_again),
                ("keep", tr("&Keep Open"), tr("Go on; the network counts as not saved"), self.keep_mine),
            )
        self.bar.tell(text, choices)

    def reload(self) -> bool:
        """Take the file's version over as a step that can be undone; False when it cannot be read."""
        opened = self._tabs.shown
        if opened is None or opened.document.path is None:
            return False
        path = opened.document.path
        reading = read_document(path)
        graph, found = reading.graph, reading.diagnostics
        if graph is None:
            text = tr("{name} could not be read. What is open stays as it is.", name=path.name)
            show_findings(tr("Not Reloaded"), text, found, self._window)
            return False
        edit = edit_between(opened.document.graph, graph, tr("Reload {name}", name=path.name))
        if edit is None:  # what no step can change is different: the document is opened anew, without a way back
            if not (opened.is_clean or ask_discard(path.name, self._window)):
                return False
            self._tabs.replace(opened, self._files.read(path))
        else:
            opened.document.reading = found
            if edit:
                opened.document.do(edit)
            opened.took_over(reading.digest)
        self._show()
        self._context.message.emit("info", tr("Reloaded {name}", name=path.name))
        return True

    def keep_mine(self) -> None:
        """Go on with what is open: it stands in no file now."""
        opened = self._tabs.shown
        if opened is not None:
            opened.accept_disk()
            opened.keep_unsaved()
            self._show()

    def save_again(self) -> None:
        opened = self._tabs.shown
        path: Path | None = opened.document.path if opened is not None else None
        if path is not None:
            self._files.save_to(path)
