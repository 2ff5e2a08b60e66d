"""What the menu Analysis opens: Side by Side, one window for each main window, and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.document.document import Document

if TYPE_CHECKING:
    from app.ui.compare.window import SideWindow
    from app.ui.shell.window import MainWindow


def open_side(window: MainWindow) -> SideWindow:
    """Show it; one that is open already comes to the front and keeps its choices."""
    from app.ui.compare.window import SideWindow

    def documents() -> list[Document]:
        root = window.context.root
        return [root, *(o.document for o in window.tabs.all if o.document is not root)]

    found = window.findChild(SideWindow, "side")
    if found is None:
        found = SideWindow(window.context, documents, window)
        found.resize(window.size())
    fresh = not found.isVisible()
    found.show()
    found.raise_()
    found.activateWindow()
    if fresh:
        found.begin()
    return found


def report(window: MainWindow) -> None:
    """Analysis > Report."""
    from app.ui.analysis.report import ask_report

    ask_report(window, window.context)
