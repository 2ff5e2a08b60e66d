"""Bar chart of utilization. Imports matplotlib, so import this module only when the chart is first shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
from matplotlib.figure import Figure as Plot
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from app.ui.widgets import theme
from app.ui.widgets.theme import RoleName
from designer.profiling.figures import Figure, Origin, text
from designer.profiling.report import UTILISATION
from designer.texts import tr, tr_data

HEIGHT = 0.36
HATCH = {Origin.MEASURED: "", Origin.MODELLED: "////"}
Figures = Mapping[str, Figure]


class UtilizationChart(FigureCanvasQTAgg):  # type: ignore[misc]
    """Two bars for each kind of utilization: the whole network and the selected operators.

    Measured bars are filled, modelled ones hatched, and unavailable ones replaced by a word, so that nothing depends on
    color alone. Values above 100 % extend beyond the 100 % line.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        self.plot = Plot(layout="constrained")
        super().__init__(self.plot)
        self.setParent(parent)
        self.setObjectName("utilisation.chart")
        self.setAccessibleName(tr("Utilization chart"))
        self.setMinimumSize(220, 260)  # smaller sizes make the labels overlap
        self._shown: tuple[Figures, Figures | None, str] | None = None
        theme.changes().changed.connect(self._redraw)

    def show_figures(self, whole: Figures, selected: Figures | None, selection: str) -> None:
        """Draw the values of the network and, below them, those of the selection if there is one."""
        self._shown = (whole, selected, selection)
        self._redraw()

    def _redraw(self) -> None:
        if self._shown is None:
            return
        whole, selected, selection = self._shown
        ink, muted = _hex("text"), _hex("muted")
        size = _points(self.font())
        self.plot.clear()
        self.plot.set_facecolor(_hex("surface"))
        axes = self.plot.add_subplot()
        axes.set_facecolor(_hex("sunken"))
        rows = list(UTILISATION)
        values = [f.value for part in (whole, selected or {}) for f in part.values() if f.value is not None]
        most = max([100.0, *values])
        for number, key in enumerate(rows):
            shift = HEIGHT / 2 if selected is not None else 0.0
            _bar(axes, number - shift, whole.get(key), "accent", most, size)
            if selected is not None:
                _bar(axes, number + shift, selected.get(key), "positive_alt", most, size)
        axes.axvline(100.0, color=_hex("outline"), linewidth=1.0)
        axes.set_xlim(0.0, most * 1.5)  # space for the labels after the bars
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), ["\n".join(tr_data(UTILISATION[key]).rsplit(" ", 1)) for key in rows])
        axes.set_xticks([t for t in (0, 25, 50, 75, 100, 150, 200) if t <= max(100.0, most)])
        axes.tick_params(colors=ink, labelsize=size, length=3)
        axes.set_xlabel(tr("% of the measured peak"), color=muted, fontsize=size)
        for spine in axes.spines.values():
            spine.set_color(_hex("outline"))
        self._legend(axes, selected is not None, selection, size, ink)
        self.draw_idle()

    def _legend(self, axes: Any, both: bool, selection: str, size: float, ink: str) -> None:
        from matplotlib.patches import Patch

        parts = [Patch(facecolor=_hex("accent"), label=tr("whole network"))]
        if both:
            parts.append(Patch(facecolor=_hex("positive_alt"), label=selection))
        legend = self.plot.legend(
            handles=parts, loc="outside upper left", ncols=2, fontsize=size, frameon=False, handlelength=1.2
        )
        for label in legend.get_texts():
            label.set_color(ink)


def _bar(axes: Any, place: float, figure: Figure | None, role: RoleName, most: float, size: float) -> None:
    if figure is None or figure.value is None:
        axes.text(most * 0.015, place, "unavailable", va="center", color=_hex("muted"), fontsize=size, style="italic")
        return
    color = _hex(role)
    filled = color if figure.source is Origin.MEASURED else "none"
    axes.barh(
        place, figure.value, HEIGHT * 0.9, color=filled, edgecolor=color, hatch=HATCH[figure.source], linewidth=1.0
    )
    words = f" {text(figure)} {figure.source.value}"
    axes.text(figure.value, place, words, va="center", color=_hex("text"), fontsize=size)


def _hex(role: RoleName) -> str:
    return theme.color(role).name()


def _points(font: QFont) -> float:
    """The font size in points for matplotlib, slightly smaller than the panel's text."""
    size = font.pointSizeF()
    return max(6.0, (size if size > 0 else 9.0) * 0.9)
