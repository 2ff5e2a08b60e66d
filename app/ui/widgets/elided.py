"""A label that elides lines which do not fit and shows the whole text in a tooltip."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.ui.widgets.tooltips import plain_tip


class ElidedLabel(QLabel):
    """A label whose lines never require more width than is available."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tip = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def setToolTip(self, tip: str) -> None:
        """Set a plain text as the tip, which follows the text of the label where that is elided."""
        self._tip = tip
        super().setToolTip(plain_tip(tip))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        metrics, lines = self.fontMetrics(), self.text().split("\n")
        shown = "\n".join(metrics.elidedText(line, Qt.TextElideMode.ElideRight, self.width()) for line in lines)
        parts = dict.fromkeys((self.text() if shown != self.text() else "", self._tip) if self._tip else (self.text(),))
        tip = plain_tip("\n".join(filter(None, parts)))
        if tip != self.toolTip():
            super().setToolTip(tip)
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), self.alignment() | Qt.AlignmentFlag.AlignVCenter, shown)
