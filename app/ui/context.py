"""What all panels share: the open document, the selection, the inspected layer and the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.ui.document import Document
from designer.graph.edits import ChangeSet
from designer.operators.registry import Registry

if TYPE_CHECKING:
    from app.ui.analysis.controller import AnalysisController
    from app.ui.jobs.engine import EngineClient
    from app.ui.profiling.controller import ProfilingController


class Context(QObject):
    """Panels get this one object. They never talk to each other directly."""

    document_changed = Signal(Document)  # another document is shown now
    selection_changed = Signal(object)  # tuple of layer names, in the order of selection
    reveal_requested = Signal(str)  # show this layer on the canvas and select it
    inspect_requested = Signal(str)  # open the Channel Inspector for this layer
    add_requested = Signal(str)  # add a layer of this operator type where it suits the view
    analysis_requested = Signal()  # Run > Launch Analysis: prepare the network in the engine and show its output
    inference_requested = Signal()  # Run > Launch Inference: time N iterations in the engine and record the run
    agreement_wanted = Signal(object)  # show the document's code that was not agreed to; a callable: what follows a yes
    message = Signal(str, str)  # severity ("info", "warning", "error"), text: shown in the status bar

    def __init__(self, registry: Registry, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.registry = registry
        self._document: Document | None = None
        self._selection: tuple[str, ...] = ()
        self.engine: EngineClient | None = None
        self.analysis: AnalysisController | None = None
        self.profiling: ProfilingController | None = None

    @property
    def document(self) -> Document:
        if self._document is None:
            raise RuntimeError("no document is open yet")
        return self._document

    @property
    def has_document(self) -> bool:
        return self._document is not None

    def set_document(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._follow)
        self._document = document
        self._selection = ()
        self.document_changed.emit(document)
        document.changed.connect(self._follow)  # after the views, so that they know a new name before it is selected
        self.selection_changed.emit(())

    @property
    def selection(self) -> tuple[str, ...]:
        return self._selection

    def select(self, names: tuple[str, ...]) -> None:
        """Set the selection; tells listeners only when it is another one."""
        if names != self._selection:
            self._selection = names
            self.selection_changed.emit(names)

    def _follow(self, change: object) -> None:
        """Keep the selection true: renamed layers stay selected, removed ones do not."""
        if isinstance(change, ChangeSet) and change.removed and self._document is not None:
            names = (change.renamed.get(n, n) for n in self._selection)
            self.select(tuple(n for n in names if n in self._document.graph))
