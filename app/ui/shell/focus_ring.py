"""A ring around the widget with the keyboard focus. Fusion's own is too faint on buttons, lists and the canvas."""

from __future__ import annotations

from weakref import ref

import shiboken6
from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QMenu,
    QMenuBar,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)

from app.ui.widgets import theme

WIDTH = 2.0
ROUND = 4.0
# These draw their own accent frame or highlight an entry.
_FRAMED = (QCheckBox, QLineEdit, QAbstractSpinBox, QComboBox, QTextEdit, QPlainTextEdit, QMenu, QMenuBar)
_present: list[ref[FocusRing]] = []  # at most one in the program


class FocusRing(QWidget):
    """An overlay child of the focused widget, which it follows; deleted when the focus moves on."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        widget.installEventFilter(self)
        self.setGeometry(widget.rect())
        self.raise_()
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self.setGeometry(watched.rect())
        return False

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("accent"), WIDTH))
        half = WIDTH / 2
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(half, half, -half, -half), ROUND, ROUND)


def install(app: QApplication) -> None:
    """Show focus rings in all windows of the program. Further calls do nothing."""
    if not app.property("focus_ring"):
        app.setProperty("focus_ring", True)
        app.focusChanged.connect(_follow)


def present() -> FocusRing | None:
    """The visible ring, if any."""
    ring = _present[0]() if _present else None
    return ring if ring is not None and shiboken6.isValid(ring) else None  # type: ignore[no-untyped-call]


def _follow(_old: QWidget | None, now: QWidget | None) -> None:
    ring = present()
    _present.clear()
    if ring is not None:
        ring.hide()
        ring.deleteLater()
    if now is None or isinstance(now, _FRAMED) or now.isWindow():
        return
    by_mouse = QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton
    if by_mouse or not now.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange):
        return
    _present.append(ref(FocusRing(now)))
