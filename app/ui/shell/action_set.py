"""The QActions of a window, built from the declarations and enabled by the state of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.ui.shell.shortcuts import Shortcuts, notifier
from app.ui.widgets import theme
from app.ui.widgets.action import Action, ActionGroup, ActionState
from designer.texts import tr, tr_data


class Actions(QObject):
    """The QActions of one window. `owners` maps the class of an action group to the object that carries out its actions."""

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
        self._shown: ActionState | None = None
        self._take_keys()
        notifier().changed.connect(self._take_keys)
        self.refresh(ActionState())
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
        self.refresh_checks()  # Qt toggles the check mark even where the choice did not change

    def _take_keys(self) -> None:
        for name, action in self._actions.items():
            action.setShortcuts([QKeySequence(text) for text in self.shortcuts.keys(name)])
        state, self._shown = self._shown, None
        if state is not None:
            self.refresh(state)  # tooltips include the keys

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def section(self, name: str) -> list[QAction]:
        """The actions of a menu section, in the order of their declarations."""
        return [self._actions[d.id] for d in self.declared.values() if name in d.menus]

    def refresh_checks(self) -> None:
        """Update the check marks."""
        for name, checked in self._checks.items():
            self._actions[name].setChecked(checked())

    def refresh(self, state: ActionState) -> None:
        """Enable the actions whose needs hold; the tooltips of the others state the reason."""
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
            action.setToolTip(f"{text}\n{tr('Unavailable: {reason}', reason=reason)}" if reason else text)
            action.setStatusTip(f"{tip} - {tr('unavailable: {reason}', reason=reason)}" if reason else tip)
