"""A layout that wraps widgets into as many lines as the width requires."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Wraps items like words in a text. Items that can grow, such as sliders, share the remaining width of their line.

    The minimum width fits one line of at most `line` pixels; longer texts of another language wrap
    instead.
    """

    def __init__(self, parent: QWidget | None = None, spacing: int = 8, line: int = 0) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._line = line
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)

    def add_labelled(self, title: str, widget: QWidget) -> None:
        """Add a widget with a label on its left, which stay on one line."""
        label = QLabel(title)
        label.setBuddy(widget)
        pair = QWidget()
        row = QHBoxLayout(pair)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(label)
        row.addWidget(widget, 1)
        self.addWidget(pair)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect, move=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        items = [item for item in self._items if not item.isEmpty()]
        for item in items:
            size = size.expandedTo(item.minimumSize())
        whole = sum(_least(item) for item in items) + self.spacing() * (len(items) - 1)
        return size.expandedTo(QSize(min(whole, self._line), 0))

    def _lines(self, width: int) -> Iterator[list[QLayoutItem]]:
        line: list[QLayoutItem] = []
        taken = 0
        for item in self._items:
            if item.isEmpty():
                continue
            needs = min(_least(item), width)
            if line and taken + self.spacing() + needs > width:
                yield line
                line, taken = [], 0
            taken += needs + (self.spacing() if line else 0)
            line.append(item)
        if line:
            yield line

    def _arrange(self, rect: QRect, *, move: bool) -> int:
        """Arrange the items in lines and return their height."""
        y = rect.y()
        for number, line in enumerate(self._lines(rect.width())):
            y += self.spacing() if number else 0
            height = max(item.sizeHint().height() for item in line)
            if move:
                self._place(line, QRect(rect.x(), y, rect.width(), height))
            y += height
        return y - rect.y()

    def _place(self, line: list[QLayoutItem], rect: QRect) -> None:
        widths = [min(_least(item), rect.width()) for item in line]
        spare = rect.width() - sum(widths) - self.spacing() * (len(line) - 1)
        growing = [i for i, item in enumerate(line) if _grows(item)]
        growing.sort(
            key=lambda i: line[i].maximumSize().width()
        )  # items that cannot take their share leave it to the others
        for number, i in enumerate(growing):
            more = min(spare // (len(growing) - number), line[i].maximumSize().width() - widths[i])
            widths[i] += more
            spare -= more
        x = rect.x()
        for item, width in zip(line, widths, strict=True):
            height = item.sizeHint().height()
            item.setGeometry(QRect(x, rect.y() + (rect.height() - height) // 2, width, height))
            x += width + self.spacing()


def _grows(item: QLayoutItem) -> bool:
    return bool(item.expandingDirections() & Qt.Orientation.Horizontal)


def _least(item: QLayoutItem) -> int:
    return (item.minimumSize() if _grows(item) else item.sizeHint()).width()
