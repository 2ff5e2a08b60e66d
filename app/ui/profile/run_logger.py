"""Inference Run Logger: launches and lists profiled runs, and opens and saves profiles."""

from __future__ import annotations

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QStackedWidget,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.document.weights_dialog import ask_weights_file, ask_weights_folder
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, State, profiling_of
from app.ui.profile.dialogs import open_profile, save_profile_as
from app.ui.profile.run_model import RunModel
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.message import Message
from app.ui.widgets.notice import Notice
from designer.files.settings import MAX_ITERATIONS
from designer.profiling.difference import difference
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import ProfileRun
from designer.texts import tr
from designer.units import quantity, signed_duration


class RunLoggerPanel(QWidget):
    """The list of runs. The other profiling panels show the selected run; two selected runs are compared."""

    panel_id = "run_logger"
    title = "Inference Run Logger"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("run_logger")
        self.setAccessibleName(tr("Inference Run Logger"))
        self._context = context
        self._profiling = profiling_of(context)
        self._document: Document | None = None
        self.launch = QPushButton(tr("Launch Inference"))
        self.launch.setObjectName("run_logger.launch")
        self.launch.setAccessibleName(tr("Launch Inference"))
        self.launch.clicked.connect(self._launch_or_stop)
        self.iterations = QSpinBox()
        self.iterations.setObjectName("run_logger.iterations")
        self.iterations.setAccessibleName(tr("Iterations"))
        self.iterations.setToolTip(tr("Number of timed runs; the median is shown"))
        self.iterations.setRange(1, MAX_ITERATIONS)
        self.iterations.setSuffix(tr(" runs"))
        self.iterations.valueChanged.connect(self._profiling.set_iterations)
        self.batches = self._field(
            "batches",
            tr("Batches: 1,4,16"),
            tr("Batch sizes to measure in turns, separated by commas; empty: the inputs as they are"),
        )
        self.sizes = self._field(
            "sizes",
            tr("Sizes: 256x256"),
            tr("Image sizes to measure in turns, width x height; empty: the inputs as they are"),
        )
        self.engines = self._field(
            "engines",
            tr("Engines: torch"),
            tr("Other engines to measure in turns with the one of the document, such as torch,openvino"),
        )
        self.precisions = self._field(
            "precisions",
            tr("Precisions: fp16"),
            tr("Other precisions to measure in turns with the one of the document: fp32, fp16 or bf16"),
        )
        self.layouts = self._field(
            "layouts",
            tr("Layouts: nhwc"),
            tr("Other layouts to measure in turns with the one of the document: nchw or nhwc"),
        )
        self.training = QCheckBox(tr("Training step"))
        self.training.setObjectName("run_logger.training")
        self.training.setAccessibleName(tr("Training step"))
        self.training.setToolTip(tr("Also measure a training step of the exported project with PyTorch"))
        self.training.toggled.connect(lambda on: setattr(self._profiling, "training", on))
        self._open = self._button(
            "open",
            "folder-open-outline",
            tr("Open..."),
            tr("Open profile"),
            tr("Open a saved profile, also of another machine, such as one written by make gpu-check"),
        )
        self._open.clicked.connect(lambda: open_profile(self, self._profiling))
        self._save = self._button(
            "save",
            "content-save-outline",
            tr("Save..."),
            tr("Save profile"),
            tr("Save the selected run as a profile or table"),
        )
        self._save.clicked.connect(self._save_chosen)
        self._remove = self._button(
            "remove",
            "delete-outline",
            tr("Remove"),
            tr("Remove runs"),
            tr("Remove the selected runs from the list; files are kept"),
        )
        self._remove.clicked.connect(self._remove_chosen)
        self.status = Message("run_logger.status")
        self._notice = Notice("run_logger.notice", tr("Weights for the run"))
        self._notice.add_button(
            "weights", tr("Weights Folder..."), tr("Run with the .npy or .bin files of a folder"), self._ask_folder
        )
        self._notice.add_button(
            "file", tr("Weights File..."), tr("Run with the weights in a file, such as a checkpoint"), self._ask_file
        )
        self._notice.add_button(
            "random",
            tr("Run with Random Weights"),
            tr(
                "Fill missing weights with seeded random values. They hardly affect the timing, and the profile notes them"
            ),
            self._profiling.launch_random,
        )
        self._make_list()
        self._lay_out()
        self._connect(context)

    def _make_list(self) -> None:
        self.model = RunModel(self)
        self.table = self._make_table()
        self.details = QLabel()
        self.details.setObjectName("run_logger.details")
        self.details.setAccessibleName(tr("Details of the selected run"))
        self.details.setWordWrap(True)
        self.details.setTextFormat(Qt.TextFormat.PlainText)
        self.details.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._empty = EmptyState(
            "run_logger", "timer-outline", tr("No runs yet. Profiled runs of this session are listed here.")
        )
        listing = QWidget()
        column = QVBoxLayout(listing)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.table, 1)
        column.addWidget(self.details)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(listing)

    def _lay_out(self) -> None:
        first, second, third, fourth, fifth = (QHBoxLayout() for _ in range(5))
        first.addWidget(self.launch, 1)
        first.addWidget(self.iterations)
        third.addWidget(self.batches)
        third.addWidget(self.sizes)
        fourth.addWidget(self.engines)
        fourth.addWidget(self.precisions)
        fifth.addWidget(self.layouts, 1)
        fifth.addWidget(self.training, 1)
        for button in (self._open, self._save, self._remove):
            second.addWidget(button)
        second.addStretch(1)
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        main.addLayout(first)
        main.addLayout(third)
        main.addLayout(fourth)
        main.addLayout(fifth)
        main.addLayout(second)
        main.addWidget(self.status)
        main.addWidget(self._notice)
        main.addWidget(self._stack, 1)

    def _connect(self, context: Context) -> None:
        self._profiling.entries_changed.connect(self._list)
        self._profiling.current_changed.connect(self._on_current)
        self._profiling.compared_changed.connect(self._on_compared)
        self._profiling.state_changed.connect(self._on_state)
        context.root_changed.connect(self._on_document)
        self._on_document()
        self._list()
        self._choose(self._profiling.current)
        self._on_state(str(self._profiling.state), self._profiling.message)

    def _field(self, name: str, placeholder: str, tip: str) -> QLineEdit:
        field = QLineEdit()
        field.setObjectName(f"run_logger.{name}")
        field.setAccessibleName(placeholder.partition(":")[0])
        field.setPlaceholderText(placeholder)
        field.setToolTip(tip)
        field.setMinimumWidth(60)
        field.returnPressed.connect(self._launch_or_stop)
        field.textChanged.connect(lambda text: self._profiling.grid.update({name: text}))
        return field

    def _button(self, name: str, icon: str, title: str, spoken: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setObjectName(f"run_logger.{name}")
        button.setText(title)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setAccessibleName(spoken)
        button.setToolTip(tip)
        theme.set_icon(button, icon)
        return button

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setObjectName("run_logger.table")
        table.setAccessibleName(tr("Runs"))
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
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        table.selectionModel().selectionChanged.connect(self._on_selection)
        return table

    def chosen(self) -> list[Entry]:
        """The selected runs, from top to bottom."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self.model.entries[row] for row in rows]

    def _launch_or_stop(self) -> None:
        if self._profiling.running:
            self._profiling.stop()
        else:
            self._profiling.launch()

    def _ask_folder(self) -> None:
        ask_weights_folder(self, self._document, self._profiling.choose_weights)

    def _ask_file(self) -> None:
        ask_weights_file(self, self._document, self._profiling.choose_weights)

    def _save_chosen(self) -> None:
        for entry in self.chosen()[:1]:
            save_profile_as(self, self._profiling, entry)

    def _remove_chosen(self) -> None:
        for entry in self.chosen():
            self._profiling.remove(entry)

    def _on_document(self, *_: object) -> None:
        if self._document is not None:
            self._document.settings_changed.disconnect(self._on_settings)
        self._document = self._context.root if self._context.has_document else None
        if self._document is not None:
            self._document.settings_changed.connect(self._on_settings)
        self._on_settings()
        self._enable()

    def _on_settings(self) -> None:
        with QSignalBlocker(self.iterations):
            self.iterations.setValue(self._profiling.iterations())

    def _on_state(self, state: str, message: str) -> None:
        asked = state == State.WEIGHTS
        self.status.show_message("" if asked else message, "error" if state == State.FAILED else "info")
        text = tr("{message} Choose weights, or measure the network with random weights.", message=message)
        self._notice.say(text if asked else "", "warning", ("weights", "file", "random"))
        self._enable()

    def _enable(self) -> None:
        running = self._profiling.running
        self.launch.setText(tr("Stop") if running else tr("Launch Inference"))
        theme.set_icon(self.launch, "stop" if running else "play")
        self.launch.setEnabled(self._context.has_document)
        self.launch.setToolTip(
            tr("Stop the run")
            if running
            else tr("Run the network, time every operator, and list the run")
            if self._context.has_document
            else tr("Open a document first")
        )
        chosen = self.chosen()
        self._save.setEnabled(len(chosen) == 1)
        self._remove.setEnabled(bool(chosen))

    def _list(self) -> None:
        self.model.show(self._profiling.entries)
        self._stack.setCurrentIndex(1 if self._profiling.entries else 0)
        for section in range(self.model.columnCount()):
            self.table.setColumnHidden(section, self.model.is_common(section))
        self.table.resizeColumnsToContents()
        self._choose(self._profiling.current)

    def _on_current(self, entry: object) -> None:
        self._choose(self._profiling.current)

    def _on_compared(self) -> None:
        """Select the two runs, if they were not selected here."""
        pair = self._profiling.compared
        if pair is None or self.chosen() == list(pair):
            return
        chosen = QItemSelection()
        for entry in pair:
            index = self.model.index(self.model.entries.index(entry), 0)
            chosen.select(index, index)
        flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        self.table.selectionModel().select(chosen, flags)

    def _choose(self, entry: Entry | None) -> None:
        if entry is None or entry not in self.model.entries or entry in self.chosen():
            self._on_selection()
            return
        row = self.model.entries.index(entry)
        flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        self.table.selectionModel().setCurrentIndex(self.model.index(row, 0), flags)
        self.table.scrollTo(self.model.index(row, 0))

    def _on_selection(self, *_: object) -> None:
        chosen = self.chosen()
        self._enable()
        self._profiling.compare((chosen[0], chosen[1]) if len(chosen) == 2 else None)
        if len(chosen) == 2:
            self.details.setText(comparison(chosen[0], chosen[1]))
            return
        self.details.setText(described(chosen[0]) if len(chosen) == 1 else "")
        if len(chosen) == 1:
            self._profiling.show(chosen[0])


def described(entry: Entry) -> str:
    """A summary of a run, one fact per line."""
    run = entry.run
    inputs = ", ".join(f"{name} {shape}" for name, shape in run.inputs.items())
    title = entry.title
    lines = [
        tr("{machine}, {threads} threads", machine=title, threads=run.threads) if run.threads else title,
        _time_text(run),
        tr("input {inputs}", inputs=inputs) if inputs else "",
        tr("roofline of the machine {roof}", roof=quantity(run.roof_ms / 1e3, "s")) if run.roof_ms is not None else "",
        tr("partial: {reason}", reason=run.partial) if run.partial else "",
        tr("weights: {note}", note=run.weights) if run.weights else "",
        _energy_text(run),
    ]
    lines += [
        f"{name}: {check.value:.2e} ({check.reason})" for name, check in run.checks.items() if check.value is not None
    ]
    lines += [tr("note: {note}", note=note) for note in run.notes]
    return "\n".join(line for line in lines if line)


def _time_text(run: ProfileRun) -> str:
    if run.time_ms is None:
        return tr("no time measured")
    time = quantity(run.time_ms / 1e3, "s")
    if run.source is ValueSource.MODELLED:
        return tr("predicted {time}", time=time)
    spread = quantity((run.spread_ms or 0.0) / 1e3, "s")
    return tr("median {time} ± {spread} of {iterations} runs", time=time, spread=spread, iterations=run.iterations)


def _energy_text(run: ProfileRun) -> str:
    if run.energy is None:
        return ""
    found = run.energy
    if found.joules.value is None or found.watts.value is None:
        return tr("energy: unavailable ({reason})", reason=found.joules.reason or found.watts.reason)
    joules, watts = quantity(found.joules.value, "J"), quantity(found.watts.value, "W")
    efficiency = quantity(found.flops_per_joule.value or 0.0, "FLOP/s")
    return tr(
        "energy: {joules} per run, {watts}, {efficiency} per watt", joules=joules, watts=watts, efficiency=efficiency
    )


def comparison(one: Entry, other: Entry) -> str:
    """A comparison of two runs: the ratio of their medians, and the layers that differ most."""
    first, second = one.run.time_ms, other.run.time_ms
    if not first or not second:
        return tr("one of the two runs has no time")
    lines = [
        tr(
            "#{one} {first}, #{other} {second}: #{other} takes {factor:.2f} x of #{one}",
            one=one.number,
            first=quantity(first / 1e3, "s"),
            other=other.number,
            second=quantity(second / 1e3, "s"),
            factor=second / first,
        )
    ]
    found = difference(one.run, other.run)
    lines += [
        f"{' + '.join(row.layers) or tr('outside of operators')}: {signed_duration(row.difference_ms)}"
        for row in found.rows[:4]
        if row.verdict != "none"
    ]
    if found.total.verdict == "none":
        lines.append(tr("The difference of the whole run is within the noise."))
    return "\n".join(lines)
