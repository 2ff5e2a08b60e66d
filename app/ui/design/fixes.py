"""Offering the fixes of findings, wherever a finding is shown."""

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
from designer.operators.fixes import Fix, Trial, finding_fixes
from designer.texts import tr

SLICE_MS = 30  # of trying fixes at a time


def fixes_of(document: Document, findings: Sequence[Diagnostic]) -> list[Fix]:
    """What mends any of these findings; each was tried on a copy of the network."""
    return finish(_finding(document, findings))


def _finding(document: Document, findings: Sequence[Diagnostic]) -> Steps[list[Fix]]:
    trial = Trial(document.graph, document.registry, document.inference)
    found: dict[str, Fix] = {}
    for finding in findings:
        for fix in (yield from finding_fixes(document.graph, document.registry, document.inference, finding, trial)):
            found.setdefault(fix.title, fix)
    return list(found.values())


class Search(QObject):
    """Looks for the fixes of findings, a slice at a time, so that a large network does not hold up the window.

    `found` brings the list of them, the same as `fixes_of`; `stopped` says that the network changed before.
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
        """Whether it is still looking."""
        return self._steps is not None

    def start(self, document: Document, findings: Sequence[Diagnostic]) -> None:
        """Look for these and for nothing else. The first slice is done at once: it is all of them in a small network."""
        self.stop()
        self._document, self._steps = document, _finding(document, findings)
        document.changed.connect(self._on_changed)
        document.states_changed.connect(self._on_changed)
        self._timer.start()
        self._turn()

    def stop(self) -> None:
        """Look no further."""
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
    """Do a fix as one step of the history and say so."""
    if context.document.do(fix.edit):
        context.message.emit("info", tr("Fixed: {what}. Ctrl+Z takes it back.", what=fix.title))


def fill(menu: QMenu, context: Context, findings: Sequence[Diagnostic]) -> None:
    """An entry for each fix, or one that says that there is none, at the top; they come once they are found."""
    head = menu.addAction(tr("Looking for fixes..."))
    head.setObjectName("fix.search")
    head.setEnabled(False)
    search = Search(menu)
    search.found.connect(partial(_put, menu, head, context))
    search.stopped.connect(partial(head.setText, tr("The network changed: open this menu again")))
    search.start(context.document, findings)


def _put(menu: QMenu, head: QAction, context: Context, found: Sequence[Fix]) -> None:
    """Entries for the fixes in front of `head`, which is no longer needed where there are some."""
    for number, fix in enumerate(found):
        action = QAction(fix.title.replace("&", "&&"), menu)
        action.setObjectName(f"fix.{number}")
        action.triggered.connect(partial(_apply, context, fix))
        menu.insertAction(head, action)
    if found:
        menu.removeAction(head)
    else:
        head.setText(tr("No fix is known: see Type Checking"))


def _apply(context: Context, fix: Fix, _checked: bool = False) -> None:
    apply(context, fix)


def add_menu(menu: QMenu, context: Context) -> None:
    """Where the one selected layer has findings: a menu of their fixes, at the top of a menu."""
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
