"""A coarse picture while a slider moves, the full one when it rests; in the right order, whatever the engine does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
from engine_kit import ScriptedEngine
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.engine.protocol import (
    EmptyReply,
    InterruptRequest,
    OpenReply,
    OpenRequest,
    RunReply,
    RunRequest,
    SetWeightsRequest,
)
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.engine.client import EngineClient
from app.ui.engine.coarse_to_fine import SETTLED
from app.ui.engine.result import Phase
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.commands import set_params
from designer.graph.inference import Inference
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from designer.runtime.shared import Handle

pytestmark = pytest.mark.gui
OUT = "output_0"


class SlowEngine(ScriptedEngine):
    """Its results are images of one value, the name of the handle."""

    def take(self, handle: Handle) -> np.ndarray:
        return np.full((1, 3, 4, 4), float(handle.file), np.float32)

    def ran(self, value: float, coarse: int = 0) -> None:
        outputs = {OUT: Handle(str(value), (1, 3, 4, 4), "float32")}
        self.next(RunRequest).finish(RunReply(outputs, coarse=coarse))


class Slow(kit.Launched):
    def __init__(self, qtbot: QtBot) -> None:
        self.slow = SlowEngine()
        super().__init__(qtbot, self.slow)  # type: ignore[arg-type]
        self.seen: list[tuple[float, int]] = []
        self.analysis.result_changed.connect(self.note)
        self.document = self.open(kit.small_network())
        self.analysis.launch_random()
        self.slow.next(OpenRequest).finish(OpenReply())
        self.slow.ran(0.0)
        assert self.analysis.phase is Phase.READY

    def note(self) -> None:
        result = self.analysis.result
        if result is not None and OUT in result.outputs:
            self.seen.append((float(result.outputs[OUT][0, 0, 0, 0]), result.coarse))

    def refining(self) -> bool:
        """Whether a full run will follow when values rest."""
        return any(t.isActive() and t.interval() == SETTLED for t in self.analysis.findChildren(QTimer))

    def move(self, value: float) -> None:
        self.document.do(lambda g: set_params(g, {"noise_0": {"scale": f"{value}"}}, merge_key="drag"))

    def runs(self) -> list[RunRequest]:
        return self.slow.requests(RunRequest)


@pytest.fixture
def slow(qtbot: QtBot) -> Slow:
    return Slow(qtbot)


def test_the_first_picture_is_a_full_one(slow: Slow) -> None:
    assert slow.seen == [(0.0, 0)]
    slow.analysis.launch()
    slow.slow.next(OpenRequest).finish(OpenReply())
    assert [run.budget for run in slow.runs()] == [0]


def test_a_moving_slider_gets_a_coarse_picture_and_then_the_full_one(slow: Slow) -> None:
    slow.move(0.2)
    assert [run.budget for run in slow.runs()] == [40]
    slow.slow.ran(1.0, coarse=2)
    assert slow.analysis.phase is Phase.RUNNING
    assert "preview at 1/2" in slow.analysis.message
    assert slow.analysis.result is not None
    assert slow.analysis.result.coarse == 2
    assert not slow.analysis.stale
    assert slow.runs() == []  # it may go on moving
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    assert [run.budget for run in slow.runs()] == [0]
    slow.slow.ran(2.0)
    assert slow.seen[1:] == [(1.0, 2), (2.0, 0)]
    assert slow.analysis.phase is Phase.READY


def test_a_fast_network_gets_no_second_run(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0)
    assert slow.analysis.phase is Phase.READY
    assert not slow.refining()
    assert slow.runs() == []


def test_while_it_moves_there_is_one_run_at_a_time_and_the_latest_wish_wins(slow: Slow) -> None:
    for number in range(5):
        slow.move(0.2 + number / 100)
        assert len(slow.runs()) == 1
    slow.slow.ran(1.0, coarse=4)
    assert [run.budget for run in slow.runs()] == [40]
    slow.slow.ran(2.0, coarse=4)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.slow.ran(3.0)
    assert slow.seen[1:] == [(1.0, 4), (2.0, 4), (3.0, 0)]


def test_moving_again_gives_up_the_full_run(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.move(0.3)
    assert len(slow.slow.requests(InterruptRequest)) == 1
    slow.move(0.31)
    assert len(slow.slow.requests(InterruptRequest)) == 1
    slow.slow.next(RunRequest).supersede()
    slow.slow.next(InterruptRequest).finish(EmptyReply())
    assert [run.budget for run in slow.runs()] == [40]
    slow.slow.ran(3.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.slow.ran(4.0)
    assert slow.seen[1:] == [(1.0, 2), (3.0, 2), (4.0, 0)]


def test_weights_of_another_step_give_up_the_full_run_too(slow: Slow, tmp_path: Path) -> None:
    slow.analysis.show_weights(tmp_path / "5.safetensors")
    assert slow.slow.next(SetWeightsRequest).request.path.endswith("5.safetensors")
    slow.slow.ran(1.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.analysis.show_weights(tmp_path / "10.safetensors")
    assert len(slow.slow.requests(InterruptRequest)) == 1
    slow.slow.next(RunRequest).supersede()
    assert slow.slow.next(SetWeightsRequest).request.path.endswith("10.safetensors")
    slow.slow.ran(2.0, coarse=2)
    assert slow.seen[1:] == [(1.0, 2), (2.0, 2)]


def test_a_full_run_that_was_done_before_the_interrupt_is_not_taken_for_the_new_values(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.move(0.3)
    slow.slow.ran(2.0)  # the answer was on its way already
    assert [run.budget for run in slow.runs()] == [40]
    slow.slow.ran(3.0, coarse=2)
    slow.qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.slow.ran(4.0)
    assert slow.seen[1:] == [(1.0, 2), (2.0, 0), (3.0, 2), (4.0, 0)]


def test_a_wish_with_more_than_values_is_never_coarse(slow: Slow) -> None:
    slow.analysis.set_capture("conv_0")
    slow.move(0.2)
    assert [run.budget for run in slow.runs()] == [0]
    slow.slow.ran(1.0)
    assert [run.budget for run in slow.runs()] == [40]
    slow.slow.next(RunRequest).supersede()
    assert len(slow.runs()) == 1


def test_stop_and_another_document_leave_no_refinement_behind(slow: Slow) -> None:
    slow.move(0.2)
    slow.slow.ran(1.0, coarse=2)
    slow.open(kit.small_network())
    assert not slow.refining()
    assert slow.runs() == []


def test_the_real_engine_ends_on_the_bits_of_a_full_run(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    bench = kit.Launched(qtbot, engine)
    panel = AnalysisPanel(bench.context)
    qtbot.addWidget(panel)
    panel.show()
    graph = kit.small_network(hidden=64)
    document = bench.open(graph)
    photograph = kit.picture(tmp_path, size=(512, 512))
    bench.analysis.inputs.set_file("input_0", photograph)
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
