"""The steps of a record as a table model, and a proxy that sorts by value and filters."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt

from app.ui.profile.columns import COLUMNS, explained, shown
from app.ui.widgets import theme
from designer.profiling.report import Group, Record
from designer.texts import tr, tr_data

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
HEAT = Qt.ItemDataRole.UserRole + 1  # 0..1 relative to the maximum of the column, or None
ROOT = QModelIndex()


class OperatorModel(QAbstractTableModel):
    """A table model with one row per group of layers."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.groups: tuple[Group, ...] = ()
        self._most: dict[int, float] = {}

    def show(self, record: Record | None) -> None:
        self.beginResetModel()
        self.groups = record.groups if record is not None else ()
        self._most = {}
        for number, column in enumerate(COLUMNS):
            if column.heat and column.figure is not None:
                figures = [column.figure(g) for g in self.groups]
                self._most[number] = max((f.value or 0.0 for f in figures if f is not None), default=0.0)
        self.endResetModel()

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self.groups)

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

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
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        column, group = COLUMNS[index.column()], self.groups[index.row()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(index.column())
        if role == Qt.ItemDataRole.FontRole and (column.monospace or column.figure is not None):
            return theme.mono_font()
        if column.figure is None:
            return self._text(index, role)
        figure = column.figure(group)
        value = figure.value if figure is not None else None
        if role == Qt.ItemDataRole.DisplayRole:
            return shown(figure, column.scale)
        if role == SORT:
            return value if value is not None else float("-inf")
        if role == Qt.ItemDataRole.ToolTipRole:
            return explained(figure)
        if role == HEAT and column.heat and value is not None:
            most = self._most.get(index.column(), 0.0)
            return value / most if most > 0 else 0.0
        if role == Qt.ItemDataRole.ForegroundRole and value is None:
            return theme.color("muted")
        return None

    def _text(self, index: Index, role: int) -> Any:
        column, group = COLUMNS[index.column()], self.groups[index.row()]
        assert column.text is not None
        if role in (Qt.ItemDataRole.DisplayRole, SORT):
            text = column.text(group)
            return text.lower() if role == SORT else text
        if role == Qt.ItemDataRole.ToolTipRole:
            return _parameters(group) if column.key == "summary" else column.text(group)
        return None

    def _alignment(self, section: int) -> Any:
        side = Qt.AlignmentFlag.AlignRight if COLUMNS[section].figure is not None else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter


def _parameters(group: Group) -> str:
    lines = []
    for layer, parameters in group.parameters.items():
        values = ", ".join(f"{name} {value}" for name, value in sorted(parameters.items()))
        lines.append(f"{layer}: {values or tr('no parameters')}")
    return "\n".join(lines)


class OperatorProxy(QSortFilterProxyModel):
    """Sorts by value instead of text, and filters rows by words in layer names and types."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setSortRole(SORT)
        self._words: tuple[str, ...] = ()

    def set_words(self, text: str) -> None:
        """Show only rows that contain every word of `text`."""
        self.beginFilterChange()
        self._words = tuple(text.lower().split())
        self.endFilterChange()

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:
        model = self.sourceModel()
        assert isinstance(model, OperatorModel)
        group = model.groups[row]
        text = f"{group.name} {' '.join(group.types)}".lower()
        return all(word in text for word in self._words)

    def group_at(self, row: int) -> Group:
        model = self.sourceModel()
        assert isinstance(model, OperatorModel)
        return model.groups[self.mapToSource(self.index(row, 0)).row()]
