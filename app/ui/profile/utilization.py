"""Utilization of memory, compute units and Tensor Cores by the whole network and by the selected operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QScrollArea, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, profiling_of
from app.ui.widgets.empty_state import EmptyState
from designer.graph.template import enclosing
from designer.profiling.assemble import mean_utilisation
from designer.profiling.figures import Figure, text
from designer.profiling.report import UTILISATION, Group, Record
from designer.texts import tr, tr_data, trn

if TYPE_CHECKING:
    from app.ui.profile.chart import UtilizationChart

PREPARE_AFTER = 200  # ms after the launch
REDRAW_AFTER = 40  # ms after the last selection change: drawing takes several frames
CHART_SHARE = 0.6  # of the height; the text gets the rest


class UtilizationPanel(QWidget):
    """A bar chart, and a text with the source of every value."""

    panel_id = "utilisation"
    title = "Utilization"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("utilisation")
        self.setAccessibleName(tr("Utilization"))
        self._context = context
        self._profiling = profiling_of(context)
        self._chart: UtilizationChart | None = None  # created when first shown, since importing matplotlib is slow
        self._empty = EmptyState(
            "utilisation",
            "chart-bar",
            tr("Launch a profiled run to see the utilization of memory, compute and Tensor Cores here."),
            tr("Launch Inference"),
        )
        self._empty.triggered.connect(context.inference_requested)
        self.reasons = QLabel()
        self.reasons.setObjectName("utilisation.reasons")
        self.reasons.setAccessibleName(tr("Utilization as text"))
        self.reasons.setWordWrap(True)
        self.reasons.setTextFormat(Qt.TextFormat.PlainText)
        self.reasons.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.reasons.setMargin(4)
        self.reasons.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        scroll = QScrollArea()
        scroll.setObjectName("utilisation.scroll")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setWidget(self.reasons)
        self._page = QSplitter(Qt.Orientation.Vertical)
        self._page.setObjectName("utilisation.splitter")
        self._page.setChildrenCollapsible(False)
        self._page.addWidget(scroll)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self._page)
        main = QVBoxLayout(self)
        main.setContentsMargins(8, 8, 8, 8)
        main.addWidget(self._stack)
        self._profiling.current_changed.connect(self._on_change)
        self._rest = QTimer(self, singleShot=True, interval=REDRAW_AFTER)
        self._rest.timeout.connect(lambda: self._show(self._profiling.current))
        context.selection_changed.connect(lambda names: self._rest.start())
        self._profiling.state_changed.connect(lambda: QTimer.singleShot(PREPARE_AFTER, self, self._prepare))
        self._show(self._profiling.current)

    def _on_change(self, _: object) -> None:
        self._show(self._profiling.current)

    @property
    def chart(self) -> UtilizationChart | None:
        return self._chart

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show(self._profiling.current)

    def _show(self, entry: Entry | None) -> None:
        self._stack.setCurrentIndex(0 if entry is None else 1)
        if entry is None or not self.isVisible():
            return
        record = entry.record
        groups = groups_of(record, self._context.paths(self._context.selection))
        name = (
            groups[0].name if len(groups) == 1 else trn("{count} selected step", "{count} selected steps", len(groups))
        )
        selected = mean_utilisation(groups, None, tr("selected steps")) if groups else None
        if selected is not None and len(groups) == 1:
            selected = dict(groups[0].utilisation)
        chart = self._made_chart()
        chart.show_figures(record.utilisation, selected, shortened(name))
        words = in_words(tr("Whole network"), record.utilisation)
        if selected is not None:
            words += "\n\n" + in_words(name, selected)
        if record.peaks is not None and record.peaks.note:
            words += "\n\n" + tr("Note: {note}", note=record.peaks.note)
        self.reasons.setText(words)
        chart.setAccessibleDescription(words)

    def _made_chart(self) -> UtilizationChart:
        if self._chart is None:
            from app.ui.profile.chart import UtilizationChart

            self._chart = UtilizationChart()
            self._page.insertWidget(0, self._chart)
            height = max(self._page.height(), 300)
            self._page.setSizes([round(height * CHART_SHARE), round(height * (1 - CHART_SHARE))])
        return self._chart

    def _prepare(self) -> None:
        """Import matplotlib while the user waits for the run."""
        if self.isVisible():
            self._made_chart()


def groups_of(record: Record, layers: tuple[str, ...]) -> list[Group]:
    """The groups that contain one of `layers` or a layer inside one of them."""
    wanted = set(layers)
    return [g for g in record.groups if wanted & {name for layer in g.layers for name in enclosing(layer)}]


def in_words(title: str, figures: Mapping[str, Figure]) -> str:
    """One line per value: the value, its source and the reason."""
    lines = [title]
    for key, english in UTILISATION.items():
        name = tr_data(english)
        figure = figures.get(key)
        if figure is None:
            lines.append("  " + tr("{name}: unavailable (not part of this record)", name=name))
            continue
        value = f"{text(figure)}, " if figure.value is not None else ""
        lines.append(f"  {name}: {value}{figure.source.value}" + (f" ({figure.reason})" if figure.reason else ""))
    return "\n".join(lines)


def shortened(name: str, most: int = 28) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
