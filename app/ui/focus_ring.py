"""A ring around what has the focus of the keyboard. Fusion's own is too faint to be seen on buttons, lists and the canvas."""

from __future__ import annotations

from weakref import ref

import shiboken6
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QFocusFrame,
    QLineEdit,
    QMenu,
    QMenuBar,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)

from app.ui import theme

WIDTH = 2.0
ROUND = 4.0
# They frame themselves with the accent, or mark their entry.
_FRAMED = (QLineEdit, QAbstractSpinBox, QComboBox, QTextEdit, QPlainTextEdit, QMenu, QMenuBar)
_present: list[ref[FocusRing]] = []  # at most one in the program


class FocusRing(QFocusFrame):
    """Follows its widget, also where that scrolls; lives as long as the widget has the focus."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(theme.color("accent"), WIDTH)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        painter.setPen(pen)
        half = WIDTH / 2
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(half, half, -half, -half), ROUND, ROUND)


def install(app: QApplication) -> None:
    """Show rings in all windows of the program. A second call changes nothing."""
    if not app.property("focus_ring"):
        app.setProperty("focus_ring", True)
        app.focusChanged.connect(_follow)


def present() -> FocusRing | None:
    """The ring that is shown."""
    ring = _present[0]() if _present else None
    return ring if ring is not None and shiboken6.isValid(ring) else None  # type: ignore[no-untyped-call]


def _follow(_old: QWidget | None, now: QWidget | None) -> None:
    ring = present()
    _present.clear()
    if ring is not None:
        ring.setWidget(None)  # type: ignore[arg-type]  # the stubs know no way to take it away
        ring.deleteLater()
    if now is None or isinstance(now, _FRAMED) or now.isWindow():
        return
    by_mouse = QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton
    if by_mouse or not now.window().testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange):
        return
    ring = FocusRing(now.parentWidget())
    ring.setWidget(now)
    _present.append(ref(ring))
