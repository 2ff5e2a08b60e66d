"""A message below a field: an icon by severity and selectable text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from app.ui.widgets import theme
from app.ui.widgets.theme import RoleName
from designer.texts import mark, tr_data

ICONS = {
    "error": "close-octagon",
    "warning": "alert",
    "info": "information-outline",
    "positive": "check-circle-outline",
}
SPOKEN = {"error": mark("error"), "warning": mark("warning"), "info": mark("note"), "positive": mark("done")}


class Message(QWidget):
    """Hidden while it has no text. `role` is "error", "warning", "info" or "positive"."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._role: RoleName = "error"
        self._mark = QLabel()
        self._text = QLabel()
        self._text.setObjectName(name)
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)  # it can quote the content of a file
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._mark, alignment=Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._text, 1)
        theme.changes().changed.connect(self._draw)
        self.setVisible(False)

    def text(self) -> str:
        return self._text.text()

    def show_message(self, text: str, role: RoleName = "error") -> None:
        """Show `text`; an empty text hides the message."""
        self._role = role
        self._text.setText(text)
        self._text.setAccessibleName(f"{tr_data(SPOKEN[role])}: {text}" if text else "")
        self._draw()
        self.setVisible(bool(text))

    def _draw(self) -> None:
        palette = self._text.palette()
        palette.setColor(QPalette.ColorRole.WindowText, theme.color(self._role))
        self._text.setPalette(palette)
        self._mark.setPixmap(theme.icon(ICONS[self._role], self._role).pixmap(16, 16))
