"""Which keys do what: those of the declarations, of a preset, and what the user changed."""

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
    """Keys that differ from the declared ones, by the id of the action."""

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


class Changes(QObject):
    """Tells the windows of the program that keys are others now."""

    changed = Signal()


@lru_cache(maxsize=1)
def changes() -> Changes:
    return Changes()


class Shortcuts:
    """The keys of every action for this user."""

    def __init__(self, settings: QSettings, actions: Iterable[Action[Any]]) -> None:
        self._settings = settings
        self.actions = {action.id: action for action in actions}

    @property
    def preset(self) -> Preset:
        name = str(self._settings.value("shortcuts/preset", PRESETS[0].id))
        return next((p for p in PRESETS if p.id == name), PRESETS[0])

    def choose(self, preset: str) -> None:
        """Use a preset's keys; what was changed by hand before goes."""
        self._settings.remove("shortcuts")
        self._settings.setValue("shortcuts/preset", preset)
        self._tell()

    def standard(self, action: str) -> Keys:
        """The keys of an action in the preset."""
        return self.preset.keys.get(action, self.actions[action].keys)

    def keys(self, action: str) -> Keys:
        """The keys of an action now, in Qt's portable text."""
        stored = self._settings.value(f"shortcuts/keys/{action}")
        if stored is None:
            return self.standard(action)
        texts = [stored] if isinstance(stored, str) else list(stored)
        return tuple(str(text) for text in texts if text)

    def is_changed(self, action: str) -> bool:
        return self.keys(action) != self.standard(action)

    def change(self, action: str, keys: Keys) -> None:
        """Give an action these keys, and take them from the actions that have them."""
        for key in keys:
            for other in self.using(key, action):
                self._store(other, tuple(k for k in self.keys(other) if not same(k, key)))
        self._store(action, keys)
        self._tell()

    def reset(self, action: str) -> None:
        """The preset's keys again; they are taken from the actions that got them meanwhile."""
        self.change(action, self.standard(action))

    def using(self, key: str, but: str = "") -> list[str]:
        """The actions that a key sequence belongs to, or that it would keep from being reached."""
        return [name for name in self.actions if name != but and any(clash(key, k) for k in self.keys(name))]

    def refused(self, action: str, key: str) -> str | None:
        """The rule that a key breaks for an action, as a sentence; None when it may be used."""
        sequence = QKeySequence(key)
        if sequence.isEmpty():
            return tr("That is no key.")
        first = sequence[0]
        assert isinstance(first, QKeyCombination)
        typed = first.keyboardModifiers() in BARE and not _is_function(first.key())
        if typed and not self.actions[action].on_canvas:
            return tr("A plain key would be typed into fields: add Ctrl or Alt, or take a function key.")
        if first.key() == Qt.Key.Key_Escape:
            return tr("Esc always means: leave everything as it was.")
        destroys = action in ("edit.delete", "edit.delete_heal", "edit.cut", "template.dissolve")
        if destroys and typed and first.key() not in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            return tr("What removes layers is not put on a plain key: add Ctrl or Alt.")
        return None

    def _store(self, action: str, keys: Keys) -> None:
        name = f"shortcuts/keys/{action}"
        if keys == self.standard(action):
            self._settings.remove(name)
        else:
            self._settings.setValue(name, list(keys) if keys else "")

    def _tell(self) -> None:
        changes().changed.emit()


def same(a: str, b: str) -> bool:
    return QKeySequence(a) == QKeySequence(b)


def clash(a: str, b: str) -> bool:
    """Whether two sequences cannot both be reached: they are equal, or one begins the other."""
    none = QKeySequence.SequenceMatch.NoMatch
    one, other = QKeySequence(a), QKeySequence(b)
    return one.matches(other) != none or other.matches(one) != none


def native(keys: Keys) -> str:
    """Keys as this system writes them."""
    return ", ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys)


def _is_function(key: Qt.Key) -> bool:
    return Qt.Key.Key_F1 <= key <= Qt.Key.Key_F35
