"""The runs of this session as a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from app.ui.engine.profiling import Entry
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import ProfileRun
from designer.texts import mark, tr, tr_data
from designer.units import UNAVAILABLE_SIGN, digits

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()


def _milliseconds(run: ProfileRun) -> str:
    return UNAVAILABLE_SIGN if run.time_ms is None else digits(run.time_ms)


def _when(run: ProfileRun) -> str:
    """The local time for today's runs, otherwise the date."""
    try:
        moment = datetime.fromisoformat(run.date).astimezone()
    except ValueError:
        return run.date
    today = moment.date() == datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if today else "%Y-%m-%d")


def _state(entry: Entry) -> str:
    """Whether the values were measured completely."""
    if entry.run.partial:
        return tr("partial")
    return tr_data(_SOURCES[entry.run.source])


_SOURCES = {
    ValueSource.MEASURED: mark("measured"),
    ValueSource.MODELLED: mark("modelled"),
    ValueSource.UNAVAILABLE: mark("unavailable"),
}
# A narrow dock shows the first columns only: those in which runs of one network differ. Settings that all runs share are hidden.
RUN_COLUMNS: tuple[tuple[str, Callable[[Entry], str], bool], ...] = (
    ("#", lambda e: str(e.number), True),
    (mark("Median\nms"), lambda e: _milliseconds(e.run), True),
    (mark("Batch"), lambda e: str(e.run.batch), True),
    (mark("Size"), lambda e: e.run.size, False),
    (mark("Engine"), lambda e: e.run.engine, False),
    (mark("Precision"), lambda e: e.run.precision, False),
    (mark("Layout"), lambda e: e.run.layout, False),
    (mark("Chip"), lambda e: e.profile.chip(e.run), False),
    (mark("Source"), _state, False),
    (mark("Network"), lambda e: e.profile.network, False),
    (mark("Time"), lambda e: _when(e.run), False),
    (mark("Runs"), lambda e: str(e.run.iterations), True),
    (mark("Weights"), lambda e: e.run.weights or tr("from file"), False),
    (mark("From"), lambda e: e.path.name if e.path is not None else tr("this session"), False),
)


SETTINGS = frozenset({"Batch", "Size", "Engine", "Precision", "Layout", "Chip", "Source", "Network"})


class RunModel(QAbstractTableModel):
    """A table model with one row per run, newest last."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.entries: list[Entry] = []

    def show(self, entries: list[Entry]) -> None:
        self.beginResetModel()
        self.entries = list(entries)
        self.endResetModel()

    def is_common(self, section: int) -> bool:
        """Whether several runs have the same setting in this column, so that a narrow dock better shows those in which they differ."""
        text = RUN_COLUMNS[section][1]
        return (
            RUN_COLUMNS[section][0] in SETTINGS and len(self.entries) > 1 and len({text(e) for e in self.entries}) == 1
        )

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
        if role == Qt.ItemDataRole.FontRole:
            return _font(entry, number)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(str(entry.path) if entry.path is not None else entry.title)
        return None


def _font(entry: Entry, number: bool) -> QFont | None:
    """Modelled runs are italic."""
    if entry.run.source is ValueSource.MEASURED:
        return theme.mono_font() if number else None
    font = QFont(theme.mono_font() if number else QApplication.font())
    font.setItalic(True)
    return font


def _alignment(section: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if RUN_COLUMNS[section][2] else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
