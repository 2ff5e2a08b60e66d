"""The legend of curves, above their plot: it never covers them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.ui.widgets.flow import FlowLayout
from app.ui.widgets.tooltips import plain_tip

LINE = 20  # pixels of the line in front of a title
GAP = 6
LONGEST = 40  # characters of a title


class CurveLegend(QWidget):
    """The titles of curves behind their lines, in as many rows as they need. A single curve has no legend."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._layout = FlowLayout(self, spacing=12)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.hide()

    def show_entries(self, entries: Sequence[tuple[str, QPen]]) -> None:
        """Show other titles with the pens of their curves."""
        while (item := self._layout.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for title, pen in entries if len(entries) > 1 else ():
            self._layout.addWidget(_Entry(title, pen, self))
        self.setVisible(len(entries) > 1)


class _Entry(QLabel):
    """A title behind a line."""

    def __init__(self, title: str, pen: QPen, parent: QWidget) -> None:
        shown = title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…"
        super().__init__(shown, parent, textFormat=Qt.TextFormat.PlainText)
        self.setToolTip(plain_tip(title))
        self._pen = pen
        self.setContentsMargins(LINE + GAP, 0, 0, 0)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setPen(self._pen)
        painter.drawLine(0, self.height() // 2, LINE, self.height() // 2)
        painter.end()
