"""What the analysis asks the engine for after every kind of change, and what it makes of answers and refusals; no process runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import analysis_kit as kit
import numpy as np
import pytest

pytest.importorskip("PySide6")
from engine_kit import ScriptedEngine
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.engine.protocol import (
    DescribeInputReply,
    DescribeInputRequest,
    EmptyReply,
    InterruptRequest,
    NonfiniteShare,
    OpenReply,
    OpenRequest,
    ProgressEvent,
    Request,
    RunReply,
    RunRequest,
    RunStep,
    SetFormatsRequest,
    SetInputReply,
    SetInputRequest,
    SetParamRequest,
    SetWeightsRequest,
    TensorStatus,
    UpdateRequest,
)
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.document.document import Document
from app.ui.engine.requests import open_variant
from app.ui.engine.result import Phase
from designer.files.document import write_document
from designer.files.variants import Variant
from designer.files.weights import WeightStatus
from designer.graph.bypass import bypass
from designer.graph.commands import add_layer, connect, move_layers, remove_layers, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.runtime.number_formats import FORMATS
from designer.runtime.sources import SourceInfo

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go
OUT = "output_0"
OTHER = next(name for name in FORMATS if FORMATS[name].is_integer)  # than the usual number format


class Bench(kit.Launched):
    """The analysis of a small network; `answer` answers all that is asked, as an engine without problems does."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.engine = ScriptedEngine()
        super().__init__(qtbot, self.engine)  # type: ignore[arg-type]
        self.image = kit.picture(folder)
        self.document = self.open(kit.small_network(8))
        self.document.change_settings(input_files={"input_0": str(self.image)}, random_seed=3)
        self.messages: list[tuple[str, str]] = []
        self.context.message.connect(lambda level, text: self.messages.append((level, text)))
        self.runs = 0

    def reply(self, request: Request[Any]) -> object:
        match request:
            case OpenRequest() | UpdateRequest():
                return OpenReply()
            case SetInputRequest():
                return SetInputReply((1, 3, 16, 24))
            case DescribeInputRequest():
                return DescribeInputReply(SourceInfo("image"))
            case RunRequest():
                self.runs += 1
                image = np.full((1, 3, 4, 4), float(self.runs), np.float32)
                captures = {name: self.engine.give(name, image) for name in request.capture}
                return RunReply({OUT: self.engine.give("out", image)}, captures)
        return EmptyReply()

    def answer(self) -> list[Any]:
        """Answer what waits and what follows from it; returns the requests in their order."""
        found = []
        while self.engine.calls:
            call = self.engine.next(Request)
            found.append(self.without_quality(call.request))
            call.finish(self.reply(call.request))
        return found

    def without_quality(self, request: Request[Any]) -> Request[Any]:
        """The request without the tensors that PSNR is measured of, which every run brings."""
        measured = {str(each) for found in self.analysis.restorations() for each in (found.result, found.clean)}
        if not isinstance(request, RunRequest):
            return request
        capture, have = ([name for name in names if name not in measured] for names in (request.capture, request.have))
        return RunRequest(tuple(capture), tuple(have), request.budget)

    def follow(self) -> list[Any]:
        """The same, for an edit of the network, which is sent when the edits rest."""
        self.qtbot.waitUntil(lambda: not self.resting)
        return self.answer()

    @property
    def resting(self) -> bool:
        return any(timer.isActive() and timer.interval() == 60 for timer in self.analysis.findChildren(QTimer))

    def set(self, layer: str, **params: str) -> None:
        assert self.document.do(lambda g: set_params(g, {layer: params}))

    def ready(self) -> Bench:
        self.analysis.launch()
        self.answer()
        assert self.analysis.phase is Phase.READY
        return self

    @property
    def text(self) -> str:
        return write_document(self.document.graph).decode()

    def shows(self) -> float | None:
        """The number of the run whose result is shown."""
        result = self.analysis.result
        return float(result.outputs[OUT][0, 0, 0, 0]) if result is not None else None


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    return Bench(qtbot, tmp_path)


def kinds(requests: list[Any]) -> list[str]:
    return [request.method for request in requests]


def run(*capture: str, have: tuple[str, ...] = (), budget: int = 0) -> RunRequest:
    return RunRequest(capture, have, budget)


# --- launching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("running", "message"), [(True, "Preparing the network …"), (False, "Starting the engine …")])
def test_a_launch_opens_the_network_feeds_its_inputs_and_runs_it(bench: Bench, running: bool, message: str) -> None:
    phases: list[tuple[str, str]] = []
    bench.analysis.phase_changed.connect(lambda phase: phases.append((phase, bench.analysis.message)))
    bench.engine.running = running
    bench.analysis.launch()
    assert bench.engine.requests() == [open_variant(bench.document)]
    assert bench.engine.requests()[0].seed == 3
    bench.engine.next(OpenRequest).finish(OpenReply())
    assert bench.engine.requests() == [SetInputRequest("input_0", str(bench.image)), run("conv_0", "input_0")]
    bench.answer()
    assert phases == [("running", message), ("running", "Running …"), ("ready", bench.analysis.result.summary())]
    assert bench.analysis.inputs.shapes == {"input_0": (1, 3, 16, 24)}
    assert bench.shows() == 1.0


def test_a_launch_while_it_runs_opens_the_network_afterwards(bench: Bench) -> None:
    bench.ready()
    bench.analysis.launch()
    assert kinds(bench.engine.requests()) == ["open"]
    bench.analysis.launch()
    assert kinds(bench.engine.requests()) == ["open"]
    assert kinds(bench.answer()) == ["open", "open", "set_input", "run"]


def test_a_network_that_another_panel_opened_in_between_is_opened_again(bench: Bench) -> None:
    bench.ready()
    bench.engine.ask(open_variant(bench.document), bench.analysis)
    bench.engine.calls.clear()
    bench.set("noise_0", scale="0.3")
    assert kinds(bench.answer()) == ["open", "set_input", "run"]


@pytest.mark.parametrize("note", ["", "random weights"])
def test_missing_weights_are_asked_for_unless_random_ones_took_their_place(bench: Bench, note: str) -> None:
    missing = [TensorStatus(f"conv_{n}", "kernel", WeightStatus.MISSING, (1,)) for n in range(5)]
    shape = TensorStatus("conv_0", "bias", WeightStatus.WRONG_SHAPE, (1,), (2,))
    found = TensorStatus("conv_9", "kernel", WeightStatus.BOUND, (1,))
    bench.analysis.launch()
    bench.engine.next(OpenRequest).finish(OpenReply((found, *missing, shape), note))
    if note:
        assert kinds(bench.engine.requests()) == ["set_input", "run"]
        return
    assert bench.engine.requests() == []
    assert bench.analysis.phase is Phase.WEIGHTS
    assert bench.analysis.message == (
        "6 weights are missing or of the wrong shape: of conv_0, conv_1, conv_2 and 2 more."
    )
    bench.set("conv_0", kernel="5x5")
    assert bench.follow() == []  # nothing was shown yet: the user decides
    bench.analysis.launch_random(7)
    assert bench.document.settings.random_seed == 7
    assert bench.engine.requests()[0].seed == 7
    bench.engine.next(OpenRequest).finish(OpenReply(tuple(missing[:1])))
    assert bench.analysis.message == "1 weight is missing or of the wrong shape: of conv_0."
    for count, names in ((3, "conv_0, conv_1, conv_2"), (4, "conv_0, conv_1, conv_2 and 1 more")):
        bench.analysis.launch()
        bench.engine.next(OpenRequest).finish(OpenReply((shape, *missing[:count], found)))
        assert bench.analysis.message == f"{count + 1} weights are missing or of the wrong shape: of {names}."


@pytest.mark.parametrize("ran", [False, True])
def test_an_edit_answers_the_question_for_weights_only_where_the_network_ran_before(bench: Bench, ran: bool) -> None:
    """Weights that fitted before an edit fit again after the next one; those that never did are chosen by the user."""
    if ran:
        bench.ready()
    bench.document.change_settings(random_seed=None, weights="/w")
    if not ran:
        bench.analysis.launch()
    missing = TensorStatus("conv_0", "weights", WeightStatus.MISSING, (3, 8, 3, 3), None)
    bench.engine.next(OpenRequest).finish(OpenReply(report=(missing,)))
    assert bench.analysis.phase is Phase.WEIGHTS
    bench.set("noise_0", scale="0.2")
    assert kinds(bench.follow()) == (["open", "set_input", "run"] if ran else [])
    assert bench.analysis.phase is (Phase.READY if ran else Phase.WEIGHTS)


# --- following the document -------------------------------------------------------------------------------------------


def connected(graph: Graph) -> Any:
    return connect(graph, Source("noise_0"), "output_0", 0)


def turn_bypass(bench: Bench) -> None:
    bench.document.do(lambda g: bypass(g, bench.document.inference, ["mix_0"]))


def give_formats(bench: Bench, *formats: dict[str, str]) -> None:
    """Give the layers formats, one after the other."""
    for each in formats:
        bench.follow()
        bench.document.change_settings(variants=(Variant("v", formats=each),), variant="v")


EDITS: dict[str, tuple[Callable[[Bench], object], Callable[[Bench], list[object]]]] = {
    "value of an analysis layer": (
        lambda b: b.set("noise_0", scale="0.3"),
        lambda b: [SetParamRequest("noise_0", "scale", "0.3"), run(budget=40)],
    ),
    "two values of one layer": (
        lambda b: b.set("noise_0", scale="0.3", seed="5"),
        lambda b: [
            SetParamRequest("noise_0", "scale", "0.3"), SetParamRequest("noise_0", "seed", "5"), run(budget=40)
        ],
    ),
    "parameter of another layer": (
        lambda b: b.set("conv_0", kernel="5x5"),
        lambda b: [UpdateRequest(b.text), run()],
    ),
    "another link": (lambda b: b.document.do(connected), lambda b: [UpdateRequest(b.text), run()]),
    "another name": (
        lambda b: b.document.do(lambda g: rename_layer(g, "conv_0", "last")),
        lambda b: [UpdateRequest(b.text), run()],
    ),
    "another input's name": (
        lambda b: b.document.do(lambda g: rename_layer(g, "input_0", "photo")),
        lambda b: [UpdateRequest(b.text), SetInputRequest("photo", str(b.image)), run()],
    ),
    "another input's size": (
        lambda b: b.set("input_0", dims="48x32x3"),
        lambda b: [UpdateRequest(b.text), SetInputRequest("input_0", str(b.image)), run()],
    ),
    "a layer that is not connected": (
        lambda b: b.document.do(lambda g: add_layer(g, Layer("alone", "activation"))),
        lambda b: [UpdateRequest(b.text), run()],
    ),
    "a bypass": (
        turn_bypass,
        lambda b: [UpdateRequest(b.text), run()],
    ),
    "the end of a bypass": (
        lambda b: (turn_bypass(b), b.follow(), turn_bypass(b)),
        lambda b: [UpdateRequest(b.text), run()],
    ),
    "a place": (lambda b: b.document.do(lambda g: move_layers(g, {"conv_0": (9, 9)})), lambda b: []),
    "the same file again": (
        lambda b: b.analysis.inputs.set_file("input_0", b.image),
        lambda b: [SetInputRequest("input_0", str(b.image)), run()],
    ),
    "another file": (
        lambda b: b.analysis.inputs.set_file("input_0", Path("/photos/other.png")),
        lambda b: [SetInputRequest("input_0", "/photos/other.png"), run()],
    ),
    "number formats": (
        lambda b: give_formats(b, {"conv_0": OTHER}, {"conv_h": OTHER}),
        lambda b: [SetFormatsRequest({"conv_h": OTHER}), run(budget=40)],
    ),
    "the engine": (
        lambda b: b.document.change_settings(engine="torch"),
        lambda b: [open_variant(b.document), SetInputRequest("input_0", str(b.image)), run()],
    ),
    "another variant": (
        lambda b: b.document.change_settings(variants=(Variant("half", "fp16"),), variant="half"),
        lambda b: [open_variant(b.document), SetInputRequest("input_0", str(b.image)), run()],
    ),
    "a variant that is not the current one": (
        lambda b: b.document.change_settings(variants=(Variant("half", "fp16"),)),
        lambda b: [],
    ),
    "iterations of the profiler": (lambda b: b.document.change_settings(iterations=9), lambda b: []),
    "an inspected layer": (lambda b: b.analysis.set_capture("conv_h"), lambda b: [run("conv_h")]),
    "an inspected layer and another one": (
        lambda b: b.analysis.set_capture("conv_h", ("noise_0", "conv_h")),
        lambda b: [run("conv_h", "noise_0")],
    ),
    "no inspected layer": (lambda b: b.analysis.set_capture("", ("noise_0",)), lambda b: []),
    "an inspected layer that there is not": (lambda b: b.analysis.set_capture("gone"), lambda b: [run()]),
    "other weights": (
        lambda b: b.analysis.show_weights(Path("/runs/5.safetensors")),
        lambda b: [SetWeightsRequest("/runs/5.safetensors"), run(budget=40)],
    ),
    "weights of a file": (
        lambda b: b.analysis.choose_weights(Path("/weights")),
        lambda b: [open_variant(b.document), SetInputRequest("input_0", str(b.image)), run()],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_a_change_is_sent_as_what_it_changes(bench: Bench, name: str) -> None:
    change, expected = EDITS[name]
    bench.ready()
    shown = bench.shows()
    change(bench)
    found = bench.follow()
    assert found == expected(bench)
    assert bench.analysis.phase is Phase.READY
    assert (bench.shows() == shown) == (not found)


@pytest.mark.parametrize("name", EDITS)
def test_nothing_is_sent_before_the_analysis_is_launched(bench: Bench, name: str) -> None:
    if name in ("weights of a file", "other weights"):  # these launch it
        return
    EDITS[name][0](bench)
    assert bench.follow() == []
    assert bench.analysis.phase is Phase.IDLE


@pytest.mark.parametrize("name", EDITS)
def test_after_a_launch_the_engine_has_what_was_changed_before(bench: Bench, name: str) -> None:
    EDITS[name][0](bench)
    bench.analysis.launch()
    found = [request for request in bench.follow() if not isinstance(request, OpenRequest | SetInputRequest)]
    assert [request.method for request in found] == ["run"]
    bench.set("noise_0", seed="77")
    assert kinds(bench.answer()) == ["set_param", "run"]


def test_what_changes_while_it_runs_is_one_batch_of_the_latest_values(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.2")
    first = bench.engine.requests()
    for value in ("0.3", "0.4", "0.5"):
        bench.set("noise_0", scale=value)
        bench.set("noise_0", seed=value[-1])
    bench.analysis.set_capture("conv_h")
    bench.analysis.inputs.set_file("input_0", bench.image)
    assert bench.engine.requests() == first
    found = bench.answer()[len(first) :]
    assert found == [
        SetParamRequest("noise_0", "scale", "0.5"),
        SetParamRequest("noise_0", "seed", "5"),
        SetInputRequest("input_0", str(bench.image)),
        run("conv_h"),
    ]


def test_values_that_went_back_are_not_sent(bench: Bench) -> None:
    bench.ready()
    before = bench.document.graph["noise_0"].params["scale"]
    bench.set("noise_0", scale="0.2")
    bench.set("noise_0", scale="0.3")
    bench.set("noise_0", scale="0.2")
    assert bench.answer()[2:] == [run(budget=40)]
    bench.set("noise_0", scale=before)
    assert bench.answer() == [SetParamRequest("noise_0", "scale", before), run(budget=40)]


def test_values_before_and_after_an_edit_are_sent_with_it(bench: Bench) -> None:
    bench.ready()
    bench.set("conv_0", kernel="5x5")
    bench.set("noise_0", scale="0.4")  # the edit is not sent yet
    bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
    assert bench.answer() == [UpdateRequest(bench.text), run()]
    bench.set("noise_0", scale="0.5")
    assert bench.answer() == [SetParamRequest("noise_0", "scale", "0.5"), run(budget=40)]


def test_formats_and_an_edit_are_sent_together(bench: Bench) -> None:
    give_formats(bench, {"conv_0": OTHER})
    bench.ready()
    bench.set("noise_0", scale="0.3")  # a run is in flight
    bench.set("conv_0", kernel="5x5")
    bench.document.change_settings(variants=(Variant("v", formats={"conv_h": OTHER}),))
    assert bench.follow()[2:] == [UpdateRequest(bench.text), SetFormatsRequest({"conv_h": OTHER}), run()]
    bench.set("noise_0", seed="8")
    assert kinds(bench.answer()) == ["set_param", "run"]


def test_captures_that_the_window_has_are_not_brought_again(bench: Bench) -> None:
    bench.ready()
    bench.analysis.set_capture("conv_h")
    assert bench.answer() == [run("conv_h")]
    kept = bench.analysis.result.captures["conv_h"]
    bench.set("noise_0", seed="2")
    bench.engine.next(SetParamRequest).finish(EmptyReply())
    call = bench.engine.next(RunRequest)
    assert bench.without_quality(call.request) == run("conv_h", have=("conv_h",), budget=40)
    call.finish(RunReply({OUT: bench.engine.give("o", np.zeros((1, 3, 4, 4), np.float32))}, same=("conv_h",)))
    assert bench.analysis.result.captures["conv_h"] is kept
    bench.analysis.set_capture("noise_0")
    assert bench.answer() == [run("noise_0")]
    bench.analysis.launch()
    assert bench.answer()[-1] == run("noise_0")  # of the network that was open before
    bench.document.do(lambda g: rename_layer(g, "noise_0", "grain"))
    assert bench.analysis.capture == "grain"
    assert bench.follow()[-1] == run("grain")


def test_tensors_next_to_the_inspected_one_are_brought_when_they_change(bench: Bench) -> None:
    bench.ready()
    asked = []
    for source, also in (
        ("conv_h", ()),
        ("conv_h", ("noise_0",)),
        ("conv_h", ("noise_0",)),
        ("conv_h", ("noise_0", "mix_0")),
        ("", ("noise_0",)),
        ("", ()),
        ("noise_0", ("conv_h",)),
    ):
        bench.analysis.set_capture(source, also)
        asked.append([request.capture for request in bench.answer()])
    assert asked == [
        [("conv_h",)],
        [("conv_h", "noise_0")],
        [],
        [("conv_h", "noise_0", "mix_0")],
        [],
        [],
        [("noise_0", "conv_h")],
    ]


def test_weights_of_a_step_give_way_to_those_of_the_document(bench: Bench) -> None:
    path = Path("/runs/5.safetensors")
    bench.analysis.show_weights(path)  # launches
    assert bench.engine.requests() == [open_variant(bench.document, path)]
    assert bench.engine.requests()[0].weights == str(path)
    bench.answer()
    bench.set("conv_0", kernel="5x5")
    assert kinds(bench.follow()) == ["update", "run"]
    bench.document.change_settings(threads=2)
    assert bench.engine.requests() == [open_variant(bench.document, path)]
    bench.answer()
    bench.analysis.show_weights(None)
    assert bench.engine.requests() == [open_variant(bench.document)]
    bench.answer()
    bench.analysis.show_weights(None)
    assert "open" not in kinds(bench.answer())


def test_weights_that_are_chosen_again_are_read_again(bench: Bench) -> None:
    """Training may have written the file anew."""
    bench.ready()
    expected = ["open", "set_input", "run"]
    for path in (Path("/weights"), Path("/weights"), Path("/weights")):
        shown = bench.shows()
        bench.analysis.choose_weights(path)
        assert kinds(bench.follow()) == expected
        assert bench.shows() != shown
        assert bench.document.settings.weights == str(path)
    bench.analysis.choose_weights(Path("/other"))
    assert len(bench.engine.calls) == 1, "one request for what the settings and the choice ask for"
    assert kinds(bench.follow()) == expected


def test_frames_that_are_due_while_one_is_computed_are_one_run(bench: Bench) -> None:
    bench.ready()
    for _ in range(4):
        bench.analysis.inputs.feed_frames(["input_0"])
    assert kinds(bench.answer()) == ["set_input", "run"] * 2


def test_a_video_plays_with_the_phase_and_the_results_of_the_analysis(bench: Bench) -> None:
    bench.ready()
    bench.document.change_settings(input_files={"input_0": "/clips/a.mp4"})
    described = SourceInfo("video", 10, 10.0, 24, 16)
    bench.engine.next(DescribeInputRequest).finish(DescribeInputReply(described))
    bench.answer()
    playback = bench.analysis.playback
    playback.play("input_0")
    timer = next(each for each in playback.findChildren(QTimer) if each.isActive())
    bench.analysis.again()
    assert bench.analysis.phase is Phase.RUNNING
    timer.stop()
    timer.timeout.emit()
    assert not timer.isActive(), "a frame is asked for while the network runs"
    run = bench.engine.next(RunRequest)
    run.finish(RunReply({OUT: bench.engine.give("out", np.zeros((1, 3, 4, 4), np.float32))}, milliseconds=40.0))
    assert playback.milliseconds == 40
    assert timer.isActive(), "the result does not bring the next frame"
    bench.analysis.stop()
    assert bench.analysis.phase is Phase.STOPPED
    assert not playback.playing
    playback.play("input_0")
    assert bench.analysis.phase is Phase.RUNNING, "it is launched again"


# --- networks that cannot run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda g: remove_layers(g, ["output_0"]), "The network has no output layer. Add one and connect it."),
        (lambda g: set_params(g, {"mix_0": {"amount": "much"}}), "amount"),
        (lambda g: set_params(g, {"conv_0": {"kernel": "none"}}), "kernel"),
        (lambda g: set_params(g, {"conv_0": {"features": "5"}}), "mix_0"),
    ],
)
def test_a_network_that_cannot_run_says_why_and_runs_when_it_is_mended(
    bench: Bench, edit: Callable[[Graph], Any], message: str
) -> None:
    bench.ready()
    assert bench.document.do(edit)
    assert bench.follow() == []
    assert bench.analysis.phase is Phase.BLOCKED
    assert message in bench.analysis.message
    assert bench.analysis.stale
    assert bench.shows() == 1.0  # dimmed
    assert bench.document.undo()
    assert kinds(bench.follow())[-1] == "run"
    assert bench.analysis.phase is Phase.READY
    assert not bench.analysis.stale


def test_an_input_without_a_file_is_named(bench: Bench) -> None:
    names = ("unread", "photo")
    inputs = [Layer(name, "input", params={"dims": "24x16x5"}) for name in names]
    bench.open(Graph([*inputs, Layer(OUT, "output", inputs=(Source("photo"),))]))
    bench.analysis.launch()
    assert bench.answer() == []
    assert bench.analysis.phase is Phase.BLOCKED
    assert "'photo' has no image. Choose one in Inputs." in bench.analysis.message
    bench.analysis.inputs.set_file("photo", bench.image)
    assert bench.answer()[1:] == [SetInputRequest("photo", str(bench.image)), run()]


# --- refusals ---------------------------------------------------------------------------------------------------------

NEXT = {True: ["open", "set_input", "run"], False: []}  # what a change asks for after a refusal: active or not


@pytest.mark.parametrize(
    ("code", "phase", "active"),
    [
        ("out-of-memory", Phase.FAILED, True),
        ("weights-missing", Phase.WEIGHTS, False),
        ("weight-shape", Phase.WEIGHTS, False),
        ("cannot-read", Phase.FAILED, True),  # of a run: not of the weights
        ("not-agreed", Phase.BLOCKED, False),
        ("cancelled", Phase.STOPPED, False),
    ],
)
@pytest.mark.parametrize("kind", [RunRequest, SetParamRequest, UpdateRequest])
def test_a_refusal_leads_to_what_the_user_can_do(
    bench: Bench, code: str, phase: Phase, active: bool, kind: type[Request[Any]]
) -> None:
    if code == "cancelled" and kind is not RunRequest:
        return  # all calls are cancelled together, and the run's is the last
    bench.ready()
    if kind is UpdateRequest:
        bench.set("conv_0", kernel="5x5")
        bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
    else:
        bench.set("noise_0", scale="0.3")
    asked: list[object] = []
    bench.context.agreement_wanted.connect(asked.append)
    bench.engine.next(kind).fail((Diagnostic(code, "it cannot be done", remedy="do something else"),))
    bench.answer()
    assert bench.analysis.phase is phase
    assert bench.analysis.stale
    assert bench.shows() == 1.0
    if code != "cancelled":
        assert bench.analysis.message.startswith("It cannot be done. Do something else.")
    assert asked == []  # only when the network is opened
    bench.set("noise_0", seed="9")
    assert kinds(bench.answer()) == NEXT[active or phase is Phase.WEIGHTS]
    bench.analysis.launch()
    assert kinds(bench.answer()) == ["open", "set_input", "run"]
    assert bench.analysis.phase is Phase.READY
    assert not bench.analysis.stale


@pytest.mark.parametrize(
    ("code", "phase"),
    [
        ("cannot-read", Phase.WEIGHTS),
        ("wrong-shape", Phase.WEIGHTS),
        ("unknown-format", Phase.WEIGHTS),
        ("bad-torch-data", Phase.WEIGHTS),
        ("too-large", Phase.WEIGHTS),
        ("out-of-memory", Phase.FAILED),
        ("not-agreed", Phase.BLOCKED),
        ("cancelled", Phase.STOPPED),
    ],
)
def test_a_network_that_the_engine_does_not_open(bench: Bench, code: str, phase: Phase) -> None:
    asked: list[Callable[[], None]] = []
    bench.context.agreement_wanted.connect(asked.append)
    bench.analysis.launch()
    bench.engine.next(OpenRequest).fail((Diagnostic(code, "it cannot be done"),))
    assert bench.engine.calls == []
    assert bench.analysis.phase is phase
    assert not bench.analysis.stale  # nothing is shown
    assert len(asked) == (code == "not-agreed")
    if asked:
        asked[0]()  # the user agreed
        assert kinds(bench.answer()) == ["open", "set_input", "run"]


def test_the_first_error_of_several_findings_is_said(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    bench.engine.next(SetParamRequest).fail((Diagnostic("bad-parameter", "of the parameter"),))
    bench.engine.next(RunRequest).fail((Diagnostic("out-of-memory", "of the run"),))
    assert bench.analysis.message == "Of the parameter."
    assert bench.analysis.phase is Phase.FAILED


def test_an_image_that_is_refused_is_named_at_its_input_and_fed_again(bench: Bench) -> None:
    told: list[str] = []
    bench.ready()
    bench.analysis.inputs.changed.connect(lambda: told.append(bench.analysis.inputs.errors.get("input_0", "")))
    bench.analysis.inputs.set_file("input_0", Path("/photos/none.png"))
    bench.engine.next(SetInputRequest).fail((Diagnostic("cannot-read", "it is not there", remedy="choose another"),))
    bench.answer()
    assert bench.analysis.phase is Phase.BLOCKED
    assert bench.analysis.message == told[-1] == "It is not there. Choose another."
    bench.set("noise_0", scale="0.3")
    assert kinds(bench.answer()) == ["open", "set_input", "run"]  # perhaps it is there now
    assert (told[-1], bench.analysis.inputs.errors) == ("", {})
    bench.analysis.inputs.feed({"input_0"})
    bench.engine.next(SetInputRequest).fail((Diagnostic("cannot-read", "it is not there"),))
    bench.answer()
    bench.document.change_settings(input_files={"input_0": str(bench.image)})
    assert bench.analysis.inputs.errors == {}  # of another file
    assert bench.analysis.phase is Phase.RUNNING


def test_a_crash_is_said_once_and_ends_what_was_asked(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    calls = list(bench.engine.calls)
    bench.engine.calls.clear()
    bench.engine.opened = None
    bench.engine.crashed.emit("It died.")
    for call in calls:
        call.fail((Diagnostic("engine-crashed", "it died"),))
    assert (bench.analysis.phase, bench.analysis.message) == (Phase.FAILED, "It died.")
    assert bench.messages == [("error", "It died.")]
    assert bench.analysis.stale
    bench.set("noise_0", scale="0.4")
    bench.analysis.again()
    assert bench.engine.calls == []
    bench.engine.crashed.emit("It died again.")  # nobody asked it anything
    assert bench.messages == [("error", "It died.")]
    bench.analysis.launch()
    assert kinds(bench.answer()) == ["open", "set_input", "run"]


def test_a_variant_that_cannot_be_opened_says_why(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise DiagnosticError((Diagnostic("unknown-precision", "it is not known here"),))

    bench.ready()
    monkeypatch.setattr("app.ui.engine.analysis.open_variant", refuse)
    bench.document.change_settings(threads=2)
    assert (bench.analysis.phase, bench.analysis.message) == (Phase.FAILED, "It is not known here.")
    assert bench.engine.calls == []


# --- stopping, dimming, another document ------------------------------------------------------------------------------


def test_stop_gives_up_what_runs_and_follows_nothing(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    bench.analysis.stop()
    assert bench.engine.calls == []
    assert (bench.analysis.phase, bench.analysis.message) == (
        Phase.STOPPED, "Stopped. Launch Analysis runs it again."
    )  # fmt: skip
    assert bench.analysis.stale
    bench.set("noise_0", scale="0.4")
    bench.analysis.set_capture("conv_h")
    bench.analysis.inputs.set_file("input_0", Path("/photos/other.png"))
    assert bench.follow() == []
    bench.analysis.launch()
    assert bench.answer()[-1] == run("conv_h")
    bench.engine.ask(InterruptRequest(), bench.analysis)  # of another panel
    bench.analysis.stop()
    assert len(bench.engine.calls) == 1  # nothing of ours runs
    bench.engine.calls.clear()


def test_the_shown_result_is_dimmed_when_the_next_one_takes_long(bench: Bench) -> None:
    bench.ready()
    told: list[bool] = []
    bench.analysis.stale_changed.connect(told.append)
    bench.set("noise_0", scale="0.3")
    assert not bench.analysis.stale
    bench.qtbot.waitUntil(lambda: bench.analysis.stale)
    bench.answer()
    assert told == [True, False]
    bench.analysis.again(animated=True)  # the next frame of something that moves
    bench.qtbot.waitUntil(lambda: True)
    assert not any(timer.isActive() and timer.interval() == 100 for timer in bench.analysis.findChildren(QTimer))
    bench.answer()
    bench.set("noise_0", scale="0.4")
    bench.set("noise_0", scale="0.5")
    call = bench.engine.next(RunRequest)
    bench.engine.next(SetParamRequest).finish(EmptyReply())
    call.finish(bench.reply(call.request))
    assert not bench.analysis.stale
    bench.qtbot.waitUntil(lambda: bench.analysis.stale)  # another one is awaited
    bench.answer()
    assert told == [True, False, True, False]


def test_progress_of_a_run_is_said(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    call = next(call for call in bench.engine.calls if isinstance(call.request, RunRequest))
    call.advance(ProgressEvent(1, 3, 7, "conv_0"))
    assert (bench.analysis.phase, bench.analysis.message) == (Phase.RUNNING, "Running conv_0 (3 of 7) …")
    call.advance(ProgressEvent(1, 4, 7, ""))
    assert bench.analysis.message == "Running conv_0 (3 of 7) …"
    bench.answer()


def test_everything_that_an_answer_says_is_in_the_result(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    bench.engine.next(SetParamRequest).finish(EmptyReply())
    steps = tuple(RunStep((f"layer_{n}",), "torch", 1.0, cached=n == 0) for n in range(6))
    image = np.ones((1, 3, 4, 4), np.float32)
    bench.engine.next(RunRequest).finish(
        RunReply(
            {OUT: bench.engine.give("o", image)}, steps=steps, milliseconds=12.5, coarse=2, note="random weights",
            nonfinite={OUT: NonfiniteShare(1, 2, 0.25)}, weights="w.npz", weights_sha256="12ab",
        )
    )  # fmt: skip
    result = bench.analysis.result
    assert result.outputs[OUT] is image
    assert (result.steps, result.milliseconds, result.coarse) == (steps, 12.5, 2)
    assert (result.note, result.weights, result.weights_sha256) == ("random weights", "w.npz", "12ab")
    assert result.note_of(OUT) == "random weights; 25.0 % of the values are NaN or infinite"
    assert result.note_of("other") == "random weights"
    assert result.summary() == "preview at 1/2, the full image follows · 12.5 ms · re-ran 5 of 6 layers"
    assert bench.analysis.phase is Phase.RUNNING
    bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
    assert bench.answer() == [run()]


@pytest.mark.parametrize("launched", [True, False])
def test_another_document_begins_anew_and_the_first_one_goes_on_when_it_is_shown_again(
    bench: Bench, launched: bool
) -> None:
    first = bench.document
    if launched:
        bench.ready()
        bench.analysis.set_capture("conv_h", ("noise_0",))
        bench.answer()
        bench.analysis.show_weights(Path("/runs/5.safetensors"))
    late = list(bench.engine.calls)
    bench.engine.calls.clear()
    results: list[object] = []
    bench.analysis.result_changed.connect(lambda: results.append(bench.analysis.result))
    second = bench.open(kit.small_network())
    for call in late:
        call.finish(bench.reply(call.request))
    assert set(results) == {None}
    assert (bench.analysis.phase, bench.analysis.capture, bench.analysis.also) == (Phase.IDLE, "", ())
    assert not bench.analysis.stale
    first.do(lambda g: set_params(g, {"noise_0": {"scale": "0.4"}}))  # nobody looks at it
    first.change_settings(threads=3)
    second.change_settings(input_files={"input_0": str(bench.image)}, random_seed=5)
    assert bench.engine.calls == []
    bench.context.set_document(first)
    if launched:
        bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
        assert bench.engine.requests() == [open_variant(first)]  # with its own weights
        assert bench.answer()[-1] == run()
    bench.context.set_document(second)
    bench.qtbot.waitUntil(lambda: True)
    assert bench.engine.calls == []


def test_a_document_that_is_left_at_once_is_not_launched(bench: Bench) -> None:
    first = bench.ready().document
    second = bench.open(kit.small_network())
    bench.context.set_document(first)
    bench.context.set_document(second)
    done: list[None] = []
    QTimer.singleShot(0, lambda: done.append(None))
    bench.qtbot.waitUntil(lambda: bool(done))
    assert bench.engine.calls == []
    assert isinstance(second, Document)


# --- the panel --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "buttons"),
    [
        ("out-of-memory", {"restart"}),
        ("weights-missing", {"weights", "random"}),
        ("not-agreed", set()),
        ("cancelled", set()),
    ],
)
def test_a_notice_offers_what_helps(bench: Bench, code: str, buttons: set[str]) -> None:
    panel = AnalysisPanel(bench.context)
    bench.qtbot.addWidget(panel)
    panel.show()

    def offered() -> set[str]:
        found = panel.findChildren(QPushButton)
        names = (button.objectName().rpartition("notice.")[2] for button in found if button.isVisible())
        return {name for name in names if "." not in name}

    bench.analysis.launch()
    assert panel.findChild(QPushButton, "analysis.stop").isEnabled()
    bench.engine.next(OpenRequest).fail((Diagnostic(code, "it cannot be done"),))
    assert offered() & {"restart", "weights", "random", "sizes"} == buttons
    assert not panel.findChild(QPushButton, "analysis.stop").isEnabled()
    if "random" in buttons:
        bench.document.change_settings(random_seed=None)
        panel.findChild(QPushButton, "analysis.notice.random").click()
        assert bench.document.settings.random_seed == 0
    else:
        bench.analysis.launch()
    bench.answer()
    assert not offered() & {"restart", "weights", "random", "sizes"}
    assert not panel.findChild(QPushButton, "analysis.stop").isEnabled()


@pytest.mark.parametrize("helps", [True, False])
def test_a_precision_that_the_engine_lacks_is_changed_by_the_notice(bench: Bench, helps: bool) -> None:
    panel = AnalysisPanel(bench.context)
    bench.qtbot.addWidget(panel)
    panel.show()
    variant = {} if helps else {"variants": (Variant("half", "fp16"),), "variant": "half"}
    bench.document.change_settings(engine="onnxruntime", precision="fp16", **variant)  # a variant has its own precision
    bench.analysis.launch()
    bench.engine.next(OpenRequest).fail((Diagnostic("precision-unavailable", "it computes in fp32 only"),))
    buttons = {name: panel.findChild(QPushButton, f"analysis.notice.{name}") for name in ("precision", "restart")}
    assert [name for name, button in buttons.items() if button.isVisible()] == (["precision"] if helps else ["restart"])
    if helps:
        buttons["precision"].click()
        assert bench.document.settings.precision == "fp32"
        assert bench.engine.next(OpenRequest).request.precision == "fp32"
        assert not buttons["precision"].isVisible()
        bench.document.history.undo()
        assert bench.document.settings.precision == "fp16"
