"""A button with a menu to save or copy the shown content."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from designer.texts import tr


class ExportButton(QToolButton):
    """`requested` carries the name of the chosen command. Initially disabled. `statistics` adds commands for channels."""

    requested = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None, *, statistics: bool = False) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}.export")
        self.setAccessibleName(tr("Save or copy the shown content"))
        self.setToolTip(tr("Save or copy the shown content"))
        self.setText(tr("Export"))
        self.setAutoRaise(True)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.setObjectName(f"{name}.export_menu")
        self._actions: dict[str, QAction] = {}
        commands = [
            ("picture", tr("Save Image as PNG...")),
            ("copy", tr("Copy Image")),
            ("tensor", tr("Save Tensor as NPY...")),
        ]
        if statistics:
            commands += [
                ("statistics", tr("Save Statistics as CSV...")),
                ("channels", tr("Save Channels as Animation...")),
                ("record", tr("Record Runs")),
                ("runs", tr("Save Recorded Runs as Animation...")),
            ]
        for command, text in commands:
            action = QAction(text, menu)
            action.setObjectName(f"{name}.export.{command}")
            action.setCheckable(command == "record")
            action.triggered.connect(partial(self._emit, command))
            menu.addAction(action)
            self._actions[command] = action
        if statistics:
            menu.insertSeparator(self._actions["statistics"])
            menu.insertSeparator(self._actions["channels"])
            self._actions["record"].setToolTip(tr("Keep an image of every run from now on"))
            self._actions["runs"].setEnabled(False)
            menu.setToolTipsVisible(True)
        self.setMenu(menu)
        self.setEnabled(False)

    @property
    def recording(self) -> bool:
        return "record" in self._actions and self._actions["record"].isChecked()

    def show_recorded(self, count: int) -> None:
        """Show the number of recorded runs."""
        action = self._actions["runs"]
        action.setEnabled(count > 0)
        action.setText(tr("Save {count} Recorded Runs as Animation...", count=count))

    def _emit(self, command: str, checked: bool = False) -> None:
        self.requested.emit(command)
