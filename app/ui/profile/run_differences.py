"""Run Differences: two runs of the Inference Run Logger compared step by step, against the noise of the measurements."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.profile.heat_bar import DifferenceBarDelegate
from app.ui.profile.table_model import HEAT, SORT
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.frozen_tree import FrozenTree
from designer.profiling.difference import RowDifference, RunDifference
from designer.texts import mark, tr, tr_data
from designer.units import UNAVAILABLE_SIGN, digits, quantity, signed_duration

LAYERS, VERDICT_OF = HEAT + 1, HEAT + 2
HEADERS = (
    mark("Layers"),
    mark("Before\nms"),
    mark("After\nms"),
    mark("Difference\nms"),
    mark("Noise\nms"),
    mark("Verdict"),
)
DIFFERENCE, VERDICT = 3, 5
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
VERDICTS = {
    "none": mark("none"),
    "faster": mark("faster"),
    "slower": mark("slower"),
    "only before": mark("only before"),
    "only after": mark("only after"),
}
_ROLES: dict[str, theme.RoleName] = {"faster": "positive", "slower": "negative"}


class RunDifferencesPanel(QWidget):
    """A table with a row per step, with bars for the differences beyond the noise. Selecting a row selects its layers."""

    panel_id = "run_differences"
    title = "Run Differences"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("run_differences")
        self.setAccessibleName(tr("Run Differences"))
        self._context = context
        self._profiling = profiling_of(context)
        self._filling = False
        self._empty = EmptyState(
            "run_differences",
            "compare-horizontal",
            tr("Select two runs in the Inference Run Logger (Ctrl+click) to compare them here."),
        )
        self.summary = QLabel()
        self.summary.setObjectName("run_differences.summary")
        self.summary.setAccessibleName(tr("Difference of the two runs"))
        self.summary.setWordWrap(True)
        self.summary.setTextFormat(Qt.TextFormat.PlainText)
        self.summary.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.again = QPushButton(tr("Measure in Turns"))
        self.again.setObjectName("run_differences.again")
        self.again.setAccessibleName(tr("Measure both runs again in turns"))
        self.again.clicked.connect(self._measure_again)
        self.model = QStandardItemModel(0, len(HEADERS), self)
        self.proxy = QSortFilterProxyModel(self)
        self.proxy.setSourceModel(self.model)
        self.proxy.setSortRole(SORT)
        self._show_headers()
        self.tree = FrozenTree("run_differences.table", tr("Differences of the steps"))
        self.tree.set_model(self.proxy)
        self.tree.set_delegate(DIFFERENCE, DifferenceBarDelegate(self.tree))
        self.tree.sort_by(DIFFERENCE, Qt.SortOrder.DescendingOrder)
        self.tree.selection().selectionChanged.connect(self._select_layers)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        top = QHBoxLayout()
        top.addWidget(self.summary, 1)
        top.addWidget(self.again, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(top)
        column.addWidget(self.tree, 1)
        self._stack = EmptyStack(self, self._empty, page)
        self._profiling.compared_changed.connect(self._show)
        self._profiling.state_changed.connect(self._enable)
        theme.changes().changed.connect(self._color)
        self._show()

    def _show_headers(self) -> None:
        self.model.setHorizontalHeaderLabels([tr_data(header) for header in HEADERS])
        for column in range(1, len(HEADERS) - 1):
            order = int(Qt.SortOrder.DescendingOrder.value)
            self.model.setHeaderData(column, Qt.Orientation.Horizontal, order, Qt.ItemDataRole.InitialSortOrderRole)
            self.model.setHeaderData(column, Qt.Orientation.Horizontal, RIGHT, Qt.ItemDataRole.TextAlignmentRole)

    def _show(self) -> None:
        found = self._profiling.difference()
        self._enable()
        self._stack.show_content(found is not None)
        self._filling = True  # rows that go are no longer selected, which must not select layers
        self.model.removeRows(0, self.model.rowCount())
        self._filling = False
        if found is None:
            return
        most = max((abs(row.difference_ms) for row in found.rows if row.verdict != "none"), default=0.0)
        for row in found.rows:
            items = _items(row)
            if most > 0 and row.verdict != "none":
                items[DIFFERENCE].setData(row.difference_ms / most, HEAT)
            self.model.appendRow(items)
        self._color()
        self.summary.setText(self._summary(found))
        self.tree.fit_columns(260)

    def _color(self) -> None:
        """Verdicts in the colors of the theme."""
        for row in range(self.model.rowCount()):
            item = self.model.item(row, VERDICT)
            role = _ROLES.get(item.data(VERDICT_OF))
            if role is not None:
                item.setForeground(theme.color(role))

    def _enable(self, *_: object) -> None:
        pair = self._profiling.compared
        reason = self._profiling.why_not_in_turns(pair) if pair is not None else ""
        tip = tr(
            "Measure the networks of both runs again, block by block in turns, so that both see the same clock rate and load"
        )
        self.again.setEnabled(pair is not None and not reason and not self._profiling.running)
        self.again.setToolTip(reason or tip)

    def _measure_again(self) -> None:
        if self._profiling.compared is not None:
            self._profiling.remeasure(self._profiling.compared)

    def _summary(self, found: RunDifference) -> str:
        before, after = self._profiling.compared or (None, None)
        total = found.total
        if before is None or after is None or not total.before_ms or not total.after_ms:
            return tr("One of the two runs has no time.")
        text = tr(
            "#{one} {title_one}: {before}\n#{other} {title_other}: {after}\nDifference {difference} ({factor} x), "
            "noise ±{noise}: {verdict}",
            one=before.number,
            title_one=before.title,
            before=quantity(total.before_ms / 1e3, "s"),
            other=after.number,
            title_other=after.title,
            after=quantity(total.after_ms / 1e3, "s"),
            difference=signed_duration(total.difference_ms),
            factor=digits(total.after_ms / total.before_ms),
            noise=quantity(total.noise_ms / 1e3, "s"),
            verdict=tr_data(VERDICTS[total.verdict]),
        )
        return f"{text}\n{tr('note: {note}', note=found.doubt)}" if found.doubt else text

    def _select_layers(self, *_: object) -> None:
        if self._filling:
            return
        shown = self._context.in_sight
        chosen: list[QModelIndex] = self.tree.selected_rows()
        layers = [layer for index in chosen for layer in index.data(LAYERS)]
        if self._context.has_document:
            self._context.select(tuple(dict.fromkeys(name for layer in layers if (name := shown(layer)))))


def _items(row: RowDifference) -> list[QStandardItem]:
    name = QStandardItem(" + ".join(row.layers) or tr("outside of operators"))
    name.setData(name.text().lower(), SORT)
    name.setData(list(row.layers), LAYERS)
    verdict = QStandardItem(tr_data(VERDICTS[row.verdict]))
    verdict.setData(verdict.text(), SORT)
    verdict.setData(row.verdict, VERDICT_OF)
    values = [
        _number(row.before_ms),
        _number(row.after_ms),
        _number(row.difference_ms, signed=True),
        _number(row.noise_ms),
    ]
    return [name, *values, verdict]


def _number(value: float | None, *, signed: bool = False) -> QStandardItem:
    text = UNAVAILABLE_SIGN if value is None else digits(value)
    item = QStandardItem(f"+{text}" if signed and value is not None and value > 0 else text)
    item.setData(float("-inf") if value is None else abs(value), SORT)
    item.setTextAlignment(RIGHT)
    item.setFont(theme.mono_font())
    return item
