"""A combo box whose unavailable choices are shown disabled, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.widgets.narrow_combo import NarrowComboBox
from app.ui.widgets.run_choices import Choice
from designer.texts import tr


class ChoiceBox(NarrowComboBox):
    """`chosen` carries the value that the user picked."""

    chosen = Signal(str)

    def __init__(self, name: str, label: str, tip: str = "", parent: QWidget | None = None) -> None:
        super().__init__(name, label, tip, parent=parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._choices: tuple[Choice, ...] = ()
        self._items = QStandardItemModel(self)
        self.setModel(self._items)
        self.activated.connect(lambda _index: self.chosen.emit(str(self.currentData())))
        self.installEventFilter(self)

    def show_choices(self, choices: Sequence[Choice], value: str) -> str:
        """Show the choices with `value` as the current one. Returns why it is unavailable, or ""."""
        known = tuple(choices)
        if value not in [c.value for c in known]:
            known = (*known, Choice(value, value, tr("not available on this machine")))
        if known != self._choices:
            self._choices = known
            self._items.clear()
            for choice in known:
                item = QStandardItem(f"{choice.title} - {choice.reason}" if choice.reason else choice.title)
                item.setData(choice.value, Qt.ItemDataRole.UserRole)
                item.setToolTip(choice.reason)
                item.setEnabled(not choice.reason)
                self._items.appendRow(item)
            self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + 24)
        self.setCurrentIndex([c.value for c in known].index(value))
        return next(c.reason for c in known if c.value == value)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and not self.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)
