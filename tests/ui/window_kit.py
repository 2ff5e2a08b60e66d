"""What tests of the whole window do again and again."""

from __future__ import annotations

from PySide6.QtTest import QTest


def action(window, name: str):
    return window.actions_[name]


def press(window, text: str) -> None:
    """A shortcut, pressed while the canvas has the focus."""
    window.canvas.viewer.setFocus()
    QTest.keySequence(window.canvas.viewer, text)
