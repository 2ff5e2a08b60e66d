"""Operators: the cost of every step of a profiled run, sorted by the saving at the roofline."""

from __future__ import annotations

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QPoint, Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QStackedWidget,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, profiling_of
from app.ui.profile.columns import COLUMNS
from app.ui.profile.dialogs import save_record
from app.ui.profile.heat_bar import HeatBarDelegate
from app.ui.profile.table_model import OperatorModel, OperatorProxy
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from designer.graph.template import enclosing
from designer.profiling.figures import text
from designer.profiling.report import Group
from designer.texts import tr, trn
from designer.units import quantity

WIDEST = 220  # initial maximum width of a text column in pixels


class OperatorTablePanel(QWidget):
    """The table of steps. The selections of rows and of layers follow each other."""

    panel_id = "operator_table"
    title = "Operators"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("operator_table")
        self.setAccessibleName(tr("Operators"))
        self._context = context
        self._profiling = profiling_of(context)
        self._following = False
        self._sized = False
        self._empty = EmptyState(
            "operator_table",
            "table",
            tr("Launch a profiled run to see the cost of every operator here."),
            tr("Launch Inference"),
        )
        self._empty.triggered.connect(context.inference_requested)
        self.model = OperatorModel(self)
        self.proxy = OperatorProxy(self)
        self.proxy.setSourceModel(self.model)
        self.table = self._make_table()
        self.filter = QLineEdit()
        self.filter.setObjectName("operator_table.filter")
        self.filter.setAccessibleName(tr("Filter operators"))
        self.filter.setPlaceholderText(tr("Filter by layer or type"))
        self.filter.setToolTip(tr("Show only steps whose layers or types contain these words"))
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self.proxy.set_words)
        self.summary = QLabel()
        self.summary.setObjectName("operator_table.summary")
        self.summary.setAccessibleName(tr("Summary of the run and of the selected steps"))
        self.summary.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._save = QToolButton()
        self._save.setObjectName("operator_table.save")
        self._save.setAccessibleName(tr("Save the table"))
        self._save.setToolTip(tr("Save the table as CSV, or the whole record as JSON"))
        theme.set_icon(self._save, "content-save-outline")
        self._save.clicked.connect(self.save)
        top = QHBoxLayout()
        top.addWidget(self.filter, 1)
        top.addWidget(self.summary, 3)
        top.addWidget(self._save)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(top)
        column.addWidget(self.table, 1)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(page)
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        main.addWidget(self._stack)
        self._profiling.current_changed.connect(self._on_current)
        context.selection_changed.connect(self._on_layers)
        self._show(self._profiling.current)

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setObjectName("operator_table.table")
        table.setAccessibleName(tr("Operators of the run"))
        table.setModel(self.proxy)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.setAlternatingRowColors(True)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setSortingEnabled(True)
        table.sortByColumn(_column("saving"), Qt.SortOrder.DescendingOrder)
        rows = table.verticalHeader()
        rows.hide()
        rows.setDefaultSectionSize(table.fontMetrics().height() + 8)
        table.horizontalHeader().setSectionsMovable(True)
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        for number, column in enumerate(COLUMNS):
            if column.heat:
                table.setItemDelegateForColumn(number, HeatBarDelegate(table))
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(self._menu)
        table.doubleClicked.connect(lambda index: self._reveal(self.proxy.group_at(index.row())))
        table.selectionModel().selectionChanged.connect(self._select_layers)
        copy = QShortcut(QKeySequence.StandardKey.Copy, table)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy_rows)
        return table

    def selected(self) -> list[Group]:
        """The steps of the selected rows, from top to bottom."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self.proxy.group_at(row) for row in rows]

    def save(self) -> None:
        if self._profiling.current is not None:
            save_record(self, self._profiling, self._profiling.current)

    def copy_rows(self) -> None:
        """Copy the selected rows, or all rows, as tab-separated text with headers."""
        rows = sorted({i.row() for i in self.table.selectionModel().selectedRows()}) or range(self.proxy.rowCount())
        lines = ["\t".join(column.header.replace("\n", " / ") for column in COLUMNS)]
        for row in rows:
            cells = (self.proxy.index(row, column).data() for column in range(len(COLUMNS)))
            lines.append("\t".join(str(cell) for cell in cells))
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _show(self, entry: Entry | None) -> None:
        self._following = True  # the reset clears the selection, which must not select layers
        self.model.show(entry.record if entry is not None else None)
        self._following = False
        self._stack.setCurrentIndex(1 if entry is not None else 0)
        if entry is not None and not self._sized:
            self._sized = True
            self.table.resizeColumnsToContents()
            for number, column in enumerate(COLUMNS):
                if column.text is not None and self.table.columnWidth(number) > WIDEST:
                    self.table.setColumnWidth(number, WIDEST)
        self._follow_layers(self._context.paths(self._context.selection))
        self._show_summary()

    def _show_summary(self) -> None:
        entry = self._profiling.current
        if entry is None:
            self.summary.clear()
            return
        groups, total = self.selected(), entry.record.total
        if not groups:
            steps = len(entry.record.groups)
            self.summary.setText(
                trn(
                    "{count} step  ·  {time}  ·  {flops}  ·  {compute_rate}  ·  roofline {roof}",
                    "{count} steps  ·  {time}  ·  {flops}  ·  {compute_rate}  ·  roofline {roof}",
                    steps,
                    time=text(total["time"]),
                    flops=text(total["flops"]),
                    compute_rate=text(total["compute_rate"]),
                    roof=text(total["roof"]),
                )
            )
            return
        seconds = sum(g.figures["time"].value or 0.0 for g in groups)
        share = sum(g.figures["share"].value or 0.0 for g in groups)
        flops = sum(g.figures["flops"].value or 0.0 for g in groups)
        self.summary.setText(
            tr(
                "{count} selected  ·  {seconds} ({share})  ·  ~{flops}",
                count=len(groups),
                seconds=quantity(seconds, "s"),
                share=quantity(share, "%"),
                flops=quantity(flops, "FLOP"),
            )
        )

    def _on_current(self, entry: object) -> None:
        self._show(self._profiling.current)

    # --- selection ---------------------------------------------------------------------------------------------

    def _select_layers(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        self._show_summary()
        if self._following or not self._context.has_document:
            return
        shown = self._context.in_sight
        names = dict.fromkeys(n for g in self.selected() for layer in g.layers if (n := shown(layer)))
        self._following = True
        self._context.select(tuple(names))
        self._following = False

    def _on_layers(self, names: object) -> None:
        self._follow_layers(self._context.paths(self._context.selection))

    def _follow_layers(self, names: tuple[str, ...]) -> None:
        if self._following:
            return
        wanted = set(names)
        chosen = QItemSelection()
        last = self.proxy.columnCount() - 1
        first = None
        for row in range(self.proxy.rowCount()):
            if wanted & {name for layer in self.proxy.group_at(row).layers for name in enclosing(layer)}:
                chosen.select(self.proxy.index(row, 0), self.proxy.index(row, last))
                first = row if first is None else first
        self._following = True
        self.table.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self._following = False
        if first is not None:
            self.table.scrollTo(self.proxy.index(first, 0))
        self._show_summary()

    def _reveal(self, group: Group) -> None:
        if self._context.has_document:
            self._context.reveal(group.layers[0])

    def _menu(self, place: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        groups = self.selected()
        reveal = menu.addAction(theme.icon("crosshairs-gps"), tr("Show on Canvas"))
        reveal.setEnabled(bool(groups))
        reveal.triggered.connect(lambda: self._reveal(groups[0]))
        menu.addAction(theme.icon("content-copy"), tr("Copy Rows"), self.copy_rows)
        menu.addAction(theme.icon("content-save-outline"), tr("Save..."), self.save)
        menu.popup(self.table.viewport().mapToGlobal(place))


def _column(key: str) -> int:
    return next(i for i, column in enumerate(COLUMNS) if column.key == key)
