"""Comparison of the open network with another one, updated while it is edited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from app.ui.document.document import Document
from app.ui.document.template_view import TemplateView
from designer.graph.compare import NetworkComparison, compare
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.texts import tr

DELAY = 30  # delay after an edit in ms


class DocumentComparison(QObject):
    """The differences between `other` and the open document. `other` is None while nothing is compared."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._document: Document | None = None  # the open file
        self._view: Document | None = None  # the document or template that is shown
        self._other_document: Document | None = None  # the other network, if it is an open document
        self._follows_file = False  # `other` is the saved version: saving the document changes it
        self.title = ""  # of the other network
        self.other: Graph | None = None
        self.open_documents: Callable[[], list[Document]] = list
        self.result = NetworkComparison()
        self._later = QTimer(self, singleShot=True, interval=DELAY, timeout=self._compute)

    def with_file(self, path: Path) -> None:
        """Compare with a document on disk. Raises DiagnosticError, with nothing changed, if it cannot be read."""
        from designer.files.document import read_document

        reading = read_document(path)
        if reading.graph is None:
            raise DiagnosticError(reading.diagnostics)
        self.with_graph(reading.graph, path.name)

    def with_saved(self) -> None:
        """Compare with the saved version of the open document."""
        if self._document is not None and self._document.path is not None:
            self.with_file(self._document.path)
            self._follows_file, self.title = True, tr("the saved version")
            self.changed.emit()

    def with_graph(self, other: Graph, title: str) -> None:
        self._follow_other(None)
        self.other, self.title = other.copy(), title
        self._compute()

    def with_document(self, other: Document) -> None:
        """Compare with another open document and follow its changes."""
        self._follow_other(other)
        self.other, self.title = other.graph, other.title
        self._compute()

    def stop(self) -> None:
        self._follow_other(None)
        self.other = None
        self._compute()

    def _follow_other(self, other: Document | None) -> None:
        self._follows_file = False
        if self._other_document is not None and isValid(self._other_document):  # type: ignore[no-untyped-call]
            self._other_document.changed.disconnect(self._on_changed)
            self._other_document.destroyed.disconnect(self.stop)
        self._other_document = other
        if other is not None:
            other.changed.connect(self._on_changed)
            other.destroyed.connect(self.stop)

    def shown(self) -> NetworkComparison:
        """The differences of the shown network or template."""
        if isinstance(self._view, TemplateView):
            return self.result.templates.get(self._view.template, NetworkComparison())
        return self.result

    def shown_instances(self) -> frozenset[str]:
        """The shown instances whose template differs, including nested templates."""
        if self.other is None or self._view is None:
            return frozenset()
        inside = [name for name, template in self.result.templates.items() if template.means]
        return self._view.graph.instances_using(inside)

    def shown_other(self) -> Graph | None:
        """The network or template in `other` that corresponds to the shown one."""
        view = self._view
        if self.other is None or not isinstance(view, TemplateView):
            return self.other
        return self.other.inside(view.template) if view.template in self.other.templates else None

    def follow(self, root: Document) -> None:
        """Follow another open file and end the comparison."""
        self.stop()  # first, since this disconnects all slots from the other document, which may be `root`
        if self._document is not None:
            self._document.changed.disconnect(self._on_changed)
            self._document.path_changed.disconnect(self._on_saved)
        self._document = root
        root.changed.connect(self._on_changed)
        root.path_changed.connect(self._on_saved)

    def show(self, document: Document) -> None:
        """Show another network or template of the open file."""
        self._view = document
        self.changed.emit()

    def _on_changed(self, _change: ChangeSet) -> None:
        if self.other is not None:
            self._later.start()

    def _on_saved(self) -> None:
        if self._follows_file and self._document is not None:
            self.other = self._document.graph.copy()
            self._compute()

    def _compute(self) -> None:
        self._later.stop()
        other, document = self.other, self._document
        self.result = (
            compare(other, document.graph) if other is not None and document is not None else NetworkComparison()
        )
        self.changed.emit()
