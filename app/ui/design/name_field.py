"""A field for a layer name, which keeps an invalid name and shows the violated rule below it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from app.ui.widgets.message import Message
from app.ui.widgets.sentences import sentence


class NameField(QWidget):
    """`renamed` is emitted on Enter or focus out, only for a valid new name. Escape restores the old name.

    `rule` returns the rule that a name violates, or None.
    """

    renamed = Signal(str)

    def __init__(self, name: str, label: str, rule: Callable[[str], str | None], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rule = rule
        self._model = ""
        self.line = _Line()
        self.line.setObjectName(name)
        self.line.setAccessibleName(label)
        self._message = Message(f"{name}.message")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.line)
        layout.addWidget(self._message)
        self.line.textEdited.connect(self._check)
        self.line.editingFinished.connect(self._finish)
        self.line.escaped.connect(lambda: self.show_name(self._model))

    def show_name(self, name: str) -> None:
        """Show the model's name and discard the draft."""
        self._model = name
        if self.line.text() != name:
            self.line.setText(name)
        self._message.show_message("")

    @property
    def model(self) -> str:
        return self._model

    def _check(self, text: str) -> None:
        broken = self._rule(text) if text != self._model else None
        self._message.show_message(sentence(broken) if broken else "")

    def _finish(self) -> None:
        text = self.line.text()
        if text != self._model and not self._message.text():
            self.renamed.emit(text)


class _Line(QLineEdit):
    escaped = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            event.ignore()  # the enclosing editor moves the focus
        else:
            super().keyPressEvent(event)
