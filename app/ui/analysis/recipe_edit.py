"""A line for a recipe that underlines what is wrong with it while one types."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionFrame, QWidget

from analysis_layers.recipe import NAMES, RecipeError, parse
from app.ui.widgets import theme
from app.ui.widgets.sentences import sentence
from designer.texts import tr


class RecipeEdit(QLineEdit):
    """`problem` is where the recipe breaks a rule: the first and the last column (from 0), or None."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.problem: tuple[int, int] | None = None
        self.textChanged.connect(self._judge)

    def _judge(self, text: str) -> None:
        try:
            parse(text, NAMES)
        except RecipeError as error:
            first = min((error.column or 1) - 1, len(text))
            last = first + 1
            while text[first : last + 1].isidentifier() and last < len(text):
                last += 1
            self.problem = (first, last)
            self.setToolTip(f"{sentence(str(error))} {sentence(error.remedy)}")
        else:
            self.problem = None
            self.setToolTip(
                tr("a, b, alpha, x, y, numbers, + - * / ** %, comparisons and functions such as where(x < alpha, a, b)")
            )
        self.update()

    def _place(self, column: int) -> float:
        """Where a column begins, from the left edge. The position of the cursor shows how far the text is scrolled."""
        metrics = self.fontMetrics()
        cursor = self.cursorRect().center().x()
        before = metrics.horizontalAdvance(self.text()[: self.cursorPosition()])
        return cursor - before + metrics.horizontalAdvance(self.text()[:column])

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.problem is None:
            return
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        inside = self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, option, self)
        start = self._place(self.problem[0])
        end = max(self._place(self.problem[1]), start + self.fontMetrics().averageCharWidth())
        base = (inside.center().y() + self.fontMetrics().height() / 2) - 1
        wave = [QPointF(start + 2 * i, base + (i % 2) * 2) for i in range(int((end - start) / 2) + 1)]
        painter = QPainter(self)
        painter.setClipRect(inside)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("error"), 1.2))
        painter.drawPolyline(QPolygonF(wave))
