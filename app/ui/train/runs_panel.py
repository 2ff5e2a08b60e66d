"""Training Runs: the runs of the document as a table, and the curves of the selected ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QItemSelectionModel, QSignalBlocker, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QMessageBox,
    QSplitter,
    QStackedWidget,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.engine.context import Context
from app.ui.engine.training import training_of
from app.ui.train.run_dialogs import ask_notes, ask_steps
from app.ui.train.run_progress import metric_title
from app.ui.train.runs_model import RunsModel
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.flow import FlowLayout
from designer.texts import tr
from designer.training.metrics import Curves
from designer.training.watched_run import WatchedRun

if TYPE_CHECKING:
    from app.ui.train.curve_plot import Curve, CurvePlot

FIRST_METRICS = ("loss", "validation.psnr", "validation.ssim", "learning_rate", "throughput", "memory")
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
        self._drawn: dict[tuple[WatchedRun, str], tuple[Curves, Curve]] = {}
        self.plot: CurvePlot | None = None
        self.model = RunsModel(self)
        self.table = self._make_table()
        self.metric_box = QComboBox()
        self.metric_box.setObjectName("training_runs.metric")
        self.metric_box.setAccessibleName(tr("Metric of the curves"))
        self.metric_box.activated.connect(lambda _index: self._draw())
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

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setObjectName("training_runs.table")
        table.setAccessibleName(tr("Training Runs"))
        table.setModel(self.model)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.setAlternatingRowColors(True)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 8)
        table.selectionModel().selectionChanged.connect(self._on_selection)
        table.doubleClicked.connect(lambda _index: self._edit_notes())
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
        commands, choices = QWidget(), QHBoxLayout()
        row = FlowLayout(commands)
        for button in self._buttons.values():
            row.addWidget(button)
        choices.addWidget(self.metric_box)
        choices.addWidget(self.logarithmic)
        choices.addStretch(1)
        left, right = QWidget(), QWidget()
        first, self._right = QVBoxLayout(left), QVBoxLayout(right)
        for box in (first, self._right):
            box.setContentsMargins(0, 0, 0, 0)
        first.addWidget(commands)
        first.addWidget(self.table, 1)
        self._right.addLayout(choices)
        self._right.addStretch(1)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setObjectName("training_runs.split")
        split.addWidget(left)
        split.addWidget(right)
        split.setStretchFactor(1, 1)
        split.setChildrenCollapsible(False)
        split.setSizes([420, 580])
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
            self._right.takeAt(1)
            self._right.addWidget(self.plot, 1)
        self._draw()

    # --- the table -------------------------------------------------------------------------------------------

    def _list(self) -> None:
        with QSignalBlocker(self.table.selectionModel()):
            self.model.show_runs(self._training.runs)
        self._stack.setCurrentIndex(1 if self._training.runs else 0)
        self._on_chosen()

    def _on_chosen(self) -> None:
        """Select the rows of the chosen runs."""
        with QSignalBlocker(self.table.selectionModel()):
            self.model.compare(self._training.chosen)
            model, flags = self.table.selectionModel(), QItemSelectionModel.SelectionFlag
            model.clearSelection()
            for run in self._training.chosen:
                model.select(self.model.index(self.model.runs.index(run), 0), flags.Select | flags.Rows)
        self.table.viewport().update()
        self.table.resizeColumnsToContents()
        self._update()

    def _on_selection(self, *_: object) -> None:
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        self._training.choose(self.model.runs[row] for row in rows)

    def _update(self) -> None:
        self.model.refresh()
        self._fill_metrics()
        self._draw()
        chosen = self._training.chosen
        one = len(chosen) == 1
        self._buttons["extend"].setEnabled(one and chosen[0].snapshot.can_resume)
        self._buttons["notes"].setEnabled(one)
        self._buttons["clone"].setEnabled(one)
        self._buttons["delete"].setEnabled(bool(chosen) and not any(run.snapshot.state.trains for run in chosen))

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
        if self.plot is None or not self.plot.isVisible():
            return
        metric: Any = self.metric_box.currentData() or "loss"
        curves = [self._curve(run, metric) for run in self._training.chosen]
        self.plot.show_curves(metric_title(metric), curves, self.logarithmic.isChecked())

    def _curve(self, run: WatchedRun, metric: str) -> Curve:
        """The curve of a run, made again only if the run went on."""
        from app.ui.train.curve_plot import Curve

        curves, title = run.snapshot.curves, run.snapshot.title
        known = self._drawn.get((run, metric))
        if known is None or known[0] is not curves or known[1].title != title:
            known = self._drawn[run, metric] = curves, Curve(title, *curves.points(metric))
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

    def _delete(self) -> None:
        runs = self._training.chosen
        names = ", ".join(run.snapshot.title for run in runs)
        question = tr("Delete {names} with all checkpoints and images?", names=names)
        if QMessageBox.question(self, tr("Delete Runs"), question) == QMessageBox.StandardButton.Yes:
            for run in runs:
                self._training.delete(run)
