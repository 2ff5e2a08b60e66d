"""The question before code runs: it closes only when the consent was kept."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton

from app.ui.widgets.code_consent import CodeConsent
from designer.graph.diagnostics import DiagnosticError


def test_a_consent_that_cannot_be_kept_leaves_the_question_open(qtbot) -> None:
    refused = [DiagnosticError.of("unwritable", "the disk is full", remedy="free some space")]

    def agreed() -> None:
        if refused:
            raise refused.pop()

    dialog = CodeConsent("consent", "Run it?", [("conv", "x = 1")], agreed, None, action="&Run")
    qtbot.addWidget(dialog)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    dialog.open()
    assert dialog.findChild(QPlainTextEdit, "consent.source_0").toPlainText() == "x = 1"
    button = dialog.findChild(QPushButton, "consent.agree")
    with qtbot.assertNotEmitted(dialog.accepted):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert dialog.isVisible()
    assert any(label.text() == "The disk is full. Free some space." for label in dialog.findChildren(QLabel))
    with qtbot.waitSignal(dialog.accepted):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert not dialog.isVisible()
