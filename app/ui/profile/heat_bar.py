"""Table cells with a bar that shows a value relative to the maximum of its column."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from app.ui.profile.table_model import HEAT
from app.ui.widgets import theme
from app.ui.widgets.frozen_tree import RowDelegate


class HeatBarDelegate(RowDelegate):
    """Draws the bar at the lower edge of the cell, so that the number stays readable, also in selected rows."""

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
