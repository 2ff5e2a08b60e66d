"""Width x height (x channels): a number field for each component, combined into one text."""

from __future__ import annotations

import re

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.ui.widgets.number_field import NumberField
from designer.texts import mark, tr, tr_data

BUTTONS = 2  # up to this many components have buttons; more would be too narrow for four digits
FRAME = 14  # pixels around the digits of a field without buttons
_BETWEEN = re.compile("[x×]")
_PARTS = (("width", mark("Width")), ("height", mark("Height")), ("channels", mark("Channels")))


class SizeField(QWidget):
    """Text such as `3x3` or `256x256x3`. With `optional`, empty components mean no size (empty text)."""

    edited = Signal(str)
    finished = Signal()

    def __init__(
        self,
        name: str,
        label: str,
        count: int,
        *,
        low: float | None = None,
        high: float | None = None,
        optional: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(label)
        self._optional = optional
        self.fields: list[NumberField] = []
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4 if count <= BUTTONS else 2)
        for part, english in _PARTS[:count]:
            title = tr_data(english)
            if self.fields:
                layout.addWidget(QLabel("×"))
            field = NumberField(f"{name}.{part}", f"{label}, {title.lower()}", low=low, high=high)
            field.setMinimumWidth(40)
            if count > BUTTONS:
                field.setMinimumWidth(field.fontMetrics().horizontalAdvance("0000") + FRAME)
                field.setButtonSymbols(NumberField.ButtonSymbols.NoButtons)
            field.setToolTip(title)
            field.edited.connect(lambda _text: self.edited.emit(self.text()))
            field.finished.connect(self.finished)
            self.fields.append(field)
            layout.addWidget(field, 1)
        self.set_placeholder("")

    def text(self) -> str:
        parts = [field.text().strip() for field in self.fields]
        whole = next((p for p in parts if len(_BETWEEN.split(p)) == len(parts)), None)
        if whole is not None:  # the whole size was typed or pasted into one field
            return "x".join(part.strip() for part in _BETWEEN.split(whole))
        return "x".join(parts) if any(parts) or not self._optional else ""

    def set_text(self, text: str) -> None:
        """Show `text`. A text that is not a size is shown in the first field, so that it can be corrected."""
        parts = text.split("x")
        if len(parts) != len(self.fields):
            parts = [text] + [""] * (len(self.fields) - 1)
        for field, part in zip(self.fields, parts, strict=True):
            field.set_text(part)

    def set_placeholder(self, text: str) -> None:
        """What empty fields show; an empty text: which component each of them is, or that there can be none."""
        for field, (_, english) in zip(self.fields, _PARTS, strict=False):
            field.set_placeholder(text or (tr("none") if self._optional else tr_data(english)[0]))

    def has_focus(self) -> bool:
        return any(field.hasFocus() for field in self.fields)
