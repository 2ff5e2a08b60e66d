"""A button with the ways to take away what is shown."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from designer.texts import tr


class ExportButton(QToolButton):
    """`wished` tells the name of a way. Disabled until there is something. `statistics` adds those of channels."""

    wished = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None, *, statistics: bool = False) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}.export")
        self.setAccessibleName(tr("Save or copy what is shown"))
        self.setToolTip(tr("Save or copy what is shown"))
        self.setText(tr("Export"))
        self.setAutoRaise(True)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.setObjectName(f"{name}.export_menu")
        self._actions: dict[str, QAction] = {}
        ways = [
            ("picture", tr("Save picture as PNG…")),
            ("copy", tr("Copy picture")),
            ("tensor", tr("Save tensor as npy…")),
        ]
        if statistics:
            ways += [
                ("statistics", tr("Save statistics as CSV…")),
                ("channels", tr("Save channels as animation…")),
                ("record", tr("Record runs")),
                ("runs", tr("Save recorded runs as animation…")),
            ]
        for way, text in ways:
            action = QAction(text, menu)
            action.setObjectName(f"{name}.export.{way}")
            action.setCheckable(way == "record")
            action.triggered.connect(partial(self._tell, way))
            menu.addAction(action)
            self._actions[way] = action
        if statistics:
            menu.insertSeparator(self._actions["statistics"])
            menu.insertSeparator(self._actions["channels"])
            self._actions["record"].setToolTip(tr("Keep a picture of every run from now on"))
            self._actions["runs"].setEnabled(False)
            menu.setToolTipsVisible(True)
        self.setMenu(menu)
        self.setEnabled(False)

    @property
    def recording(self) -> bool:
        return "record" in self._actions and self._actions["record"].isChecked()

    def show_recorded(self, count: int) -> None:
        """How many runs are kept by now."""
        action = self._actions["runs"]
        action.setEnabled(count > 0)
        action.setText(tr("Save {count} recorded runs as animation…", count=count))

    def _tell(self, way: str, checked: bool = False) -> None:
        self.wished.emit(way)
