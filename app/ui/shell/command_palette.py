"""Command palette: search all actions by name (Ctrl+P)."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QIcon, QKeySequence, QPixmap
from PySide6.QtWidgets import QWidget

from app.ui.shell.action_set import Actions
from app.ui.shell.menus import full_title, menu_paths
from app.ui.widgets.search_popup import SearchMatch, SearchPopup
from designer.texts import tr, tr_data


class CommandPalette(SearchPopup):
    """Lists all actions. Disabled ones are gray; their tooltips state the reason."""

    def __init__(self, actions: Actions, parent: QWidget) -> None:
        self._actions = actions
        blank = QPixmap(16, 16)
        blank.fill(Qt.GlobalColor.transparent)
        self._blank = QIcon(blank)
        super().__init__(
            "commands",
            tr("Commands"),
            tr("Search commands"),
            tr("No matching command."),
            self._commands,
            parent,
        )
        self.resize(440, 360)
        self.chosen.connect(lambda name: self._actions[name].trigger())

    def _commands(self, text: str) -> Iterator[SearchMatch]:
        words = text.casefold().split()
        typed = f" {' '.join(words)}"
        paths = menu_paths()
        found = []
        for spec in self._actions.declared.values():
            path = next((paths[section] for section in spec.menus if section in paths), ())
            title = tr_data(spec.title).replace("&", "").rstrip(".")
            name = full_title(spec, paths)
            names = f"{name} {title.replace(' ', '')}".casefold()
            about = f"{names} {' '.join(path)} {tr_data(spec.tip)} {spec.title} {spec.id}".casefold()
            if spec.id != "help.commands" and all(word in about for word in words):
                named = all(word in names for word in words)
                begun = typed in f" {names}"  # at the beginning of a word, as it is typed
                found.append((not self._actions[spec.id].isEnabled(), not named, not begun, name, spec.id))
        for blocked, *_, name, key in sorted(found):
            action = self._actions[key]
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            yield SearchMatch(key, name, keys, action.toolTip(), self._icon(action), not blocked)

    def _icon(self, action: QAction) -> QIcon:
        """The icon of an action, or an empty one, so that all names are aligned."""
        return self._blank if action.icon().isNull() else action.icon()
