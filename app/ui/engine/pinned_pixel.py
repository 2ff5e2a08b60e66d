"""The pixel pinned in the Channel Inspector, which other images of the analysis mark too."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.ui.engine.analysis import AnalysisController

Spot = tuple[tuple[int, int], tuple[int, int]]  # x and y of a pixel, width and height of the tensor it belongs to


class PinnedPixel(QObject):
    """The pinned pixel `spot`, or None."""

    changed = Signal()

    def __init__(self, analysis: AnalysisController) -> None:
        super().__init__(analysis)
        self.spot: Spot | None = None

    def show(self, spot: Spot | None) -> None:
        if spot != self.spot:
            self.spot = spot
            self.changed.emit()


def pinned_pixel_of(analysis: AnalysisController) -> PinnedPixel:
    """The pinned pixel of a window."""
    return analysis.findChild(PinnedPixel) or PinnedPixel(analysis)
