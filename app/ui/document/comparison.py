"""The open network beside another one: kept true while the network is edited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from app.ui.document.document import Document
from app.ui.document.template_view import TemplateView
from app.ui.widgets.texts import tr
from designer.graph.compare import Comparison, compare
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph

if TYPE_CHECKING:
    from app.ui.engine.context import Context

REST = 30  # ms after an edit


class DocumentComparison(QObject):
    """What the open document has become since `other`. `other` is None while nothing is compared."""

    changed = Signal()

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._context = context
        self._document: Document | None = None
        self._other_document: Document | None = None  # open too: followed
        self.title = ""  # of the other network
        self.other: Graph | None = None
        self.open_documents: Callable[[], list[Document]] = list
        self.result = Comparison()
        self._later = QTimer(self, singleShot=True, interval=REST, timeout=self._compute)
        context.root_changed.connect(self._on_root)
        context.document_changed.connect(lambda _document: self.changed.emit())

    def with_file(self, path: Path) -> None:
        """Compare with a document on disk. DiagnosticError when it cannot be read; then nothing changes."""
        from designer.files.document import read_document

        reading = read_document(path)
        if reading.graph is None:
            raise DiagnosticError(reading.diagnostics)
        self.with_graph(reading.graph, path.name)

    def with_saved(self) -> None:
        """Compare with the open document's own file as it was last saved."""
        path = self._context.root.path
        if path is not None:
            self.with_file(path)
            self.title = tr("the saved version")
            self.changed.emit()

    def with_graph(self, other: Graph, title: str) -> None:
        self._follow(None)
        self.other, self.title = other.copy(), title
        self._compute()

    def with_document(self, other: Document) -> None:
        """Compare with another open document, whose changes are followed too."""
        self._follow(other)
        self.other, self.title = other.graph, other.title
        self._compute()

    def stop(self) -> None:
        self._follow(None)
        self.other = None
        self._compute()

    def _follow(self, other: Document | None) -> None:
        if self._other_document is not None and isValid(self._other_document):  # type: ignore[no-untyped-call]
            self._other_document.changed.disconnect(self._on_changed)
            self._other_document.destroyed.disconnect(self.stop)
        self._other_document = other
        if other is not None:
            other.changed.connect(self._on_changed)
            other.destroyed.connect(self.stop)

    def shown(self) -> Comparison:
        """The differences in what is shown: the whole network, or the inside of a template."""
        document = self._context.document
        if isinstance(document, TemplateView):
            return self.result.templates.get(document.template, Comparison())
        return self.result

    def shown_instances(self) -> frozenset[str]:
        """The instances in what is shown whose template is different inside, also where that is deeper."""
        if self.other is None:
            return frozenset()
        inside = [name for name, template in self.result.templates.items() if template.means]
        return self._context.document.graph.instances_using(inside)

    def shown_other(self) -> Graph | None:
        """The other side of what is shown."""
        document = self._context.document
        if self.other is None or not isinstance(document, TemplateView):
            return self.other
        known = document.template in self.other.templates
        return self.other.inside(document.template) if known else None

    def _on_root(self, root: Document) -> None:
        self.stop()  # first: to let go of the other document lets go of all connections to it, and it may be `root`
        if self._document is not None:
            self._document.changed.disconnect(self._on_changed)
        self._document = root
        root.changed.connect(self._on_changed)

    def _on_changed(self, _change: ChangeSet) -> None:
        if self.other is not None:
            self._later.start()

    def _compute(self) -> None:
        self._later.stop()
        comparing = self.other is not None and self._context.has_document
        self.result = compare(self.other, self._context.root.graph) if comparing and self.other else Comparison()
        self.changed.emit()
