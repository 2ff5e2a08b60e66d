"""The runs of the document as a table, the trials of a sweep below it; settings in which chosen runs differ are columns of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush

from app.ui.train.run_progress import time_text
from app.ui.widgets import theme
from app.ui.widgets.sentences import sentence
from app.ui.widgets.tooltips import plain_tip
from designer.texts import mark, tr, tr_data
from designer.training.metrics import settings_differences
from designer.training.sweep import best_value
from designer.training.watched_run import RunSnapshot, RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot, best_trial
from designer.units import UNAVAILABLE_SIGN, digits

UNITS = {"psnr": "dB", "iou": mark("IoU"), "accuracy": mark("accuracy"), "loss": mark("loss")}
Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()


def _last(name: str) -> Callable[[RunSnapshot], str]:
    def text(shot: RunSnapshot) -> str:
        value = shot.curves.last(name)
        return digits(value) if value is not None else UNAVAILABLE_SIGN

    return text


def _left(shot: RunSnapshot) -> str:
    return time_text(shot.seconds_left) if shot.seconds_left is not None else UNAVAILABLE_SIGN


def _best(shot: RunSnapshot) -> str:
    metric, value = best_value(shot.curves)
    return UNAVAILABLE_SIGN if value is None else f"{digits(value)} {tr_data(UNITS[metric])}"


def _state(shot: RunSnapshot) -> str:
    return tr("{state} on {host}", state=shot.state.text, host=shot.host) if shot.host else shot.state.text


COLUMNS: tuple[tuple[str, Callable[[RunSnapshot], str], bool], ...] = (
    (mark("Run"), lambda shot: shot.title, False),
    (mark("State"), _state, False),
    (mark("Step"), lambda shot: str(shot.step), True),
    (mark("Left"), _left, True),
    (mark("Loss"), _last("loss"), True),
    (mark("Best"), _best, True),
    (mark("Notes"), lambda shot: shot.notes.text, False),
)
NOTES = len(COLUMNS) - 1


@dataclass
class SweepRow:
    """A sweep, and its trials that have started."""

    snapshot: SweepSnapshot
    runs: list[WatchedRun]

    @property
    def folder(self) -> Path:
        return self.snapshot.folder

    def text(self, column: int) -> str:
        if column == 0:
            return self.snapshot.title
        if column == 1:
            done = sum(run.snapshot.state is RunState.FINISHED for run in self.runs)
            total = len(self.snapshot.sweep.trials)
            return tr("{state}, {done} of {total}", state=self.snapshot.state.text, done=done, total=total)
        best = best_trial([run.snapshot for run in self.runs]) if column == NOTES else None
        if best is None:
            return ""
        return tr("best: {title} ({value})", title=best.title, value=_best(best))


Item = WatchedRun | SweepRow


class RunsModel(QAbstractItemModel):
    """One row per run; the trials of a sweep are below its row. Columns after the fixed ones are the settings in which the compared
    runs differ, highlighted.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.items: list[Item] = []
        self.differing: tuple[str, ...] = ()
        self._compared: frozenset[WatchedRun] = frozenset()

    def show_runs(self, runs: Sequence[WatchedRun], sweeps: Sequence[SweepSnapshot]) -> None:
        self.beginResetModel()
        inside = [SweepRow(each, [run for run in runs if run.folder.project.parent == each.folder]) for each in sweeps]
        trials = {run for row in inside for run in row.runs}
        self.items = [*(run for run in runs if run not in trials), *inside]
        self.endResetModel()

    def show_sweeps(self, sweeps: Sequence[SweepSnapshot]) -> None:
        """The sweeps went on."""
        known = {snapshot.folder: snapshot for snapshot in sweeps}
        for row in self.sweeps():
            row.snapshot = known.get(row.folder, row.snapshot)

    def compare(self, runs: Sequence[WatchedRun]) -> None:
        """Show the settings in which these runs differ."""
        names = differing_settings(runs)
        self._compared = frozenset(runs)
        if names != self.differing:
            self.beginResetModel()
            self.differing = names
            self.endResetModel()
        self.refresh()

    def refresh(self) -> None:
        """The runs went on."""
        last = self.columnCount() - 1
        if self.items:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.items) - 1, last), [])
        for row in self.sweeps():
            if row.runs:
                parent = self.index_of(row)
                self.dataChanged.emit(self.index(0, 0, parent), self.index(len(row.runs) - 1, last, parent), [])

    # --- rows ------------------------------------------------------------------------------------------------

    def runs(self) -> list[WatchedRun]:
        """All runs from top to bottom."""
        return [run for item in self.items for run in (item.runs if isinstance(item, SweepRow) else [item])]

    def sweeps(self) -> list[SweepRow]:
        return [item for item in self.items if isinstance(item, SweepRow)]

    def item(self, index: Index) -> Item:
        """The run or sweep of a row."""
        above = index.internalId()
        if not above:
            return self.items[index.row()]
        row = self.items[above - 1]
        assert isinstance(row, SweepRow)
        return row.runs[index.row()]

    def index_of(self, item: Item) -> QModelIndex:
        """The index of the first column of a row."""
        for number, each in enumerate(self.items):
            if each is item:
                return self.createIndex(number, 0, 0)
            if isinstance(each, SweepRow) and isinstance(item, WatchedRun) and item in each.runs:
                return self.createIndex(each.runs.index(item), 0, number + 1)
        return QModelIndex()

    def index(self, row: int, column: int, parent: Index = ROOT) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, index: Index = ROOT) -> QModelIndex:  # type: ignore[override]
        above = index.internalId() if index.isValid() else 0
        return self.createIndex(above - 1, 0, 0) if above else QModelIndex()

    def rowCount(self, parent: Index = ROOT) -> int:
        if not parent.isValid():
            return len(self.items)
        if parent.internalId() or parent.column():
            return 0
        item = self.items[parent.row()]
        return len(item.runs) if isinstance(item, SweepRow) else 0

    def columnCount(self, parent: Index = ROOT) -> int:
        return len(COLUMNS) + len(self.differing)

    # --- cells -----------------------------------------------------------------------------------------------

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            if section < len(COLUMNS):
                return tr_data(COLUMNS[section][0])
            return self.differing[section - len(COLUMNS)].replace("_", " ")
        return None

    def data(self, index: Index, role: int = 0) -> Any:
        item, column = self.item(index), index.column()
        fixed = column < len(COLUMNS)
        compared = item in self._compared if isinstance(item, WatchedRun) else False
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            text = self._text(item, column)
            if role == Qt.ItemDataRole.DisplayRole:
                return text.partition("\n")[0]
            return plain_tip(sentence(item.snapshot.message) if column == 1 and item.snapshot.message else text)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            right = COLUMNS[column][2] if fixed else False
            side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole and (not fixed or COLUMNS[column][2]):
            font = theme.mono_font()
            font.setBold(not fixed and compared)
            return font
        if role == Qt.ItemDataRole.ForegroundRole and not fixed and compared:
            return QBrush(theme.color("warning"))
        return None

    def _text(self, item: Item, column: int) -> str:
        if isinstance(item, SweepRow):
            return item.text(column)
        if column < len(COLUMNS):
            return COLUMNS[column][1](item.snapshot)
        value = item.snapshot.compared.get(self.differing[column - len(COLUMNS)])
        return str(value) if value is not None else UNAVAILABLE_SIGN


def differing_settings(runs: Sequence[WatchedRun]) -> tuple[str, ...]:
    """The settings in which runs differ. A run that is starting has not written its settings yet."""
    return tuple(settings_differences([run.snapshot.compared for run in runs if run.snapshot.settings]))
