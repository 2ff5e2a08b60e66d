"""Table cells with a bar that shows a value relative to the largest of its column."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from app.ui.profile.table_model import HEAT
from app.ui.widgets import theme
from app.ui.widgets.frozen_tree import RowDelegate

MARGIN = 2  # pixels at both ends of the cell


class HeatBarDelegate(RowDelegate):
    """Draws a bar for the share `HEAT` at the lower edge of the cell, so that the number stays readable in selected rows too.

    Bars of positive shares start at the left edge. With `signed`, they start in the middle: negative ones (faster) extend to
    the left, positive ones (slower) to the right.
    """

    signed = False

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        part = index.data(HEAT)
        if not part:
            return
        rect: QRect = option.rect
        height = max(3, rect.height() // 7)
        room = (rect.width() - 2 * MARGIN) // (2 if self.signed else 1)
        width = round(room * min(1.0, abs(part)))
        left = rect.center().x() - (width if part < 0 else 0) if self.signed else rect.left() + MARGIN
        painter.fillRect(QRect(left, rect.bottom() - height, width, height), theme.color(self._role(part)))

    def _role(self, part: float) -> theme.RoleName:
        if not self.signed:
            return "accent"
        return "negative" if part > 0 else "positive"


class DifferenceBarDelegate(HeatBarDelegate):
    """Bars of signed shares."""

    signed = True
