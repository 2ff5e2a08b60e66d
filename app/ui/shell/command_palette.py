"""Command palette: search all actions by name (Ctrl+P)."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from app.ui.shell.action_set import Actions
from app.ui.widgets.search_popup import SearchMatch, SearchPopup
from designer.texts import tr, tr_data


class CommandPalette(SearchPopup):
    """Lists all actions. Disabled ones are gray; their tooltips state the reason."""

    def __init__(self, actions: Actions, parent: QWidget) -> None:
        self._actions = actions
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
        found = []
        for spec in self._actions.declared.values():
            title = tr_data(spec.title).replace("&", "").rstrip(".")
            if spec.id == "help.commands" or not all(
                w in f"{title} {tr_data(spec.tip)} {spec.title} {spec.id}".casefold() for w in words
            ):
                continue
            named = all(w in title.casefold() for w in words)
            found.append((not self._actions[spec.id].isEnabled(), not named, title, spec))
        for blocked, _, title, spec in sorted(found, key=lambda entry: entry[:3]):
            action = self._actions[spec.id]
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            yield SearchMatch(spec.id, title, keys, action.toolTip(), action.icon(), not blocked)
