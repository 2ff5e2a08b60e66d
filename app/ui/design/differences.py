"""Differences: what was added, removed, renamed, changed and moved relative to another network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from weakref import ref

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QMenu,
    QStackedWidget,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.file_dialogs import open_filter
from app.ui.widgets.tooltips import plain_tip
from designer.files.document import DOCUMENTS
from designer.graph.compare import NetworkComparison
from designer.graph.diagnostics import DiagnosticError
from designer.texts import mark, tr, tr_data

LAYER = Qt.ItemDataRole.UserRole
MARKS: dict[str, theme.RoleName] = {"+": "positive", "−": "negative", "~": "warning", "=": "info", "→": "muted"}
_NOTHING = mark("Compare this network with its saved version or another document.")


class DifferencesPanel(QWidget):
    panel_id = "differences"
    title = "Differences"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("differences")
        self._context = context
        self.head = QLabel()
        self.head.setObjectName("differences.summary")
        self.head.setAccessibleName(tr("Summary"))
        self.head.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.choose = self._button("choose", tr("Compare &With"), tr("Choose the network to compare with"))
        self.choose.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._menu = menu = QMenu(self.choose)
        menu.setObjectName("differences.menu")
        self.saved = menu.addAction(tr("&Saved Version"))
        self.saved.setObjectName("differences.saved")
        self.saved.triggered.connect(self.with_saved)
        self.file = menu.addAction(tr("Another &Document..."))
        self.file.setObjectName("differences.file")
        self.file.triggered.connect(self.ask_file)
        self._others: list[QAction] = []
        menu.aboutToShow.connect(self._refresh_menu)
        self.choose.setMenu(menu)
        self.copy = self._button("copy", tr("C&opy"), tr("Copy all differences as text"))
        self.copy.clicked.connect(self.copy_text)
        self.close_button = self._button(
            "stop", tr("&End Comparison"), tr("End the comparison and remove its marks from the canvas")
        )
        self.close_button.clicked.connect(context.comparison.stop)
        self.tree = QTreeWidget()
        self.tree.setObjectName("differences.list")
        self.tree.setAccessibleName(tr("Differences"))
        self.tree.setColumnCount(3)
        self.tree.setHeaderLabels([tr("Change"), tr("Layer"), tr("Before and after")])
        self.tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.tree.header().setStretchLastSection(True)
        self.tree.setAlternatingRowColors(True)
        self.tree.itemActivated.connect(self._reveal)
        self.tree.itemClicked.connect(self._reveal)
        self.empty = EmptyState("differences", "compare", tr_data(_NOTHING), tr("Compare With Saved Version"))
        self.empty.triggered.connect(self.with_saved)
        self._lay_out()
        context.comparison.changed.connect(self._show)
        theme.changes().changed.connect(self._show)
        self._show()

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.addWidget(self.choose)
        bar.addWidget(self.head, 1)
        bar.addWidget(self.copy)
        bar.addWidget(self.close_button)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.tree)
        box = QVBoxLayout(self)
        box.setContentsMargins(8, 8, 8, 8)
        box.setSpacing(8)
        box.addLayout(bar)
        box.addWidget(self._stack, 1)

    def _button(self, name: str, text: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setObjectName(f"differences.{name}")
        button.setText(text)
        button.setAccessibleName(text.replace("&", ""))
        button.setToolTip(tip)
        return button

    def choose_other(self) -> None:
        """Ask what to compare with."""
        self._menu.popup(self.choose.mapToGlobal(self.choose.rect().bottomLeft()))

    # --- commands ------------------------------------------------------------------------------

    def with_saved(self) -> None:
        if self._context.has_document and self._context.root.path is None:
            self._context.message.emit(
                "warning", tr("Cannot compare: this network has no saved version. Save it first.")
            )
            return
        self._try(self._context.comparison.with_saved)

    def ask_file(self) -> None:
        file = self._context.root.file if self._context.has_document else None
        folder = file.parent if file is not None else Path.home()
        name, _ = QFileDialog.getOpenFileName(self, tr("Compare With"), str(folder), open_filter(DOCUMENTS))
        if name:
            self.with_file(Path(name))

    def with_file(self, path: Path) -> None:
        self._try(lambda: self._context.comparison.with_file(path))

    def _try(self, compare: object) -> None:
        from app.ui.widgets.findings import show_findings

        if not callable(compare) or not self._context.has_document:
            return
        try:
            compare()
        except DiagnosticError as error:
            show_findings(tr("Not Compared"), tr("The other network could not be read."), error.diagnostics, self)

    def copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self._context.comparison.result.text())

    def _reveal(self, item: QTreeWidgetItem, _column: int = 0) -> None:
        name = str(item.data(0, LAYER) or "")
        if name and name in self._context.document.graph:
            self._context.reveal_requested.emit(name)

    # --- display ---------------------------------------------------------------------------------------------

    def _refresh_menu(self) -> None:
        has = self._context.has_document and self._context.root.path is not None
        self.saved.setEnabled(has)
        self.saved.setToolTip("" if has else tr("this network has no saved version"))
        menu = self.choose.menu()
        for action in self._others:
            menu.removeAction(action)
            action.deleteLater()
        comparison = self._context.comparison
        present = self._context.root if self._context.has_document else None
        self._others = []
        for document in comparison.open_documents():
            if document is not present:
                action = menu.addAction(document.title.replace("&", "&&"))
                action.triggered.connect(partial(self._with_open, ref(document)))
                self._others.append(action)

    def _with_open(self, other: ref[Document], _on: bool = False) -> None:
        document = other()
        if document is not None:  # it may have been closed
            self._context.comparison.with_document(document)

    def _show(self, *_args: object) -> None:
        comparison = self._context.comparison
        comparing = comparison.other is not None
        self._stack.setCurrentWidget(self.tree if comparing else self.empty)
        self.copy.setEnabled(comparing and bool(comparison.result))
        self.close_button.setEnabled(comparing)
        self.tree.clear()
        if not comparing:
            self.head.setText("")
            return
        shown = comparison.shown()
        self.head.setText(tr("Since {name}: {summary}", name=comparison.title, summary=shown.summary()))
        for sign, kind, layer, details in rows(shown):
            item = QTreeWidgetItem([f"{sign} {kind}", layer, details[0] if len(details) == 1 else ""])
            item.setData(0, LAYER, layer)
            item.setForeground(0, theme.color(MARKS[sign]))
            item.setToolTip(2, plain_tip("\n".join(details)))
            if len(details) > 1:
                item.setText(2, tr("{count} values", count=len(details)))
                for detail in details:
                    item.addChild(QTreeWidgetItem(["", "", detail]))
            self.tree.addTopLevelItem(item)
            item.setExpanded(len(details) <= 6)


def rows(found: NetworkComparison) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield (sign, kind, layer or other item, details) for every difference."""
    for name in found.added:
        yield "+", tr("added"), name, [found.types.get(name, "")]
    for name in found.removed:
        yield "−", tr("removed"), name, [found.types.get(name, "")]
    for old, new in found.renamed.items():
        yield "=", tr("renamed"), new, [f"{old} → {new}"]
    for name in sorted(found.changed.keys() | found.rewired.keys()):
        values = (*found.changed.get(name, ()), *found.rewired.get(name, ()))
        yield "~", tr("changed"), name, [str(value) for value in values]
    yield from _template_rows(found)
    for value in found.frames:
        yield "~", tr("frame"), "", [str(value)]
    for value in found.properties:
        yield "~", tr("document"), "", [str(value)]
    for name, (before, after) in found.moved.items():
        yield "→", tr("moved"), name, [f"{before[0]}, {before[1]} → {after[0]}, {after[1]}"]


def _template_rows(found: NetworkComparison) -> Iterator[tuple[str, str, str, list[str]]]:
    for name in found.templates_added:
        yield "+", tr("added template"), name, [""]
    for name in found.templates_removed:
        yield "−", tr("removed template"), name, [""]
    for name, inside in found.templates.items():
        yield "~", tr("changed template"), name, [inside.summary()]
