"""The operators of a run as a tree model, grouped or flat, and a proxy that sorts by value and filters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt

from app.ui.profile.columns import COLUMNS, explained, shown
from app.ui.widgets import theme
from designer.profiling.grouping import group_rows
from designer.profiling.schema import OperatorProfile, ProfileRun
from designer.texts import tr, tr_data, trn

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
HEAT = (
    Qt.ItemDataRole.UserRole + 1
)  # relative to the largest magnitude of the column: 0 to 1, -1 to 1 if signed; or None
ROOT = QModelIndex()
NO_PARENT = 0  # internal id of the rows at the top; others have the number of their group + 1


@dataclass(frozen=True)
class TopRow:
    """A row at the top: an operator, or a group with its `title` and members."""

    row: OperatorProfile
    title: str = ""
    members: tuple[OperatorProfile, ...] = ()


class OperatorModel(QAbstractItemModel):
    """One row per step of the engine, below one row per group if a key is given."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.run: ProfileRun | None = None
        self.grouped = False
        self._top: tuple[TopRow, ...] = ()
        self._most: dict[int, float] = {}

    def show(self, run: ProfileRun | None, key: Callable[[OperatorProfile], str] | None = None) -> None:
        """Show a run, its rows grouped by `key`."""
        self.beginResetModel()
        self.run, self.grouped = run, key is not None
        rows = run.operators if run is not None else ()
        if key is None:
            self._top = tuple(TopRow(row) for row in rows)
        else:
            self._top = tuple(TopRow(group.total, group.key, group.rows) for group in group_rows(rows, key))
        self._most = {}
        for number, column in enumerate(COLUMNS):
            if run is not None and column.heat and column.value is not None:
                values = (column.value(run, top.row).value for top in self._top)
                self._most[number] = max((v for v in values if v is not None), default=0.0)
        self.endResetModel()

    def row_of(self, index: Index) -> OperatorProfile:
        """The operator of an index, or the sums of its group."""
        group = index.internalId()
        return self._top[index.row()].row if group == NO_PARENT else self._top[group - 1].members[index.row()]

    def index(self, row: int, column: int, parent: Index = ROOT) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else NO_PARENT)

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
        if role not in (Qt.ItemDataRole.DisplayRole, SORT, Qt.ItemDataRole.ToolTipRole, HEAT, _INK):
            return None
        found = column.value(run, self.row_of(index))
        if role == Qt.ItemDataRole.DisplayRole:
            return shown(column, found)
        if role == SORT:
            return found.value if found.value is not None else float("-inf")
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
        if role in (Qt.ItemDataRole.DisplayRole, SORT):
            text = self._title(index) if index.column() == 0 else column.text(row)
            return text.lower() if role == SORT else text
        if role == Qt.ItemDataRole.ToolTipRole:
            return _parameters(row) if column.key == "summary" else column.text(row)
        return None

    def _title(self, index: Index) -> str:
        row = self.row_of(index)
        if not self.grouped or index.internalId() != NO_PARENT:
            return row.name or tr("outside of operators")
        top = self._top[index.row()]
        return trn("{title} ({count} step)", "{title} ({count} steps)", len(top.members), title=top.title)

    def _alignment(self, section: int) -> Any:
        side = Qt.AlignmentFlag.AlignRight if COLUMNS[section].value is not None else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter


_INK = Qt.ItemDataRole.ForegroundRole


def _parameters(row: OperatorProfile) -> str:
    lines = []
    for layer, parameters in row.parameters.items():
        values = ", ".join(f"{name} {value}" for name, value in sorted(parameters.items()))
        lines.append(f"{layer}: {values or tr('no parameters')}")
    return "\n".join(lines)


class OperatorProxy(QSortFilterProxyModel):
    """Sorts by value instead of text, and filters rows by words that occur in any column."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setSortRole(SORT)
        self.setRecursiveFilteringEnabled(True)
        self._words: tuple[str, ...] = ()

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
