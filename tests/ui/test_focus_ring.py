"""The ring around what has the focus: there for keys, in both themes, and not for the mouse."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QLineEdit,
    QListWidget,
    QPushButton,
    QSlider,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.shell import focus_ring
from app.ui.widgets import theme


@pytest.fixture
def window(qtbot, qapp):
    focus_ring.install(qapp)
    window = QWidget()
    box = QVBoxLayout(window)
    window.line, window.tool, window.push = QLineEdit(), QToolButton(), QPushButton("Push")
    window.slider, window.list = QSlider(Qt.Orientation.Horizontal), QListWidget()
    window.tool.setAutoRaise(True)
    window.tool.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    window.list.addItems(["one", "two"])
    for widget in (window.line, window.tool, window.push, window.slider, window.list):
        box.addWidget(widget)
    qtbot.addWidget(window)
    window.resize(200, 300)
    window.show()
    qtbot.waitExposed(window)
    window.activateWindow()
    window.line.setFocus()
    qtbot.waitUntil(window.line.hasFocus)
    yield window
    theme.apply(qapp, "dark")


def near(window, widget) -> list[QColor]:
    """What is seen across the upper edge of a widget."""
    corner = widget.mapTo(window, QPoint(widget.width() // 2, 0))
    picture = window.grab().toImage()
    return [picture.pixelColor(corner + QPoint(0, y)) for y in range(-3, 3)]


@pytest.mark.parametrize("mode", ["dark", "light"])
def test_each_widget_that_tab_reaches_is_ringed(window, qapp, mode):
    theme.apply(qapp, mode)
    assert focus_ring.present() is None  # a line has its own frame
    for widget in (window.tool, window.push, window.slider, window.list):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        QApplication.processEvents()
        assert widget.hasFocus()
        assert focus_ring.present().parentWidget() is widget
        accent = theme.color("accent")
        apart = min(
            abs(c.red() - accent.red()) + abs(c.green() - accent.green()) + abs(c.blue() - accent.blue())
            for c in near(window, widget)
        )
        assert apart < 40, widget
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(window.findChildren(focus_ring.FocusRing)) == 1


def test_the_mouse_shows_none_and_takes_it_away(window):
    QTest.keyClick(window.line, Qt.Key.Key_Tab)
    assert focus_ring.present() is not None
    QTest.mouseClick(window.push, Qt.MouseButton.LeftButton)
    assert window.push.hasFocus()
    assert focus_ring.present() is None


def test_it_goes_with_its_widget(window):
    QTest.keyClick(window.line, Qt.Key.Key_Tab)
    window.tool.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QApplication.processEvents()
    ring = focus_ring.present()
    assert ring is None or ring.parentWidget() is not window.tool


def test_it_is_seen_where_the_widget_fills_its_parent(window):
    holder = QWidget()
    box = QVBoxLayout(holder)
    box.setContentsMargins(0, 0, 0, 0)
    filling = QListWidget()
    box.addWidget(filling)
    window.layout().addWidget(holder)
    QApplication.processEvents()
    while not filling.hasFocus():
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    QApplication.processEvents()
    assert theme.color("accent") in near(window, filling)
    window.resize(260, 400)
    QApplication.processEvents()
    assert focus_ring.present().size() == filling.size()


def test_the_ring_goes_when_the_focus_moves_to_a_widget_with_a_frame_of_its_own(window):
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert focus_ring.present().parentWidget() is window.tool
    QTest.keyClick(window.tool, Qt.Key.Key_Backtab)
    assert window.line.hasFocus()
    assert focus_ring.present() is None
    assert [ring for ring in window.findChildren(focus_ring.FocusRing) if ring.isVisible()] == []


def test_a_button_that_is_held_shows_none_even_after_keys(window, monkeypatch):
    """A click can move the focus while the window still remembers that Tab moved it before."""
    held = [Qt.MouseButton.LeftButton]
    application = SimpleNamespace(mouseButtons=lambda: held[0])
    monkeypatch.setattr(focus_ring, "QGuiApplication", application)
    window.setAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)
    for button, ringed in ((Qt.MouseButton.LeftButton, False), (Qt.MouseButton.NoButton, True)):
        held[0] = button
        focus_ring._follow(None, window.push)
        assert (focus_ring.present() is not None) is ringed
    ring = focus_ring.present()
    window.push.resize(window.push.width() + 30, window.push.height() + 10)
    assert ring.geometry() == window.push.rect(), "it follows the size"
    for other in (window.line, window, None):
        focus_ring._follow(None, window.push)
        assert focus_ring.present() is not None
        focus_ring._follow(window.push, other)
        assert focus_ring.present() is None
    window.setAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange, on=False)
    focus_ring._follow(None, window.push)
    assert focus_ring.present() is None
