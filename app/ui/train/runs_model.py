"""The runs of the document as a table; settings in which chosen runs differ are columns of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush

from app.ui.train.run_progress import time_text
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.texts import mark, tr_data
from designer.training.metrics import settings_differences
from designer.training.watched_run import RunSnapshot, WatchedRun
from designer.units import UNAVAILABLE_SIGN, digits

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()


def _last(name: str) -> Callable[[RunSnapshot], str]:
    def text(shot: RunSnapshot) -> str:
        value = shot.curves.last(name)
        return digits(value) if value is not None else UNAVAILABLE_SIGN

    return text


def _left(shot: RunSnapshot) -> str:
    return time_text(shot.seconds_left) if shot.seconds_left is not None else UNAVAILABLE_SIGN


COLUMNS: tuple[tuple[str, Callable[[RunSnapshot], str], bool], ...] = (
    (mark("Run"), lambda shot: shot.title, False),
    (mark("State"), lambda shot: shot.state.text, False),
    (mark("Step"), lambda shot: str(shot.step), True),
    (mark("Left"), _left, True),
    (mark("Loss"), _last("loss"), True),
    (mark("PSNR\ndB"), _last("validation.psnr"), True),
    (mark("Notes"), lambda shot: shot.notes.text, False),
)


class RunsModel(QAbstractTableModel):
    """One row per run. Columns after the fixed ones are the settings in which the compared runs differ, highlighted."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.runs: list[WatchedRun] = []
        self.differing: tuple[str, ...] = ()
        self._compared: frozenset[WatchedRun] = frozenset()

    def show_runs(self, runs: Sequence[WatchedRun]) -> None:
        self.beginResetModel()
        self.runs = list(runs)
        self.endResetModel()

    def compare(self, runs: Sequence[WatchedRun]) -> None:
        """Show the settings in which these runs differ; less than two of them differ in nothing."""
        names = tuple(settings_differences([run.snapshot.settings for run in runs])) if len(runs) > 1 else ()
        self._compared = frozenset(runs)
        if names != self.differing:
            self.beginResetModel()
            self.differing = names
            self.endResetModel()
        self.refresh()

    def refresh(self) -> None:
        """The runs went on."""
        if self.runs:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.runs) - 1, self.columnCount() - 1), [])

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self.runs)

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS) + len(self.differing)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            if section < len(COLUMNS):
                return tr_data(COLUMNS[section][0])
            return self.differing[section - len(COLUMNS)].replace("_", " ")
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        run, column = self.runs[index.row()], index.column()
        fixed = column < len(COLUMNS)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            text = COLUMNS[column][1](run.snapshot) if fixed else self._setting(run, column)
            if role == Qt.ItemDataRole.DisplayRole:
                return text.partition("\n")[0]
            return plain_tip(run.snapshot.message if column == 1 and run.snapshot.message else text)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            right = COLUMNS[column][2] if fixed else False
            side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole and (not fixed or COLUMNS[column][2]):
            font = theme.mono_font()
            font.setBold(not fixed and run in self._compared)
            return font
        if role == Qt.ItemDataRole.ForegroundRole and not fixed and run in self._compared:
            return QBrush(theme.color("warning"))
        return None

    def _setting(self, run: WatchedRun, column: int) -> str:
        value = run.snapshot.settings.get(self.differing[column - len(COLUMNS)])
        return str(value) if value is not None else UNAVAILABLE_SIGN
