"""Offering the fixes of findings, wherever a finding is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtWidgets import QMenu

from app.ui import theme
from app.ui.context import Context
from app.ui.document import Document
from app.ui.texts import tr
from designer.graph.diagnostics import Diagnostic
from designer.operators.fixes import Fix, Trial, fixes


def fixes_of(document: Document, findings: Sequence[Diagnostic]) -> list[Fix]:
    """What mends any of these findings; each was tried on a copy of the network."""
    trial = Trial(document.graph, document.registry, document.inference)
    found: dict[str, Fix] = {}
    for finding in findings:
        for fix in fixes(document.graph, document.registry, document.inference, finding, trial):
            found.setdefault(fix.title, fix)
    return list(found.values())


def apply(context: Context, fix: Fix) -> None:
    """Do a fix as one step of the history and say so."""
    if context.document.do(fix.edit):
        context.message.emit("info", tr("Fixed: {what}. Ctrl+Z takes it back.", what=fix.title))


def fill(menu: QMenu, context: Context, findings: Sequence[Diagnostic]) -> None:
    """An entry for each fix, or one that says that there is none."""
    found = fixes_of(context.document, findings)
    for number, fix in enumerate(found):
        action = menu.addAction(fix.title.replace("&", "&&"))
        action.setObjectName(f"fix.{number}")
        action.triggered.connect(partial(_apply, context, fix))
    if not found:
        none = menu.addAction(tr("No fix is known: see Type Checking"))
        none.setEnabled(False)


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
