"""The placeholder of an empty panel: a sentence and an optional action that fills the panel."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from app.ui.widgets import theme

MARGIN, GAP = 8, 8  # pixels around the contents and between them
ICON = 32
WIDE = 24  # margin at the left and right


class EmptyState(QWidget):
    """An icon where there is room for it, a sentence and an optional button.

    `name` is the prefix of the object names, such as "parameters".
    """

    triggered = Signal()

    def __init__(self, name: str, icon: str, text: str, action: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}.empty")
        self._icon_name = icon
        self._mark = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._text = QLabel(text, alignment=Qt.AlignmentFlag.AlignCenter)
        self._text.setObjectName(f"{name}.empty.text")
        self._text.setWordWrap(True)
        self._button = QPushButton(action)
        self._button.setObjectName(f"{name}.empty.action")
        self._button.setAccessibleName(action)
        self._button.setVisible(bool(action))
        self._button.clicked.connect(self.triggered)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(WIDE, MARGIN, WIDE, MARGIN)
        layout.setSpacing(GAP)
        layout.addStretch(1)
        layout.addWidget(self._mark)
        layout.addWidget(self._text)
        layout.addWidget(self._button, alignment=Qt.AlignmentFlag.AlignCenter)
        layout.addStretch(2)
        theme.changes().changed.connect(self._draw)
        self._draw()

    def text(self) -> str:
        return self._text.text()

    def show_text(self, text: str, icon: str | None = None) -> None:
        """Replace the text and optionally the icon."""
        self._text.setText(text)
        if icon is not None:
            self._icon_name = icon
            self._draw()

    def minimumSizeHint(self) -> QSize:
        """Without the icon, so that a placeholder does not need more room than the content."""
        button = GAP + self._button.sizeHint().height() if self._button.text() else 0
        return QSize(super().minimumSizeHint().width(), 2 * MARGIN + self.fontMetrics().height() + button)

    def hasHeightForWidth(self) -> bool:
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        text = self._text.heightForWidth(self.width() - 2 * WIDE)
        self._mark.setVisible(self.height() >= self.minimumSizeHint().height() + text + ICON)

    def _draw(self) -> None:
        self._mark.setPixmap(theme.icon(self._icon_name, "muted").pixmap(ICON, ICON))


class EmptyStack(QStackedWidget):
    """Fills `panel` with its content, or with a placeholder as long as there is none. `margin` is in pixels."""

    def __init__(self, panel: QWidget, empty: EmptyState, content: QWidget, margin: int = 8) -> None:
        super().__init__()
        self.addWidget(empty)
        self.addWidget(content)
        layout = QVBoxLayout(panel)
        layout.setContentsMargins(margin, margin, margin, margin)
        layout.addWidget(self)

    def show_content(self, shown: bool) -> None:
        self.setCurrentIndex(1 if shown else 0)
