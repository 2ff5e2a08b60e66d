"""The open network beside another one: kept true while the network is edited."""

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

REST = 30  # ms after an edit


class DocumentComparison(QObject):
    """What the open document has become since `other`. `other` is None while nothing is compared."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._document: Document | None = None  # the open file
        self._view: Document | None = None  # what is shown of it
        self._other_document: Document | None = None  # open too: followed
        self.title = ""  # of the other network
        self.other: Graph | None = None
        self.open_documents: Callable[[], list[Document]] = list
        self.result = NetworkComparison()
        self._later = QTimer(self, singleShot=True, interval=REST, timeout=self._compute)

    def with_file(self, path: Path) -> None:
        """Compare with a document on disk. DiagnosticError when it cannot be read; then nothing changes."""
        from designer.files.document import read_document

        reading = read_document(path)
        if reading.graph is None:
            raise DiagnosticError(reading.diagnostics)
        self.with_graph(reading.graph, path.name)

    def with_saved(self) -> None:
        """Compare with the open document's own file as it was last saved."""
        if self._document is not None and self._document.path is not None:
            self.with_file(self._document.path)
            self.title = tr("the saved version")
            self.changed.emit()

    def with_graph(self, other: Graph, title: str) -> None:
        self._follow_other(None)
        self.other, self.title = other.copy(), title
        self._compute()

    def with_document(self, other: Document) -> None:
        """Compare with another open document, whose changes are followed too."""
        self._follow_other(other)
        self.other, self.title = other.graph, other.title
        self._compute()

    def stop(self) -> None:
        self._follow_other(None)
        self.other = None
        self._compute()

    def _follow_other(self, other: Document | None) -> None:
        if self._other_document is not None and isValid(self._other_document):  # type: ignore[no-untyped-call]
            self._other_document.changed.disconnect(self._on_changed)
            self._other_document.destroyed.disconnect(self.stop)
        self._other_document = other
        if other is not None:
            other.changed.connect(self._on_changed)
            other.destroyed.connect(self.stop)

    def shown(self) -> NetworkComparison:
        """The differences in what is shown: the whole network, or the inside of a template."""
        if isinstance(self._view, TemplateView):
            return self.result.templates.get(self._view.template, NetworkComparison())
        return self.result

    def shown_instances(self) -> frozenset[str]:
        """The instances in what is shown whose template is different inside, also where that is deeper."""
        if self.other is None or self._view is None:
            return frozenset()
        inside = [name for name, template in self.result.templates.items() if template.means]
        return self._view.graph.instances_using(inside)

    def shown_other(self) -> Graph | None:
        """The other side of what is shown."""
        view = self._view
        if self.other is None or not isinstance(view, TemplateView):
            return self.other
        return self.other.inside(view.template) if view.template in self.other.templates else None

    def follow(self, root: Document) -> None:
        """Another file is open."""
        self.stop()  # first: to let go of the other document lets go of all connections to it, and it may be `root`
        if self._document is not None:
            self._document.changed.disconnect(self._on_changed)
        self._document = root
        root.changed.connect(self._on_changed)

    def show(self, document: Document) -> None:
        """Something else is shown of it."""
        self._view = document
        self.changed.emit()

    def _on_changed(self, _change: ChangeSet) -> None:
        if self.other is not None:
            self._later.start()

    def _compute(self) -> None:
        self._later.stop()
        other, document = self.other, self._document
        self.result = (
            compare(other, document.graph) if other is not None and document is not None else NetworkComparison()
        )
        self.changed.emit()
