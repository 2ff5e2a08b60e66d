"""Type Checking: all findings about the network, updated while editing, with links to their layers and fixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QSize,
    QSortFilterProxyModel,
    Qt,
    QTimer,
)
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMenu,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.design import fixes as fixing
from app.ui.design.fix_bar import FixBar
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.message import ICONS
from app.ui.widgets.row_table import style_rows
from app.ui.widgets.sentences import sentence
from app.ui.widgets.tooltips import plain_tip
from designer.graph.diagnostics import Diagnostic, Severity
from designer.operators.fixes import Fix
from designer.texts import mark, tr, tr_data, trn

Index = QModelIndex | QPersistentModelIndex
COLUMNS = (mark("Severity"), mark("Layer"), mark("Where"), mark("Problem"), mark("What to do"))
_SEVERITIES = {Severity.ERROR: mark("Error"), Severity.WARNING: mark("Warning"), Severity.INFO: mark("Note")}
_NO_DOCUMENT = mark("Open or create a network to see its problems here.")
_FITTED_ROWS = 200  # measuring more rows would cause a noticeable delay
_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
LARGE = 2000  # layers of a network whose findings are listed after it has been shown
_SORT_ROLE = Qt.ItemDataRole.UserRole


class FindingsModel(QAbstractTableModel):
    """A table model with one row per finding."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.findings: tuple[Diagnostic, ...] = ()

    def show_findings(self, findings: Sequence[Diagnostic]) -> None:
        self.beginResetModel()
        self.findings = tuple(findings)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.findings)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        horizontal = orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return tr_data(COLUMNS[section]) if horizontal else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        finding = self.findings[index.row()]
        texts = row_texts(finding)
        if role == Qt.ItemDataRole.DisplayRole:
            return texts[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            code = f" [{finding.code}]" if index.column() == 3 else ""
            return plain_tip(texts[index.column()] + code)
        if role == Qt.ItemDataRole.DecorationRole and index.column() == 0:
            return theme.icon(ICONS[finding.severity.value], finding.severity.value)
        if role == _SORT_ROLE:
            return f"{_RANK[finding.severity]}" if index.column() == 0 else texts[index.column()].casefold()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        return None


class _Roomy(QStyledItemDelegate):
    """Adds vertical padding to cells."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return super().sizeHint(option, index) + QSize(0, 8)


class _Filter(QSortFilterProxyModel):
    """Accepts rows of the chosen severities that contain all search words."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.hidden: set[Severity] = set()
        self.words: tuple[str, ...] = ()
        self.setSortRole(_SORT_ROLE)

    def refresh(self) -> None:
        self.invalidate()

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:
        model = self.sourceModel()
        if not isinstance(model, FindingsModel):
            return False
        finding = model.findings[row]
        if finding.severity in self.hidden:
            return False
        if not self.words:
            return True
        text = " ".join((*row_texts(finding), finding.code)).casefold()
        return all(word in text for word in self.words)


class TypeCheckingPanel(QWidget):
    panel_id = "type_checking"
    title = "Type Checking"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("type_checking")
        self._context = context
        self._document: Document | None = None
        self._fixed_row: int | None = None  # the row whose finding was just fixed
        self._offered: Diagnostic | None = None  # the finding that is current because it was the first
        self._model = FindingsModel(self)
        self._rows = _Filter(self)
        self._rows.setSourceModel(self._model)
        self._fit = QTimer(self, singleShot=True, interval=0)
        self._table = self._make_table()
        self._fit.timeout.connect(self._fit_rows)
        self._empty = EmptyState("type_checking", "check-circle-outline", tr_data(_NO_DOCUMENT))
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self._table)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addLayout(self._make_bar())
        layout.addWidget(self._stack, 1)
        self._fixes = FixBar("type_checking.fixes")
        self._fixes.chosen.connect(self._apply_fix)
        layout.addWidget(self._fixes)
        self._find_fixes = QTimer(self, singleShot=True, interval=0, timeout=self._show_fixes)
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self._refresh)
        self._search = fixing.FixSearch(self)
        self._search.found.connect(self._on_found)
        self._search.stopped.connect(self._later.start)
        context.document_changed.connect(self._watch)
        theme.changes().changed.connect(self._table.viewport().update)
        self._watch(context.document if context.has_document else None)

    def _make_bar(self) -> QHBoxLayout:
        self._filter = QLineEdit()
        self._filter.setObjectName("type_checking.filter")
        self._filter.setAccessibleName(tr("Filter problems"))
        self._filter.setPlaceholderText(tr("Filter by layer, word or code"))
        self._filter.setClearButtonEnabled(True)
        self._filter.textChanged.connect(self._refilter)
        bar = QHBoxLayout()
        bar.setSpacing(8)
        bar.addWidget(self._filter, 1)
        self._toggles: dict[Severity, QToolButton] = {}
        for severity in Severity:
            button = QToolButton()
            button.setObjectName(f"type_checking.{severity.value}")
            button.setCheckable(True)
            button.setChecked(True)
            button.setAutoRaise(True)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            theme.set_icon(button, ICONS[severity.value], severity.value)
            button.toggled.connect(self._refilter)
            bar.addWidget(button)
            self._toggles[severity] = button
        return bar

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setObjectName("type_checking.findings")
        table.setAccessibleName(tr("Problems"))
        table.setModel(self._rows)
        style_rows(table)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setWordWrap(True)
        table.setItemDelegate(_Roomy(table))
        header = table.horizontalHeader()
        table.setMinimumHeight(
            header.sizeHint().height() + 2 * table.fontMetrics().height()
        )  # room for the fixes below
        for column in range(3):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        for column in (3, 4):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        header.sectionResized.connect(lambda *_: self._fit.start())
        header.setResizeContentsPrecision(64)
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(self._show_menu)
        table.selectionModel().currentChanged.connect(lambda *_: self._find_fixes.start())
        table.clicked.connect(self._reveal)
        table.activated.connect(self._reveal)
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), table)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self._copy)
        return table

    # --- following the document --------------------------------------------------------------------------------

    def _watch(self, document: object) -> None:
        self._search.stop()
        if self._document is not None:
            self._document.changed.disconnect(self._schedule)
            self._document.states_changed.disconnect(self._schedule)
        if isinstance(document, Document):
            self._document = document
            document.changed.connect(self._schedule)
            document.states_changed.connect(self._schedule)  # also emitted for findings without a change
            if len(document.graph) > LARGE:
                self._model.show_findings(())
                self._later.start()
                return
        self._refresh()

    def _schedule(self, _change: object) -> None:
        self._later.start()  # many edits in one gesture cause one refresh

    def _refresh(self) -> None:
        found = unique(self._document.diagnostics()) if self._document is not None else ()
        if found != self._model.findings:
            current = self._finding(self._table.currentIndex())
            self._model.show_findings(found)
            if current in found:
                self._make_current(self._rows.mapFromSource(self._model.index(found.index(current), 0)))
            elif self._fixed_row is not None:  # continue with the finding that took the row of the fixed one
                self._make_current(self._rows.index(min(self._fixed_row, self._rows.rowCount() - 1), 0))
            self._fixed_row = None
        self._offer_first()
        self._find_fixes.start()  # even if the findings are unchanged, since their fixes may differ
        for severity, button in self._toggles.items():
            count = sum(1 for d in found if d.severity is severity)
            if severity is Severity.ERROR:
                label, spoken = trn("{count} error", "{count} errors", count), tr("Show errors, {count}", count=count)
                tip = tr("Show or hide the errors")
            elif severity is Severity.WARNING:
                label = trn("{count} warning", "{count} warnings", count)
                spoken, tip = tr("Show warnings, {count}", count=count), tr("Show or hide the warnings")
            else:
                label, spoken = trn("{count} note", "{count} notes", count), tr("Show notes, {count}", count=count)
                tip = tr("Show or hide the notes")
            button.setText(label)
            button.setAccessibleName(spoken)
            button.setToolTip(tip)
        self._show()

    def _offer_first(self) -> None:
        """Make the first finding current, whose fixes are shown without a click, unless the user has chosen another one."""
        if self._finding(self._table.currentIndex()) in (None, self._offered):
            first = self._rows.index(0, 0)
            self._make_current(first)
            self._offered = self._finding(first)

    def _make_current(self, index: Index) -> None:
        """Make a row current and select it alone. The view would toggle it while Ctrl is held, as for Undo."""
        flags = QItemSelectionModel.SelectionFlag
        self._table.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)

    def _refilter(self) -> None:
        self._rows.words = tuple(self._filter.text().casefold().split())
        self._rows.hidden = {s for s, button in self._toggles.items() if not button.isChecked()}
        self._rows.refresh()
        self._offer_first()
        if not self._table.currentIndex().isValid():  # Qt reports no change when the last row is hidden
            self._find_fixes.start()
        self._show()

    def _show(self) -> None:
        shown, total = self._rows.rowCount(), len(self._model.findings)
        if self._document is None:
            self._empty.show_text(tr_data(_NO_DOCUMENT))
        elif total == 0:
            inside = self._document.root is not self._document  # the status bar counts those of the whole network
            text = tr("No problems in this template.") if inside else tr("No problems found.")
            self._empty.show_text(text, "check-circle-outline")
        elif shown == 0:
            self._empty.show_text(
                trn("The filter hides the only problem.", "The filter hides all {count} problems.", total),
                "filter-outline",
            )
        self._stack.setCurrentWidget(self._table if shown else self._empty)
        self._fit.start()

    def _fit_rows(self) -> None:
        if self._rows.rowCount() <= _FITTED_ROWS:
            self._table.resizeRowsToContents()

    # --- gestures ----------------------------------------------------------------------------------------------

    def _finding(self, index: QModelIndex) -> Diagnostic | None:
        return self._model.findings[self._rows.mapToSource(index).row()] if index.isValid() else None

    def _reveal(self, index: QModelIndex) -> None:
        finding = self._finding(index)
        if finding is not None and self._document is not None:
            self._context.show_finding(finding)

    def _show_fixes(self) -> None:
        """Offer the fixes of the current finding only: verifying fixes takes time."""
        finding = self._finding(self._table.currentIndex())
        if finding is None or self._document is None or not self.isVisible():
            self._search.stop()
            self._fixes.show_fixes(None)
        else:
            self._search.start(self._document, [finding])
            if self._search.active:
                self._fixes.show_search()

    def _on_found(self, found: object) -> None:
        self._fixes.show_fixes(cast(list[Fix], found))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._find_fixes.start()

    def _apply_fix(self, fix: object) -> None:
        if isinstance(fix, Fix):
            self._fixed_row = self._table.currentIndex().row()
            fixing.apply(self._context, fix)

    def _show_menu(self, place: QPoint) -> None:
        finding = self._finding(self._table.indexAt(place))
        if finding is None:
            return
        menu = QMenu(self)
        menu.setObjectName("type_checking.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        fixing.fill(menu, self._context, [finding])
        menu.addSeparator()
        menu.addAction(tr("Copy"), self._copy)
        menu.popup(self._table.viewport().mapToGlobal(place))

    def _copy(self) -> None:
        rows = sorted({index.row() for index in self._table.selectionModel().selectedRows()})
        found = [self._finding(self._rows.index(row, 0)) for row in rows]
        QApplication.clipboard().setText("\n".join(str(d) for d in found if d is not None))


def row_texts(finding: Diagnostic) -> tuple[str, str, str, str, str]:
    """The cells of a finding, in the order of `COLUMNS`."""
    where = (
        finding.port or finding.parameter or (tr("line {line}", line=finding.line) if finding.line is not None else "")
    )
    return (
        tr_data(_SEVERITIES[finding.severity]),
        finding.layer or "",
        where,
        sentence(finding.message),
        sentence(finding.remedy),
    )


def unique(findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Drop findings that both the reader and inference report, and sort errors first, otherwise in the given order."""
    kept: dict[tuple[str | None, ...], Diagnostic] = {}
    for d in findings:
        kept.setdefault((d.code, d.layer, d.port, d.parameter, d.message), d)
    return tuple(sorted(kept.values(), key=lambda d: _RANK[d.severity]))
