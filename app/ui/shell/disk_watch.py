"""Detects when another program changes, moves or deletes the file of an open document, and offers remedies."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer
from PySide6.QtWidgets import QWidget

from app.ui.document.locations import is_sample
from app.ui.document.open_document import OpenDocument
from app.ui.document.unsaved import ask_discard
from app.ui.engine.context import Context
from app.ui.shell.files import Files
from app.ui.shell.tabs import Tabs
from app.ui.widgets.findings import show_findings
from app.ui.widgets.notice_bar import NoticeAction, NoticeBar
from designer.files.document import read_document
from designer.files.settings import Settings, stored_settings
from designer.graph.compare import edit_between
from designer.texts import tr

REST = 150  # ms between a notification and the check of the files: programs write in several steps


class DiskWatch(QObject):
    """Watches the files of all tabs of a window, and their folders: most editors replace a file instead of writing to it.

    The watcher can miss changes on network drives, so `check` is also called whenever the window becomes active.
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
        self._notice: tuple[OpenDocument, str, bool] | None = None  # the document and state that the bar shows
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._soon)
        self._watcher.directoryChanged.connect(self._soon)
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self.check)
        tabs.changed.connect(self._follow)
        context.root_changed.connect(self._show)

    def check(self) -> None:
        """Check all files now."""
        if self._ended:
            return
        for opened in self._tabs.all:
            opened.check_disk()
        self._watch()

    def end(self) -> None:
        """Stop watching: the window closes."""
        self._ended = True
        self._rest.stop()
        watched = [*self._watcher.files(), *self._watcher.directories()]
        if watched:
            self._watcher.removePaths(watched)

    def _soon(self) -> None:
        if not self._rest.isActive():  # otherwise a folder with constant writes would defer it forever
            self._rest.start()

    def _follow(self) -> None:
        self._watch()
        self._show()

    def _watch(self) -> None:
        """Watch the files and folders that exist. A replaced file has to be watched anew."""
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
            self._notice = None
            self.bar.clear()
            return
        shown = (opened, opened.disk, opened.is_clean)
        if self._notice == shown:
            return
        self._notice = shown
        name = opened.document.path.name if opened.document.path is not None else ""
        if opened.disk == "changed":
            text = tr("“{name}” was changed by another program.", name=name)
            if not opened.is_clean:
                text = tr("“{name}” was changed by another program, and you have unsaved changes.", name=name)
            choices: tuple[NoticeAction, ...] = (
                ("reload", tr("&Reload"), tr("Load the file. Undo restores your version"), self.reload),
                ("keep", tr("&Keep Mine"), tr("Keep the open version. Saving will replace the file"), self.keep_mine),
                ("compare", tr("&Compare"), tr("Show the differences"), self._compare),
            )
        else:
            text = tr("“{name}” was moved or deleted. The network is still open in this window.", name=name)
            choices = (
                ("save", tr("&Save Again"), tr("Write the file to its previous location"), self.save_again),
                ("keep", tr("&Keep Open"), tr("Keep the network open as unsaved"), self.keep_mine),
            )
        self.bar.show_message(text, choices)

    def reload(self) -> bool:
        """Load the file and its settings as an undoable edit. False if the file cannot be read."""
        opened = self._tabs.shown
        if opened is None or opened.document.path is None:
            return False
        path = opened.document.path
        reading = read_document(path)
        graph, found = reading.graph, reading.diagnostics
        if graph is None:
            text = tr("{name} could not be read. The open network is unchanged.", name=path.name)
            show_findings(tr("Not Reloaded"), text, found, self._window)
            return False
        edit = edit_between(opened.document.graph, graph, tr("Reload {name}", name=path.name))
        if edit is None:  # the difference is not expressible as an edit: open the document anew, without undo
            if not (opened.is_clean or ask_discard(path.name, self._window)):
                return False
            self._tabs.replace(opened, self._files.read(path))
        else:
            settings, notes = stored_settings(path)
            edit = replace(edit, settings=_steps(opened.document.settings, settings, graph.layers))
            if edit:
                opened.document.do(edit)
            opened.document.show_findings((*found, *notes))
            opened.took_over(reading.digest)
        self._show()
        self._context.message.emit("info", tr("Reloaded {name}", name=path.name))
        return True

    def keep_mine(self) -> None:
        """Keep the open network; it now counts as unsaved."""
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


def _steps(before: Settings, after: Settings, layers: Collection[str]) -> dict[str, tuple[object, object]]:
    """The fields that differ, before and after, without what only layers other than `layers` have."""
    one, other = before.pruned(layers), after.pruned(layers)
    changed = [each.name for each in fields(Settings) if getattr(one, each.name) != getattr(other, each.name)]
    return {name: (getattr(before, name), getattr(after, name)) for name in changed}
