"""The tab bar above the canvas: one tab per open document, with a mark for unsaved changes."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QTabBar, QToolButton, QWidget

from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.texts import tr

UNSAVED = "● "
CLOSE_SIDE = 16
MOST = 240  # width of a tab in pixels, above which its name is shortened; scroll buttons appear when tabs do not fit


class TabBar(QTabBar):
    """Emits the user's requests. A tab is identified by the number that `add` returned, wherever it is dragged."""

    shown = Signal(int)
    close_asked = Signal(int)
    menu_asked = Signal(int, QPoint)  # global position

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tabs")
        self.setAccessibleName(tr("Open documents"))
        self.setDocumentMode(True)
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setMovable(True)
        self.setUsesScrollButtons(True)
        self.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.setSelectionBehaviorOnRemove(QTabBar.SelectionBehavior.SelectRightTab)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._count = 0
        self._pressed = -1
        self.currentChanged.connect(self._on_current)
        self.customContextMenuRequested.connect(self._on_menu)

    def add(self, text: str) -> int:
        """Add a tab at the end and return its number."""
        self._count += 1
        blocked = self.blockSignals(True)
        index = self.addTab(text)
        self.setTabData(index, self._count)
        self.blockSignals(blocked)
        button = QToolButton(self)
        button.setObjectName(f"tabs.close_{self._count}")
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.setIconSize(QSize(12, 12))
        button.setFixedSize(CLOSE_SIDE + 4, CLOSE_SIDE + 4)
        button.setToolTip(tr("Close"))
        theme.set_icon(button, "close", "muted")
        number = self._count
        button.clicked.connect(lambda: self.close_asked.emit(number))
        self.setTabButton(index, QTabBar.ButtonPosition.RightSide, button)
        return number

    def label(self, number: int, name: str, tip: str, *, unsaved: bool) -> None:
        """Set the text and tooltip of a tab."""
        index = self.index(number)
        text = f"{UNSAVED if unsaved else ''}{name}".replace("&", "&&")
        if self.tabText(index) != text:
            self.setTabText(index, text)
        self.setTabToolTip(index, plain_tip(tip))
        self.setAccessibleTabName(index, tr("{name}, unsaved", name=name) if unsaved else name)
        button = self.tabButton(index, QTabBar.ButtonPosition.RightSide)
        button.setAccessibleName(tr("Close {name}", name=name))

    def remove(self, number: int) -> None:
        index = self.index(number)
        if index >= 0:
            button = self.tabButton(index, QTabBar.ButtonPosition.RightSide)
            blocked = self.blockSignals(True)
            self.removeTab(index)
            self.blockSignals(blocked)
            button.deleteLater()

    def choose(self, number: int) -> None:
        """Make a tab current without emitting a signal."""
        blocked = self.blockSignals(True)
        self.setCurrentIndex(self.index(number))
        self.blockSignals(blocked)

    def index(self, number: int) -> int:
        """The current index of a tab; -1 if it does not exist."""
        return next((i for i in range(self.count()) if self.tabData(i) == number), -1)

    def numbers(self) -> list[int]:
        """Tab numbers from left to right."""
        return [int(self.tabData(i)) for i in range(self.count())]

    def tabSizeHint(self, index: int) -> QSize:
        size = super().tabSizeHint(index)
        return QSize(min(size.width(), MOST), size.height())

    def minimumTabSizeHint(self, index: int) -> QSize:
        return self.tabSizeHint(index)

    def _on_current(self, index: int) -> None:
        if index >= 0 and self.tabData(index) is not None:
            self.shown.emit(self.tabData(index))

    def _on_menu(self, place: QPoint) -> None:
        index = self.tabAt(place)
        if index < 0:  # from the menu key
            index = self.currentIndex()
            place = self.tabRect(index).center()
        if index >= 0:
            self.menu_asked.emit(self.tabData(index), self.mapToGlobal(place))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.MiddleButton:
            self._pressed = self.tabAt(event.position().toPoint())
            return
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.MiddleButton:
            index = self.tabAt(event.position().toPoint())
            if index >= 0 and index == self._pressed:
                self.close_asked.emit(self.tabData(index))
            return
        super().mouseReleaseEvent(event)
