"""Tensors that are no pictures (N x F and smaller): bars around zero with the value under the cursor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF, QRectF, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.ui import theme
from app.ui.analysis.image_view import paint_note
from app.ui.analysis.render import number


class FeatureView(QWidget):
    """One bar a value of the first member of the batch; with more values than pixels a column shows its extremes."""

    probed = Signal(object)  # index under the cursor, or None

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setMouseTracking(True)
        self.setMinimumSize(96, 96)
        self._values: NDArray[np.float32] = np.zeros(0, np.float32)
        self._note = ""

    def set_note(self, note: str) -> None:
        self._note = note
        self.update()

    def show_values(self, tensor: NDArray[Any]) -> None:
        """The first row of N x F; a single value or vector as it is."""
        row = tensor[0] if tensor.ndim > 1 else tensor
        self._values = np.nan_to_num(np.asarray(row, np.float32).reshape(-1))
        self.update()

    def index_at(self, x: float) -> int | None:
        count = len(self._values)
        index = int(x / max(self.width(), 1) * count)
        return index if 0 <= index < count else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        index = self.index_at(event.position().x())
        self.probed.emit(index)
        if index is not None:
            QToolTip.showText(event.globalPosition().toPoint(), f"{index}: {number(float(self._values[index]))}", self)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("sunken"))
        count = len(self._values)
        if not count:
            return
        text_height = painter.fontMetrics().height()
        top, bottom = text_height + 8.0, self.height() - text_height - 8.0
        low, high = min(0.0, float(self._values.min())), max(0.0, float(self._values.max()))
        scale = (bottom - top) / ((high - low) or 1.0)
        zero = top + high * scale
        columns = min(count, self.width())
        edges = np.linspace(0, count, columns + 1).astype(int)
        starts = edges[:-1]
        upper = np.maximum(np.maximum.reduceat(self._values, starts), 0)
        lower = np.minimum(np.minimum.reduceat(self._values, starts), 0)
        width = self.width() / columns
        gap = 1.0 if width >= 4 else 0.0
        for values, role in ((upper, "positive"), (lower, "negative")):
            ink = theme.color("positive" if role == "positive" else "negative")
            for column in np.flatnonzero(values):
                height = float(values[column]) * scale
                painter.fillRect(QRectF(column * width, zero - height, width - gap, height).normalized(), ink)
        painter.setPen(theme.color("outline"))
        painter.drawLine(QPointF(0, zero), QPointF(self.width(), zero))
        painter.setPen(theme.color("muted"))
        where = int(np.argmax(self._values))
        painter.drawText(6, text_height, f"{count} values, {number(low)} … {number(high)}, largest at {where}")
        if self._note:
            paint_note(painter, self._note, self.rect().bottomLeft() + QPoint(8, -4))
