"""A session with panels of one context: what they show after each step, and what they ask others for, is written down."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QLabel,
    QLineEdit,
    QMenu,
    QSpinBox,
    QToolButton,
    QTreeWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot
from recorded_state import lines, plain
from shown_state import named, of_tree

from app.ui.engine.context import Context
from app.ui.widgets.background import Background
from designer.profiling.heat import Heat

LEFT = Qt.MouseButton.LeftButton
COPIED = Qt.TextInteractionFlag.TextSelectableByMouse
GONE = re.compile(r"( row \S+) column \d+: \(gone\)$")  # one line for a row
WAIT = 60_000
DELAY = 1000  # ms that a panel waits at most before it shows an edit


class PanelSession:
    """`step` writes down what a step changes in the panels, in dialogs that they opened, and what it asks others for."""

    def __init__(self, qtbot: QtBot, context: Context, *panels: QWidget) -> None:
        self.qtbot, self.context, self.panels = qtbot, context, panels
        self.said: list[str] = []
        context.message.connect(lambda role, text: self.said.append(f"message {role}: {text}"))
        context.reveal_requested.connect(lambda layer: self.said.append(f"reveal {layer}"))
        context.selection_changed.connect(lambda layers: self.said.append(f"selection {', '.join(layers) or '(none)'}"))
        context.heat_requested.connect(lambda heat: self.said.append(f"heat {_heat(heat)}"))
        context.inference_requested.connect(lambda: self.said.append("launch inference"))
        for panel in panels:
            qtbot.addWidget(panel)
            panel.resize(900, 700)
            panel.show()
            qtbot.waitExposed(panel)
        self.rest()
        self._shown = self._state()
        self.lines = ["# at first", *lines(self._shown)]

    def _state(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for panel in self.panels:
            texts = (each for each in panel.findChildren(QLabel) if each.isVisible() and each.objectName())
            copied = (
                (f"{each.objectName()} can be copied", bool(each.textInteractionFlags() & COPIED)) for each in texts
            )
            found |= named(panel.objectName(), [*of_tree(panel), *(fact for fact in copied if fact[1])])
        return found

    def busy(self) -> bool:
        """Whether something comes later by itself; a session may know more."""
        return False

    def rest(self) -> None:
        def quiet() -> bool:
            QCoreApplication.processEvents()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            parts = (self.context, *self.panels)
            timers = (t for part in parts for t in part.findChildren(QTimer))
            waits = any(t.isActive() and t.isSingleShot() and t.interval() <= DELAY for t in timers)
            jobs = any(job.running for part in parts for job in part.findChildren(Background))
            return not (waits or jobs or self.busy())

        self.qtbot.waitUntil(lambda: quiet() and quiet(), timeout=WAIT)

    def step(self, what: str, act: Callable[[], object]) -> None:
        self.said.clear()
        act()
        self.rest()
        now = self._state()
        changes = (GONE.sub(r"\1: (gone)", line) for line in lines(now, since=self._shown))
        found = [*dict.fromkeys(changes), *(plain(each) for each in self.said)]
        self.lines += ["", f"# {what}", *(found or ["nothing"])]
        self._shown = now

    # --- what a user does ------------------------------------------------------------------------------------------

    def find(self, name: str, kind: type[QWidget] = QWidget) -> Any:
        for panel in self.panels:
            for widget in (panel, *panel.findChildren(QWidget)):
                if widget.objectName() == name and isinstance(widget, kind):
                    assert widget.isVisible(), name
                    return widget
        raise AssertionError(name)

    def click(self, name: str) -> None:
        button = self.find(name)
        assert button.isEnabled(), name
        self.step(f"click {name}", lambda: QTest.mouseClick(button, LEFT, pos=QPoint(9, button.height() // 2)))

    def choose(self, name: str, text: str) -> None:
        """Choose an entry of a combo box by the beginning of its text."""
        combo = self.find(name, QComboBox)
        index = combo.findText(text, Qt.MatchFlag.MatchStartsWith)
        assert index >= 0, (name, text, [combo.itemText(i) for i in range(combo.count())])

        def choose() -> None:
            combo.setCurrentIndex(index)
            combo.activated.emit(index)

        self.step(f"choose {name}: {text}", choose)

    def menu(self, name: str, action: str) -> None:
        """Choose an entry of the menu of a button."""
        menu = self.find(name, QToolButton).menu()
        assert isinstance(menu, QMenu)
        entry = next(each for each in menu.actions() if each.objectName() == action)
        self.step(f"menu {action}", entry.trigger)

    def type(self, name: str, text: str) -> None:
        """Replace the text of a field by keys."""
        field = self.find(name, QLineEdit)

        def keys() -> None:
            field.selectAll()
            QTest.keyClick(field, Qt.Key.Key_Delete)
            QTest.keyClicks(field, text)

        self.step(f"type {name} {plain(text)}", keys)

    def number(self, name: str, value: int) -> None:
        box = self.find(name, QSpinBox)
        self.step(f"number {name} {value}", lambda: (box.setValue(value), box.editingFinished.emit()))

    def select(self, name: str, row: int, column: int = 0, *, also: bool = False, twice: bool = False) -> None:
        """Click a row of a table or tree; with `also` while Ctrl is held, with `twice` doubly."""
        view = self.find(name, QAbstractItemView)
        held = Qt.KeyboardModifier.ControlModifier if also else Qt.KeyboardModifier.NoModifier
        place = view.visualRect(view.model().index(row, column, view.rootIndex())).center()

        def click() -> None:
            QTest.mouseClick(view.viewport(), LEFT, held, place)
            if twice:
                QTest.mouseDClick(view.viewport(), LEFT, held, place)

        self.step(f"select {name} row {row}{' too' if also else ''}{' twice' if twice else ''}", click)

    def check(self, name: str, row: int) -> None:
        """Click the check mark of a row."""
        tree = self.find(name, QTreeWidget)
        item = tree.topLevelItem(row)
        on = item.checkState(0) is Qt.CheckState.Checked
        state = Qt.CheckState.Unchecked if on else Qt.CheckState.Checked
        self.step(f"check {name} row {row}", lambda: item.setCheckState(0, state))

    def key(self, name: str, key: Qt.Key) -> None:
        widget = self.find(name)
        self.step(f"key {key.name} in {name}", lambda: QTest.keyClick(widget, key))


def _heat(heat: Heat | None) -> str:
    if heat is None:
        return "none"
    values = ", ".join(f"{layer} {value:.4g} '{heat.label(layer)}'" for layer, value in heat.values.items())
    return f"{heat.metric.title}: {values}"
