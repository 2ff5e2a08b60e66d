"""Tensors without image axes (N x F and smaller): a bar chart around zero, the largest values by name, or one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.ui.widgets import theme
from app.ui.widgets.image_view import paint_note
from designer.texts import tr
from designer.units import number

TOP = 5  # number of largest values listed
LIST = 240  # width of that list in pixels
ROOM = 480  # minimum width of the view, in pixels, that shows the list


class FeatureView(QWidget):
    """One bar per value of the first batch member; with more values than pixels, a column shows their extremes."""

    probed = Signal(object)  # index under the cursor, or None

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setMouseTracking(True)
        self.setMinimumSize(96, 96)
        self._values: NDArray[np.float32] = np.zeros(0, np.float32)
        self._drawn = self._values  # heights of the bars: NaN is 0, an infinite value as high as the largest finite one
        self.range = (0.0, 0.0)  # the smallest and the largest finite value
        self._note = ""
        self._labels: Sequence[str] = ()

    def set_labels(self, labels: Sequence[str]) -> None:
        """Set the names of the values, such as classes; there can be fewer names than values."""
        if labels != self._labels:
            self._labels = labels
            self.update()

    def name_of(self, index: int) -> str:
        """The index and name of a value."""
        return f"{index} {self._labels[index]}" if index < len(self._labels) and self._labels[index] else str(index)

    def top(self) -> list[int]:
        """The indices of the largest values, largest first, NaN last."""
        return [int(i) for i in np.argsort(-self._values, kind="stable")[:TOP]]

    @property
    def note(self) -> str:
        return self._note

    def set_note(self, note: str) -> None:
        self._note = note
        self.update()

    def show_values(self, tensor: NDArray[Any]) -> None:
        """Show the first row of an N x F tensor, a vector or a single value."""
        row = tensor[0] if tensor.ndim > 1 else tensor
        self._values = np.array(row, np.float32).reshape(-1)
        finite = self._values[np.isfinite(self._values)]
        self.range = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        low, high = min(0.0, self.range[0]), max(0.0, self.range[1])
        self._drawn = np.nan_to_num(self._values, nan=0.0, posinf=high, neginf=low)
        self.update()

    def index_at(self, x: float) -> int | None:
        count = len(self._values)
        index = int(x / max(self._across(), 1) * count)
        return index if 0 <= index < count else None

    def _across(self) -> int:
        """The width of the bar chart."""
        return self.width() - LIST if self.width() >= ROOM and len(self._values) > 1 else self.width()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        index = self.index_at(event.position().x())
        self.probed.emit(index)
        if index is not None:
            QToolTip.showText(
                event.globalPosition().toPoint(), f"{self.name_of(index)}: {number(float(self._values[index]))}", self
            )

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.probed.emit(None)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("sunken"))
        count = len(self._values)
        if not count:
            return
        if count == 1:
            self._paint_one(painter)
            return
        text_height = painter.fontMetrics().height()
        top, bottom = text_height + 8.0, self.height() - text_height - 8.0
        low, high = min(0.0, float(self._drawn.min())), max(0.0, float(self._drawn.max()))
        scale = (bottom - top) / ((high - low) or 1.0)
        zero = top + high * scale
        across = self._across()
        columns = min(count, across)
        edges = np.linspace(0, count, columns + 1).astype(int)
        starts = edges[:-1]
        upper = np.maximum(np.maximum.reduceat(self._drawn, starts), 0)
        lower = np.minimum(np.minimum.reduceat(self._drawn, starts), 0)
        width = across / columns
        gap = 1.0 if width >= 4 else 0.0
        for values, role in ((upper, "positive"), (lower, "negative")):
            ink = theme.color("positive" if role == "positive" else "negative")
            for column in np.flatnonzero(values):
                height = float(values[column]) * scale
                painter.fillRect(QRectF(column * width, zero - height, width - gap, height).normalized(), ink)
        painter.setPen(theme.color("outline"))
        painter.drawLine(QPointF(0, zero), QPointF(across, zero))
        painter.setPen(theme.color("muted"))
        largest = self.name_of(self.top()[0])
        text = tr(
            "{count} values, {low} … {high}, largest at {where}",
            count=count,
            low=number(self.range[0]),
            high=number(self.range[1]),
            where=largest,
        )
        painter.drawText(
            6, text_height, painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, across - 12)
        )
        if across < self.width():
            self._paint_top(painter, across)
        if self._note:
            paint_note(painter, self._note, self.rect().bottomLeft() + QPoint(8, -4))

    def _paint_one(self, painter: QPainter) -> None:
        font = painter.font()
        font.setPointSizeF(font.pointSizeF() * 2.5)
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, f"{float(self._values[0]):.6g}")
        painter.setFont(self.font())
        if self._note:
            paint_note(painter, self._note, self.rect().bottomLeft() + QPoint(8, -4))

    def _paint_top(self, painter: QPainter, left: int) -> None:
        metrics = painter.fontMetrics()
        line = metrics.height() + 4
        painter.setPen(theme.color("border"))
        painter.drawLine(left, 4, left, self.height() - 4)
        painter.setPen(theme.color("muted"))
        painter.drawText(QRectF(left + 12, 6, LIST - 20, line), 0, tr("largest"))
        painter.setPen(theme.color("text"))
        for place, index in enumerate(self.top()):
            row = QRectF(left + 12, 6 + (place + 1) * line, LIST - 20, line)
            value = number(float(self._values[index]))
            room = int(row.width()) - metrics.horizontalAdvance(value) - 8
            painter.drawText(row, 0, metrics.elidedText(self.name_of(index), Qt.TextElideMode.ElideRight, room))
            painter.drawText(row, Qt.AlignmentFlag.AlignRight, value)
