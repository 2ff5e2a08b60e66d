"""The size of the weights against PSNR, for choices of number formats. Imports pyqtgraph: import it when it is first shown."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.engine.protocol import SizePoint
from app.ui.widgets import theme
from app.ui.widgets.themed_plot import ThemedPlot
from designer.texts import tr
from designer.units import binary

POINT = 10  # pixels


def best_points(points: Sequence[SizePoint]) -> list[SizePoint]:
    """The Pareto curve: choices without another one that is as small and has a higher PSNR, from the largest to the smallest."""
    found: list[SizePoint] = []
    for point in sorted(points, key=lambda point: (point.bytes, -point.psnr)):
        if not found or point.psnr > found[-1].psnr:
            found.append(point)
    return found[::-1]


class SizePlot(ThemedPlot):
    """A curve with a point for every choice; a click chooses one."""

    chosen = Signal(object)  # SizePoint

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("number_formats.plot", tr("Size of the weights against PSNR"), parent)
        self.setAntialiasing(True)
        self.setMouseEnabled(x=False, y=False)
        self._points: Sequence[SizePoint] = ()

    def show_points(self, points: Sequence[SizePoint]) -> None:
        self._points = points
        self.redraw()

    def redraw(self) -> None:
        super().redraw()
        self.clear()
        self.label_axis("bottom", tr("Weights (KiB)"))
        self.label_axis("left", tr("PSNR against FP32 (dB)"))
        shown = [point for point in best_points(self._points) if point.formats]  # FP32 is equal to itself
        if not shown:
            return
        xs, ys = [point.bytes / 1024 for point in shown], [point.psnr for point in shown]
        self.plot(xs, ys, pen=pg.mkPen(theme.color("accent"), width=2))
        spots = pg.ScatterPlotItem(
            xs,
            ys,
            size=POINT,
            pen=pg.mkPen(theme.color("surface")),
            brush=pg.mkBrush(theme.color("accent")),
            data=shown,
            hoverable=True,
            hoverSize=POINT + 4,
            tip=lambda x, y, data: tr("{size}, {psnr} dB", size=binary(data.bytes), psnr=f"{data.psnr:.1f}"),
        )
        spots.sigClicked.connect(lambda _, found, *__: self.chosen.emit(found[0].data()))
        self.addItem(spots)
