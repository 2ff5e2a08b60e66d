"""The windows of the process. Each has documents, an engine and settings of its own; the person's settings are one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

import shiboken6
from PySide6.QtCore import QPoint

if TYPE_CHECKING:
    from app.ui.shell.window import MainWindow

OFFSET = QPoint(32, 32)
_shown: list[ref[MainWindow]] = []
_made: list[MainWindow] = []  # windows that nobody else holds


def shown_windows() -> list[MainWindow]:
    """Those that are open, the oldest first."""
    found = [window for link in _shown if (window := link()) is not None]
    return [window for window in found if shiboken6.isValid(window)]  # type: ignore[no-untyped-call]


def note_shown(window: MainWindow) -> None:
    if window not in shown_windows():
        _shown.append(ref(window))


def note_closed(window: MainWindow) -> None:
    _shown[:] = [link for link in _shown if link() is not None and link() is not window]
    if window in _made:
        _made.remove(window)
        window.deleteLater()


def new_window(beside: MainWindow) -> MainWindow:
    """Another window with an empty network."""
    from app.ui.shell.window import MainWindow, window_settings

    stored = beside.settings.fileName()
    settings = type(beside.settings)(stored, beside.settings.format()) if stored else window_settings()
    window = MainWindow(beside.context.registry, settings)
    _made.append(window)
    window.move(beside.pos() + OFFSET)
    window.show()
    window.files.new()
    window.start_engine_client()
    return window


def show_elsewhere(path: Path, but: MainWindow) -> bool:
    """Bring up the document in the window that has it open; False when no other one has."""
    for window in shown_windows():
        opened = window.tabs.find(path) if window is not but else None
        if opened is not None:
            window.tabs.show(opened)
            window.raise_()
            window.activateWindow()
            return True
    return False


def quit_all() -> bool:
    """Close every window after all of them may go; False when the person stayed."""
    windows = shown_windows()
    for window in windows:
        if not window.may_leave():
            for asked in windows:
                asked.stay()
            return False
    for window in windows:
        window.close_now()
    return True
