"""A notice that explains a problem next to its cause and offers remedies as buttons."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ui.widgets import theme
from app.ui.widgets.flow import FlowLayout
from designer.texts import tr


class Notice(QFrame):
    """Hidden while it has no text."""

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._label = QLabel()
        self._label.setObjectName(f"{name}.text")
        self._label.setWordWrap(True)
        self._label.setTextFormat(Qt.TextFormat.PlainText)  # it can quote the content of a file
        self._label.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._buttons = FlowLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.addWidget(self._label)
        column.addLayout(self._buttons)
        self._made: dict[str, QPushButton] = {}
        self._role: theme.RoleName = "error"
        theme.changes().changed.connect(self._apply_color)
        self._apply_color()
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    def add_button(self, key: str, text: str, tip: str, action: Callable[[], None]) -> None:
        """Add a button that `say` can show by its key."""
        button = QPushButton(text)
        button.setObjectName(f"{self.objectName()}.{key}")
        button.setAccessibleName(text)
        button.setToolTip(tip)
        button.clicked.connect(lambda: action())  # noqa: PLW0108 - an action can have parameters, and `checked` is not one of them
        self._buttons.addWidget(button)
        self._made[key] = button

    def say(self, text: str, role: theme.RoleName = "error", buttons: tuple[str, ...] = ()) -> None:
        """Show `text` with these buttons; an empty text hides the notice."""
        self._role = role
        self._apply_color()
        start = {"error": tr("Problem: "), "warning": tr("Attention: ")}.get(role, "")
        self._label.setText(f"{start}{text}" if text else "")
        self._label.setAccessibleName(self._label.text())
        for key, button in self._made.items():
            button.setVisible(key in buttons)
        self.setVisible(bool(text))

    def _apply_color(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, theme.color("raised"))
        self.setPalette(palette)
        palette.setColor(QPalette.ColorRole.WindowText, theme.color(self._role))
        self._label.setPalette(palette)
