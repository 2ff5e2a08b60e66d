"""A plot in the colors of the theme. Imports pyqtgraph: import it when a plot is first shown."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from app.ui.widgets import theme

SIDES = ("left", "bottom", "right")
LEGEND_ALPHA = 220  # of the ground below a legend, which may lie over bars


class ThemedPlot(pg.PlotWidget):  # type: ignore[misc]
    """A plot without the menus and buttons of pyqtgraph, drawn again when the theme changes. `options` are those of PlotWidget."""

    def __init__(self, name: str, title: str, parent: QWidget | None = None, **options: Any) -> None:
        super().__init__(parent, enableMenu=False, **options)
        menus = self.getPlotItem().ctrlMenu
        for menu in (menus, *filter(None, (action.menu() for action in menus.actions()))):
            menu.setParent(self)  # pyqtgraph creates its menus without a parent, also where they are switched off
            menu.hide()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.hideButtons()
        theme.changes().changed.connect(self.redraw)

    def add_legend(self, offset: tuple[int, int]) -> pg.LegendItem:
        """A legend, `offset` pixels from the edges; negative ones count from the right and from the bottom."""
        return self.addLegend(offset=offset, labelTextSize=f"{self.font().pointSizeF():.0f}pt")

    def redraw(self) -> None:
        """Draw everything again, in the colors of the current theme. Subclasses add what they draw."""
        self.setBackground(theme.color("surface"))
        for side in SIDES:
            axis = self.getAxis(side)
            axis.setPen(theme.color("outline"))
            axis.setTextPen(theme.color("text"))
            axis.setTickFont(self.font())
            axis.setSIPrefixEnableRanges(())
            axis.enableAutoSIPrefix(False)  # alone it only hides the prefix, by which the numbers stay multiplied
        legend = self.getPlotItem().legend
        if legend is not None:
            legend.setLabelTextColor(theme.color("text"))
            ground = QColor(theme.color("surface"))
            ground.setAlpha(LEGEND_ALPHA)
            legend.setBrush(ground)

    def label_axis(self, side: str, text: str) -> None:
        self.setLabel(side, text, siPrefixEnableRanges=(), color=theme.color("text").name())
