"""Findings as sentences: where, what and what to do."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from app.ui.widgets.sentences import finding_text, placed_text, sentence
from designer.graph.diagnostics import Diagnostic


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (Diagnostic("x", "it is wrong"), "It is wrong."),
        (Diagnostic("x", "is it wrong?", remedy="mend it!"), "Is it wrong? Mend it!"),
        (Diagnostic("x", "it is wrong", layer="conv", remedy="mend it"), "conv: it is wrong. Mend it."),
        (Diagnostic("x", "conv is wrong", layer="conv"), "conv is wrong."),  # named once, as it is spelled
        (Diagnostic("x", "the input of conv is wrong", layer="conv"), "The input of conv is wrong."),
        (Diagnostic("x", "it ends early", file="/home/me/net.xml"), "net.xml: it ends early."),
        (Diagnostic("x", "conv is wrong", layer="conv", file="/home/me/net.xml"), "net.xml: conv is wrong."),
        (Diagnostic("x", "it is wrong", layer="conv", file="net.xml"), "conv: net.xml: it is wrong."),
    ],
)
def test_a_finding_in_one_line(finding: Diagnostic, text: str) -> None:
    assert placed_text(finding) == text


def test_a_finding_without_its_location() -> None:
    assert finding_text(Diagnostic("x", " it is wrong ", layer="conv", remedy="mend it")) == "It is wrong. Mend it."
    assert finding_text(Diagnostic("x", "why?")) == "Why?"
    assert sentence("") == ""
