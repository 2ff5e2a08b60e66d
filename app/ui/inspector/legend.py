"""What the colors mean: the map with the values at its ends and in its middle."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.inspector.look import Look, value_at
from app.ui.widgets import theme
from app.ui.widgets.render import palette, to_image
from designer.texts import tr
from designer.units import number

BAR = 12  # pixels of height
GAP = 6  # pixels between two texts
ROUNDING = 1e-6  # share of the range; an end that is closer to 0 is written as 0


class Legend(QWidget):
    """A bar of the map's colors; under it values, or shares of each channel's own range."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("channel_inspector.legend")
        self.setAccessibleName(tr("Legend of the colors"))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._look = Look()
        self._unit = ""

    def show_look(self, look: Look, unit: str) -> None:
        """`unit` says what the values are, such as "weight"."""
        self._look, self._unit = look, unit
        what = tr("share of each channel's own range") if look.each else unit
        self.setToolTip(tr("{what}: {texts}", what=what, texts=" · ".join(self.texts())))
        self.setAccessibleDescription(self.toolTip())
        self.update()

    def texts(self) -> list[str]:
        """The texts under the left end, the middle and the right end."""
        if self._look.each:
            return [tr("low"), tr("of each channel"), tr("high")]
        values = (value_at(place, self._look) for place in (-1.0, 0.0, 1.0))
        low, middle, high = (number(value if abs(value * self._look.gain) > ROUNDING else 0.0) for value in values)
        return [f"≤ {low}", middle, f"≥ {high}"]

    def sizeHint(self) -> QSize:
        return QSize(200, BAR + 2 + self.fontMetrics().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        bar = QRectF(0, 0, self.width(), BAR)
        painter.drawImage(bar, to_image(palette(self._look.palette)[1:][None].copy()))
        painter.setPen(theme.color("outline"))
        painter.drawRect(bar.adjusted(0, 0, -1, 0))
        painter.setPen(theme.color("muted"))
        text = QRectF(0, BAR + 2, self.width(), self.fontMetrics().height())
        left, _, right = self.texts()
        flags = Qt.AlignmentFlag
        for place, words in ((flags.AlignLeft, left), (flags.AlignHCenter, self.middle()), (flags.AlignRight, right)):
            painter.drawText(text, place, words)

    def middle(self) -> str:
        """The text in the middle, elided between the ends."""
        left, plain, right = self.texts()
        whole = plain if self._look.each or not self._unit else f"{plain}  {self._unit}"
        width = self.fontMetrics().horizontalAdvance
        room = self.width() - 2 * max(width(left), width(right)) - 2 * GAP
        return next((words for words in (whole, plain) if width(words) <= room), "")
