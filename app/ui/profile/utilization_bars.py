"""Bars of the utilization of the machine: of the whole network and of the selected operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.widgets import theme
from designer.profiling.quantities import Quantity, ValueSource, text
from designer.profiling.schema import UTILIZATION
from designer.texts import tr, tr_data

BAR = 14  # pixels
GAP = 4
Quantities = Mapping[str, Quantity]


class UtilizationBars(QWidget):
    """Two bars for each kind of utilization. Measured bars are filled, modelled ones hatched.

    Unavailable values are replaced by a word, so that nothing depends on color alone. Values above 100 % extend beyond the
    100 % line.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("utilisation.chart")
        self.setAccessibleName(tr("Utilization chart"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.keys: tuple[str, ...] = ()
        self.whole: Quantities = {}
        self.selected: Quantities | None = None
        self._selection = ""
        theme.changes().changed.connect(self.update)

    def show_values(self, keys: Sequence[str], whole: Quantities, selected: Quantities | None, selection: str) -> None:
        """Show the utilizations `keys` of the network and, below each, that of the selection if there is one."""
        self.keys, self.whole, self.selected, self._selection = tuple(keys), whole, selected, selection
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, self._line() + len(self.keys) * self._step() + self._line() + 8)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def _line(self) -> int:
        return self.fontMetrics().height() + GAP

    def _step(self) -> int:
        """The height of a kind: its title and its bars."""
        return self._line() + (2 if self.selected is not None else 1) * (BAR + GAP) + GAP

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        parts = (self.whole, self.selected or {})
        values = [part[key].value or 0.0 for part in parts for key in self.keys if key in part]
        most = max([100.0, *values])
        labels = [text(part[key], "%") for part in parts for key in self.keys if key in part]
        width = self.width() - max(map(self.fontMetrics().horizontalAdvance, ["100 %", *labels])) - 2 * GAP
        self._paint_legend(painter)
        y = self._line()
        for key in self.keys:
            painter.setPen(theme.color("text"))
            painter.drawText(QRectF(0, y, self.width(), self._line()), tr_data(UTILIZATION[key]))
            y += self._line()
            for part, role in zip(parts, _ROLES, strict=True):
                if part is self.selected or part is self.whole:
                    self._paint_bar(painter, y, part.get(key), role, width, most)
                    y += BAR + GAP
            y += GAP
        painter.setPen(theme.color("muted"))
        painter.drawText(QRectF(0, y, self.width(), self._line()), tr("% of the peak"))

    def _paint_legend(self, painter: QPainter) -> None:
        x = 0.0
        titles = [tr("whole network")] + ([self._selection] if self.selected is not None else [])
        for title, role in zip(titles, _ROLES, strict=False):
            painter.fillRect(QRectF(x, GAP / 2 + 2, 10, 10), theme.color(role))
            room = self.width() - x - 14
            shown = self.fontMetrics().elidedText(title, Qt.TextElideMode.ElideMiddle, int(room))
            painter.setPen(theme.color("text"))
            painter.drawText(QRectF(x + 14, 0, room, self._line()), Qt.AlignmentFlag.AlignVCenter, shown)
            x += 14 + self.fontMetrics().horizontalAdvance(shown) + 16

    def _paint_bar(
        self, painter: QPainter, y: float, found: Quantity | None, role: theme.RoleName, width: float, most: float
    ) -> None:
        trough = QRectF(0, y, width * 100 / most, BAR)
        painter.fillRect(trough, theme.color("sunken"))
        painter.setPen(QPen(theme.color("outline"), 1))
        painter.drawLine(trough.topRight(), trough.bottomRight())
        if found is None or found.value is None:
            painter.setPen(theme.color("muted"))
            painter.drawText(trough.adjusted(GAP, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, tr("unavailable"))
            return
        bar = QRectF(0, y, max(1.0, width * found.value / most), BAR)
        color = theme.color(role)
        if found.source is ValueSource.MEASURED:
            painter.fillRect(bar, color)
        else:
            painter.setPen(QPen(color, 1))
            painter.setBrush(QBrush(color, Qt.BrushStyle.BDiagPattern))
            painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5))
        painter.setPen(theme.color("text"))
        label = QRectF(max(bar.right(), trough.right()) + GAP, y - 2, self.width(), BAR + 4)
        painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, text(found, "%"))


_ROLES: tuple[theme.RoleName, theme.RoleName] = ("accent", "positive_alt")
