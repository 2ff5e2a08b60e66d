"""The runs of this session as a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.ui.engine.profiling import Entry
from app.ui.widgets import theme
from app.ui.widgets.plain import plain_tip
from designer.profiling.report import Record
from designer.texts import mark, tr, tr_data
from designer.units import UNAVAILABLE_SIGN, digits

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()


def _milliseconds(record: Record) -> str:
    value = record.total["time"].value if "time" in record.total else None
    return UNAVAILABLE_SIGN if value is None else digits(value * 1e3)


def _when(record: Record) -> str:
    """The local time for today's runs, otherwise the date."""
    try:
        moment = datetime.fromisoformat(record.date).astimezone()
    except ValueError:
        return record.date
    today = moment.date() == datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if today else "%Y-%m-%d")


def _option(name: str) -> Callable[[Entry], str]:
    return lambda entry: entry.record.options.get(name, UNAVAILABLE_SIGN)


RUN_COLUMNS: tuple[tuple[str, Callable[[Entry], str], bool], ...] = (
    ("#", lambda e: str(e.number), True),
    (mark("Time"), lambda e: _when(e.record), False),
    (mark("Network"), lambda e: e.record.network, False),
    (mark("Median\nms"), lambda e: _milliseconds(e.record), True),
    (mark("Runs"), lambda e: str(e.record.iterations), True),
    (mark("Engine"), _option("engine"), False),
    (mark("Precision"), _option("precision"), False),
    (mark("Layout"), _option("layout"), False),
    (mark("Chip"), lambda e: e.record.machine.device(e.record.options), False),
    (mark("Weights"), lambda e: e.record.weights or tr("from file"), False),
    (mark("From"), lambda e: e.path.name if e.path is not None else tr("this session"), False),
)


class RunModel(QAbstractTableModel):
    """A table model with one row per run, newest last."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.entries: list[Entry] = []

    def show(self, entries: list[Entry]) -> None:
        self.beginResetModel()
        self.entries = list(entries)
        self.endResetModel()

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self.entries)

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(RUN_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return tr_data(RUN_COLUMNS[section][0])
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        entry = self.entries[index.row()]
        _, text, number = RUN_COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return text(entry)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role == Qt.ItemDataRole.FontRole and number:
            return theme.mono_font()
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(str(entry.path) if entry.path is not None else entry.record.title)
        return None


def _alignment(section: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if RUN_COLUMNS[section][2] else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
