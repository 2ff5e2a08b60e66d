"""The actions of a window as Qt knows them, made from the declarations and enabled by what can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.ui.shell.shortcuts import Shortcuts, changes
from app.ui.widgets import theme
from app.ui.widgets.action import Action, ActionGroup, State
from designer.texts import tr, tr_data


class Actions(QObject):
    """The QActions of one window. `owners` are the objects that carry them out, by class."""

    def __init__(
        self,
        window: QWidget,
        canvas: QWidget,
        groups: Iterable[ActionGroup[Any]],
        owners: Mapping[type, object],
        shortcuts: Shortcuts,
    ) -> None:
        super().__init__(window)
        self.shortcuts = shortcuts
        self.declared: dict[str, Action[Any]] = {}
        self._actions: dict[str, QAction] = {}
        self._checks: dict[str, Callable[[], bool]] = {}
        for group in groups:
            for declared in group.actions:
                self._add(declared, owners[group.owner], canvas if declared.on_canvas else window)
        self._shown: State | None = None
        self._take_keys()
        changes().changed.connect(self._take_keys)
        self.refresh(State())
        self.refresh_checks()

    def _add(self, declared: Action[Any], owner: object, place: QWidget) -> None:
        action = QAction(tr_data(declared.title), self)
        action.setObjectName(declared.id)
        if declared.icon:
            theme.set_icon(action, declared.icon)
        if declared.on_canvas:
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        if (checked := declared.checked) is not None:
            action.setCheckable(True)
            self._checks[declared.id] = lambda: checked(owner)
        action.triggered.connect(lambda _checked=False: self._do(declared, owner))
        place.addAction(action)
        self.declared[declared.id] = declared
        self._actions[declared.id] = action

    def _do(self, declared: Action[Any], owner: object) -> None:
        declared.do(owner)
        self.refresh_checks()  # Qt has turned the mark of what was chosen, even if it was chosen before

    def _take_keys(self) -> None:
        for name, action in self._actions.items():
            action.setShortcuts([QKeySequence(text) for text in self.shortcuts.keys(name)])
        state, self._shown = self._shown, None
        if state is not None:
            self.refresh(state)  # the tooltips name the keys

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def section(self, name: str) -> list[QAction]:
        """The actions of a section of a menu, in the order of their declarations."""
        return [self._actions[d.id] for d in self.declared.values() if name in d.menus]

    def refresh_checks(self) -> None:
        """Bring the check marks up to date."""
        for name, checked in self._checks.items():
            self._actions[name].setChecked(checked())

    def refresh(self, state: State) -> None:
        """Enable what can be done, and say of the others why they cannot."""
        if state == self._shown:
            return
        self._shown = state
        for name, action in self._actions.items():
            declared = self.declared[name]
            reason = next((tr_data(need.reason) for need in declared.needs if not need.holds(state)), "")
            tip = (declared.hint(state) if declared.hint is not None else "") or tr_data(declared.tip)
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            text = f"{tip} ({keys})" if keys else tip
            action.setEnabled(not reason)
            action.setToolTip(f"{text}\n{tr('Not now: {reason}', reason=reason)}" if reason else text)
            action.setStatusTip(f"{tip} - {tr('not now: {reason}', reason=reason)}" if reason else tip)
