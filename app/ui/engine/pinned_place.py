"""The place that is pinned in the Channel Inspector, for every other image of the analysis."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.ui.engine.analysis import AnalysisController

Spot = tuple[tuple[int, int], tuple[int, int]]  # x and y of a pixel, width and height of the tensor it belongs to


class Marked(QObject):
    """`spot` is the pinned pixel, or None."""

    changed = Signal()

    def __init__(self, analysis: AnalysisController) -> None:
        super().__init__(analysis)
        self.spot: Spot | None = None

    def show(self, spot: Spot | None) -> None:
        if spot != self.spot:
            self.spot = spot
            self.changed.emit()


def marked_of(analysis: AnalysisController) -> Marked:
    """The one of a window."""
    return analysis.findChild(Marked) or Marked(analysis)
