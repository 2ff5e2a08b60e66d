"""Operators: the cost of every step of a profiled run, sorted by the saving at the roofline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, profiling_of
from app.ui.profile.columns import COLUMNS
from app.ui.profile.dialogs import save_profile_as
from app.ui.profile.heat_bar import HeatBarDelegate
from app.ui.profile.table_model import BY_PRIORITY, OperatorModel, OperatorProxy
from app.ui.widgets import theme
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.frozen_tree import FrozenTree
from app.ui.widgets.tooltips import plain_tip
from designer.graph.frames import frame_of
from designer.graph.template import INSTANCE, PARAMETER, enclosing
from designer.profiling.grouping import combined
from designer.profiling.schema import OperatorProfile, ProfileRun
from designer.texts import tr, tr_data, trn
from designer.units import quantity

REST_MS = 100  # after an edit of the network
WIDEST = 220  # initial maximum width of a text column in pixels
Key = Callable[[OperatorProfile], str]


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
        self._groups: list[str] = []  # of the rows, in running order
        self._document: Document | None = None
        self._rest = QTimer(self, singleShot=True, interval=REST_MS, timeout=self._regroup)
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
        self._make_table()
        self._make_controls()
        top = QHBoxLayout()
        top.addWidget(self.filter, 2)
        top.addWidget(self.grouping)
        top.addWidget(self.summary, 5)
        top.addWidget(self._save)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(top)
        column.addWidget(self.tree, 1)
        self._stack = EmptyStack(self, self._empty, page)
        self._profiling.current_changed.connect(self._on_current)
        self._profiling.rows_changed.connect(self._follow_rows)
        context.root_changed.connect(self._watch)
        self._show(self._profiling.current)
        self._watch()

    def _make_controls(self) -> None:
        self.filter = QLineEdit()
        self.filter.setObjectName("operator_table.filter")
        self.filter.setAccessibleName(tr("Filter operators"))
        self.filter.setPlaceholderText(tr("Filter all columns"))
        self.filter.setToolTip(tr("Show only steps that contain all these words in any column"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setMinimumWidth(140)
        self.filter.textChanged.connect(self._filter)
        self.grouping = QComboBox()
        self.grouping.setObjectName("operator_table.grouping")
        self.grouping.setAccessibleName(tr("Group the steps"))
        self.grouping.setToolTip(tr("Add up the steps of an operator type, a template or a frame"))
        for key, text in (
            ("", tr("No groups")),
            ("type", tr("By type")),
            ("template", tr("By template")),
            ("frame", tr("By frame")),
        ):
            self.grouping.addItem(text, key)
        self.grouping.currentIndexChanged.connect(lambda _: self._show(self._profiling.current))
        self.summary = ElidedLabel()
        self.summary.setObjectName("operator_table.summary")
        self.summary.setAccessibleName(tr("Summary of the run, and of the selected or filtered steps"))
        self._save = QToolButton()
        self._save.setObjectName("operator_table.save")
        self._save.setAccessibleName(tr("Save the table"))
        self._save.setToolTip(tr("Save the table as CSV, or the whole profile as JSON"))
        theme.set_icon(self._save, "content-save-outline")
        self._save.clicked.connect(self.save)

    def _make_table(self) -> None:
        self.tree = FrozenTree("operator_table.table", tr("Operators of the run"))
        self.tree.set_model(self.proxy)
        for view in self.tree.views:
            view.header().setSortIndicatorClearable(True)  # the third click restores the order of priority
        self.tree.sort_by(BY_PRIORITY, Qt.SortOrder.AscendingOrder)
        for number, column in enumerate(COLUMNS):
            if column.heat:
                self.tree.set_delegate(number, HeatBarDelegate(self.tree))
        self.tree.menu_requested.connect(self._menu)
        self.tree.activated.connect(lambda index: self._reveal(self.proxy.row_of(index)))
        self.tree.selection().selectionChanged.connect(self._select_layers)
        self.tree.on_copy(self.copy_rows)

    def selected(self) -> list[OperatorProfile]:
        """The steps of the selected rows, from top to bottom, each once; a selected group means its steps."""
        found: dict[int, OperatorProfile] = {}
        for index in sorted(self.tree.selected_rows(), key=self._place):
            inner = [self.proxy.index(row, 0, index) for row in range(self.proxy.rowCount(index))]
            for row in map(self.proxy.row_of, inner or [index]):
                found.setdefault(id(row), row)
        return list(found.values())

    def rows(self) -> list[QModelIndex]:
        """The first cells of all rows from top to bottom, members after their group."""
        return list(self._walk(QModelIndex()))

    def _shown(self) -> list[OperatorProfile]:
        """The steps that the filter leaves, also those in folded groups."""
        return [self.proxy.row_of(index) for index in self.rows() if index.parent().isValid() or not self.model.grouped]

    def _walk(self, parent: QModelIndex) -> Iterable[QModelIndex]:
        for row in range(self.proxy.rowCount(parent)):
            index = self.proxy.index(row, 0, parent)
            yield index
            yield from self._walk(index)

    @staticmethod
    def _place(index: QModelIndex) -> tuple[int, ...]:
        parent = index.parent()
        return (parent.row(), index.row()) if parent.isValid() else (index.row(), -1)

    def save(self) -> None:
        if self._profiling.current is not None:
            save_profile_as(self, self._profiling, self._profiling.current)

    def copy_rows(self) -> None:
        """Copy the selected rows, or all rows, as tab-separated text with headers."""
        rows = sorted(self.tree.selected_rows(), key=self._place) or self.rows()
        lines = ["\t".join(tr_data(column.header).replace("\n", " / ") for column in COLUMNS)]
        for row in rows:
            cells = (row.siblingAtColumn(column).data() for column in range(len(COLUMNS)))
            lines.append("\t".join(str(cell) for cell in cells))
        QGuiApplication.clipboard().setText("\n".join(lines))

    # --- the run -----------------------------------------------------------------------------------------------

    def _show(self, entry: Entry | None) -> None:
        key = self._key()
        self._groups = _groups(entry, key)
        self._following = True  # the reset clears the selection, which must not select layers
        self.model.show(entry.run if entry is not None else None, key)
        self._following = False
        self.tree.set_grouped(key is not None)
        self._expand_found()
        self._stack.show_content(entry is not None)
        if entry is not None and not self._sized:
            self._sized = True
            self.tree.fit_columns(WIDEST)
        self._follow_rows()
        self._show_summary()

    def _key(self) -> Key | None:
        """The key of the chosen grouping."""
        kind = self.grouping.currentData()
        if kind == "type":
            return lambda row: row.type or tr("outside of operators")
        if kind == "template":
            return self._template
        if kind == "frame":
            frames = self._context.root.graph.frames.values() if self._context.has_document else ()
            return partial(self._frame, Counter(frame.title for frame in frames))
        return None

    def _template(self, row: OperatorProfile) -> str:
        graph = self._context.root.graph if self._context.has_document else None
        for layer in row.layers[:1]:
            for name in enclosing(layer):
                if graph is not None and name in graph and graph[name].type == INSTANCE:
                    return graph[name].params.get(PARAMETER, name)
        return tr("in no template")

    def _frame(self, titles: Counter[str], row: OperatorProfile) -> str:
        """The title of the frame of a row, with its id where several frames have the title."""
        graph = self._context.root.graph if self._context.has_document else None
        for layer in row.layers[:1]:
            name = next((n for n in enclosing(layer) if graph is not None and n in graph), None)
            if graph is not None and name is not None and (frame := frame_of(graph, graph[name])) is not None:
                if not frame.title:
                    return frame.id
                return frame.title if titles[frame.title] == 1 else f"{frame.title} ({frame.id})"
        return tr("in no frame")

    def _filter(self, words: str) -> None:
        self.proxy.set_words(words)
        self._expand_found()
        self._follow_rows()  # chosen ones that were hidden are seen again

    def _expand_found(self) -> None:
        """What the filter finds is seen in groups too."""
        if self.filter.text().strip() and self.model.grouped:
            self.tree.frozen.expandAll()

    def _show_summary(self) -> None:
        entry = self._profiling.current
        if entry is None:
            self.summary.clear()
            return
        chosen = self.selected()
        if chosen:
            text = tr("{count} selected", count=len(chosen)) + f"  ·  {_sums(entry.run, chosen)}"
        elif self.filter.text().strip():
            rows = self._shown()
            text = tr("{count} of {all} shown", count=len(rows), all=len(entry.run.operators))
            text += f"  ·  {_sums(entry.run, rows)}" if rows else ""
        else:
            text = run_text(entry.run)
        self.summary.setText(text)
        self.summary.setToolTip(plain_tip(self.summary.text()))

    def _on_current(self, entry: object) -> None:
        self._show(self._profiling.current)

    def _watch(self, _: object = None) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._rest.start)
        self._document = self._context.root if self._context.has_document else None
        if self._document is not None:
            self._document.changed.connect(self._rest.start)
        self._regroup()

    def _regroup(self) -> None:
        """Templates and frames are those of the open document. Other edits leave the table as it is, with its expanded groups."""
        entry = self._profiling.current
        if self.grouping.currentData() in ("template", "frame") and _groups(entry, self._key()) != self._groups:
            self._show(entry)

    # --- selection ---------------------------------------------------------------------------------------------

    def _select_layers(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        self._show_summary()
        if self._following:
            return
        self._following = True
        self._profiling.choose_rows(self.selected())
        self._following = False

    def _follow_rows(self) -> None:
        """Select the chosen rows."""
        if self._following:
            return
        wanted = {id(row) for row in self._profiling.chosen_rows}
        chosen = QItemSelection()
        first = None
        for index in self.rows() if wanted else ():
            if self.proxy.rowCount(index) == 0 and id(self.proxy.row_of(index)) in wanted:
                chosen.select(index, index.siblingAtColumn(len(COLUMNS) - 1))
                first = index if first is None else first
        self._following = True
        self.tree.selection().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self._following = False
        if first is not None:
            self.tree.show_row(first)
        self._show_summary()

    def _reveal(self, row: OperatorProfile) -> None:
        if self._context.has_document and row.layers:
            self._context.reveal(row.layers[0])

    def _menu(self, place: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        rows = [row for row in self.selected() if row.layers]
        reveal = menu.addAction(theme.icon("crosshairs-gps"), tr("Show on Canvas"))
        reveal.setEnabled(bool(rows))
        reveal.triggered.connect(lambda: self._reveal(rows[0]))
        menu.addAction(theme.icon("content-copy"), tr("Copy Rows"), self.copy_rows)
        menu.addAction(theme.icon("content-save-outline"), tr("Save..."), self.save)
        menu.popup(place)


def _groups(entry: Entry | None, key: Key | None) -> list[str]:
    """The group of each row of a run; none without groups."""
    return [key(row) for row in entry.run.operators] if entry is not None and key is not None else []


def run_text(run: ProfileRun) -> str:
    """One line about a run: the sum of its rows, the whole run, the operations and the roof."""
    parts = [
        trn("{count} step", "{count} steps", sum(1 for row in run.operators if row.layers)),
        tr("sum of rows {time}", time=quantity(run.rows_ms / 1e3, "s")),
    ]
    if run.time_ms:
        ratio = quantity(100 * run.rows_ms / run.time_ms, "%")
        parts[-1] += tr(" = {ratio} of the run's {time}", ratio=ratio, time=quantity(run.time_ms / 1e3, "s"))
    parts.append(quantity(run.flops, "FLOP"))
    if run.flops_per_s:
        parts.append(quantity(run.flops_per_s, "FLOP/s"))
    if run.roof_ms is not None:
        parts.append(tr("roofline {roof}", roof=quantity(run.roof_ms / 1e3, "s")))
    return "  ·  ".join(parts)


def _sums(run: ProfileRun, rows: list[OperatorProfile]) -> str:
    """Time, share of the run and operations of some rows; the share is that of the sum of all rows."""
    total = combined(rows)
    return tr(
        "{time} ({share})  ·  {flops}",
        time=quantity(total.time_ms / 1e3, "s"),
        share=quantity(run.share(total), "%"),
        flops=quantity(total.flops, "FLOP"),
    )


def column_of(key: str) -> int:
    """The number of a column."""
    return next(i for i, column in enumerate(COLUMNS) if column.key == key)
