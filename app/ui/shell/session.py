"""The documents that were open in the last session: stored in the user's settings in the order of the tabs."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QSettings

from app.ui.document.open_document import OpenDocument
from app.ui.shell.tabs import Tabs
from designer.importers.formats import PROGRAMS

MOST = 50


def store_tabs(settings: QSettings, tabs: Tabs) -> None:
    """Store the files of all tabs, and which one is current."""
    shown = _unasked(tabs.shown) if tabs.shown is not None else None
    paths = [path for opened in tabs.all if (path := _unasked(opened)) is not None]
    settings.setValue("tabs", [str(path.absolute()) for path in paths[:MOST]])
    settings.setValue("tab", str(shown.absolute()) if shown is not None else "")


def _unasked(opened: OpenDocument) -> Path | None:
    """The file of a document that is opened without a question; reading others could run code."""
    return opened.file if opened.file is not None and not PROGRAMS.reads(opened.file) else None


def stored_tabs(settings: QSettings) -> list[tuple[Path, bool]]:
    """The files that were open and still exist, each with whether its tab was current."""
    stored = settings.value("tabs")
    names = [stored] if isinstance(stored, str) and stored else stored if isinstance(stored, list) else []
    shown = settings.value("tab")
    return [(Path(str(n)), str(n) == shown) for n in names[:MOST] if os.path.isfile(str(n))]
