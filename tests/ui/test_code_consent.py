"""The question before code runs: it closes only when the consent was kept."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QTabWidget

from app.ui.design import custom_agreement
from app.ui.design.custom_agreement import AgreeDialog
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


@pytest.mark.parametrize("end", ["agree", "later", "escape", "return", "close", "fails"])
@pytest.mark.parametrize("layers", [("one",), ("one", "two & three")])
def test_code_of_layers_runs_only_after_a_yes_that_was_kept(qtbot, monkeypatch, end, layers) -> None:
    texts = {f"class {number}:\n    pass  # \u202e\n": layer for number, layer in enumerate(layers)}
    kept, ran = [], []

    def agree(sources) -> None:
        if end == "fails":
            raise DiagnosticError.of("cannot-save", "the disk is full", remedy="free some space")
        assert not ran, "the consent is kept before anything runs"
        kept.extend(sources)

    monkeypatch.setattr(custom_agreement, "agree", agree)
    dialog = AgreeDialog(texts, lambda: ran.append(len(kept)), None)
    qtbot.addWidget(dialog)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    dialog.open()
    first = (
        "This network contains custom layers written"
        if len(layers) > 1
        else "This network contains a custom layer written"
    )
    sentence = dialog.findChild(QLabel, "agree_custom.sentence").text()
    assert sentence.startswith(f"{first} in Python. Running the network executes this code")
    tabs = dialog.findChild(QTabWidget, "agree_custom.layers")
    assert [tabs.tabText(number).replace("&&", "&") for number in range(tabs.count())] == list(layers)
    for number, text in enumerate(texts):
        view = dialog.findChild(QPlainTextEdit, f"agree_custom.source_{number}")
        assert view.isReadOnly()
        assert view.toPlainText().startswith(text.split("#")[0])
        assert "\u202e" not in view.toPlainText(), "what is not visible is spelled out"
    buttons = {name: dialog.findChild(QPushButton, f"agree_custom.{name}") for name in ("agree", "later")}
    assert [buttons[name].text() for name in buttons] == ["&Agree and Run", "&Not Now"]
    assert not kept
    assert not ran
    if end in ("agree", "later", "fails"):
        qtbot.mouseClick(buttons["agree" if end != "later" else "later"], Qt.MouseButton.LeftButton)
    elif end == "close":
        dialog.close()
    else:
        QTest.keyClick(dialog, Qt.Key.Key_Escape if end == "escape" else Qt.Key.Key_Return)
    assert kept == (list(texts) if end == "agree" else [])
    assert ran == ([len(texts)] if end == "agree" else [])
    assert dialog.isVisible() is (end == "fails")
