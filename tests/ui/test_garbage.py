"""Garbage is collected between events of the window's thread only."""

from __future__ import annotations

import weakref

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from app.ui.widgets.background import Background

MANY = 20_000  # objects, several times what starts a collection


class Cyclic(QDialog):
    """A dialog that only the collector deletes."""

    def __init__(self) -> None:
        super().__init__()
        self.itself = self
        self.show()


def test_widgets_are_deleted_between_events(qtbot: QtBot) -> None:
    dialog = weakref.ref(Cyclic())
    kept: list[list[object]] = [[] for _ in range(MANY)]
    assert dialog() is not None, "deleted while memory was allocated"
    qtbot.waitUntil(lambda: dialog() is None)
    assert len(kept) == MANY


def test_work_in_a_thread_deletes_no_widget(qtbot: QtBot) -> None:
    owner = QObject()
    background = Background(owner)
    kept: list[list[object]] = []
    dialog = weakref.ref(Cyclic())
    background.start(lambda: kept.extend([] for _ in range(MANY)))
    background.wait()
    assert dialog() is not None
    qtbot.waitUntil(lambda: dialog() is None)
