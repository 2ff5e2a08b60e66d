"""The status bar: messages by severity, problems, totals, and what it shows while the engine works."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QProgressBar, QToolButton
from window_kit import shown

from app.engine.protocol import ProgressEvent
from app.ui.shell.status import INFO_MS, WARNING_MS, StatusBar
from app.ui.widgets import theme
from designer.graph.diagnostics import Diagnostic, Severity


@pytest.fixture
def bar(qtbot) -> StatusBar:
    return shown(qtbot, StatusBar(), 900, 40)


def busy_parts(bar) -> tuple[bool, bool, str]:
    """Whether the progress and the button to stop are shown, and the text about the engine."""
    progress, stop = bar.findChild(QProgressBar), bar.findChild(QToolButton, "status.stop")
    return progress.isVisible(), stop.isVisible(), bar.findChild(QLabel, "status.engine").text()


@pytest.mark.parametrize(
    ("severity", "time", "role"),
    [("info", INFO_MS, "text"), ("warning", WARNING_MS, "warning"), ("error", WARNING_MS, "error")],
)
def test_a_message_has_the_color_and_the_time_of_its_severity(bar, severity, time, role):
    assert INFO_MS < WARNING_MS
    bar.say(severity, "a <b> & c")
    assert bar.currentMessage() == "a <b> & c"
    assert "&lt;b&gt;" in bar.toolTip() or bar.toolTip() == "a <b> & c"
    assert [t.interval() for t in bar.findChildren(QTimer) if t.isActive()] == [time]
    assert bar.palette().windowText().color() == theme.color(role)
    bar.showMessage("Save the network")  # the tip of a menu
    assert bar.palette().windowText().color() == theme.color("text")
    bar.say(severity, "again")
    assert bar.palette().windowText().color() == theme.color(role)


@pytest.mark.parametrize(
    ("errors", "warnings", "notes", "text"),
    [
        (0, 0, 0, "No problems"),
        (0, 0, 1, "1 note"),  # a network without an output cannot be exported
        (1, 0, 4, "1 error"),
        (2, 0, 0, "2 errors"),
        (0, 1, 4, "1 warning"),
        (0, 3, 0, "3 warnings"),
        (1, 2, 4, "1 error, 2 warnings"),
    ],
)
def test_problems_are_counted_by_severity(bar, errors, warnings, notes, text):
    found = [Diagnostic("a", "x", severity=Severity.ERROR)] * errors
    found += [Diagnostic("b", "y", severity=Severity.WARNING)] * warnings
    found += [Diagnostic("c", "z", severity=Severity.INFO)] * notes
    bar.show_problems(found)
    assert bar.problems.text() == text
    asked = []
    bar.problems_clicked.connect(lambda: asked.append("problems"))
    QTest.mouseClick(bar.problems, Qt.MouseButton.LeftButton)
    assert asked == ["problems"]


def test_short_work_is_not_shown(bar):
    changes = []
    bar.busy_shown.connect(changes.append)
    bar.show_busy(True)
    assert busy_parts(bar) == (False, False, "Engine idle")
    bar.show_progress(ProgressEvent(1, 3, 8, "tile 3"))
    bar.show_busy(False)
    bar.show_progress(ProgressEvent(1, 8, 8, "tile 8"))
    assert busy_parts(bar) == (False, False, "Engine idle")
    assert not any(timer.isActive() for timer in bar.findChildren(QTimer))  # nothing is to come
    assert changes == []
    assert not bar.busy


def test_longer_work_is_shown_with_its_progress_until_it_ends(bar, qtbot):
    changes, asked = [], []
    bar.busy_shown.connect(changes.append)
    bar.stop_clicked.connect(lambda: asked.append("stop"))
    bar.show_busy(True)
    qtbot.waitUntil(lambda: bar.busy)
    assert busy_parts(bar) == (True, True, "Engine running")
    progress = bar.findChild(QProgressBar)
    assert (progress.minimum(), progress.maximum()) == (0, 0)
    for done, text, engine in ((3, "tile 3", "Engine: tile 3"), (8, "", "Engine running")):
        bar.show_progress(ProgressEvent(1, done, 8, text))
        assert (progress.value(), progress.maximum()) == (done, 8)
        assert busy_parts(bar) == (True, True, engine)
    QTest.mouseClick(bar.findChild(QToolButton, "status.stop"), Qt.MouseButton.LeftButton)
    assert asked == ["stop"]
    bar.show_busy(False)
    assert busy_parts(bar) == (False, False, "Engine idle")
    bar.show_busy(True)
    qtbot.waitUntil(lambda: bar.busy)
    assert progress.maximum() == 0  # nothing of the last run
    bar.show_busy(False)
    assert changes == [True, False, True, False]


def test_a_crash_ends_the_work_and_its_message_leaves_with_the_next_run(bar, qtbot):
    bar.show_busy(True)
    qtbot.waitUntil(lambda: bar.busy)
    bar.show_crash("The engine process was killed.")
    assert busy_parts(bar) == (False, False, "Engine stopped")
    assert bar.currentMessage() == "The engine process was killed."
    bar.show_busy(False)  # as its calls fail
    assert busy_parts(bar) == (False, False, "Engine stopped")
    bar.show_busy(True)
    bar.show_busy(False)
    assert busy_parts(bar) == (False, False, "Engine idle"), "work that is too short to be shown"
    assert bar.currentMessage() == "The engine process was killed."
    bar.say("info", "Saved")
    bar.show_busy(True)
    qtbot.waitUntil(lambda: bar.busy)
    assert bar.currentMessage() == "Saved"  # another message stays
    bar.show_busy(False)


def test_totals_are_hidden_while_there_are_none(bar):
    totals = bar.findChild(QLabel, "status.totals")
    assert not totals.isVisible()
    bar.show_totals("1 FLOP", "for <b>\nand more")
    assert totals.isVisible()
    assert totals.toolTip() == "<p>for &lt;b&gt;</p><p>and more</p>"
    bar.show_totals("", "")
    assert not totals.isVisible()
    assert totals.toolTip() == ""


def test_a_message_keeps_the_color_of_its_severity_in_another_theme(bar, qapp):
    try:
        for severity, role in (("error", "error"), ("warning", "warning"), ("info", "text")):
            theme.apply(qapp, "light")
            bar.say(severity, "something happened")
            for mode in ("light", "dark", "light"):
                theme.apply(qapp, mode)
                assert bar.palette().windowText().color() == theme.color(role), (severity, mode)
    finally:
        theme.apply(qapp, "system")
