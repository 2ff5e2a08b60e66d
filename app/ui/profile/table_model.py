"""The operators of a run as a tree model, grouped or flat and sorted by value, and a proxy that filters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt

from app.ui.profile.columns import COLUMNS, Column, explained, shown
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.profiling.grouping import group_rows
from designer.profiling.schema import OperatorProfile, ProfileRun, ranked
from designer.texts import tr, tr_data, trn

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
HEAT = (
    Qt.ItemDataRole.UserRole + 1
)  # relative to the largest magnitude of the column: 0 to 1, -1 to 1 if signed; or None
ROOT = QModelIndex()
BY_PRIORITY = -1  # instead of a column; Qt's name for no order
NO_PARENT = 0  # internal id of the rows at the top; others have the number of their group + 1


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the table: an operator, or a group with its `title` and members."""

    row: OperatorProfile
    title: str = ""
    members: tuple[OperatorProfile, ...] = ()


class OperatorModel(QAbstractItemModel):
    """One row per step of the engine, below one row per group if a key is given.

    The model sorts its rows itself, with one key per row: a sorting proxy would call Python for every comparison.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.run: ProfileRun | None = None
        self.grouped = False
        self._top: tuple[TableRow, ...] = ()
        self._most: dict[int, float] = {}
        self._ranks: dict[int, int] = {}  # by the id of a row, among the groups or in its group
        self._order = (BY_PRIORITY, Qt.SortOrder.AscendingOrder)

    def show(self, run: ProfileRun | None, key: Callable[[OperatorProfile], str] | None = None) -> None:
        """Show a run, its rows grouped by `key`."""
        self.beginResetModel()
        self.run, self.grouped = run, key is not None
        rows = run.operators if run is not None else ()
        if key is None:
            self._top = tuple(TableRow(row) for row in rows)
        else:
            self._top = tuple(TableRow(group.total, group.key, group.rows) for group in group_rows(rows, key))
        listed = ([top.row for top in self._top], *(top.members for top in self._top))
        self._ranks = {id(row): rank for rows in listed for rank, row in enumerate(ranked(rows))}
        self._most = {}
        for number, column in enumerate(COLUMNS):
            if run is not None and column.heat and column.value is not None:
                values = (column.value(run, top.row).value for top in self._top)
                self._most[number] = max((v for v in values if v is not None), default=0.0)
        self._sort()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the rows at the top and the members of groups by a column, or by optimization priority (`BY_PRIORITY`).

        Rows with equal values keep their order.
        """
        self._order = (column, order)
        self.layoutAboutToBeChanged.emit()
        indexes = self.persistentIndexList()
        rows = [(id(self.row_of(index)), index.internalId() == NO_PARENT) for index in indexes]
        self._sort()
        places = {(id(top.row), True): (number, NO_PARENT) for number, top in enumerate(self._top)}
        for group, top in enumerate(self._top, 1):
            places.update({(id(row), False): (number, group) for number, row in enumerate(top.members)})
        moved = [
            self.createIndex(places[row][0], index.column(), places[row][1])
            for row, index in zip(rows, indexes, strict=True)
        ]
        self.changePersistentIndexList(indexes, moved)
        self.layoutChanged.emit()

    def _sort(self) -> None:
        if self.run is None:
            return
        run, (column, order) = self.run, self._order
        reverse = column != BY_PRIORITY and order is Qt.SortOrder.DescendingOrder

        def key(top: TableRow) -> float | str:
            return self._ranks[id(top.row)] if column == BY_PRIORITY else _sort_key(run, COLUMNS[column], top)

        self._top = tuple(
            replace(top, members=tuple(sorted(top.members, key=lambda row: key(TableRow(row)), reverse=reverse)))
            for top in sorted(self._top, key=key, reverse=reverse)
        )

    def row_of(self, index: Index) -> OperatorProfile:
        """The operator of an index, or the sums of its group."""
        return self._table_row(index).row

    def _table_row(self, index: Index) -> TableRow:
        group = index.internalId()
        return self._top[index.row()] if group == NO_PARENT else TableRow(self._top[group - 1].members[index.row()])

    def index(self, row: int, column: int, parent: Index = ROOT) -> QModelIndex:
        # Not hasIndex: its calls of rowCount and columnCount take most of the time of a reset.
        count, group = (self.rowCount(parent), parent.row() + 1) if parent.isValid() else (len(self._top), NO_PARENT)
        if not (0 <= row < count and 0 <= column < len(COLUMNS)):
            return QModelIndex()
        return self.createIndex(row, column, group)

    def parent(self, index: Index = ROOT) -> Any:
        if not index.isValid() or index.internalId() == NO_PARENT:
            return QModelIndex()
        return self.createIndex(index.internalId() - 1, 0, NO_PARENT)

    def rowCount(self, parent: Index = ROOT) -> int:
        if not parent.isValid():
            return len(self._top)
        if parent.column() > 0 or parent.internalId() != NO_PARENT:
            return 0
        return len(self._top[parent.row()].members)

    def columnCount(self, parent: Index = ROOT) -> int:
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = COLUMNS[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return tr_data(column.header)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr_data(column.tip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(section)
        if role == Qt.ItemDataRole.InitialSortOrderRole:
            return int(Qt.SortOrder.DescendingOrder.value if column.value is not None else 0)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or self.run is None:
            return None
        column = COLUMNS[index.column()]
        if role == SORT:
            return _sort_key(self.run, column, self._table_row(index))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(index.column())
        if role == Qt.ItemDataRole.FontRole and (column.monospace or column.value is not None):
            return theme.mono_font()
        if column.value is None:
            return self._text(index, role)
        return self._value(index, role, self.run)

    def _value(self, index: Index, role: int, run: ProfileRun) -> Any:
        column = COLUMNS[index.column()]
        assert column.value is not None
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, HEAT, _INK):
            return None
        found = column.value(run, self.row_of(index))
        if role == Qt.ItemDataRole.DisplayRole:
            return shown(column, found)
        if role == Qt.ItemDataRole.ToolTipRole:
            return explained(found)
        if role == HEAT and column.heat and found.value is not None:
            most = self._most.get(index.column(), 0.0)
            return found.value / most if most > 0 else 0.0
        if role == _INK and found.value is None:
            return theme.color("muted")
        return None

    def _text(self, index: Index, role: int) -> Any:
        column, row = COLUMNS[index.column()], self.row_of(index)
        assert column.text is not None
        if role == Qt.ItemDataRole.DisplayRole:
            return _title(self._table_row(index)) if index.column() == 0 else column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(_parameters(row) if column.key == "summary" else column.text(row))
        return None

    def _alignment(self, section: int) -> Any:
        side = Qt.AlignmentFlag.AlignRight if COLUMNS[section].value is not None else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter


_INK = Qt.ItemDataRole.ForegroundRole


def _title(top: TableRow) -> str:
    if not top.members:
        return top.row.name or tr("outside of operators")
    return trn("{title} ({count} step)", "{title} ({count} steps)", len(top.members), title=top.title)


def _sort_key(run: ProfileRun, column: Column, top: TableRow) -> float | str:
    """What a column sorts by: its value, the lowest if there is none, or its text in lower case."""
    if column.value is None:
        assert column.text is not None
        return (_title(top) if column is COLUMNS[0] else column.text(top.row)).lower()
    value = column.value(run, top.row).value
    return float("-inf") if value is None else value


def _parameters(row: OperatorProfile) -> str:
    lines = []
    for layer, parameters in row.parameters.items():
        values = ", ".join(f"{name} {value}" for name, value in sorted(parameters.items()))
        lines.append(f"{layer}: {values or tr('no parameters')}")
    return "\n".join(lines)


class OperatorProxy(QSortFilterProxyModel):
    """Filters rows by words that occur in any column, in the order of the model."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setRecursiveFilteringEnabled(True)
        self._words: tuple[str, ...] = ()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.sourceModel().sort(column, order)

    def set_words(self, text: str) -> None:
        """Show only rows that contain every word of `text`, and their groups."""
        self.beginFilterChange()
        self._words = tuple(text.lower().split())
        self.endFilterChange()

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:
        if not self._words:
            return True
        model = self.sourceModel()
        assert isinstance(model, OperatorModel)
        if model.grouped and not parent.isValid():
            return False  # accepted if one of its rows is
        cells = (model.index(row, column, parent).data() for column in range(len(COLUMNS)))
        text = " ".join(str(cell) for cell in cells).lower()
        return all(word in text for word in self._words)

    def row_of(self, index: Index) -> OperatorProfile:
        """The operator of an index of this proxy, or the sums of its group."""
        model = self.sourceModel()
        assert isinstance(model, OperatorModel)
        return model.row_of(self.mapToSource(index))
