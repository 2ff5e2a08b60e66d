"""A coarse picture while a slider moves, the full one when it rests; in the right order, whatever the engine does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.engine.client import EngineClient
from app.ui.engine.coarse_to_fine import Haste
from app.ui.engine.result import Phase
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.commands import set_params
from designer.graph.inference import Inference
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

pytestmark = pytest.mark.gui
OUT = "output_0"


class SlowEngine(QObject):
    """Takes requests and answers them when the test says so."""

    started = Signal()
    crashed = Signal(str)
    progress = Signal(object)
    busy_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.session = 0
        self.running = True
        self.asked: list[tuple[str, dict[str, Any], Callable[..., None] | None]] = []

    def request(self, method: str, params: Mapping[str, Any] | None = None, on_result=None, on_error=None) -> int:
        if method == "open":
            self.session += 1
        self.asked.append((method, dict(params or {}), on_result))
        return len(self.asked)

    def take(self, handle: Mapping[str, Any]) -> np.ndarray:
        return np.full((1, 3, 4, 4), handle["value"], np.float32)

    def waiting(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params, _ in self.asked if name == method]

    def answer(self, method: str, **result: Any) -> None:
        """Reply to the oldest request of that name, and to all that are not runs before it."""
        for number, (name, _, on_result) in enumerate(self.asked):
            if name == method:
                del self.asked[number]
                if on_result is not None:
                    on_result(result)
                return
        raise AssertionError(f"nobody asked for {method}")

    def ran(self, value: float, coarse: int = 0) -> None:
        self.answer("run", outputs={OUT: {"value": value}}, coarse=coarse)


class Slow(kit.Launched):
    def __init__(self, qtbot: QtBot) -> None:
        self.slow = SlowEngine()
        super().__init__(qtbot, self.slow)  # type: ignore[arg-type]
        self.seen: list[tuple[float, int]] = []
        self.analysis.result_changed.connect(self.note)
        self.document = self.open(kit.small_network())
        self.analysis.launch_random()
        self.slow.answer("open")
        self.slow.ran(0.0)
        assert self.analysis.phase is Phase.READY

    def note(self) -> None:
        result = self.analysis.result
        if result is not None and OUT in result.outputs:
            self.seen.append((float(result.outputs[OUT][0, 0, 0, 0]), result.coarse))

    def move(self, value: float) -> None:
        self.document.do(lambda g: set_params(g, {"noise_0": {"scale": f"{value}"}}, merge_key="drag"))

    def runs(self) -> list[dict[str, Any]]:
        return self.slow.waiting("run")


@pytest.fixture
def slow(qtbot: QtBot) -> Slow:
    return Slow(qtbot)


def test_the_first_picture_is_a_full_one(slow: Slow) -> None:
    assert slow.seen == [(0.0, 0)]
    slow.analysis.launch()
    slow.slow.answer("open")
    assert [run["budget"] for run in slow.runs()] == [0]


def test_a_moving_slider_gets_a_coarse_picture_and_then_the_full_one(slow: Slow) -> None:
    slow.move(0.2)
    assert [run["budget"] for run in slow.runs()] == [40]
    slow.slow.ran(1.0, coarse=2)
    assert slow.analysis.phase is Phase.RUNNING
    assert "preview at 1/2" in slow.analysis.message
    assert slow.analysis.result is not None
    assert slow.analysis.result.coarse == 2
    assert not slow.analysis.stale
    assert slow.runs() == []  # it may go on moving
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    assert [run["budget"] for run in slow.runs()] == [0]
    slow.slow.ran(2.0)
    assert slow.seen[1:] == [(1.0, 2), (2.0, 0)]
    assert slow.analysis.phase is Phase.READY


def test_a_fast_network_gets_no_second_run(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0)
    assert slow.analysis.phase is Phase.READY
    assert not slow.analysis._haste._timer.isActive()  # nothing will follow
    assert slow.runs() == []


def test_while_it_moves_there_is_one_run_at_a_time_and_the_latest_wish_wins(slow: Slow) -> None:
    for number in range(5):
        slow.move(0.2 + number / 100)
        assert len(slow.runs()) == 1
    slow.slow.ran(1.0, coarse=4)
    assert [run["budget"] for run in slow.runs()] == [40]
    slow.slow.ran(2.0, coarse=4)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.slow.ran(3.0)
    assert slow.seen[1:] == [(1.0, 4), (2.0, 4), (3.0, 0)]


def test_moving_again_gives_up_the_full_run(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.move(0.3)
    assert len(slow.slow.waiting("interrupt")) == 1
    slow.move(0.31)
    assert len(slow.slow.waiting("interrupt")) == 1
    slow.slow.answer("run", superseded=True)
    slow.slow.answer("interrupt")
    assert [run["budget"] for run in slow.runs()] == [40]
    slow.slow.ran(3.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.slow.ran(4.0)
    assert slow.seen[1:] == [(1.0, 2), (3.0, 2), (4.0, 0)]


def test_a_full_run_that_was_done_before_the_interrupt_is_not_taken_for_the_new_values(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.move(0.3)
    slow.slow.ran(2.0)  # the answer was on its way already
    assert [run["budget"] for run in slow.runs()] == [40]
    slow.slow.ran(3.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.slow.ran(4.0)
    assert slow.seen[1:] == [(1.0, 2), (2.0, 0), (3.0, 2), (4.0, 0)]


def test_results_in_the_wrong_order_never_replace_newer_ones(qtbot: QtBot) -> None:
    parent = QObject()
    haste = Haste(parent, lambda: None)
    haste.asked(moving=True, waiting=False)
    assert haste.sent() == (1, 40)
    haste.refine()
    assert haste.sent() == (1, 0)
    assert haste.arrived(1, False, True)  # the full one is there first
    assert not haste.arrived(1, True, True)
    haste.asked(moving=True, waiting=False)
    assert haste.sent() == (2, 40)
    assert haste.arrived(2, True, True)
    assert not haste.arrived(1, False, True)  # full, but of older values
    assert haste.arrived(2, False, True)
    assert not haste.arrived(2, True, True)


def test_a_wish_with_more_than_values_is_never_coarse(slow: Slow) -> None:
    slow.analysis.set_capture("conv_0")
    slow.move(0.2)
    assert [run["budget"] for run in slow.runs()] == [0]
    slow.slow.ran(1.0)
    assert [run["budget"] for run in slow.runs()] == [40]
    slow.slow.answer("run", superseded=True)
    assert len(slow.runs()) == 1


def test_stop_and_another_document_leave_no_refinement_behind(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0, coarse=2)
    slow.open(kit.small_network())
    assert not slow.analysis._haste._timer.isActive()  # nothing will follow
    assert slow.runs() == []


def test_the_real_engine_ends_on_the_bits_of_a_full_run(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    bench = kit.Launched(qtbot, engine)
    panel = AnalysisPanel(bench.context)
    qtbot.addWidget(panel)
    panel.show()
    graph = kit.small_network(hidden=64)
    document = bench.open(graph)
    photograph = kit.picture(tmp_path, size=(512, 512))
    bench.analysis.set_input("input_0", photograph)
    bench.launch_random()
    seen: list[tuple[int, tuple[int, ...]]] = []

    def see() -> None:
        if bench.analysis.result is not None:  # none any more when the test lets the engine go
            seen.append((bench.analysis.result.coarse, bench.analysis.result.outputs[OUT].shape))

    bench.analysis.result_changed.connect(see)
    for step in range(12):
        document.do(lambda g, s=step: set_params(g, {"noise_0": {"scale": f"{0.2 + s / 100}"}}, merge_key="drag"))
        before = len(seen)
        qtbot.waitUntil(lambda before=before: len(seen) > before, timeout=kit.WAIT)
    bench.wait(Phase.READY)
    assert any(coarse for coarse, _ in seen)
    assert seen[-1][0] == 0
    assert {shape for _, shape in seen} == {(1, 3, 512, 512)}
    assert bench.analysis.result is not None
    shown = bench.analysis.result.outputs[OUT]
    needed = required_weights(Inference(document.graph, bench.context.registry))
    session = Session(document.graph, bench.context.registry, fill_missing(Weights(), needed, 0), RunOptions())
    session.set_input_file("input_0", photograph)
    assert session.run().outputs[OUT].tobytes() == shown.tobytes()
