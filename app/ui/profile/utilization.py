"""Utilization of Tensor Cores, memory and multiprocessors by the whole network and by the selected operators."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QScrollArea, QVBoxLayout, QWidget

from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.profile.utilization_bars import Quantities, UtilizationBars
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from designer.profiling.quantities import text
from designer.profiling.schema import UTILIZATION, ProfileRun, mean_utilization
from designer.texts import tr, tr_data, trn

COUNTED = ("tensor_core", "memory_throughput", "occupancy")
MODELLED = (
    "compute_throughput",
    "memory_throughput",
)  # from times and peaks: of processors, and of GPUs without counters


class UtilizationPanel(QWidget):
    """Bars, and a text with the source of every value."""

    panel_id = "utilisation"
    title = "Utilization"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("utilisation")
        self.setAccessibleName(tr("Utilization"))
        self._profiling = profiling_of(context)
        self._empty = EmptyState(
            "utilisation",
            "chart-bar",
            tr("Launch a profiled run to see the utilization of memory, compute and Tensor Cores here."),
            tr("Launch Inference"),
        )
        self._empty.triggered.connect(context.inference_requested)
        self.chart = UtilizationBars()
        self.reasons = QLabel()
        self.reasons.setObjectName("utilisation.reasons")
        self.reasons.setAccessibleName(tr("Utilization as text"))
        self.reasons.setWordWrap(True)
        self.reasons.setTextFormat(Qt.TextFormat.PlainText)
        self.reasons.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.reasons.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.chart)
        column.addWidget(self.reasons, 1)
        scroll = QScrollArea()
        scroll.setObjectName("utilisation.scroll")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setWidget(page)
        self._stack = EmptyStack(self, self._empty, scroll)
        self._profiling.current_changed.connect(self._show)
        self._profiling.rows_changed.connect(self._show)
        self._show()

    def _show(self, _: object = None) -> None:
        entry = self._profiling.current
        self._stack.show_content(entry is not None)
        if entry is None:
            return
        run, rows = entry.run, self._profiling.chosen_rows
        keys = kinds(run)
        whole = mean_utilization(run.operators)
        selected = mean_utilization(rows) if rows else None
        name = (
            rows[0].name if len(rows) == 1 else trn("{count} selected step", "{count} selected steps", len(rows))
        ) or tr("outside of operators")
        self.chart.show_values(keys, whole, selected, name)
        words = in_words(tr("Whole network"), keys, whole)
        if selected is not None:
            words += "\n\n" + in_words(name, keys, selected)
        notes = [run.counters if run.device != "cpu" else "", run.peaks.note if run.peaks is not None else ""]
        words += "".join("\n\n" + tr("Note: {note}", note=note) for note in notes if note)
        self.reasons.setText(words)
        self.chart.setAccessibleDescription(words)


def kinds(run: ProfileRun) -> tuple[str, ...]:
    """The kinds of utilization that a run has: those of a GPU if its counters were read."""
    counted = any(row.tensor_core.value is not None or row.occupancy.value is not None for row in run.operators)
    return COUNTED if counted else MODELLED


def in_words(title: str, keys: Sequence[str], found: Quantities) -> str:
    """One line per value: the value, its source and the reason."""
    lines = [title]
    for key in keys:
        value = found[key]
        amount = f"{text(value, '%')}, " if value.value is not None else ""
        reason = f" ({value.reason})" if value.reason else ""
        lines.append(f"{tr_data(UTILIZATION[key])}: {amount}{value.source.value}{reason}")
    return "\n".join(lines)
