"""A small histogram of one channel."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui.inspector.channel_statistics import BINS, ChannelStatistics
from app.ui.widgets import theme
from designer.texts import tr
from designer.units import number


class HistogramStrip(QWidget):
    """Bars from the smallest to the largest value, heights by square root so that rare values are seen; a line at zero."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("channel_inspector.histogram")
        self.setAccessibleName(tr("Histogram of the channel"))
        self.setFixedSize(2 * BINS + 2, 36)
        self.statistics: ChannelStatistics | None = None

    def show_statistics(self, statistics: ChannelStatistics | None) -> None:
        if statistics is not self.statistics:
            self.statistics = statistics
            self.setToolTip(
                tr("Values from {low} to {high}", low=number(statistics.low), high=number(statistics.high))
                if statistics is not None
                else ""
            )
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("sunken"))
        statistics = self.statistics
        if statistics is None or not statistics.counts.any():
            return
        heights = np.sqrt(statistics.counts / statistics.counts.max()) * (self.height() - 2)
        ink = theme.color("accent")
        for column in map(int, np.flatnonzero(heights)):
            height = max(1.0, float(heights[column]))
            painter.fillRect(QRectF(1 + 2 * column, self.height() - height, 2, height), ink)
        if statistics.low < 0 < statistics.high:
            x = 1 + 2 * BINS * -statistics.low / (statistics.high - statistics.low)
            painter.setPen(theme.color("outline"))
            painter.drawLine(QPointF(x, 0), QPointF(x, self.height()))
