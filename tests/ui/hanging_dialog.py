"""A dialog that nobody answers; `test_time_limit.py` runs this file in a process of its own."""

from __future__ import annotations

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


def test_the_next_dialog_is_answered(qtbot: QtBot) -> None:
    dialog = QDialog()
    qtbot.addWidget(dialog)
    QTimer.singleShot(10, dialog.accept)
    assert dialog.exec() == QDialog.DialogCode.Accepted
