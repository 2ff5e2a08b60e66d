"""Tests of the window: nothing outlives its test, and canvases of small networks to work on."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtCore import QObject, QSettings
    from PySide6.QtWidgets import QApplication, QWidget
    from pytestqt.qtbot import QtBot

    from app.ui.engine.client import EngineClient
    from app.ui.shell.window import MainWindow

PATIENCE = 30  # s for work of a closed window to end, on a busy machine


def outermost(widget: QWidget) -> QWidget:
    """The window that a menu or the list of a combo box belongs to."""
    while (parent := widget.parentWidget()) is not None:
        widget = parent
    return widget


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """A window or a thread that outlives its test fails it; clipboard and theme are those at first. pytest-qt only asks for the
    deletion of widgets."""
    try:
        from PySide6.QtCore import QCoreApplication, QEvent
        from PySide6.QtWidgets import QApplication
    except ImportError:
        yield
        return
    threads = set(threading.enumerate())
    windows = set()
    if QApplication.instance() is not None:
        windows = set(QApplication.topLevelWidgets())
        QApplication.clipboard().clear()
    yield
    gc.collect(1)
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        return
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    left = [w for w in QApplication.topLevelWidgets() if outermost(w) not in windows]
    if left:  # one more turn: a widget that deletes another when it goes
        gc.collect()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        left = [w for w in QApplication.topLevelWidgets() if outermost(w) not in windows]
    assert not left, f"windows left behind: {[(type(w).__name__, w.objectName()) for w in left]}"
    new = [t for t in threading.enumerate() if t not in threads and not isinstance(t, threading._DummyThread)]
    for thread in new:
        thread.join(PATIENCE)
    assert not [t for t in new if t.is_alive()], "threads left behind"
    theme = sys.modules.get("app.ui.widgets.theme")
    if theme is not None and not theme.is_dark():
        theme.apply(app)  # the next test begins in the theme of the first one


@pytest.fixture(autouse=True)
def contexts_end(nothing_is_left: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A context that a test made without a window ends with it: its timers read the folders of runs as long as it lives."""
    module = sys.modules.get("app.ui.engine.context")
    if module is None:
        yield
        return
    from PySide6.QtCore import QCoreApplication, QEvent
    from shiboken6 import isValid

    made: WeakSet[QObject] = WeakSet()
    make = module.Context.__init__

    def noted(self: QObject, *args: object) -> None:
        made.add(self)
        make(self, *args)

    monkeypatch.setattr(module.Context, "__init__", noted)
    yield
    for context in list(made):
        if isValid(context):
            context.deleteLater()
            QCoreApplication.sendPostedEvents(context, QEvent.Type.DeferredDelete)


@pytest.fixture(scope="module")
def engine(qapp: QApplication) -> Iterator[EngineClient]:
    """One engine process for the tests of a module; it starts with the first request."""
    from app.ui.engine.client import EngineClient

    client = EngineClient()
    yield client
    client.close()


@pytest.fixture
def settings(tmp_path: Path) -> QSettings:
    """A file of its own for the user's settings."""
    from PySide6.QtCore import QSettings

    return QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def empty_window(qtbot: QtBot, tmp_path: Path) -> MainWindow:
    """The whole window with nothing open. Its delayed updates come at once, since waiting took half of the time of its tests."""
    from window_kit import open_window, without_pauses

    window = open_window(qtbot, tmp_path)
    without_pauses(window)
    return window


@pytest.fixture(scope="module")
def window_of_module(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    """One window for the tests of a module, with nothing open. Making one for every test took up to half of their time."""
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtTest import QTest
    from window_kit import made_window, without_pauses

    window = made_window(tmp_path_factory.mktemp("window"))
    window.show()
    QTest.qWaitForWindowExposed(window)
    without_pauses(window)
    yield window
    window.close_now()
    window.deleteLater()
    QCoreApplication.sendPostedEvents(window, QEvent.Type.DeferredDelete)


@pytest.fixture
def shared_window(window_of_module: MainWindow) -> Iterator[MainWindow]:
    """The window of the module, for tests that show a network of their own and leave panels and settings as they are."""
    from PySide6.QtWidgets import QWidget

    yield window_of_module
    for child in window_of_module.findChildren(QWidget):
        if child.isWindow() and child.isVisible():
            child.hide()
    if window_of_module.context.has_document:
        window_of_module.context.root.history.mark_clean()
        window_of_module.context.select(())


@pytest.fixture
def window(empty_window: MainWindow) -> MainWindow:
    """The whole window with an empty network."""
    empty_window.files.new()
    return empty_window
