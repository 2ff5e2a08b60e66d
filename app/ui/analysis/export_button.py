"""A button with the ways to take away what is shown."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

WAYS = (("picture", "Save picture as PNG…"), ("copy", "Copy picture"), ("tensor", "Save tensor as npy…"))


class ExportButton(QToolButton):
    """`wished` tells one of the first names in WAYS. Disabled until there is something."""

    wished = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}.export")
        self.setAccessibleName("Save or copy what is shown")
        self.setToolTip("Save or copy what is shown")
        self.setText("Export")
        self.setAutoRaise(True)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.setObjectName(f"{name}.export_menu")
        for way, text in WAYS:
            action = QAction(text, menu)
            action.setObjectName(f"{name}.export.{way}")
            action.triggered.connect(partial(self._tell, way))
            menu.addAction(action)
        self.setMenu(menu)
        self.setEnabled(False)

    def _tell(self, way: str, checked: bool = False) -> None:
        self.wished.emit(way)
