"""Import Report: what became of each node and tensor of an imported model, and how the document compares with the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QStackedWidget,
    QTableView,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.file_dialogs import ask_save_path
from app.ui.widgets.file_output import report_result
from app.ui.widgets.message import Message
from app.ui.widgets.row_table import style_rows
from app.ui.widgets.sentences import sentence
from app.ui.widgets.tooltips import plain_tip
from designer.files.atomic import write_atomic
from designer.importers.report import REPORTS, UNBOUNDED, ImportReport, NodeOutcome, Outcome
from designer.texts import mark, tr, tr_data, trn
from designer.units import dims_text

Index = QModelIndex | QPersistentModelIndex
NOTHING = mark("The report of an imported model is shown here. Open an ONNX file, a checkpoint or a PyTorch module.")
NODES = (mark("Node"), mark("Type"), mark("Outcome"), mark("Layers"), mark("Reason"))
WEIGHTS = (mark("Tensor of the original"), mark("Layer"), mark("Tensor of the layer"))
TEMPLATES = (mark("Template"), mark("Instances"))
CASES = (mark("Inputs"), mark("Largest difference"), mark("Relative"), mark("Output"))
OUTCOMES = {Outcome.KNOWN: mark("known"), Outcome.OPAQUE: mark("opaque"), Outcome.FOLDED: mark("folded")}
_FIRST = (Outcome.OPAQUE, Outcome.KNOWN, Outcome.FOLDED)  # order of the rows
MEASURED = 1000  # rows whose widths are measured
WIDEST = 200  # pixels of a column


@dataclass(frozen=True, slots=True)
class Row:
    """Texts of the columns, and the layers that the row is about."""

    texts: tuple[str, ...]
    layers: tuple[str, ...] = ()
    marked: bool = False  # worth attention


class RowsModel(QAbstractTableModel):
    """A table of texts."""

    def __init__(self, titles: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self._titles = titles
        self.rows: Sequence[Row] = ()

    def show_rows(self, rows: Sequence[Row]) -> None:
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self._titles)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        horizontal = orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return tr_data(self._titles[section]) if horizontal else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return row.texts[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(row.texts[index.column()])
        if role == Qt.ItemDataRole.DecorationRole and index.column() == 0 and row.marked:
            return theme.icon("alert", "warning")
        return None


class RowsTable(QTableView):
    """A table that can be filtered and sorted."""

    def __init__(self, name: str, title: str, titles: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(f"import_report.{name}")
        self.setAccessibleName(title)
        self.source = RowsModel(titles, parent)
        self._rows = QSortFilterProxyModel(self)
        self._rows.setSourceModel(self.source)
        self._rows.setFilterKeyColumn(-1)
        self._rows.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.setModel(self._rows)
        style_rows(self)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setWordWrap(False)
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        header = self.horizontalHeader()
        header.setResizeContentsPrecision(MEASURED)
        header.setStretchLastSection(True)

    def show_rows(self, rows: Sequence[Row]) -> None:
        self.source.show_rows(rows)
        last = self.source.columnCount() - 1
        self.setColumnHidden(last, not any(row.texts[last] for row in rows))
        header = self.horizontalHeader()
        for column in range(header.count() - 1):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            header.resizeSection(
                column, min(WIDEST, max(self.sizeHintForColumn(column), header.sectionSizeHint(column)) + 16)
            )

    def filter(self, words: str) -> None:
        self._rows.setFilterFixedString(words)

    def row_at(self, index: QModelIndex) -> Row:
        return self.source.rows[self._rows.mapToSource(index).row()]


class ImportReportPanel(QWidget):
    panel_id = "import_report"
    title = "Import Report"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("import_report")
        self._context = context
        self._record: ImportRecord | None = None
        self._head = QLabel()
        self._head.setObjectName("import_report.head")
        self._head.setWordWrap(True)
        self._head.setTextFormat(Qt.TextFormat.PlainText)
        self._head.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._head.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._filter = QLineEdit()
        self._filter.setObjectName("import_report.filter")
        self._filter.setAccessibleName(tr("Filter the report"))
        self._filter.setPlaceholderText(tr("Filter"))
        self._filter.setClearButtonEnabled(True)
        self._filter.setToolTip(tr("Show only rows with this text"))
        self._filter.setMaximumWidth(200)
        self._copy = self._button("copy", tr("C&opy"), tr("Copy the summary with the opaque nodes as text"), self.copy)
        self._save = self._button("save", tr("&Save..."), tr("Save the report as JSON"), self.save)
        self._result = Message("import_report.result")
        self._facts = Message("import_report.facts")
        self._warnings = Message("import_report.warnings")
        self._tabs = QTabWidget()
        self._tabs.setObjectName("import_report.tabs")
        self._tabs.setAccessibleName(tr("Parts of the report"))
        self._tabs.setDocumentMode(True)
        self.nodes = self._table("nodes", tr("Nodes"), NODES)
        self.weights = self._table("weights", tr("Weights"), WEIGHTS)
        self.templates = self._table("templates", tr("Templates"), TEMPLATES)
        self.cases = self._table("cases", tr("Comparison"), CASES)
        self._empty = EmptyState("import_report", "text-box-outline", tr_data(NOTHING))
        self._stack = QStackedWidget()
        self._lay_out()
        context.root_changed.connect(self._watch)
        self._watch(context.root if context.has_document else None)

    def _button(self, name: str, text: str, tip: str, command: Callable[[], None]) -> QToolButton:
        button = QToolButton()
        button.setObjectName(f"import_report.{name}")
        button.setText(text)
        button.setAccessibleName(text.replace("&", "").rstrip("."))
        button.setToolTip(tip)
        button.clicked.connect(lambda _on=False: command())
        return button

    def _table(self, name: str, title: str, titles: Sequence[str]) -> RowsTable:
        table = RowsTable(name, title, titles, self)
        table.clicked.connect(lambda index: self._reveal(table.row_at(index)))
        table.activated.connect(lambda index: self._reveal(table.row_at(index)))
        self._filter.textChanged.connect(table.filter)
        self._tabs.addTab(table, title)
        return table

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setSpacing(8)
        bar.addWidget(self._result, 1)
        for widget in (self._filter, self._copy, self._save):
            bar.addWidget(widget, alignment=Qt.AlignmentFlag.AlignTop)
        page = QWidget()
        box = QVBoxLayout(page)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4)
        box.addWidget(self._head)
        box.addLayout(bar)
        for message in (self._facts, self._warnings):
            box.addWidget(message)
        box.addWidget(self._tabs, 1)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(page)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(8, 8, 8, 8)
        outer.addWidget(self._stack)

    # --- following the document --------------------------------------------------------------------------------

    def _watch(self, document: Document | None) -> None:
        if self._record is not None:
            self._record.changed.disconnect(self._show_comparison)
        self._record = document.imported if document is not None else None
        self._stack.setCurrentIndex(0 if self._record is None else 1)
        if self._record is not None:
            self._record.changed.connect(self._show_comparison)
            self._show(self._record.report)
            self._show_comparison()

    def _show(self, report: ImportReport) -> None:
        self._head.setText(headline(report))
        self._facts.show_message(sentence(report.facts) if report.facts else "", "info")
        self.nodes.show_rows(node_rows(report.outcomes))
        self.weights.show_rows([_weight_row(key, place) for key, place in report.weights.items()])
        self.templates.show_rows(
            [
                Row((name, trn("{count} instance", "{count} instances", count)))
                for name, count in report.templates.items()
            ]
        )
        for table, count in (
            (self.nodes, report.nodes),
            (self.weights, len(report.weights)),
            (self.templates, len(report.templates)),
        ):
            self._label(table, count)

    def _label(self, table: RowsTable, count: int) -> None:
        number = self._tabs.indexOf(table)
        self._tabs.setTabText(number, f"{table.accessibleName()} ({count:,})")
        self._tabs.setTabVisible(number, count > 0)

    def _show_comparison(self) -> None:
        assert self._record is not None
        report = self._record.report
        self._warnings.show_message("\n".join(map(sentence, report.notes())), "warning")
        if self._record.comparing:
            self._result.show_message(tr("Comparing with the original ..."), "info")
        elif report.max_rel_difference is None:
            self._result.show_message(sentence(report.comparison()), "info")
        else:
            self._result.show_message(sentence(report.comparison()), "positive" if report.agrees else "warning")
        self.cases.show_rows(
            [
                Row(_case_texts(case.inputs, case.max_abs_difference, case.max_rel_difference, case.output))
                for case in report.cases
            ]
        )
        self._label(self.cases, len(report.cases))

    # --- gestures ----------------------------------------------------------------------------------------------

    def _reveal(self, row: Row) -> None:
        """Select the layers of a row that are still there, in the template that the first of them is in."""
        places = {layer: place for layer in row.layers if (place := self._context.find(layer)) is not None}
        if not places:
            if row.layers:
                self._context.message.emit("info", tr("The layer {name} no longer exists", name=row.layers[0]))
            return
        first = next(iter(places))
        self._context.reveal(first)
        scope = places[first][0]
        self._context.select(tuple(name for place, name in places.values() if place == scope))

    def copy(self) -> None:
        if self._record is not None:
            QGuiApplication.clipboard().setText(report_text(self._record.report))

    def save(self) -> None:
        """Ask for a file and write the report."""
        if self._record is None:
            return
        report, source = self._record.report, self._record.source
        name = f"{report.source.rpartition(':')[2]} import.json"
        path = ask_save_path(
            self, tr("Save Import Report"), source.with_name(name) if source is not None else name, REPORTS
        )
        if path is not None:
            done = tr("Saved {name}", name=path.name)
            write = REPORTS.writer(path)
            report_result(lambda: write_atomic(path, write(report)), self._context.tell_result, done)


def headline(report: ImportReport) -> str:
    """The source and the number of nodes by outcome."""
    parts = [report.source, report.producer, tr("opset {opset}", opset=report.opset) if report.opset else ""]
    return "  ·  ".join((*filter(None, parts), report.counts()))


def node_rows(outcomes: Sequence[NodeOutcome]) -> list[Row]:
    """The nodes, opaque ones first."""
    return [
        Row(
            (item.node, item.type, tr_data(OUTCOMES[item.outcome]), ", ".join(item.layers), item.reason),
            item.layers,
            item.outcome is Outcome.OPAQUE,
        )
        for kind in _FIRST
        for item in outcomes
        if item.outcome is kind
    ]


def _weight_row(key: str, place: str) -> Row:
    layer, _, tensor = place.rpartition(".")
    return Row((key, layer, tensor), (layer,))


def _case_texts(inputs: dict[str, tuple[int, ...]], absolute: float, relative: float, output: str) -> tuple[str, ...]:
    shapes = ", ".join(f"{name} {dims_text(shape)}" for name, shape in inputs.items())
    values = (tr("not comparable") if value == UNBOUNDED else f"{value:.3g}" for value in (absolute, relative))
    return (shapes, *values, output)


def report_text(report: ImportReport) -> str:
    """The summary and the opaque nodes as text."""
    opaque = (f"opaque: {i.node} ({i.type}): {i.reason}" for i in report.outcomes if i.outcome is Outcome.OPAQUE)
    return "\n".join((report.source, report.summary(), *opaque))
