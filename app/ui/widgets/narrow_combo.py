"""A combo box for narrow panels."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QWidget


class NarrowComboBox(QComboBox):
    """A combo box that may become narrower than its longest choice; `characters` always fit."""

    def __init__(
        self, name: str, title: str, tip: str = "", *, characters: int = 8, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setToolTip(tip)
        self.setMinimumContentsLength(characters)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
