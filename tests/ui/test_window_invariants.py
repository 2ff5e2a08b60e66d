"""What holds for every widget of a kind in the whole window."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
from PySide6.QtWidgets import QAbstractScrollArea, QToolBar, QToolButton, QWidget
from window_kit import settle

import samples
from app.ui.shell.window import MainWindow

pytestmark = pytest.mark.gui


@pytest.fixture
def full_window(empty_window: MainWindow, tmp_path: Path) -> MainWindow:
    """The analysis sample, with the Analysis View."""
    empty_window.files.open(shutil.copy(samples.path("denoiser_analyze.xml"), tmp_path / "net.xml"))
    empty_window.docks.show("analysis")
    settle(empty_window)
    return empty_window


def test_buttons_of_the_toolbar_are_read_without_the_marks_of_a_menu(full_window: MainWindow) -> None:
    bar = full_window.findChild(QToolBar, "toolbar")
    buttons = {bar.widgetForAction(action): action for action in bar.actions() if not action.isSeparator()}
    read = {
        button.accessibleName(): action.text() for button, action in buttons.items() if isinstance(button, QToolButton)
    }
    assert len(read) > 5
    assert any("&" in text for text in read.values())
    assert {text.replace("&", "").rstrip(".") for text in read.values()} == set(read)


def handles_drops(widget: QWidget) -> bool:
    """Whether a class of ours has a `dropEvent`."""
    return any("dropEvent" in vars(cls) for cls in type(widget).__mro__ if cls.__module__.startswith("app."))


def test_whatever_handles_a_drop_gets_it(full_window: MainWindow) -> None:
    """Qt delivers a drag to the next widget around that accepts drops, which would take the file as its own."""
    found = [widget for widget in full_window.findChildren(QWidget) if handles_drops(widget)]
    assert {type(widget).__name__ for widget in found} >= {"InputRow", "AnalysisPanel"}
    receivers = [(w, w.viewport() if isinstance(w, QAbstractScrollArea) else w) for w in found]
    assert [type(w).__name__ for w, receiver in receivers if not (w.acceptDrops() or receiver.acceptDrops())] == []
