"""Named panel layouts: save, restore, replace and delete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote, unquote

from PySide6.QtCore import QByteArray, QObject, QSettings, Qt
from PySide6.QtWidgets import QComboBox, QDialogButtonBox, QInputDialog, QLineEdit, QMenu, QWidget

from app.ui.engine.context import Context
from app.ui.shell.docks import Arrangement, Docks
from app.ui.widgets.findings import without_icons
from designer.texts import tr

_GROUP = "layouts"


class Layouts(QObject):
    """The named layouts in the user's settings, for one window. Names are settings keys, so they are percent-encoded."""

    def __init__(self, window: QWidget, context: Context, docks: Docks, settings: QSettings) -> None:
        super().__init__(window)
        self._window = window
        self._context = context
        self._docks = docks
        self._settings = settings

    def names(self) -> list[str]:
        self._settings.beginGroup(_GROUP)
        found = [unquote(key) for key in self._settings.childGroups()]
        self._settings.endGroup()
        return sorted(found, key=str.casefold)

    def save(self, name: str) -> None:
        """Save the current layout under this name, replacing one of the same name."""
        if not name:
            self._context.message.emit("error", tr("The layout was not saved because it has no name. Enter one."))
            return
        now = self._docks.arrangement()
        for key, value in (("workspace", now.workspace), ("state", now.state), ("panels", now.panels)):
            self._settings.setValue(f"{_GROUP}/{quote(name, safe='')}/{key}", value)
        self._context.message.emit("info", tr("Saved layout “{name}”", name=name))

    def show(self, name: str) -> None:
        """Restore a layout in the workspace in which it was saved."""
        key = f"{_GROUP}/{quote(name, safe='')}"
        state, panels = self._settings.value(f"{key}/state"), self._settings.value(f"{key}/panels")
        kept = Arrangement(
            str(self._settings.value(f"{key}/workspace")),
            state if isinstance(state, QByteArray) else QByteArray(),
            panels if isinstance(panels, str) else "",
        )
        if not self._docks.restore(kept):
            self._context.message.emit(
                "error", tr("Layout “{name}” cannot be read. Delete it and save it again.", name=name)
            )

    def delete(self, name: str) -> None:
        self._settings.remove(f"{_GROUP}/{quote(name, safe='')}")
        self._context.message.emit("info", tr("Deleted layout “{name}”", name=name))

    def ask_name(self) -> None:
        """Ask for a name and save the current layout. Existing names are offered for replacement."""
        dialog = QInputDialog(self._window)
        dialog.setObjectName("layout_name")
        dialog.setWindowTitle(tr("Save Layout"))
        dialog.setLabelText(tr("Layout name (an existing layout of that name is replaced)"))
        dialog.setComboBoxEditable(True)
        dialog.setComboBoxItems(self.names())
        dialog.setTextValue("")
        dialog.setOkButtonText(tr("Save"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.textValueSelected.connect(lambda typed: self.save(typed.strip()))
        for kind, name in ((QLineEdit, "layout_name.line"), (QComboBox, "layout_name.text")):
            for field in dialog.findChildren(kind):
                field.setObjectName(name)
                field.setAccessibleName(tr("Layout name"))
        for buttons in dialog.findChildren(QDialogButtonBox):
            without_icons(buttons)
        dialog.open()

    def fill(self, menu: QMenu) -> None:
        """Fill the menu with the saved layouts and a Delete submenu."""
        menu.clear()
        names = self.names()
        for number, name in enumerate(names):
            entry = menu.addAction(name.replace("&", "&&"))
            entry.setObjectName(f"layout.show_{number}")
            entry.setToolTip(tr("Restore this layout"))
            entry.triggered.connect(partial(self._do, self.show, name))
        if not names:
            menu.addAction(tr("No saved layouts")).setEnabled(False)
            return
        menu.addSeparator()
        submenu = menu.addMenu(tr("&Delete"))
        submenu.setObjectName("menu.delete_layout")
        for number, name in enumerate(names):
            entry = submenu.addAction(name.replace("&", "&&"))
            entry.setObjectName(f"layout.delete_{number}")
            entry.triggered.connect(partial(self._do, self.delete, name))

    @staticmethod
    def _do(command: Callable[[str], None], name: str, _on: bool = False) -> None:
        command(name)
