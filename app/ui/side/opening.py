"""Analysis > Compare Side by Side: one such window for each main window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.ui.document import Document

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.ui.context import Context
    from app.ui.side.window import SideWindow


def open_side(window: QWidget, context: Context, documents: Callable[[], list[Document]] | None = None) -> SideWindow:
    """Show it; one that is open already comes to the front and keeps its choices. `documents` are those that are open."""
    from app.ui.side.window import SideWindow

    found = window.findChild(SideWindow, "side")
    if found is None:
        found = SideWindow(context, documents, window)
        found.resize(window.size())
    fresh = not found.isVisible()
    found.show()
    found.raise_()
    found.activateWindow()
    if fresh:
        found.begin()
    return found
