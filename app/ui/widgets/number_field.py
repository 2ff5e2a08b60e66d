"""A spin box that accepts any text, so that an invalid one can be explained."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QWidget

from app.ui.widgets.expression import ExpressionError, is_expression, worked_out


class NumberField(QAbstractSpinBox):
    """The text of a number. `edited` is emitted on each change by the user, `finished` at the end (Enter, focus out, click).

    An expression such as `3*16` is evaluated by the caller. Arrow keys and the wheel step by `step` within `low` and `high`; the wheel only while the field has the focus.
    """

    edited = Signal(str)
    finished = Signal()

    def __init__(
        self,
        name: str,
        label: str,
        *,
        whole: bool = True,
        low: float | None = None,
        high: float | None = None,
        step: float | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(label)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumWidth(56)
        self._whole = whole
        self._low = None if low is None else Decimal(str(low))
        self._high = None if high is None else Decimal(str(high))
        self._step = Decimal(str(step)) if step is not None else Decimal(1) if whole else Decimal("0.1")
        self.lineEdit().textEdited.connect(self.edited)
        self.editingFinished.connect(self.finished)

    def set_text(self, text: str) -> None:
        """Show `text` without emitting signals; the cursor position is kept."""
        if text != self.text():
            cursor = self.lineEdit().cursorPosition()
            self.lineEdit().setText(text)
            self.lineEdit().setCursorPosition(min(cursor, len(text)))

    def set_placeholder(self, text: str) -> None:
        self.lineEdit().setPlaceholderText(text)

    def validate(self, text: str, position: int) -> object:
        return QValidator.State.Acceptable, text, position

    def fixup(self, text: str) -> str:
        return text

    def stepBy(self, steps: int) -> None:
        value = self._value()
        if value is None:
            return
        value += self._step * steps
        if self._low is not None:
            value = max(value, self._low)
        if self._high is not None:
            value = min(value, self._high)
        text = str(int(value)) if self._whole else _decimal(value)
        if text != self.text():
            self.lineEdit().setText(text)
            self.edited.emit(text)

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        value = self._value()
        flags = QAbstractSpinBox.StepEnabledFlag.StepNone
        if value is None or self.isReadOnly():
            return flags
        if self._high is None or value < self._high:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepUpEnabled
        if self._low is None or value > self._low:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        return flags

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self.finished.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def _value(self) -> Decimal | None:
        try:
            text = self.text().strip()
            value = Decimal(worked_out("float", text) if is_expression(text) else text)
        except (InvalidOperation, ExpressionError):
            return None
        return value if value.is_finite() else None


def _decimal(value: Decimal) -> str:
    """Digits with a decimal point, as floats are written in network files."""
    text = format(value.normalize(), "f")
    return text if "." in text else f"{text}.0"
