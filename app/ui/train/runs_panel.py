"""Training Runs: the runs and sweeps of the document as a table, and the curves of the selected runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QSignalBlocker, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QMessageBox,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from app.ui.engine.context import Context
from app.ui.engine.training import training_of
from app.ui.train.curve_legend import CurveLegend
from app.ui.train.run_dialogs import ask_notes, ask_steps
from app.ui.train.run_progress import metric_title
from app.ui.train.runs_model import NOTES, RunsModel, SweepRow, differing_settings
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.flow import FlowLayout
from designer.texts import tr
from designer.training.metrics import Curves
from designer.training.watched_run import RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot

if TYPE_CHECKING:
    from app.ui.train.curve_plot import Curve, CurvePlot

FIRST_METRICS = ("loss", "validation.psnr", "validation.ssim", "learning_rate", "throughput", "memory")
SMOOTHING = (0.02, 0.1)  # shares of the logged steps
HIDDEN_METRICS = ("epoch", "time", "elapsed")


class TrainingRunsPanel(QWidget):
    """Selected runs are compared: their curves are drawn together, and the settings that differ become columns."""

    panel_id = "training_runs"
    title = "Training Runs"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("training_runs")
        self.setAccessibleName(tr("Training Runs"))
        self._training = training_of(context)
        self._drawn: dict[tuple[WatchedRun, str, float], tuple[Curves, Curve]] = {}
        self._folded: set[Path] = set()  # sweeps whose trials are hidden
        self._group: Path | None = None  # the sweep whose row is selected, so that all of its trials are chosen
        self.plot: CurvePlot | None = None
        self.legend = CurveLegend("training_runs.legend")
        self.model = RunsModel(self)
        self.table = self._make_table()
        self.metric_box = QComboBox()
        self.metric_box.setObjectName("training_runs.metric")
        self.metric_box.setAccessibleName(tr("Metric of the curves"))
        self.metric_box.activated.connect(lambda _index: self._draw())
        self.smoothing = QComboBox()
        self.smoothing.setObjectName("training_runs.smoothing")
        self.smoothing.setAccessibleName(tr("Smoothing of the curves"))
        self.smoothing.addItem(tr("Not smoothed"), 0.0)
        for share in SMOOTHING:
            self.smoothing.addItem(tr("Smoothed over {share} %", share=round(100 * share)), share)
        self.smoothing.setToolTip(tr("Draw the mean around each step, over this share of the logged steps"))
        self.smoothing.currentIndexChanged.connect(lambda _index: self._draw())
        self.logarithmic = QCheckBox(tr("Logarithmic"))
        self.logarithmic.setObjectName("training_runs.logarithmic")
        self.logarithmic.toggled.connect(lambda _on: self._draw())
        self._buttons = self._make_buttons()
        self._lay_out()
        self._training.runs_changed.connect(self._list)
        self._training.updated.connect(self._update)
        self._training.chosen_changed.connect(self._on_chosen)
        self._list()

    # --- building --------------------------------------------------------------------------------------------

    def _make_table(self) -> QTreeView:
        table = QTreeView()
        table.setObjectName("training_runs.table")
        table.setAccessibleName(tr("Training Runs"))
        table.setModel(self.model)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.setAlternatingRowColors(True)
        table.setUniformRowHeights(True)
        table.header().setResizeContentsPrecision(0)  # only the visible rows
        table.selectionModel().selectionChanged.connect(self._on_selection)
        table.collapsed.connect(lambda index: self._fold(index, True))
        table.expanded.connect(lambda index: self._fold(index, False))
        table.doubleClicked.connect(self._on_double_click)
        return table

    def _make_buttons(self) -> dict[str, QToolButton]:
        entries: tuple[tuple[str, str, str, str, Callable[[], None]], ...] = (
            ("extend", "plus", tr("Extend..."), tr("Train the selected run for more steps"), self._extend),
            (
                "clone",
                "content-duplicate",
                tr("Clone"),
                tr("Fill in the settings of the selected run, to change them and start another one"),
                self._clone,
            ),
            (
                "notes",
                "comment-outline",
                tr("Name and Notes..."),
                tr("Name the selected run and write notes about it"),
                self._edit_notes,
            ),
            ("delete", "delete-outline", tr("Delete..."), tr("Delete the folders of the selected runs"), self._delete),
            (
                "sweep",
                "stop",
                tr("Stop Sweep"),
                tr("Stop the trials that train, with checkpoints, and start no others"),
                self._stop_or_continue,
            ),
        )
        return {name: self._button(name, icon, text, tip, do) for name, icon, text, tip, do in entries}

    def _button(self, name: str, icon: str, text: str, tip: str, do: Callable[[], None]) -> QToolButton:
        button = QToolButton()
        button.setObjectName(f"training_runs.{name}")
        button.setText(text)
        button.setAccessibleName(text)
        button.setToolTip(tip)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        theme.set_icon(button, icon)
        button.clicked.connect(do)
        return button

    def _lay_out(self) -> None:
        commands, above = QWidget(), QWidget()
        row, choices = FlowLayout(commands), FlowLayout(above)
        for button in self._buttons.values():
            row.addWidget(button)
        for widget in (self.metric_box, self.smoothing, self.logarithmic):
            choices.addWidget(widget)
        left, right = QWidget(), QWidget()
        first, self._right = QVBoxLayout(left), QVBoxLayout(right)
        for box in (first, self._right):
            box.setContentsMargins(0, 0, 0, 0)
        first.addWidget(commands)
        first.addWidget(self.table, 1)
        self._right.addWidget(above)
        self._right.addWidget(self.legend)
        self._right.addStretch(1)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setObjectName("training_runs.split")
        split.addWidget(left)
        split.addWidget(right)
        split.setStretchFactor(1, 1)
        split.setChildrenCollapsible(False)
        split.setSizes([520, 480])
        self._stack = QStackedWidget()
        self._stack.addWidget(
            EmptyState(
                "training_runs",
                "chart-line",
                tr("No runs yet. Start one under Training: its curves are drawn here while it trains."),
            )
        )
        self._stack.addWidget(split)
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        main.addWidget(self._stack)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.plot is None:
            from app.ui.train.curve_plot import CurvePlot  # pyqtgraph

            self.plot = CurvePlot("training_runs.plot")
            self.plot.named_changed.connect(self.legend.show_entries)
            self._right.takeAt(2)
            self._right.addWidget(self.plot, 1)
        self._draw()

    # --- the table -------------------------------------------------------------------------------------------

    def _list(self) -> None:
        with QSignalBlocker(self.table.selectionModel()):
            self.model.show_runs(self._training.runs, list(self._training.sweeps.values()))
        self._stack.setCurrentIndex(1 if self.model.items else 0)
        row = self._group_row()
        if row is not None:
            self._training.choose(row.runs)
        self._on_chosen()

    def _group_row(self) -> SweepRow | None:
        return next((row for row in self.model.sweeps() if row.folder == self._group), None)

    def _fold(self, index: QModelIndex, folded: bool) -> None:
        item = self.model.item(index)
        if isinstance(item, SweepRow):
            (self._folded.add if folded else self._folded.discard)(item.folder)

    def _unfold(self) -> None:
        """Show the trials of sweeps again after the rows were made anew."""
        with QSignalBlocker(self.table):
            for row in self.model.sweeps():
                self.table.setExpanded(self.model.index_of(row), row.folder not in self._folded)

    def _on_chosen(self) -> None:
        """Select the rows of the chosen runs, and the row of a sweep if it was selected and all of its trials are chosen."""
        chosen, row = self._training.chosen, self._group_row()
        if row is None or tuple(row.runs) != chosen:
            self._group, row = None, None
        with QSignalBlocker(self.table.selectionModel()):
            self.model.compare(chosen)
            self._unfold()
            model, flags = self.table.selectionModel(), QItemSelectionModel.SelectionFlag
            model.clearSelection()
            indexes = [self.model.index_of(run) for run in chosen]
            for index in [*indexes, *([self.model.index_of(row)] if row is not None else [])]:
                model.select(index, flags.Select | flags.Rows)
        header = self.table.header()
        header.moveSection(header.visualIndex(NOTES), header.count() - 1)  # what differs is before the notes
        self.table.viewport().update()
        for column in range(self.model.columnCount()):
            self.table.resizeColumnToContents(column)
        self._update()

    def _on_selection(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        items = [self.model.item(index) for index in self.table.selectionModel().selectedRows()]
        gone = [self.model.item(index) for index in deselected.indexes() if not index.column()]
        new = [self.model.item(index) for index in selected.indexes() if not index.column()]
        rows = [  # a trial that is taken out of a selected sweep leaves the other ones
            item
            for item in items
            if isinstance(item, SweepRow)
            and (item in new or not any(r in gone for r in item.runs) or not any(r in items for r in item.runs))
        ]
        found = {run for row in rows for run in row.runs} | {run for run in items if isinstance(run, WatchedRun)}
        self._group = rows[0].folder if len(rows) == 1 and found == set(rows[0].runs) else None
        self._training.choose(run for run in self.model.runs() if run in found)
        self._update()  # a sweep without trials

    def _on_double_click(self, index: QModelIndex) -> None:
        if isinstance(self.model.item(index), WatchedRun):
            self._edit_notes()

    def _sweep(self) -> SweepSnapshot | None:
        """The sweep of the selected rows."""
        chosen = self._training.chosen
        if chosen:
            return self._training.sweep_of(chosen[0])
        row = self._group_row()
        return row.snapshot if row is not None else None

    def _update(self) -> None:
        if differing_settings(self._training.chosen) != self.model.differing:  # a chosen run has begun
            self._on_chosen()
            return
        self.model.show_sweeps(list(self._training.sweeps.values()))
        self.model.refresh()
        self._widen()
        self._fill_metrics()
        self._draw()
        chosen, sweep = self._training.chosen, self._sweep()
        one = len(chosen) == 1
        self._buttons["extend"].setEnabled(one and chosen[0].snapshot.can_resume and not self._training.busy)
        self._buttons["notes"].setEnabled(one)
        self._buttons["clone"].setEnabled(one)
        idle = not any(run.snapshot.state.trains for run in chosen)
        if self._group is not None and sweep is not None:  # all of it would be deleted
            idle = idle and not sweep.state.trains
        self._buttons["delete"].setEnabled(idle and (bool(chosen) or sweep is not None))
        self._show_sweep(sweep)

    def _widen(self) -> None:
        """Make columns wide enough for their values; none becomes narrower while values change."""
        for column in range(self.model.columnCount()):
            needed = max(self.table.sizeHintForColumn(column), self.table.header().sectionSizeHint(column))
            if self.table.columnWidth(column) < needed:
                self.table.setColumnWidth(column, needed)

    def _show_sweep(self, sweep: SweepSnapshot | None) -> None:
        button = self._buttons["sweep"]
        button.setVisible(sweep is not None and sweep.state is not RunState.FINISHED)
        if sweep is not None:
            button.setText(tr("Stop Sweep") if sweep.state.trains else tr("Continue Sweep"))
            button.setToolTip(
                tr("Stop the trials that train, with checkpoints, and start no others")
                if sweep.state.trains
                else tr("Train the trials that are not finished; stopped ones continue from their checkpoints")
            )
            button.setEnabled(sweep.state.trains or not self._training.busy)
            theme.set_icon(button, "stop" if sweep.state.trains else "play")

    # --- the curves ------------------------------------------------------------------------------------------

    def _fill_metrics(self) -> None:
        names = dict.fromkeys(name for run in self._training.chosen for name in run.snapshot.curves.values)
        known = [name for name in FIRST_METRICS if name in names]
        known += [name for name in names if name not in (*FIRST_METRICS, *HIDDEN_METRICS)]
        if known != [self.metric_box.itemData(number) for number in range(self.metric_box.count())]:
            current = self.metric_box.currentData()
            self.metric_box.clear()
            for name in known:
                self.metric_box.addItem(metric_title(name), name)
            self.metric_box.setCurrentIndex(max(self.metric_box.findData(current), 0))

    def _draw(self) -> None:
        if self.plot is None or not self.isVisible():
            return
        metric: Any = self.metric_box.currentData() or "loss"
        curves = [self._curve(run, metric) for run in self._training.chosen]
        self.plot.show_curves(metric_title(metric), curves, self.logarithmic.isChecked())

    def _curve(self, run: WatchedRun, metric: str) -> Curve:
        """The curve of a run, made again only if the run went on."""
        from app.ui.train.curve_plot import Curve

        curves, title = run.snapshot.curves, run.snapshot.title
        share = self.smoothing.currentData()
        known = self._drawn.get((run, metric, share))
        if known is None or known[0] is not curves or known[1].title != title:
            curve = Curve(title, *curves.points(metric)).smoothed(share)
            known = self._drawn[run, metric, share] = curves, curve
        return known[1]

    # --- commands --------------------------------------------------------------------------------------------

    def _extend(self) -> None:
        for run in self._training.chosen[:1]:
            steps = ask_steps(self, run.snapshot)
            if steps:
                self._training.resume(run, {"steps": str(steps)})

    def _clone(self) -> None:
        for run in self._training.chosen[:1]:
            self._training.clone_requested.emit(run)

    def _edit_notes(self) -> None:
        for run in self._training.chosen[:1]:
            notes = ask_notes(self, run.snapshot)
            if notes is not None:
                self._training.write_notes(run, notes)

    def _stop_or_continue(self) -> None:
        sweep = self._sweep()
        if sweep is not None:
            (self._training.stop_sweep if sweep.state.trains else self._training.continue_sweep)(sweep)

    def _delete(self) -> None:
        runs, whole = self._training.chosen, self._sweep() if self._group is not None else None
        names = whole.title if whole is not None else ", ".join(run.snapshot.title for run in runs)
        question = tr("Delete {names} with all checkpoints and images?", names=names)
        if QMessageBox.question(self, tr("Delete Runs"), question) != QMessageBox.StandardButton.Yes:
            return
        if whole is not None:
            self._training.delete_sweep(whole)
            return
        for run in runs:
            self._training.delete(run)
