"""Search for fixes of findings, and menus that offer them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import theme
from designer.graph.diagnostics import Diagnostic
from designer.graph.inference import Steps, finish
from designer.operators.fixes import Fix, FixTrial, finding_fixes
from designer.texts import tr

SLICE_MS = 30  # time budget per event loop turn


def fixes_of(document: Document, findings: Sequence[Diagnostic]) -> list[Fix]:
    """The fixes of any of these findings, each verified on a copy of the network."""
    return finish(_search(document, findings))


def _search(document: Document, findings: Sequence[Diagnostic]) -> Steps[list[Fix]]:
    trial = FixTrial(document.graph, document.registry, document.inference)
    found: dict[str, Fix] = {}
    for finding in findings:
        for fix in (yield from finding_fixes(document.graph, document.registry, document.inference, finding, trial)):
            found.setdefault(fix.title, fix)
    return list(found.values())


class FixSearch(QObject):
    """Searches for fixes of findings in time slices, so that a large network does not block the window.

    `found` carries the same list as `fixes_of`; `stopped` is emitted if the network changed during the search.
    """

    found = Signal(object)
    stopped = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._document: Document | None = None
        self._steps: Steps[list[Fix]] | None = None
        self._timer = QTimer(self, interval=0, timeout=self._turn)

    @property
    def active(self) -> bool:
        """Whether a search is running."""
        return self._steps is not None

    def start(self, document: Document, findings: Sequence[Diagnostic]) -> None:
        """Start a search, replacing a running one. The first slice runs immediately and suffices for a small network."""
        self.stop()
        self._document, self._steps = document, _search(document, findings)
        document.changed.connect(self._on_changed)
        document.states_changed.connect(self._on_changed)
        self._timer.start()
        self._turn()

    def stop(self) -> None:
        """Stop the search."""
        self._timer.stop()
        self._steps = None
        if self._document is not None:
            self._document.changed.disconnect(self._on_changed)
            self._document.states_changed.disconnect(self._on_changed)
            self._document = None

    def _on_changed(self, _what: object) -> None:
        self.stop()
        self.stopped.emit()

    def _turn(self) -> None:
        clock = QElapsedTimer()
        clock.start()
        steps = self._steps
        try:
            while steps is not None:
                next(steps)
                if clock.elapsed() >= SLICE_MS:
                    return
        except StopIteration as end:
            self.stop()
            self.found.emit(end.value)


def apply(context: Context, fix: Fix) -> None:
    """Apply a fix as one undoable edit and show a message."""
    if context.document.insert(fix.edit):
        context.message.emit("info", tr("Fixed: {what}. Press Ctrl+Z to undo.", what=fix.title))


def fill(menu: QMenu, context: Context, findings: Sequence[Diagnostic]) -> None:
    """Add an entry for each fix, once found, or one that says that there are none."""
    head = menu.addAction(tr("Searching for fixes..."))
    head.setObjectName("fix.search")
    head.setEnabled(False)
    search = FixSearch(menu)
    search.found.connect(partial(_put, menu, head, context))
    search.stopped.connect(partial(head.setText, tr("The network changed. Open this menu again")))
    search.start(context.document, findings)


def _put(menu: QMenu, head: QAction, context: Context, found: Sequence[Fix]) -> None:
    """Insert entries for the fixes before `head`, which is removed if there are any."""
    for number, fix in enumerate(found):
        action = QAction(fix.title.replace("&", "&&"), menu)
        action.setObjectName(f"fix.{number}")
        action.triggered.connect(partial(_apply, context, fix))
        menu.insertAction(head, action)
    if found:
        menu.removeAction(head)
    else:
        head.setText(tr("No fix available: see Type Checking"))


def _apply(context: Context, fix: Fix, _checked: bool = False) -> None:
    apply(context, fix)


def add_menu(menu: QMenu, context: Context) -> None:
    """Insert a menu of fixes at the top of a menu if the single selected layer has findings."""
    names = context.selection
    state = context.document.inference.states.get(names[0]) if context.has_document and len(names) == 1 else None
    if state is None or not state.diagnostics:
        return
    part = QMenu(tr("Fi&x"), menu)
    part.setObjectName("canvas.menu.fix")
    part.setIcon(theme.icon("wrench-outline"))
    fill(part, context, state.diagnostics)
    first = menu.actions()[0] if menu.actions() else None
    if first is not None:
        menu.insertMenu(first, part)
        menu.insertSeparator(first)
    else:
        menu.addMenu(part)
