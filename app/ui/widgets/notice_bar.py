"""A non-modal bar above the canvas with a message and actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from app.ui.widgets import theme
from app.ui.widgets.message import ICONS
from app.ui.widgets.theme import RoleName

STRIPE = 3  # pixels
NoticeAction = tuple[str, str, str, Callable[[], object]]  # name, text, tooltip, command


class NoticeBar(QFrame):
    """Hidden while it has no text."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAutoFillBackground(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._role: RoleName = "warning"
        self._mark = QLabel()
        self._text = QLabel()
        self._text.setObjectName(f"{name}.text")
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(4)
        box = QHBoxLayout(self)
        box.setContentsMargins(12, 6, 8, 6)
        box.setSpacing(8)
        box.addWidget(self._mark)
        box.addWidget(self._text, 1)
        box.addLayout(self._buttons)
        theme.changes().changed.connect(self._draw)
        self.hide()

    def text(self) -> str:
        return self._text.text()

    def show_message(self, text: str, actions: Sequence[NoticeAction], role: RoleName = "warning") -> None:
        """Show a message with its buttons, replacing the previous one."""
        self.clear()
        self._role = role
        self._text.setText(text)
        self.setAccessibleName(text)
        for name, title, tip, command in actions:
            button = QToolButton()
            button.setObjectName(f"{self.objectName()}.{name}")
            button.setText(title)
            button.setAccessibleName(title.replace("&", ""))
            button.setToolTip(tip)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.clicked.connect(lambda _on=False, command=command: command())
            self._buttons.addWidget(button)
        self._draw()
        self.show()

    def clear(self) -> None:
        self.hide()
        self._text.clear()
        self.setAccessibleName("")
        while self._buttons.count():
            item = self._buttons.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.fillRect(0, 0, STRIPE, self.height(), theme.color(self._role))
        painter.fillRect(0, self.height() - 1, self.width(), 1, theme.color("border"))
        painter.end()

    def _draw(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, theme.color("raised"))
        self.setPalette(palette)
        self._mark.setPixmap(theme.icon(ICONS[self._role], self._role).pixmap(16, 16))
