"""A bar behind a number: how much of the largest in its column."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from app.ui.profile.table_model import HEAT
from app.ui.widgets import theme


class HeatDelegate(QStyledItemDelegate):
    """Draws the bar at the cell's lower edge, so that the number keeps its contrast, also in a selected row."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        part = index.data(HEAT)
        if part is None:
            return
        rect: QRect = option.rect
        height = max(3, rect.height() // 7)
        width = round((rect.width() - 4) * max(0.0, min(1.0, float(part))))
        painter.fillRect(QRect(rect.left() + 2, rect.bottom() - height, width, height), theme.color("accent"))
