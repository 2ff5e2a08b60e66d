"""The text field over the canvas in which layers are renamed and comments are written, where they are shown."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPalette, QTextCursor
from PySide6.QtWidgets import QFrame, QGraphicsView, QPlainTextEdit, QVBoxLayout

from app.ui.widgets import theme
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import sentence

WIDTH = 200  # pixels, at least
MARGIN = 4


def _no_rule(_text: str) -> str | None:
    return None


class InlineEditor(QFrame):
    """Return or a click elsewhere accepts a text that breaks no rule, Escape discards it. Deletes itself.

    With `lines`, Shift+Return starts a new line. `rule` returns the rule that a text breaks, or None.
    """

    def __init__(
        self,
        view: QGraphicsView,
        name: str,
        label: str,
        text: str,
        accepted: Callable[[str], object],
        rule: Callable[[str], str | None] = _no_rule,
        *,
        lines: bool = False,
    ) -> None:
        super().__init__(view.viewport())
        self.setObjectName(name)
        self.setAccessibleName(label)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAutoFillBackground(True)
        self._view, self._before, self._accepted, self._rule, self._lines = view, text, accepted, rule, lines
        self._over = False
        self.field = QPlainTextEdit(text)
        self.field.setObjectName(f"{name}.text")
        self.field.setAccessibleName(label)
        self.field.setTabChangesFocus(True)
        self.field.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        if not lines:
            self.field.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            self.field.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._message = Message(f"{name}.message")
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        column.setSpacing(MARGIN)
        column.addWidget(self.field)
        column.addWidget(self._message)
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, theme.color("raised"))
        self.setPalette(palette)
        self.field.textChanged.connect(self._check)
        self.field.installEventFilter(self)
        view.viewport().installEventFilter(self)

    def open_at(self, place: QRect) -> None:
        """Show the field at a place in the viewport, with the first line selected."""
        self._place = place
        cursor = self.field.textCursor()
        cursor.movePosition(QTextCursor.MoveOperation.EndOfLine, QTextCursor.MoveMode.KeepAnchor)
        self.field.setTextCursor(cursor)
        self._fit()
        self.show()
        self.raise_()
        self.field.setFocus()

    def _fit(self) -> None:
        """Make room for the text, inside the viewport."""
        around = self._view.viewport().rect()
        rows = max(1, min(self.field.document().blockCount(), 8)) + (1 if self._lines else 0)
        margin = round(2 * self.field.document().documentMargin()) + 2 * self.field.frameWidth()
        self.field.setFixedHeight(rows * self.field.fontMetrics().lineSpacing() + margin)
        width = min(max(self._place.width(), WIDTH), around.width())
        self.setFixedWidth(width)
        self.adjustSize()
        x = max(0, min(self._place.left(), around.right() - width))
        y = max(0, min(self._place.top(), around.bottom() - self.height()))
        self.move(x, y)

    def _check(self) -> None:
        text = self._text()
        broken = self._rule(text) if text != self._before else None
        self._message.show_message(sentence(broken) if broken else "")
        self._fit()

    def _text(self) -> str:
        """The text without blanks around it. The first of several lines can be empty."""
        text = self.field.toPlainText()
        if not self._lines:
            return text.strip()
        return self._before if text.rstrip() == self._before.rstrip() else text.rstrip()

    def discard(self) -> None:
        """Close without a change."""
        self._end(accept=False)

    def _end(self, *, accept: bool) -> None:
        if self._over:
            return
        self._over = True
        text = self._text()
        self._view.viewport().removeEventFilter(self)
        self.hide()
        self.deleteLater()
        self._view.setFocus()
        if accept and text != self._before and not self._message.text():
            self._accepted(text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field:
            if event.type() is QEvent.Type.ShortcutOverride:  # no key reaches the canvas
                event.accept()
                return True
            if isinstance(event, QFocusEvent) and event.type() is QEvent.Type.FocusOut:
                self._left(event.reason())
            return isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress and self._pressed(event)
        if event.type() in (QEvent.Type.Wheel, QEvent.Type.Resize):  # what is edited moves away
            self._end(accept=True)
        return super().eventFilter(watched, event)

    def _left(self, reason: Qt.FocusReason) -> None:
        if reason not in (Qt.FocusReason.PopupFocusReason, Qt.FocusReason.ActiveWindowFocusReason):
            self._end(accept=True)

    def _pressed(self, event: QKeyEvent) -> bool:
        """Handle a key. True if the field must not."""
        if event.key() == Qt.Key.Key_Escape:
            self.discard()
            return True
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            return False
        if self._lines and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.field.insertPlainText("\n")
        elif not self._message.text():
            self._end(accept=True)
        return True
