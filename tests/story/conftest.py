"""The real window on a real display, as the stories begin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from app.ui.shell.window import MainWindow


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> MainWindow:
    """A window of 1600 x 1000 at the corner of the screen, with the sample."""
    from player import has_display
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QApplication

    from app.ui.shell.window import MainWindow
    from app.ui.widgets import theme
    from designer.operators.registry import load

    app = QApplication.instance()
    assert isinstance(app, QApplication)
    if app.platformName() != "xcb" or not has_display():
        pytest.skip("the story needs an X display and xdotool: run it with `make test`")
    theme.apply(app, "dark")
    window = MainWindow(load(), QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat))
    qtbot.addWidget(window, before_close_func=lambda w: w.close_now())  # it must not ask
    window.setGeometry(0, 0, 1600, 1000)
    with qtbot.waitExposed(window):
        window.show()
    window.files.open_first(None)
    window.start_engine_client()
    window.activateWindow()
    return window
