"""Helpers of the tests of the whole window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pyqtgraph import PlotWidget
from PySide6.QtCore import QEventLoop, QObject, QPoint, QPointF, QSettings, Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.ui.document.document import Document
from app.ui.shell.window import MainWindow
from app.ui.widgets.empty_state import EmptyState
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import Registry, default_registry

DELAY = 200  # ms that updates of the window are delayed at most


ShownT = TypeVar("ShownT", bound=QWidget)


def open_window(
    qtbot: QtBot, folder: Path, registry: Registry | None = None, size: tuple[int, int] = (1366, 768)
) -> MainWindow:
    """The shown window with its settings in `folder`. It closes without asking for its changes."""
    window = made_window(folder, registry, size)
    qtbot.addWidget(window, before_close_func=MainWindow.close_now)
    window.show()
    qtbot.waitExposed(window)
    return window


def made_window(folder: Path, registry: Registry | None = None, size: tuple[int, int] = (1366, 768)) -> MainWindow:
    """A window with its settings in `folder`."""
    settings = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(registry or default_registry(), settings)
    window.resize(*size)
    return window


def with_parents(part: QObject) -> Iterator[QObject]:
    """An object and all that it is in."""
    each: QObject | None = part
    while each is not None:
        yield each
        each = each.parent()


def in_plot_menu(part: QObject) -> bool:
    """Whether an object belongs to a menu of pyqtgraph. They are never shown."""
    return any(isinstance(each, QMenu) and isinstance(each.parent(), PlotWidget) for each in with_parents(part))


def show(window: MainWindow, graph: Graph) -> MainWindow:
    """Show another document in the window; unsaved changes are dropped."""
    if window.context.has_document:
        window.context.root.history.mark_clean()
    window.context.set_document(Document(graph, window.context.registry, parent=window.context))
    window.canvas.viewer.setFocus()
    QApplication.processEvents()
    return window


def action(window, name: str):
    return window.actions_[name]


def press(window: MainWindow, *keys: str) -> None:
    """Shortcuts, pressed while the canvas has the focus; actions follow the document with the next turn."""
    window.activateWindow()
    QTest.qWaitForWindowActive(window)
    window.canvas.viewer.setFocus()
    for text in keys:
        QApplication.processEvents()
        QTest.keySequence(window.canvas.viewer, text)
    QApplication.processEvents()


def settle(window: QWidget) -> None:
    """Process events until no delayed update of the window is pending."""
    while waiting := [t for t in window.findChildren(QTimer) if _pending(t)]:
        while any(isValid(timer) and _pending(timer) for timer in waiting):
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    QApplication.processEvents()


def _pending(timer: QTimer) -> bool:
    return timer.isActive() and timer.isSingleShot() and timer.interval() <= DELAY


def without_pauses(window: QWidget) -> None:
    """Delayed updates of what there is in the window come at once, which spares tests with many steps the waiting."""
    for timer in window.findChildren(QTimer):
        if timer.isSingleShot() and timer.interval() <= DELAY:
            timer.setInterval(0)


def shown(qtbot: QtBot, widget: ShownT, width: int, height: int) -> ShownT:
    """A widget in an active window of its own, which the test closes."""
    qtbot.addWidget(widget)
    widget.resize(width, height)
    widget.show()
    qtbot.waitExposed(widget)
    widget.activateWindow()
    return widget


def empty(panel: QWidget) -> EmptyState:
    """What a panel shows while it has nothing else to show."""
    found = panel.findChild(EmptyState)
    assert found is not None
    return found


def network() -> Graph:
    """A network with something for every panel, and a layer of a type that nobody knows."""
    return Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3", "tiling": "1"}),
            Layer("noise", "noise", (160, 0), (Source("input"),)),
            Layer("conv", "convolution", (320, 0), (Source("noise"),), {"features": "3"}, ActivationSpec("relu")),
            Layer("mix", "mix", (480, 0), (Source("conv"), Source("noise"))),
            Layer("strange", "of_a_plugin", (320, 160), (), {"secret": "1"}),
            Layer("output", "output", (640, 0), (Source("mix"),)),
        ],
        name="named",
    )


def wheel(widget: QWidget, notches: int, place: QPointF | None = None) -> None:
    """Turn the wheel over a widget, in its middle unless a place is given."""
    at = place if place is not None else QPointF(widget.rect().center())
    event = QWheelEvent(
        at,
        QPointF(widget.mapToGlobal(at.toPoint())),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
