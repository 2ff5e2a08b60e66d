"""Work in a thread, whose result arrives in the window's thread."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.ui.widgets.background import Background

ROUNDS = 20


def test_the_next_work_can_start_when_a_result_arrives(qtbot: QtBot) -> None:
    parent = QObject()
    background = Background(parent)
    results: list[object] = []

    def proceed(result: object) -> None:
        results.append(result)
        assert not background.running
        if len(results) < ROUNDS:
            background.start(lambda: len(results))

    background.done.connect(proceed)
    background.start(lambda: 0)
    qtbot.waitUntil(lambda: len(results) == ROUNDS)
    assert results == list(range(ROUNDS))


@pytest.mark.parametrize(
    "error", [KeyError("a"), TypeError("b"), MemoryError("c"), OSError("d"), StopIteration("e")], ids=repr
)
def test_any_error_of_the_work_is_told(qtbot: QtBot, error: Exception) -> None:
    parent = QObject()
    background = Background(parent)

    def work() -> None:
        raise error

    with qtbot.waitSignal(background.failed) as failed:
        background.start(work)
    ((finding,),) = failed.args
    assert (finding.code, finding.message) == ("unexpected", f"{type(error).__name__}: {error}")
    assert not background.running


def test_only_one_work_at_a_time(qtbot: QtBot) -> None:
    parent = QObject()
    background = Background(parent)
    release = threading.Event()
    with qtbot.waitSignal(background.done):
        background.start(release.wait)
        with pytest.raises(RuntimeError, match="has not finished"):
            background.start(lambda: None)
        release.set()


def test_work_runs_until_its_result_is_delivered(qtbot: QtBot) -> None:
    """Between the end of the thread and the delivery, other events must not find it idle."""
    parent = QObject()
    background = Background(parent)
    background.start(lambda: 1)
    background.wait()
    assert background.running
    with qtbot.waitSignal(background.done):
        pass
    assert not background.running
