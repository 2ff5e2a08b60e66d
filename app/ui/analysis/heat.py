"""Amounts as heat: cells in one perceptual map, and what its ends mean."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.ui.analysis.overview_model import HEAT
from app.ui.widgets import theme
from app.ui.widgets.heat import heat_color, paint_heat_bar
from designer.texts import tr


class HeatDelegate(QStyledItemDelegate):
    """Fills cells that have a HEAT; a selected row keeps its color under the number, with a frame."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideRight  # of a number the first digits count
        share = index.data(HEAT)
        if share is None:
            return
        ground = heat_color(float(share))
        option.backgroundBrush = ground
        option.state &= ~QStyle.StateFlag.State_Selected
        for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText):
            option.palette.setColor(role, theme.ink_on(ground))


class HeatLegend(QWidget):
    """The map from 0 to the largest of each column."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(tr("Legend of the heat"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._text = ""

    def show_ends(self, texts: tuple[str, ...]) -> None:
        """What the hot end means, one text a column."""
        self._text = "  ·  ".join(texts)
        self.setToolTip(tr("Heat of one layer, from 0 to {most}; italic values are modelled", most=self._text))
        self.setAccessibleDescription(self.toolTip())
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, self.fontMetrics().height() + 4)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        metrics = painter.fontMetrics()
        zero = metrics.horizontalAdvance("0 ") + 2
        painter.setPen(theme.color("muted"))
        painter.drawText(QRectF(0, 0, zero, self.height()), Qt.AlignmentFlag.AlignVCenter, "0")
        bar = QRectF(zero, 4, 56, self.height() - 8)
        paint_heat_bar(painter, bar)
        rest = QRectF(bar.right() + 6, 0, max(0.0, self.width() - bar.right() - 6), self.height())
        text = metrics.elidedText(self._text, Qt.TextElideMode.ElideRight, int(rest.width()))
        painter.drawText(rest, Qt.AlignmentFlag.AlignVCenter, text)
