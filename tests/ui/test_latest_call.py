"""Of requests that follow each other only the latest counts; answers, refusals and other networks in every order."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
from engine_kit import ScriptedEngine
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.engine.protocol import OpenReply, OpenRequest, ReceptiveFieldReply, ReceptiveFieldRequest
from app.ui.engine.latest_call import LatestCall
from designer.graph.diagnostics import Diagnostic

pytestmark = pytest.mark.gui


class Bench:
    """Asks for pixels by their x; `said` is what came of it."""

    def __init__(self) -> None:
        self.engine, self.owner = ScriptedEngine(), QObject()
        self.call = LatestCall[ReceptiveFieldReply](self.owner)
        self.said: list[str] = []

    def ask(self, x: int, name: str = "") -> None:
        name = name or str(x)
        request = ReceptiveFieldRequest("conv", 0, x, "image")
        self.call.ask(
            self.engine,  # type: ignore[arg-type]
            request,
            lambda reply: self.said.append(f"{name}: {reply.box[0]}"),
            lambda found: self.said.append(f"{name}: {found[0].message}"),
        )

    def sent(self) -> list[int]:
        return [request.x for request in self.engine.requests(ReceptiveFieldRequest)]

    def answer(self) -> None:
        call = self.engine.next(ReceptiveFieldRequest)
        call.finish(ReceptiveFieldReply((call.request.x, 0, 9, 9), "computed"))

    def refuse(self) -> None:
        self.engine.next(ReceptiveFieldRequest).fail((Diagnostic("broken", "refused"),))

    def heard(self) -> list[str]:
        said, self.said = self.said, []
        return said


@pytest.fixture
def bench(qtbot: QtBot) -> Bench:
    return Bench()


def test_the_latest_of_several_requests_is_answered(bench: Bench) -> None:
    bench.ask(1)
    assert bench.sent() == [1]
    bench.answer()
    assert bench.heard() == ["1: 1"]
    for x in (2, 3, 4):
        bench.ask(x)
        assert bench.sent() == [2], "one at a time"
    bench.answer()
    assert bench.heard() == [], "nobody waits for it any more"
    assert bench.sent() == [4]
    bench.answer()
    assert bench.heard() == ["4: 4"]
    assert bench.sent() == []


def test_the_same_request_is_answered_each_time(bench: Bench) -> None:
    """The network may be another one by then, but what is in flight is shown meanwhile."""
    bench.ask(1, "first")
    bench.ask(1, "second")
    bench.answer()
    assert bench.heard() == ["first: 1"]
    assert bench.sent() == [1]
    bench.answer()
    assert bench.heard() == ["second: 1"]
    bench.ask(2)
    bench.ask(3)
    bench.ask(2, "again")
    bench.answer()
    assert bench.heard() == []
    bench.answer()
    assert bench.heard() == ["again: 2"]


def test_a_refusal_is_said_and_the_next_request_follows(bench: Bench) -> None:
    bench.ask(1)
    bench.refuse()
    assert bench.heard() == ["1: refused"]
    bench.ask(2)
    bench.ask(3)
    bench.refuse()
    assert bench.heard() == []
    bench.refuse()
    assert bench.heard() == ["3: refused"]
    bench.ask(4)
    bench.answer()
    assert bench.heard() == ["4: 4"]


def test_what_is_given_up_is_not_answered_and_nothing_follows(bench: Bench) -> None:
    bench.ask(1)
    bench.ask(2)
    bench.call.cancel()
    bench.answer()
    assert bench.heard() == []
    assert bench.sent() == []
    bench.ask(3)
    bench.call.cancel()
    bench.ask(4)
    bench.answer()
    assert bench.sent() == [4]
    bench.answer()
    assert bench.heard() == ["4: 4"]
    bench.call.cancel()
    assert bench.heard() == []


def test_what_waits_is_not_asked_of_another_network(bench: Bench) -> None:
    bench.ask(1)
    bench.ask(2)
    bench.engine.ask(OpenRequest("<NetworkModel/>"), bench.owner)
    bench.answer()
    assert bench.sent() == []
    assert bench.heard() == []
    bench.engine.next(OpenRequest).finish(OpenReply())
    bench.ask(3)
    bench.ask(4)
    bench.answer()
    bench.answer()
    assert bench.heard() == ["4: 4"]
