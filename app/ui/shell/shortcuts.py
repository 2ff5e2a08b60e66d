"""Keyboard shortcuts: declared keys, presets, and the user's changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from PySide6.QtCore import QKeyCombination, QObject, QSettings, Qt, Signal
from PySide6.QtGui import QKeySequence

from app.ui.widgets.action import Action
from designer.texts import tr

Keys = tuple[str, ...]
BARE = (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier)


@dataclass(frozen=True, slots=True)
class Preset:
    """Keys that differ from the declared ones, by action id."""

    id: str
    title: str
    keys: Mapping[str, Keys]


PRESETS = (
    Preset("layerwright", "Layerwright", {}),
    Preset(
        "comfyui",
        "ComfyUI",
        {
            "edit.bypass": ("Ctrl+B",),
            "edit.frame": ("Ctrl+G",),
            "edit.collapse": ("Alt+C",),
            "template.make": ("Ctrl+Alt+T",),
            "view.frame_selection": (".",),
            "view.frame_all": ("Home", "Shift+."),
            "file.save_as": ("Ctrl+Shift+S",),
            "run.analysis": ("Ctrl+Return", "Ctrl+Enter"),
            "run.inference": ("F5",),
        },
    ),
    Preset(
        "blender",
        "Blender",
        {
            "edit.add": ("Shift+A", "Space"),
            "edit.duplicate": ("Shift+D",),
            "edit.duplicate_linked": ("Ctrl+Shift+D",),
            "edit.delete_heal": ("Ctrl+X",),
            "edit.cut": ("Shift+Del",),
            "edit.frame": ("Ctrl+J",),
            "template.enter": ("Tab", "Return", "Enter"),
            "template.dissolve": ("Ctrl+Alt+G",),
            "edit.redo": ("Ctrl+Shift+Z",),
            "view.frame_selection": (".",),
            "select.upstream": ("Shift+L",),
            "edit.lay_out_all": ("Ctrl+L",),
            "help.commands": ("F3",),
            "select.next": ("Ctrl+F3",),
        },
    ),
)


class ShortcutNotifier(QObject):
    """Notifies the windows of the program that shortcuts changed."""

    changed = Signal()


@lru_cache(maxsize=1)
def notifier() -> ShortcutNotifier:
    return ShortcutNotifier()


class Shortcuts:
    """The user's shortcuts of all actions."""

    def __init__(self, settings: QSettings, actions: Iterable[Action[Any]]) -> None:
        self._settings = settings
        self.actions = {action.id: action for action in actions}

    @property
    def preset(self) -> Preset:
        name = str(self._settings.value("shortcuts/preset", PRESETS[0].id))
        return next((p for p in PRESETS if p.id == name), PRESETS[0])

    def choose(self, preset: str) -> None:
        """Use a preset's keys and discard the user's changes."""
        self._settings.remove("shortcuts")
        self._settings.setValue("shortcuts/preset", preset)
        self._notify()

    def standard(self, action: str) -> Keys:
        """The keys of an action in the current preset."""
        return self.preset.keys.get(action, self.actions[action].keys)

    def keys(self, action: str) -> Keys:
        """The current keys of an action, as Qt portable text."""
        stored = self._settings.value(f"shortcuts/keys/{action}")
        if stored is None:
            return self.standard(action)
        texts = [stored] if isinstance(stored, str) else list(stored)
        return tuple(str(text) for text in texts if text)

    def is_changed(self, action: str) -> bool:
        return self.keys(action) != self.standard(action)

    def change(self, action: str, keys: Keys) -> None:
        """Assign keys to an action, and remove them from other actions."""
        for key in keys:
            for other in self.using(key, action):
                self._store(other, tuple(k for k in self.keys(other) if not clash(k, key)))
        self._store(action, keys)
        self._notify()

    def reset(self, action: str) -> None:
        """Restore the preset's keys of an action, and remove them from other actions."""
        self.change(action, self.standard(action))

    def using(self, key: str, but: str = "") -> list[str]:
        """The actions whose keys equal a key sequence or conflict with it."""
        return [name for name in self.actions if name != but and any(clash(key, k) for k in self.keys(name))]

    def refused(self, action: str, key: str) -> str | None:
        """The rule that a key would break for an action, as a sentence; None if it can be used."""
        sequence = QKeySequence(key)
        if sequence.isEmpty():
            return tr("This is not a key.")
        first = sequence[0]
        assert isinstance(first, QKeyCombination)
        typed = first.keyboardModifiers() in BARE and not _is_function(first.key())
        if typed and not self.actions[action].on_canvas:
            return tr("A key without a modifier would be typed into fields. Add Ctrl or Alt, or use a function key.")
        if first.key() == Qt.Key.Key_Escape:
            return tr("Esc is reserved for cancel.")
        destroys = action in ("edit.delete", "edit.delete_heal", "edit.cut", "template.dissolve")
        if destroys and typed and first.key() not in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            return tr("Actions that remove layers need a modifier. Add Ctrl or Alt.")
        return None

    def _store(self, action: str, keys: Keys) -> None:
        name = f"shortcuts/keys/{action}"
        if keys == self.standard(action):
            self._settings.remove(name)
        else:
            self._settings.setValue(name, list(keys) if keys else "")

    def _notify(self) -> None:
        notifier().changed.emit()


def clash(a: str, b: str) -> bool:
    """Whether two key sequences conflict: they are equal, or one is a prefix of the other."""
    none = QKeySequence.SequenceMatch.NoMatch
    one, other = QKeySequence(a), QKeySequence(b)
    return one.matches(other) != none or other.matches(one) != none


def native(keys: Keys) -> str:
    """Keys as native text of the platform."""
    return ", ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys)


def _is_function(key: Qt.Key) -> bool:
    return Qt.Key.Key_F1 <= key <= Qt.Key.Key_F35
