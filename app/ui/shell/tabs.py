"""The open documents of a window and which of them is current."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QPoint, Signal

from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.document.locations import resolved
from app.ui.document.open_document import OpenDocument
from app.ui.engine.context import Context
from app.ui.shell.tab_bar import TabBar
from app.ui.widgets import garbage
from designer.texts import tr


class Tabs(QObject):
    """Synchronizes tabs with `context.root`. A root set elsewhere gets a tab too.

    Switching tabs stores the view and selection of the document that is left.
    """

    changed = Signal()  # documents were opened, closed, moved or renamed, or another one is shown
    close_asked = Signal(OpenDocument)
    menu_asked = Signal(OpenDocument, QPoint)  # and the global position

    def __init__(self, context: Context, canvas: Canvas, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._canvas = canvas
        self._files: dict[int, OpenDocument] = {}
        self._names: dict[int, str] = {}  # of the tabs
        self._shown: OpenDocument | None = None
        self.bar = TabBar()
        self.bar.shown.connect(lambda number: self.show(self._files[number]))
        self.bar.close_asked.connect(lambda number: self.close_asked.emit(self._files[number]))
        self.bar.menu_asked.connect(lambda number, place: self.menu_asked.emit(self._files[number], place))
        self.bar.tabMoved.connect(lambda _from, _to: self.changed.emit())
        context.root_changed.connect(self._on_root)
        context.comparison.open_documents = lambda: [opened.document for opened in self.all]

    def __len__(self) -> int:
        return len(self._files)

    @property
    def all(self) -> list[OpenDocument]:
        """Open documents from left to right."""
        return [self._files[number] for number in self.bar.numbers()]

    @property
    def shown(self) -> OpenDocument | None:
        return self._shown

    def find(self, path: Path) -> OpenDocument | None:
        """The open document of a file; links in the path are resolved."""
        wanted = resolved(path)
        return next((o for o in self.all if o.document.path is not None and resolved(o.document.path) == wanted), None)

    def of(self, document: Document) -> OpenDocument | None:
        return next((o for o in self._files.values() if o.document is document), None)

    def title(self, opened: OpenDocument) -> str:
        """The name of a document in questions: that of its tab, which differs from those of all other tabs."""
        number = next(n for n, o in self._files.items() if o is opened)
        return (
            self._names[number]
            if opened.document.path is not None
            else tr("{name} (unsaved)", name=self._names[number])
        )

    def add(self, opened: OpenDocument, *, show: bool = True) -> None:
        """Add a tab for an opened document; it replaces a current tab that is blank."""
        blank = self._shown if self._shown is not None and self._shown.is_blank else None
        opened.document.setParent(self._context)
        number = self.bar.add("")
        self._files[number] = opened
        opened.document.clean_changed.connect(self._label)
        opened.document.path_changed.connect(self._label)
        opened.document.changed.connect(self._on_change)
        opened.disk_changed.connect(self._label)
        if show or self._shown is None:
            self.show(opened)
            if blank is not None:
                self.remove(blank)
        if len(opened.document.graph) >= garbage.LARGE:
            garbage.exempt()
        self._label()

    def show(self, opened: OpenDocument) -> None:
        """Show a document with its last view and selection."""
        if opened is self._shown:
            return
        self._leave()
        self._bring(opened)
        self._context.set_document(opened.document)
        if opened.view is not None:
            self._canvas.viewer.restore(opened.view)
        graph = self._context.document.graph
        self._context.select(tuple(n for n in opened.selection if n in graph))
        self.changed.emit()

    def step(self, by: int) -> None:
        """Show the tab `by` positions further, wrapping around."""
        files = self.all
        if self._shown is not None and len(files) > 1:
            self.show(files[(files.index(self._shown) + by) % len(files)])

    def remove(self, opened: OpenDocument) -> None:
        """Close a document and show another one, which must exist."""
        number = next(n for n, o in self._files.items() if o is opened)
        if opened is self._shown:
            files = self.all
            place = files.index(opened)
            self.show(files[place + 1] if place + 1 < len(files) else files[place - 1])
        self.bar.remove(number)
        del self._files[number], self._names[number]
        opened.close()
        garbage.restore()
        self._label()

    def replace(self, opened: OpenDocument, other: OpenDocument) -> None:
        """Replace the document of a tab."""
        number = next(n for n, o in self._files.items() if o is opened)
        place = self.bar.index(number)
        if opened is self._shown:
            self._leave()
        other.view, other.selection = opened.view, opened.selection
        self.add(other, show=opened is self._shown)
        self.bar.moveTab(self.bar.count() - 1, place)
        if opened in self._files.values():
            self.remove(opened)

    def end(self) -> None:
        """Close all documents: the window closes."""
        for opened in self.all:
            opened.end()
        garbage.restore()

    # --- following -------------------------------------------------------------------------------------------

    def _leave(self) -> None:
        if self._shown is not None:
            self._shown.view = self._canvas.viewer.place()
            self._shown.selection = self._context.selection

    def _bring(self, opened: OpenDocument) -> None:
        self._shown = opened
        self.bar.choose(next(n for n, o in self._files.items() if o is opened))

    def _on_root(self, root: Document) -> None:
        """The root was set elsewhere; the canvas still shows the previous document."""
        if self._shown is not None and root is self._shown.document:
            return
        self._leave()
        known = self.of(root)
        blank = self._shown if self._shown is not None and self._shown.is_blank else None
        if known is None:
            known = self._shown = OpenDocument(root)  # current before it is added: the root is already set
            self.add(known, show=False)
        self._bring(known)
        if blank is not None:
            self.remove(blank)

    def _on_change(self, change: object) -> None:
        if getattr(change, "properties", None):
            self._label()

    def _label(self) -> None:
        """Update names, marks and tooltips. Equal names get the folder or a number."""
        names = [_name(o.document) for o in self._files.values()]
        seen: list[str] = []
        for number, opened in self._files.items():
            document = opened.document
            name, path = _name(document), document.path
            if path is not None and names.count(name) > 1:
                name = f"{resolved(path).parent.name}/{name}"
            elif path is None:
                seen.append(name)
                name = name if seen.count(name) == 1 else f"{name} ({seen.count(name)})"
            self._names[number] = name
            tip = str(path) if path is not None else tr("Not saved yet")
            if path is None and document.imported is not None:
                tip = tr("Imported from {source}\nNot saved yet", source=document.imported.report.source)
            if not opened.is_clean:
                tip = tr("{path}\nUnsaved changes", path=tip)
            if opened.disk != "same":
                changed = opened.disk == "changed"
                tip = f"{tip}\n{tr('Changed by another program') if changed else tr('The file no longer exists')}"
            self.bar.label(number, name, tip, unsaved=not opened.is_clean)
        self.changed.emit()


def _name(document: Document) -> str:
    return document.path.name if document.path is not None else document.graph.name
