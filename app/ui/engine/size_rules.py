"""The size contract of the open network, computed in the background when a view asks for it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets.background import Background
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import ChangeSet
from designer.operators.size_contract import SizeContract, size_contract
from designer.operators.size_fix import accept_every_size, is_free, obstacle
from designer.texts import tr

_PAUSE_MS = 300
AUTOMATIC = 2000  # layers up to which the contract is computed unasked: about two seconds in the background


class SizeRules(QObject):
    """`contract` is that of the network as it is now, or None until `request` has been answered with `changed`."""

    changed = Signal()

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.contract: SizeContract | None = None
        self.error = ""
        self._document: Document | None = None
        self._context = context
        self._wanted = False
        self._for: Document | None = None  # whose network is being computed; None if it has changed since
        self._background = Background(self)
        self._background.done.connect(self._done)
        self._background.failed.connect(lambda found: self._arrived(None, found[0].message))
        self._later = QTimer(self, singleShot=True, interval=_PAUSE_MS, timeout=self._start)
        context.root_changed.connect(self._watch)
        if context.has_document:
            self._watch(context.root)

    def request(self, *, asked: bool = False) -> None:
        """Compute the contract unless it is known. That of a large network is computed only if the user has `asked`."""
        if self.contract is None and not self.error and not self._wanted and (asked or not self.large):
            self._wanted = True
            self._later.start()

    @property
    def large(self) -> bool:
        """Whether computing the contract would slow down the window for a while."""
        return self._document is not None and len(self._document.graph) > AUTOMATIC

    def refusal(self, sizes: dict[str, tuple[int, int]]) -> str:
        """Why the network does not run at these sizes, (height, width) by input layer; empty if it does or is not known."""
        contract = self.contract
        if contract is None or not contract.inputs:
            return ""
        known = {layer: size for layer, size in sizes.items() if contract.of(layer) is not None}
        failure = contract.refusal(known) if known else None
        if failure is None:
            return ""
        rules = [
            tr(
                "'{layer}' is {width} x {height}; width: {columns}, height: {rows} (because of {because})",
                layer=layer,
                width=size[1],
                height=size[0],
                columns=item.width,
                rows=item.height,
                because=", ".join(dict.fromkeys((*item.width.because, *item.height.because))),
            )
            for layer, size in known.items()
            if (item := contract.of(layer)) is not None and not (size[0] in item.height and size[1] in item.width)
        ]
        return "; ".join(rules) or f"{failure.layer}: {failure.message}"

    @property
    def fixable(self) -> bool:
        """Whether padding and cropping can make every size work, and are needed."""
        return self.contract is not None and not is_free(self.contract) and not obstacle(self.contract)

    def fix(self) -> bool:
        """Add the padding and cropping as one edit. Returns whether the network has changed."""
        document, contract = self._document, self.contract
        if document is None or contract is None:
            return False
        try:
            edit = accept_every_size(document.graph, document.registry, contract)
        except DiagnosticError as error:
            document.refused.emit(error.diagnostics)
            return False
        return bool(edit) and document.insert(edit)

    def _watch(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
        self._document = document
        document.changed.connect(self._on_change)
        self._forget()

    def _on_change(self, change: ChangeSet) -> None:
        if change.computed or change.removed:  # a parameter can matter at other sizes only, such as reflected padding
            self._forget()

    def _forget(self) -> None:
        self.contract, self.error, self._for, self._wanted = None, "", None, False
        self.changed.emit()

    def _start(self) -> None:
        document = self._document
        if document is None or not self._wanted:
            return
        if self._background.running:
            self._later.start()
            return
        self._for = document
        graph, registry = document.graph.copy(), document.registry
        self._background.start(lambda: size_contract(graph, registry))

    def _done(self, contract: object) -> None:
        assert isinstance(contract, SizeContract)
        self._arrived(contract, "")

    def _arrived(self, contract: SizeContract | None, error: str) -> None:
        if self._for is None:  # the network has changed since
            return
        self.contract, self.error, self._wanted = contract, error, False
        self.changed.emit()


def size_rules_of(context: Context) -> SizeRules:
    """The one object of a window."""
    found: SizeRules | None = context.findChild(SizeRules, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return found or SizeRules(context)
