"""A dialog that nobody answers, and a wait that is interrupted; `test_time_limit.py` runs this file in a process of its own."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot


@pytest.mark.timeout(1)
def test_nobody_answers(qtbot: QtBot) -> None:
    dialog = QDialog()
    qtbot.addWidget(dialog)
    QTimer.singleShot(100, QDialog(dialog).exec)
    dialog.exec()


@pytest.mark.timeout(1)
def test_a_wait_is_interrupted_before_it_ends(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slot that ends the event loop is interrupted, and Qt takes the exception."""
    monkeypatch.setattr("pytestqt.wait_signal._AbstractSignalBlocker._quit_loop_by_timeout", lambda _: time.sleep(100))
    qtbot.wait(10)


def test_the_next_dialog_is_answered(qtbot: QtBot) -> None:
    dialog = QDialog()
    qtbot.addWidget(dialog)
    QTimer.singleShot(10, dialog.accept)
    assert dialog.exec() == QDialog.DialogCode.Accepted
