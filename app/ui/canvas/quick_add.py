"""The search that adds an operator: type a few letters, Enter. Recent ones come first."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLabel, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.ui import theme
from app.ui.widgets.operator_search import search
from designer.operators.api import Operator
from designer.operators.registry import Registry

WIDTH, HEIGHT = 320, 300
RECENT = 8


class QuickAdd(QFrame):
    """A popup; `chosen` gives the operator's type and closes it."""

    chosen = Signal(str)

    def __init__(self, registry: Registry, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("quick_add")
        self.setAccessibleName("Add an operator")
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self._registry = registry
        self._recent: list[str] = []
        self._accepts: Callable[[type[Operator]], bool] = lambda cls: True
        self._edit = QLineEdit()
        self._edit.setObjectName("quick_add.text")
        self._edit.setAccessibleName("Search operators")
        self._edit.setPlaceholderText("Add an operator: name, torch name, ...")
        self._edit.textChanged.connect(self._fill)
        self._edit.returnPressed.connect(self._choose)
        self._edit.installEventFilter(self)
        self._list = QListWidget()
        self._list.setObjectName("quick_add.list")
        self._list.setAccessibleName("Operators found")
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.itemClicked.connect(self._choose)
        self._nothing = QLabel("No operator is called that.")
        self._nothing.setMargin(8)
        box = QVBoxLayout(self)
        box.setContentsMargins(8, 8, 8, 8)
        box.addWidget(self._edit)
        box.addWidget(self._list)
        box.addWidget(self._nothing)
        self.resize(WIDTH, HEIGHT)

    def open_at(self, place: QPoint, accepts: Callable[[type[Operator]], bool] | None = None) -> None:
        """Show the search at a global place, for the operators that `accepts` allows."""
        self._accepts = accepts if accepts is not None else lambda cls: True
        self._edit.clear()
        self._fill("")
        screen = self.screen().availableGeometry()
        x = min(place.x(), screen.right() - self.width())
        y = min(place.y(), screen.bottom() - self.height())
        self.move(max(screen.left(), x), max(screen.top(), y))
        self.show()
        self._edit.setFocus()

    def _fill(self, text: str) -> None:
        self._list.clear()
        activations = sorted(self._registry.activations.values(), key=lambda cls: cls.type)
        for cls in search([*self._registry, *activations], text, self._recent):
            if not self._accepts(cls):
                continue
            entry = QListWidgetItem(theme.category_icon(cls.category), cls.title)
            entry.setData(Qt.ItemDataRole.UserRole, cls.type)
            entry.setToolTip(cls.help().partition("\n")[0])
            self._list.addItem(entry)
        self._list.setCurrentRow(0)
        self._list.setVisible(self._list.count() > 0)
        self._nothing.setVisible(self._list.count() == 0)

    def _choose(self) -> None:
        entry = self._list.currentItem()
        if entry is None:
            return
        name = str(entry.data(Qt.ItemDataRole.UserRole))
        self._recent = [name, *(r for r in self._recent if r != name)][:RECENT]
        self.close()
        self.chosen.emit(name)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}
            run = step.get(Qt.Key(event.key()))
            if run is not None and self._list.count():
                self._list.setCurrentRow(max(0, min(self._list.count() - 1, self._list.currentRow() + run)))
                return True
        return super().eventFilter(watched, event)
