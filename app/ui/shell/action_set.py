"""The actions of a window as Qt knows them, made from the table and enabled by what can be done."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.ui.shell.actions import ACTIONS
from app.ui.shell.requirements import NEEDS, State
from app.ui.shell.shortcuts import Shortcuts, changes
from app.ui.widgets import theme
from app.ui.widgets.texts import tr, tr_data


class Actions(QObject):
    """The QActions of one window, made from the table."""

    def __init__(self, window: QWidget, canvas: QWidget, shortcuts: Shortcuts) -> None:
        super().__init__(window)
        self.shortcuts = shortcuts
        self.specs = {spec.id: spec for spec in ACTIONS}
        self._actions: dict[str, QAction] = {}
        for spec in ACTIONS:
            action = QAction(tr_data(spec.title), self)
            action.setObjectName(spec.id)
            if spec.icon:
                theme.set_icon(action, spec.icon)
            if spec.on_canvas:
                action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            (canvas if spec.on_canvas else window).addAction(action)
            self._actions[spec.id] = action
        self._shown: State | None = None
        self._take_keys()
        changes().changed.connect(self._take_keys)
        self.refresh(State())

    def _take_keys(self) -> None:
        for name, action in self._actions.items():
            action.setShortcuts([QKeySequence(text) for text in self.shortcuts.keys(name)])
        state, self._shown = self._shown, None
        if state is not None:
            self.refresh(state)  # the tooltips name the keys

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def connect_all(self, handlers: Mapping[str, Callable[[], object]]) -> None:
        """Give every action its handler. Raises KeyError for one that has none, ValueError for a handler without action."""
        unknown = handlers.keys() - self._actions.keys()
        if unknown:
            raise ValueError(f"no such actions: {', '.join(sorted(unknown))}")
        for name, action in self._actions.items():
            handler = handlers[name]
            action.triggered.connect(lambda _checked=False, handler=handler: handler())

    def refresh(self, state: State) -> None:
        """Enable what can be done, and say of the others why they cannot."""
        if state == self._shown:
            return
        self._shown = state
        for name, action in self._actions.items():
            spec = self.specs[name]
            reason = next((tr_data(NEEDS[n].reason) for n in spec.needs if not NEEDS[n].holds(state)), "")
            tip = tr_data(spec.tip)
            if name == "edit.undo" and state.undo:
                tip = tr("Undo: {edit}", edit=state.undo)
            elif name == "edit.redo" and state.redo:
                tip = tr("Redo: {edit}", edit=state.redo)
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            text = f"{tip} ({keys})" if keys else tip
            action.setEnabled(not reason)
            action.setToolTip(f"{text}\n{tr('Not now: {reason}', reason=reason)}" if reason else text)
            action.setStatusTip(f"{tip} - {tr('not now: {reason}', reason=reason)}" if reason else tip)
