"""Charts: roofline, timeline, memory, precision, sweeps and training step of the shown run. Clicking a step selects its layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QStackedWidget,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.reports.profile_table import knee_text, training_line
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, profiling_of
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import DiagnosticError
from designer.profiling.schema import OperatorProfile, ProfileRun
from designer.profiling.sweep import Axis, Sweep, of_one_network, sweeps
from designer.texts import mark, tr, tr_data, trn
from designer.units import binary

if TYPE_CHECKING:
    from app.ui.profile.plots import Plot

REDRAW_AFTER = 20  # ms after the last selection change
PLOTS = (
    ("roofline", mark("Roofline")),
    ("timeline", mark("Timeline")),
    ("memory", mark("Memory")),
    ("precision", mark("Precision")),
    ("batch", mark("Batch Sweep")),
    ("size", mark("Size Sweep")),
    ("training", mark("Training Step")),
)
AXES: dict[str, Axis] = {"batch": "batch", "size": "size"}  # of the charts that show a sweep


class ChartsPanel(QWidget):
    """One plot at a time, and a line of text with its key facts."""

    panel_id = "charts"
    title = "Charts"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("charts")
        self.setAccessibleName(tr("Charts"))
        self._context = context
        self._profiling = profiling_of(context)
        self._plots: dict[str, Plot] = {}  # created when first shown
        self._empty = EmptyState(
            "charts",
            "chart-scatter-plot",
            tr("Launch a profiled run to see its roofline, timeline and memory here."),
            tr("Launch Inference"),
        )
        self._empty.triggered.connect(context.inference_requested)
        self.tabs = QTabBar()
        self.tabs.setObjectName("charts.tabs")
        self.tabs.setAccessibleName(tr("Chart"))
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        for _, title in PLOTS:
            self.tabs.addTab(tr_data(title))
        self.tabs.currentChanged.connect(self._show)
        self._save = QToolButton()
        self._save.setObjectName("charts.save")
        self._save.setAccessibleName(tr("Save the chart"))
        self._save.setToolTip(tr("Save the chart as PNG, SVG or PDF"))
        theme.set_icon(self._save, "content-save-outline")
        self._save.clicked.connect(self.save)
        self.facts = QLabel()
        self.facts.setObjectName("charts.facts")
        self.facts.setAccessibleName(tr("Key facts of the chart"))
        self.facts.setWordWrap(True)
        self.facts.setTextFormat(Qt.TextFormat.PlainText)
        self.facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._nothing = EmptyState("charts.nothing", "chart-scatter-plot", "")
        self._body = QStackedWidget()
        self._body.addWidget(self._nothing)
        top = QHBoxLayout()
        top.addWidget(self.tabs, 1)
        top.addWidget(self._save)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(top)
        column.addWidget(self._body, 1)
        column.addWidget(self.facts)
        self._stack = EmptyStack(self, self._empty, page)
        self._rest = QTimer(self, singleShot=True, interval=REDRAW_AFTER)
        self._rest.timeout.connect(self._show)
        self._profiling.current_changed.connect(self._show)
        self._profiling.rows_changed.connect(self._rest.start)
        self._profiling.entries_changed.connect(self._rest.start)  # a sweep lost a run
        self._show()

    def plot(self) -> Plot | None:
        """The plot of the current tab; None before it was shown."""
        return self._plots.get(PLOTS[self.tabs.currentIndex()][0])

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()
        QTimer.singleShot(0, self, _import_plots)  # once the panel is painted, before there is a run

    def save(self) -> None:
        """Ask for a file and draw the chart into it."""
        name = PLOTS[self.tabs.currentIndex()][0]
        dialog = QFileDialog(self, tr("Save Chart"), "", tr("Images (*.png *.svg *.pdf)"))
        dialog.setObjectName("charts.save_dialog")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("png")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.selectFile(f"{name}.png")
        dialog.fileSelected.connect(lambda path: self._write(Path(path), name))
        dialog.open()

    def _write(self, path: Path, name: str) -> None:
        from app.reports.profile_figures import save_figure

        entry = self._profiling.current
        if entry is None:
            return
        try:
            save_figure(path, name, entry.run, entry.title, sweep_of(entry, self._profiling.entries, name))
        except DiagnosticError as error:
            self._context.message.emit("error", placed_text(error.diagnostics[0]))
        else:
            self._context.message.emit("info", tr("Saved {name}", name=path.name))

    def _show(self, _: object = None) -> None:
        self._rest.stop()
        entry = self._profiling.current
        self._stack.show_content(entry is not None)
        if entry is None or not self.isVisible():
            return
        name = PLOTS[self.tabs.currentIndex()][0]
        plot = self._made(name)
        ids = {id(row) for row in self._profiling.chosen_rows}
        sweep = sweep_of(entry, self._profiling.entries, name)
        if isinstance(plot, HasSweep):
            plot.sweep = sweep
        plot.show_run(entry.run, frozenset(i for i, row in enumerate(entry.run.operators) if id(row) in ids))
        nothing = (name in AXES and sweep is None) or (name == "training" and entry.run.training is None)
        self.facts.setText(sweep_facts(sweep, name) if name in AXES else facts(name, entry.run))
        self.facts.setVisible(bool(self.facts.text()) and not nothing)
        self._nothing.show_text(self.facts.text())
        self._body.setCurrentWidget(self._nothing if nothing else plot)
        self._save.setEnabled(not nothing)
        plot.setAccessibleDescription(self.facts.text())

    def _choose(self, rows: object) -> None:
        self._profiling.choose_rows(cast("list[OperatorProfile]", rows))

    def _made(self, name: str) -> Plot:
        if name not in self._plots:
            plots = _import_plots()
            kinds: dict[str, Callable[[], Plot]] = {
                "roofline": plots.RooflinePlot,
                "timeline": plots.TimelinePlot,
                "memory": plots.MemoryPlot,
                "precision": plots.PrecisionPlot,
                "batch": plots.BatchSweepPlot,
                "size": plots.SizeSweepPlot,
                "training": plots.TrainingPlot,
            }
            plot = self._plots[name] = kinds[name]()
            plot.rows_clicked.connect(self._choose)
            self._body.addWidget(plot)
        return self._plots[name]


def _import_plots() -> ModuleType:
    """The module of the plots. Its first import, with pyqtgraph, takes 0.3 s."""
    return import_module("app.ui.profile.plots")


@runtime_checkable
class HasSweep(Protocol):
    """A plot of a sweep."""

    sweep: Sweep | None


def sweep_of(entry: Entry, entries: Sequence[Entry], name: str) -> Sweep | None:
    """The runs that differ from a run in the axis of a chart only: of the same machine and network, which was not edited between
    them. It counts itself, also if it was repeated later.
    """
    axis = AXES.get(name)
    if axis is None:
        return None
    same = (entry.profile.network, entry.profile.machine)
    others = (
        other.run
        for other in entries
        if other is not entry
        and (other.profile.network, other.profile.machine) == same
        and of_one_network(entry.run, other.run)
    )
    found = sweeps((*others, entry.run), axis)  # of runs with the same value the last one counts
    return next((sweep for sweep in found if any(run is entry.run for run in sweep.runs)), None)


def sweep_facts(sweep: Sweep | None, name: str) -> str:
    if sweep is None and name == "batch":
        return tr("Launch with several batches, such as 1,2,4,8, to see throughput and latency against the batch.")
    if sweep is None:
        return tr("Launch with several sizes, such as 128x128,256x256, to see throughput and latency against the size.")
    return tr("{title}: {knee}", title=sweep.title, knee=knee_text(sweep))


def facts(name: str, run: ProfileRun) -> str:
    """What the plot shows, in words."""
    if name == "roofline":
        counts: dict[str, int] = {}
        for row in run.operators:
            if row.bound:
                counts[row.bound] = counts.get(row.bound, 0) + 1
        if not counts:
            return tr("The peaks of the machine are unknown, so there is no roof.")
        parts = ", ".join(f"{number} {tr_data(bound)}" for bound, number in sorted(counts.items(), key=lambda x: -x[1]))
        without = sum(1 for row in run.operators if row.layers and not row.flops)
        text = tr("Steps bound by: {parts}.", parts=parts)
        if without:
            text += " " + trn(
                "{count} step without counted FLOPs has no point.",
                "{count} steps without counted FLOPs have no point.",
                without,
            )
        return text
    if name == "training":
        if run.training is None:
            return tr("Launch with Training step checked to see what a training step spends its time on.")
        return training_line(run.training)
    if name == "memory" and all(row.memory_bytes is None for row in run.operators):
        return tr("This profile has no memory of the steps.")
    if name == "memory" and run.peak_memory is not None:
        peak = run.peak_memory
        largest = sorted(peak.tensors.items(), key=lambda item: -item[1])[:5]
        tensors = ", ".join(f"{layer} {binary(size)}" for layer, size in largest)
        step = run.operators[peak.operator].name
        text = tr("Peak {size} at {step}", size=binary(peak.bytes), step=step)
        return tr("{text}: {tensors}", text=text, tensors=tensors) if tensors else text
    return ""
