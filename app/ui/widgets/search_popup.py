"""A popup with a search field and a list of matches: operators, layers or actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QIcon, QKeyEvent
from PySide6.QtWidgets import QFrame, QHeaderView, QLabel, QLineEdit, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from designer.texts import tr

WIDTH, HEIGHT = 320, 300
ROOM = 48  # frames and margins around the hint, in pixels
STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """One row of the list. A row that is not `enabled` is gray and cannot be chosen."""

    key: str
    text: str
    detail: str = ""
    tip: str = ""
    icon: QIcon | None = None
    enabled: bool = True


class SearchPopup(QFrame):
    """A popup. `chosen` carries the key of the chosen row after the popup has closed."""

    chosen = Signal(str)

    def __init__(
        self,
        name: str,
        title: str,
        hint: str,
        nothing: str,
        search: Callable[[str], Iterable[SearchMatch]],
        parent: QWidget,
    ) -> None:
        """`name` is the prefix of the object names, `hint` the placeholder text, and `nothing` the text shown without matches."""
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._search = search
        self._edit = QLineEdit()
        self._edit.setObjectName(f"{name}.text")
        self._edit.setAccessibleName(title)
        self._edit.setPlaceholderText(hint)
        self._edit.textChanged.connect(self._fill)
        self._edit.returnPressed.connect(self._choose)
        self._edit.installEventFilter(self)
        self._list = QTreeWidget()
        self._list.setObjectName(f"{name}.list")
        self._list.setAccessibleName(tr("Search results"))
        self._list.setColumnCount(2)
        self._list.setHeaderHidden(True)
        self._list.setRootIsDecorated(False)
        self._list.setUniformRowHeights(True)
        self._list.header().setStretchLastSection(False)
        self._list.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self._list.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.itemClicked.connect(self._click)
        self._nothing = QLabel(nothing)
        self._nothing.setMargin(8)
        box = QVBoxLayout(self)
        box.setContentsMargins(8, 8, 8, 8)
        box.addWidget(self._edit)
        box.addWidget(self._list)
        box.addWidget(self._nothing)
        self.resize(WIDTH, HEIGHT)

    @property
    def text(self) -> str:
        return self._edit.text()

    def open_at(self, place: QPoint, text: str = "") -> None:
        """Show the popup at a global position, with a preselected text."""
        self._edit.setText(text)
        self._edit.selectAll()
        self._fill(text)
        hint = self._edit.fontMetrics().horizontalAdvance(self._edit.placeholderText())
        self.resize(max(self.width(), hint + ROOM), self.height())
        screen = self.screen().availableGeometry()
        x = min(place.x(), screen.right() - self.width())
        y = min(place.y(), screen.bottom() - self.height())
        self.move(max(screen.left(), x), max(screen.top(), y))
        self.show()
        self._edit.setFocus()

    def open_over(self, widget: QWidget, text: str = "") -> None:
        """Show the popup at the top center of a widget."""
        self.open_at(widget.mapToGlobal(QPoint((widget.width() - self.width()) // 2, 48)), text)

    def _fill(self, text: str) -> None:
        self._list.clear()
        first: QTreeWidgetItem | None = None
        for found in self._search(text):
            entry = QTreeWidgetItem([found.text, found.detail])
            entry.setData(0, Qt.ItemDataRole.UserRole, found.key)
            entry.setToolTip(0, found.tip)
            if found.icon is not None:
                entry.setIcon(0, found.icon)
            entry.setDisabled(not found.enabled)
            self._list.addTopLevelItem(entry)
            first = entry if first is None and found.enabled else first
        if first is not None:
            self._list.setCurrentItem(first)
        self._list.setVisible(self._list.topLevelItemCount() > 0)
        self._nothing.setVisible(self._list.topLevelItemCount() == 0)

    def _click(self, entry: QTreeWidgetItem) -> None:
        if not entry.isDisabled():  # a click on a gray row leaves another one current
            self._choose()

    def _choose(self) -> None:
        entry = self._list.currentItem()
        if entry is None or entry.isDisabled():
            return
        self.close()
        self.chosen.emit(str(entry.data(0, Qt.ItemDataRole.UserRole)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.key() in STEPS:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()  # the canvas uses the same keys
                return True
            if event.type() == QEvent.Type.KeyPress:
                self._step(STEPS[Qt.Key(event.key())])
                return True
        return super().eventFilter(watched, event)

    def _step(self, run: int) -> None:
        """Move down (or up, if negative) by `run` enabled rows, stopping at the end."""
        model = self._list.model()
        rows = [r for r in range(model.rowCount()) if model.flags(model.index(r, 0)) & Qt.ItemFlag.ItemIsEnabled]
        present = self._list.currentIndex().row()
        if present in rows:
            row = rows[max(0, min(len(rows) - 1, rows.index(present) + run))]
            self._list.setCurrentIndex(model.index(row, 0))
