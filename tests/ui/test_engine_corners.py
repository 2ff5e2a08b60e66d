"""Corners of what the window asks the engine: dimmed results, coarse previews, surgery, questions, imports and dead processes."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import analysis_kit as kit
import numpy as np
import pytest

pytest.importorskip("PySide6")
from engine_kit import ScriptedEngine
from PySide6.QtCore import QObject, QProcess, QTimer
from pytestqt.qtbot import QtBot
from test_analysis_requests import OTHER, Bench, give_formats, kinds, run

from app.engine.protocol import (
    BitsReply,
    BitsRequest,
    BlameReply,
    BlameRequest,
    CompareTensorReply,
    CompareTensorRequest,
    EmptyReply,
    InterruptRequest,
    NonfiniteShare,
    OpenReply,
    OpenRequest,
    PassesReply,
    PassesRequest,
    ProgressEvent,
    ReceptiveFieldReply,
    ReceptiveFieldRequest,
    RunReply,
    RunRequest,
    RunStep,
    SetFormatsRequest,
    SetInputReply,
    SetInputRequest,
    SetParamRequest,
    SurgeryReply,
    SurgeryRequest,
)
from app.import_process import DocumentWritten, Failed, Finished, Progress, WeightsWritten
from app.ui.document.document import Document
from app.ui.engine import client, import_run, pixel_positions
from app.ui.engine.analysis import DIM_AFTER, EDIT_REST
from app.ui.engine.coarse_to_fine import BUDGET, SETTLED
from app.ui.engine.context import Context
from app.ui.engine.import_run import ImportRun, ImportSource
from app.ui.engine.number_formats import number_formats_of, reason_text
from app.ui.engine.question import EngineQuestion
from app.ui.engine.receptive_field import ReceptiveField
from app.ui.engine.requests import difference, open_request, open_variant, run_settings, with_variant
from app.ui.engine.result import AnalysisResult, Phase, result_of
from app.ui.engine.weight_surgery import weight_surgery_of
from designer.files import json_text
from designer.files.document import parse_document, write_document
from designer.files.settings import Settings
from designer.files.variants import BY_HAND, Variant
from designer.files.weight_versions import weight_versions
from designer.files.weights import random_weights, required_weights, save_weights
from designer.graph.commands import add_layer, remove_layers, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.model import Layer, Source
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry
from designer.runtime.api import RunOptions

pytestmark = pytest.mark.gui
engine_is_let_go = kit.engine_is_let_go


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return Bench(qtbot, tmp_path)


# --- the analysis --------------------------------------------------------------------------------------------------


def test_how_long_results_and_edits_rest(bench: Bench) -> None:
    """Times that a user feels: others are a decision."""
    assert (DIM_AFTER, EDIT_REST, SETTLED, BUDGET) == (100, 60, 150, 40)
    assert sorted(timer.interval() for timer in bench.analysis.findChildren(QTimer) if timer.interval()) == [
        60,
        100,
        150,
    ]


def dimming(bench: Bench) -> bool:
    return bench.analysis._dim.isActive()


def test_a_result_is_dimmed_once_by_the_first_change_that_waits(bench: Bench) -> None:
    bench.ready()
    assert not dimming(bench)
    bench.set("noise_0", scale="0.3")
    timer, started = bench.analysis._dim, []
    bench.analysis._dim = SimpleNamespace(  # type: ignore[assignment]
        isActive=timer.isActive, start=lambda: started.append(timer.start()), stop=timer.stop
    )
    bench.set("noise_0", scale="0.4")
    assert (dimming(bench), started) == (True, [])  # it is not started anew
    bench.answer()
    assert (dimming(bench), bench.analysis.stale) == (False, False)
    bench.analysis._set_stale(True)
    bench.set("noise_0", scale="0.5")
    assert not dimming(bench)  # it is dimmed already
    bench.answer()
    assert not bench.analysis.stale
    bench.analysis.again(animated=True)
    assert not dimming(bench)


@pytest.mark.parametrize("end", ["stop", "block", "fail", "crash", "weights"])
def test_what_ends_a_run_dims_the_result_and_its_timer_rests(bench: Bench, end: str) -> None:
    bench.ready()
    bench.analysis.launch()
    assert dimming(bench)
    match end:
        case "stop":
            bench.analysis.stop()
        case "block":
            bench.answer()
            bench.document.do(lambda g: set_params(g, {"conv_0": {"features": "none"}}))
            bench.follow()
        case "fail":
            bench.engine.next(OpenRequest).fail((Diagnostic("x", "it fails"),))
        case "crash":
            bench.engine.crashed.emit("it died")
        case "weights":
            bench.engine.next(OpenRequest).fail((Diagnostic("weights-missing", "they are missing"),))
    assert (bench.analysis.stale, dimming(bench)) == (True, False)
    assert bench.analysis.phase in (Phase.STOPPED, Phase.BLOCKED, Phase.FAILED, Phase.WEIGHTS)
    assert bench.analysis.result is not None


def coarse(bench: Bench, factor: int) -> None:
    for request in (SetParamRequest, RunRequest):
        call = bench.engine.next(request)
        reply: Any = bench.reply(call.request)
        call.finish(RunReply(reply.outputs, reply.captures, coarse=factor) if request is RunRequest else EmptyReply())


def test_a_coarse_result_is_not_ready_until_the_full_one_is_there(bench: Bench) -> None:
    bench.ready()
    phases: list[str] = []
    bench.analysis.phase_changed.connect(phases.append)
    bench.set("noise_0", scale="0.3")
    coarse(bench, 4)
    assert (bench.analysis.phase, bench.analysis.stale) == (Phase.RUNNING, False)
    assert bench.analysis.message.startswith("preview at 1/4, the full image follows · ")
    bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))  # the values rest
    assert bench.answer() == [run()]
    assert bench.analysis.phase is Phase.READY
    assert not bench.analysis.message.startswith("preview")
    assert phases == ["running", "running", "running", "ready"]
    bench.set("noise_0", scale="0.4")
    coarse(bench, 4)
    bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
    bench.set("noise_0", scale="0.5")  # while it is refined
    assert kinds(bench.engine.requests()) == ["run", "interrupt"]
    bench.engine.next(RunRequest).supersede()
    bench.engine.next(InterruptRequest).finish(EmptyReply())
    assert bench.engine.requests()[0] == SetParamRequest("noise_0", "scale", "0.5")
    assert bench.engine.requests(RunRequest)[0].budget == BUDGET
    bench.answer()
    bench.set("noise_0", scale="0.6")
    coarse(bench, 4)
    bench.analysis.stop()
    assert not any(timer.isActive() for timer in bench.analysis.findChildren(QTimer))  # nothing is refined


def test_formats_of_a_network_that_is_not_analysed_change_nothing(bench: Bench) -> None:
    give_formats(bench, {"conv_0": OTHER})
    give_formats(bench, {"conv_h": OTHER})
    assert (dimming(bench), bench.analysis.phase, bench.analysis.stale) == (False, Phase.IDLE, False)
    bench.analysis.launch()
    assert SetFormatsRequest not in [type(each) for each in bench.answer()]  # the network was opened with them


def test_weights_that_are_chosen_take_the_place_of_random_ones(bench: Bench, tmp_path: Path) -> None:
    bench.analysis.choose_weights(tmp_path)
    assert (bench.document.settings.weights, bench.document.settings.random_seed) == (str(tmp_path), None)
    assert [(each.weights, each.seed) for each in bench.engine.requests(OpenRequest)] == [(str(tmp_path), None)]
    bench.analysis.launch_random(4)
    assert kinds(bench.engine.requests()) == ["open"]  # it is opened again when the first one is answered
    assert [each.seed for each in bench.answer() if isinstance(each, OpenRequest)] == [None, 4]


def test_a_document_goes_on_when_it_is_shown_again_unless_it_was_stopped(bench: Bench) -> None:
    first = bench.ready().document
    second = bench.open(kit.small_network())
    for _ in range(2):
        bench.context.set_document(first)
        bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
        assert kinds(bench.answer()) == ["open", "set_input", "run"]
        bench.context.set_document(second)
    bench.context.set_document(first)
    bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
    bench.answer()
    bench.analysis.stop()
    bench.context.set_document(second)
    bench.context.set_document(first)
    later: list[bool] = []
    QTimer.singleShot(0, bench.analysis, lambda: later.append(True))
    bench.qtbot.waitUntil(lambda: bool(later))
    assert (bench.engine.calls, bench.analysis.phase) == ([], Phase.IDLE)


def test_other_settings_launch_what_lacked_weights(bench: Bench) -> None:
    bench.analysis.launch()
    bench.engine.next(OpenRequest).fail((Diagnostic("weights-missing", "they are missing"),))
    assert (bench.analysis.phase, bench.engine.calls) == (Phase.WEIGHTS, [])
    bench.document.change_settings(iterations=9)
    assert bench.engine.calls == []
    bench.document.change_settings(random_seed=8)
    assert [each.seed for each in bench.engine.requests(OpenRequest)] == [8]


def test_an_inspected_output_keeps_its_port_when_its_layer_is_renamed(bench: Bench) -> None:
    bench.ready()
    bench.analysis.set_capture("conv_h:mean")
    bench.answer()
    bench.document.do(lambda g: rename_layer(g, "conv_h", "wide"))
    assert bench.analysis.capture == "wide:mean"
    bench.document.do(lambda g: remove_layers(g, {"wide"}))
    assert bench.analysis.capture == "wide:mean"  # it may come back


def test_the_first_error_is_said_before_notes(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    bench.engine.next(SetParamRequest).fail(
        (Diagnostic("a", "a note", Severity.INFO), Diagnostic("b", "the value is wrong"))
    )
    call = bench.engine.next(RunRequest)
    call.fail((Diagnostic("c", "it fails"),))
    assert (bench.analysis.phase, bench.analysis.message) == (Phase.FAILED, "The value is wrong.")
    bench.set("noise_0", scale="0.4")
    assert kinds(bench.answer()) == ["open", "set_input", "run"]  # what the engine holds is unsure


def test_a_capture_with_others_is_asked_for_when_only_the_others_change(bench: Bench) -> None:
    bench.ready()
    bench.analysis.set_capture("conv_h")
    bench.answer()
    bench.analysis.set_capture("conv_h", ("noise_0",))
    (found,) = bench.answer()
    assert found.capture == ("conv_h", "noise_0")
    bench.analysis.set_capture("conv_h", ("noise_0",))
    assert bench.engine.calls == []


def test_the_latency_counts_from_the_change_that_was_sent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr("app.ui.engine.analysis.perf_counter", lambda: now[0])
    bench.ready()
    now[0] = 20.0
    bench.set("noise_0", scale="0.3")
    now[0] = 20.5
    bench.set("noise_0", scale="0.4")  # waits for the run that was sent
    now[0] = 20.75
    bench.set("noise_0", scale="0.45")  # with the one before
    now[0] = 21.0
    call = bench.engine.next(RunRequest)
    bench.engine.next(SetParamRequest).finish(EmptyReply())
    call.finish(bench.reply(call.request))
    assert bench.analysis.result is not None
    assert bench.analysis.result.latency == pytest.approx(1000)
    now[0] = 23.0
    bench.answer()
    assert bench.analysis.result.latency == pytest.approx(2500)


# --- results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cached", "coarse", "what"),
    [
        ([], 0, "all 4 layers"), ([0, 1], 0, "re-ran d"), ([1, 2], 0, "re-ran a, b"), ([2], 0, "re-ran a, b, c"), ([0, 1, 2], 0, "nothing had to run again"),
        ([], 2, "all 4 layers"), ([0], 4, "re-ran c, d"),
    ],
)  # fmt: skip
def test_the_summary_of_a_run_names_what_ran_again(cached: list[int], coarse: int, what: str) -> None:
    groups = (("a", "b"), ("c",), ("d",))
    steps = tuple(RunStep(layers, "torch", 1.0, number in cached) for number, layers in enumerate(groups))
    preview = f"preview at 1/{coarse}, the full image follows · " if coarse else ""
    assert AnalysisResult(steps=steps, milliseconds=12.5, coarse=coarse).summary() == f"{preview}12.5 ms · {what}"


def test_the_summary_of_a_run_of_many_layers_counts_them() -> None:
    groups = ("ab", "c", "d", "e", "fg")
    for cached, what in (
        (("fg",), "5 of 7 layers"), (("ab", "c", "d", "e"), "f, g"), (("ab", "c", "fg"), "d, e"), (("ab", "fg"), "c, d, e"),
        (("c", "d", "e"), "4 of 7 layers"),
    ):  # fmt: skip
        steps = tuple(RunStep(tuple(names), "torch", 1.0, names in cached) for names in groups)
        assert AnalysisResult(steps=steps, milliseconds=2.0).summary() == f"2.00 ms · re-ran {what}"


def test_a_result_keeps_the_captures_that_did_not_change() -> None:
    a, b, c = (np.full(1, value, np.float32) for value in (1, 2, 3))
    before = AnalysisResult(captures={"x": a, "y": b, "z": c})
    taken: list[Any] = []
    reply = RunReply(
        outputs={"out": "handle of out"}, captures={"y": "handle of y"}, same=("x",), milliseconds=5.0, note="n", coarse=2,  # type: ignore[dict-item]
        weights="w", weights_sha256="d",
    )  # fmt: skip
    found = result_of(reply, lambda handle: taken.append(handle) or handle, before, 7.0)  # type: ignore[arg-type,return-value]
    assert taken == ["handle of y", "handle of out"]
    assert (found.captures, found.outputs) == ({"y": "handle of y", "x": a}, {"out": "handle of out"})
    assert (found.milliseconds, found.latency, found.note, found.coarse, found.weights, found.weights_sha256) == (
        5.0,
        7.0,
        "n",
        2,
        "w",
        "d",
    )
    assert result_of(reply, lambda handle: handle, None, 0.0).captures == {"y": "handle of y"}  # type: ignore[arg-type,return-value]
    shares = {"a": NonfiniteShare(2, 0, 0.25), "b": NonfiniteShare(0, 1, 0.125), "c": NonfiniteShare(1, 1, 0.5)}
    broken = result_of(RunReply({}, nonfinite=shares), lambda handle: handle, None, 0.0)  # type: ignore[arg-type,return-value]
    assert broken.nonfinite == {"a": 0.25, "b": 0.125, "c": 0.5}
    noted = AnalysisResult(note="random", nonfinite={"out": 0.125})
    assert noted.note_of("out") == "random; 12.5 % of the values are NaN or infinite"
    assert (noted.note_of("other"), AnalysisResult(nonfinite={"out": 1.0}).note_of("out")) == (
        "random",
        "100 % of the values are NaN or infinite",
    )


# --- requests ------------------------------------------------------------------------------------------------------


def test_everything_that_a_network_is_opened_with(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.ui.engine.requests.agreed", lambda: {"b" * 64, "a" * 64})
    settings = Settings(
        precision="fp16", layout="nhwc", engine="torch", device="cuda", threads=3, tile=96, weights="/w", random_seed=5
    )
    made = open_request(settings, "<x/>")
    expected = OpenRequest("<x/>", "/w", 5, "torch", "fp16", "nhwc", "cuda", 3, 96, ("a" * 64, "b" * 64))
    assert made == expected
    assert open_request(Settings(), "").weights is None
    options = RunOptions("emulated", "bf16", "nchw", "cpu", formats=(("conv", "int8"),))
    variant = Variant("v", passes=("fold_constants",), sparsity="2:4")
    changed = {
        "engine": "emulated",
        "precision": "bf16",
        "layout": "nchw",
        "device": "cpu",
        "formats": {"conv": "int8"},
    }
    import msgspec

    assert with_variant(made, options, variant) == msgspec.structs.replace(
        expected, **changed, passes=("fold_constants",), sparsity="2:4"
    )
    assert with_variant(made, options, None) == msgspec.structs.replace(expected, **changed)
    for passes, sparsity in ((("fold_constants",), "dense"), ((), "2:4")):
        of_part = Variant("v", passes=passes, sparsity=sparsity)
        assert with_variant(made, options, of_part) == msgspec.structs.replace(
            expected, **changed, passes=passes, sparsity=sparsity
        )
    bench.document.change_settings(
        weights="/own", variants=(Variant("v", weights="/of the variant"), Variant("w")), variant="v"
    )
    assert open_variant(bench.document).weights == "/of the variant"
    assert open_variant(bench.document, Path("/given")).weights == "/given"
    bench.document.change_settings(variant="w")
    assert open_variant(bench.document).weights == "/own"


BASE = Settings(
    input_files={"a": "1.png", "b": "2.png"}, variants=(Variant("v", formats={"c": "int8"}), Variant("w")), variant="v"
)
OTHERS: dict[str, tuple[dict[str, Any], bool, set[str], bool]] = {
    "engine": ({"engine": "torch"}, True, set(), True), "precision": ({"precision": "fp16"}, True, set(), True),
    "layout": ({"layout": "nhwc"}, True, set(), True), "device": ({"device": "cuda"}, True, set(), True),
    "threads": ({"threads": 3}, True, set(), True), "tile": ({"tile": 64}, True, set(), True), "weights": ({"weights": "/w"}, True, set(), True),
    "seed": ({"random_seed": 0}, True, set(), True), "iterations": ({"iterations": 3}, False, set(), False), "task": ({"task": "x"}, False, set(), False),
    "another file": ({"input_files": {"a": "1.png", "b": "3.png"}}, False, {"b"}, True),
    "no file": ({"input_files": {"a": "1.png"}}, False, {"b"}, True), "a new file": ({"input_files": {**BASE.input_files, "c": "x"}}, False, {"c"}, True),
    "formats": ({"variants": (Variant("v", formats={"d": "int4"}),)}, False, set(), False),
    "no formats": ({"variants": (Variant("v"),)}, True, set(), False), "passes": ({"variants": (Variant("v", formats={"c": "int8"}, passes=("x",)),)}, True, set(), False),
    "reasons": ({"variants": (Variant("v", formats={"c": "int8"}, reasons={"c": "y"}),)}, False, set(), False),
    "another variant": ({"variant": "w"}, True, set(), False), "none": ({"variant": ""}, True, set(), False),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_which_settings_open_the_network_anew(name: str) -> None:
    changes, opens, files, run_differs = OTHERS[name]
    after = replace(BASE, **changes)
    assert difference(BASE, after) == (opens, files)
    assert difference(after, BASE) == (opens, files)
    assert (run_settings(BASE) != run_settings(after)) is run_differs


# --- surgery -------------------------------------------------------------------------------------------------------


class Surgery:
    """A document with weights, and what is said of its edits."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.file = folder / "trained.safetensors"
        save_weights(self.file, random_weights(required_weights(bench.document.inference), 3).tensors)
        bench.document.change_settings(weights=str(self.file), random_seed=None)
        bench.messages.clear()
        self.surgery = weight_surgery_of(bench.context)
        self.ended: list[str] = []
        self.surgery.done.connect(self.ended.append)

    def reply(self, **params: str) -> SurgeryReply:
        graph = self.bench.document.graph.copy()
        graph.apply(set_params(graph, {"conv_h": params}))
        made = self.file.with_name(f"edited{len(self.ended)}.safetensors")
        made.write_bytes(b"weights")
        return SurgeryReply(write_document(graph).decode(), "Set features", str(made), "difference 0.1", True)


@pytest.fixture
def surgery(bench: Bench, tmp_path: Path) -> Surgery:
    return Surgery(bench, tmp_path)


def test_an_input_without_a_file_is_left_out_of_an_edit_of_weights(surgery: Surgery) -> None:
    bench = surgery.bench
    bench.document.change_settings(input_files={})
    wide = {"input_0": {"dims": "24x16x5"}, "conv_0": {"features": "5"}}  # no photograph has five channels
    bench.document.do(lambda graph: set_params(graph, wide))
    assert bench.analysis.inputs.layers() == ("input_0",)
    assert bench.analysis.inputs.path("input_0") is None
    surgery.surgery.operate("remove", "conv_h", features=5, channels=(1, 3))
    (request,) = [each for each in bench.engine.requests() if isinstance(each, SurgeryRequest)]
    assert request.inputs == {}


def test_every_step_of_an_edit_of_weights(surgery: Surgery, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = surgery.bench
    monkeypatch.setattr("app.ui.engine.weight_surgery.agreed", lambda: {"b" * 64, "a" * 64})
    titles: list[str] = []
    surgery.surgery.operate("remove", "conv_h", features=5, channels=(1, 3), done=titles.append)
    (request,) = bench.engine.requests()
    assert request == SurgeryRequest(
        bench.text, "remove", "conv_h", str(surgery.file), str(weight_versions()), {"input_0": str(bench.image)}, 5, (1, 3),
        ("a" * 64, "b" * 64),
    )  # fmt: skip
    surgery.surgery.operate("remove", "conv_h", features=5, channels=(1, 3))
    assert len(bench.engine.calls) == 1
    assert bench.messages == [("info", "Editing the weights of conv_h ...")]
    surgery.surgery.operate("remove", "conv_h", features=5, channels=(1, 4))
    assert bench.messages[1:] == [
        ("error", "Another edit of the weights is being carried out. Repeat it when the other one is done.")
    ]
    reply = surgery.reply(features="6")
    bench.engine.next(SurgeryRequest).finish(reply)
    title = "Set features: difference 0.1"
    assert (titles, surgery.ended, bench.messages[2:]) == ([title], [title], [("info", title)])
    assert (bench.document.settings.weights, bench.document.history.undo_title) == (reply.weights, title)
    assert write_document(bench.document.graph).decode() == reply.document
    bench.document.undo()
    assert (bench.document.settings.weights, bench.text) == (str(surgery.file), request.document)
    bench.messages.clear()
    surgery.surgery.operate("prune", "")
    assert bench.messages == [("info", "Editing the weights ...")]
    assert bench.engine.requests()[0].operation == "prune"


def test_an_edit_of_weights_is_sent_with_the_files_that_are_chosen(surgery: Surgery) -> None:
    bench = surgery.bench
    second = [Layer("input_1", "input", params={"dims": "8x8x5"}), Layer("end", "output", inputs=(Source("input_1"),))]
    for layer in second:
        bench.document.do(lambda graph, layer=layer: add_layer(graph, layer))
    for chosen in (True, False):
        bench.analysis.inputs.set_file("input_0", bench.image if chosen else None)
        surgery.surgery.operate("split", "conv_h")
        request = bench.engine.requests(SurgeryRequest)[-1]
        files = {name: bench.analysis.inputs.path(name) for name in ("input_0", "input_1")}
        assert files["input_1"] is None
        assert request.inputs == {name: str(file) for name, file in files.items() if file is not None}
        bench.engine.next(SurgeryRequest).fail((Diagnostic("no-surgery", "x"),))


@pytest.mark.parametrize("change", ["network", "weights"])
def test_an_edit_of_weights_of_another_network_is_dropped(surgery: Surgery, change: str) -> None:
    bench = surgery.bench
    surgery.surgery.operate("features", "conv_h", features=6)
    reply = surgery.reply(features="6")
    if change == "network":
        bench.set("noise_0", scale="0.5")
    else:
        bench.document.change_settings(weights="/other")
    before = bench.text
    bench.messages.clear()
    bench.engine.next(SurgeryRequest).finish(reply)
    assert (bench.text, surgery.ended, Path(reply.weights).exists()) == (before, [], False)
    assert bench.messages == [("error", "The network was changed in the meantime. Repeat the edit.")]


def test_what_an_edit_of_weights_needs(surgery: Surgery) -> None:
    bench = surgery.bench
    refused: list[Diagnostic] = []
    surgery.surgery.operate("features", "", features=5, failed=refused.append)
    bench.document.change_settings(weights="")
    surgery.surgery.operate("features", "conv_h", features=5, failed=refused.append)
    assert [found.message for found in refused] == [
        "no instance of this template is open",
        "the network has no trained weights",
    ]
    assert (bench.engine.calls, bench.messages) == ([], [])
    surgery.surgery.operate("features", "conv_h", features=5)
    assert bench.messages == [("error", "The network has no trained weights. Choose them in Network Settings.")]


@pytest.mark.parametrize(("code", "said"), [("x", True), ("engine-crashed", False), ("cancelled", False)])
def test_an_edit_of_weights_that_fails(surgery: Surgery, code: str, said: bool) -> None:
    bench = surgery.bench
    for listens in (False, True):
        heard: list[Diagnostic] = []
        surgery.surgery.operate("split", "conv_h", failed=heard.append if listens else None)
        bench.messages.clear()
        findings = (Diagnostic(code, "it fails"), Diagnostic("y", "more"))
        bench.engine.next(SurgeryRequest).fail(findings)
        assert heard == ([findings[0]] if listens else [])
        assert bench.messages == ([("error", "It fails.")] if said and not listens else [])


def test_the_latest_number_of_channels_follows_an_edit(surgery: Surgery) -> None:
    bench = surgery.bench
    surgery.surgery.operate("split", "conv_h")
    for features in (5, 6):
        surgery.surgery.operate("features", "conv_h", features=features)
    assert kinds(bench.engine.requests()) == ["surgery"]
    bench.engine.next(SurgeryRequest).fail((Diagnostic("cancelled", "x"),))
    bench.qtbot.waitUntil(lambda: bool(bench.engine.calls))
    assert [(each.operation, each.features) for each in bench.engine.requests()] == [("features", 6)]
    bench.engine.next(SurgeryRequest).supersede()
    bench.qtbot.waitUntil(lambda: True)
    assert bench.engine.calls == []


# --- questions -----------------------------------------------------------------------------------------------------


class Asked:
    """What a question of number formats says."""

    def __init__(self, bench: Bench) -> None:
        self.formats = number_formats_of(bench.context)
        self.said: list[tuple[str, str]] = []
        self.got: list[Any] = []
        self.busy: list[bool] = []
        self.formats.busy_changed.connect(self.busy.append)

    def report(self, text: str, role: str) -> None:
        self.said.append((text, role))


def test_every_question_about_formats(bench: Bench) -> None:
    variants = (Variant("v", passes=("fold_constants",)), Variant("w"))
    bench.document.change_settings(variants=variants, variant="v")
    asked = Asked(bench)

    def answered(reply: Any) -> Any:
        assert asked.formats.busy
        opening, feeding = (bench.engine.next(kind) for kind in (OpenRequest, SetInputRequest))
        assert opening.request == open_request(bench.document.settings, bench.text)
        assert feeding.request == SetInputRequest("input_0", str(bench.image))
        opening.finish(OpenReply())
        feeding.finish(SetInputReply())
        (call,) = bench.engine.calls
        bench.engine.calls.clear()
        asked.said.clear()
        call.advance(ProgressEvent(1, 2, 9, "conv"))
        call.advance(ProgressEvent(1, 3, 9, ""))
        call.finish(reply)
        assert asked.said == [("conv (2 of 9)", "info"), ("", "info")]
        assert not asked.formats.busy
        return call.request

    bits, blame, passes = BitsReply((), ()), BlameReply((), 0.5, None), PassesReply(())
    asked.formats.measure_bits(asked.got.append, asked.report)
    assert answered(bits) == BitsRequest()
    asked.formats.blame("a", "b", asked.got.append, asked.report)
    assert answered(blame) == BlameRequest("a", "b", variants)
    asked.formats.measure_passes(asked.got.append, asked.report)
    assert answered(passes) == PassesRequest(("fold_constants",))
    one, other = (bench.engine.give(name, np.full(1, value, np.float32)) for name, value in (("1", 1), ("2", 2)))
    asked.formats.compare_tensor(
        "conv_0", "a", "b", lambda *each: asked.got.extend(float(x[0]) for x in each), asked.report
    )
    assert answered(CompareTensorReply(one, other)) == CompareTensorRequest("conv_0", "a", "b", variants)
    assert asked.got == [bits, blame, passes, 1.0, 2.0]
    assert asked.busy == [True, False] * 4
    bench.document.change_settings(variant="")
    asked.formats.measure_passes(asked.got.append, asked.report)
    assert bench.engine.requests(PassesRequest) == [PassesRequest(())]
    assert (reason_text(BY_HAND), reason_text("x")) == ("changed by hand", "x")


def test_a_question_that_is_not_answered(bench: Bench) -> None:
    asked = Asked(bench)
    for how, said in (
        ("edit", [("The network, its weights or its inputs were changed in the meantime. Repeat the measurement.", "error")]),
        ("refuse", [("It fails.", "error")]), ("cancel", [("", "error")]), ("supersede", []), ("stop", [("", "error")]),
    ):  # fmt: skip
        asked.said.clear(), asked.busy.clear(), asked.got.clear()
        asked.formats.compare_tensor("conv_0", "a", "b", lambda *each: asked.got.append(each), asked.report)
        asked.formats.measure_bits(asked.got.append, asked.report)  # one at a time
        assert kinds(bench.engine.requests()) == ["open", "set_input", "compare_tensor"]
        last = bench.engine.calls[-1]
        match how:
            case "edit":
                bench.set("noise_0", scale="0.77")
                bench.engine.calls.clear()
                handles = [bench.engine.give(name, np.zeros(1, np.float32)) for name in "ab"]
                last.finish(CompareTensorReply(*handles))
                assert bench.engine.arrays == {}  # they were taken, so their files are gone
                asked.said[:] = [each for each in asked.said if each[0]]
            case "refuse":
                calls = list(bench.engine.calls)
                bench.engine.calls.clear()
                for call in calls:
                    call.fail((Diagnostic("x", "it fails"),))
            case "cancel":
                bench.engine.cancel()
            case "supersede":
                bench.engine.calls.clear()
                last.supersede()
            case "stop":
                asked.formats.stop()
                assert bench.engine.calls == []
        assert (asked.said, asked.got, asked.busy) == (said, [], [True, False])


def test_a_question_after_another_one_is_answered_for_itself(bench: Bench) -> None:
    asked = Asked(bench)
    asked.formats.measure_bits(asked.got.append, asked.report)
    bench.set("noise_0", scale="0.77")
    first = bench.engine.calls[-1]
    asked.formats._question._end()  # it was given up
    bench.engine.calls.clear()
    asked.formats.measure_bits(asked.got.append, asked.report)
    first.supersede()  # the answer to the first one comes late
    assert asked.formats.busy
    assert kinds(bench.engine.requests()) == ["open", "set_input", "bits"]
    bench.engine.next(BitsRequest).finish(BitsReply((), ()))
    assert (asked.got, asked.formats.busy) == ([BitsReply((), ())], False)  # the edit was before it


def formats(bench: Bench) -> list[tuple[str, dict[str, str], tuple[str, ...]]]:
    return [(each.name, dict(each.formats), each.passes) for each in bench.document.settings.variants]


def test_formats_are_given_to_the_current_variant_or_a_new_one(bench: Bench) -> None:
    made = number_formats_of(bench.context)
    changes: list[int] = []
    made.formats_changed.connect(lambda: changes.append(1))
    made.set_pass("fold_constants", False)
    made.set_format("float32", ["conv_0"])
    assert (formats(bench), made.formats, made.reasons, made.format_of("conv_0")) == ([], {}, {}, "float32")
    other = Variant("other", "bf16", formats={"conv_0": "int8"})
    bench.document.change_settings(variants=(other,))
    changes.clear()
    bench.context.select(("conv_0", "conv_h"))
    made.set_format("int4")
    (_, new), chosen = formats(bench), bench.document.settings.variant
    assert (new[1], chosen, len(changes)) == ({"conv_0": "int4", "conv_h": "int4"}, new[0], 1)
    made.set_format("int8", ["conv_0"])
    made.set_format("float32", ["conv_h"])
    assert formats(bench)[1] == (new[0], {"conv_0": "int8"}, ())
    made.set_pass("fold_constants", True)
    made.set_pass("fuse_activations", True)
    made.set_pass("fold_constants", False)
    assert formats(bench)[1] == (new[0], {"conv_0": "int8"}, ("fuse_activations",))
    assert formats(bench)[0] == ("other", {"conv_0": "int8"}, ())
    bench.document.change_settings(variant="other")
    assert (made.format_of("conv_h"), made.format_of("conv_0"), made.variant) == ("bfloat16", "int8", other)
    made.set_formats({"conv_0": "bfloat16", "conv_h": "float32", "a": "int8", "a.b": "bfloat16"})
    assert formats(bench)[0][1] == {"conv_h": "float32", "a": "int8", "a.b": "bfloat16"}
    assert [made.format_of(name) for name in ("conv_0", "conv_h", "a", "a.b", "a.c", "a.b.c", "ab")] == [
        "bfloat16", "float32", "int8", "bfloat16", "int8", "bfloat16", "bfloat16"
    ]  # fmt: skip
    bench.document.change_settings(variant="")
    made.set_pass("fold_constants", True)
    assert formats(bench)[-1][1:] == ({}, ("fold_constants",))
    assert bench.document.settings.variant == formats(bench)[-1][0]


def test_a_format_that_is_dropped_is_for_the_selection_that_has_the_layer(bench: Bench) -> None:
    made = number_formats_of(bench.context)
    bench.context.select(("conv_0", "conv_h"))
    bench.context.format_dropped.emit("int8", "conv_h")
    assert dict(made.formats) == {"conv_0": "int8", "conv_h": "int8"}
    bench.context.format_dropped.emit("int4", "mix_0")
    assert dict(made.formats) == {"conv_0": "int8", "conv_h": "int8", "mix_0": "int4"}
    first, changes = bench.document, []
    made.formats_changed.connect(lambda: changes.append(1))
    bench.open(kit.small_network())
    assert (dict(made.formats), changes) == ({}, [1])
    first.change_settings(variant="")
    assert changes == [1]  # nobody looks at it


def test_a_question_can_be_of_other_settings(bench: Bench, qtbot: QtBot) -> None:
    parent = QObject()
    question = EngineQuestion(bench.context, parent)
    settings = replace(bench.document.settings, precision="fp16", random_seed=9)
    question.ask(BitsRequest(), lambda reply: None, lambda text: None, lambda event: None, settings)
    assert bench.engine.requests(OpenRequest) == [open_request(settings, bench.text)]
    question.stop()
    parent.deleteLater()


def test_the_receptive_field_of_a_pixel(bench: Bench, qtbot: QtBot) -> None:
    bench.ready()
    parent = QObject()
    field, changes = ReceptiveField(bench.analysis, parent), []
    field.changed.connect(lambda: changes.append((field.box, field.text)))
    field.ask("conv_0", 5, 7, "input_0")
    qtbot.waitUntil(lambda: bool(bench.engine.calls))
    assert bench.engine.requests() == [ReceptiveFieldRequest("conv_0", 7, 5, "input_0")]
    bench.engine.next(ReceptiveFieldRequest).finish(ReceptiveFieldReply((1, 2, 9, 12), "measured", "a note"))
    for box, source, note in (
        ((3, 3, 3, 9), "computed", ""),
        ((2, 5, 8, 5), "computed", "x"),
        ((0, 1, 4, 6), "measured", ""),
    ):
        field._done(ReceptiveFieldReply(box, source, note))  # type: ignore[arg-type]
    field._failed((Diagnostic("x", "it is too large", remedy="choose another"), Diagnostic("y", "z")))
    assert changes == [
        ((1, 2, 9, 12), "field 8 x 10, measured, a note"), (None, "field 0 x 6, computed"), (None, "field 6 x 0, computed, x"),
        ((0, 1, 4, 6), "field 4 x 5, measured"), (None, "It is too large. Choose another."),
    ]  # fmt: skip
    field.clear()
    field.clear()
    assert changes[5:] == [(None, "")]
    bench.analysis.result_changed.emit()
    assert not field._rest.isActive()  # nothing is asked for
    field.ask("conv_0", 1, 1, "input_0")
    field._rest.stop()
    field.ask("conv_0", 1, 1, "input_0")
    assert not field._rest.isActive()
    bench.analysis.result = replace(bench.analysis.result, coarse=2)  # type: ignore[type-var]
    bench.analysis.result_changed.emit()
    assert not field._rest.isActive()
    bench.analysis.result = replace(bench.analysis.result, coarse=0)  # type: ignore[type-var]
    bench.analysis.result_changed.emit()
    assert field._rest.isActive()
    parent.deleteLater()


# --- pixels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "here", "there", "found"),
    [
        ((3, 5), (10, 20), (10, 20), (3, 5)), ((3, 5), (10, 20), (20, 40), (7, 11)), ((7, 11), (20, 40), (10, 20), (3, 5)),
        ((9, 19), (10, 20), (20, 40), (19, 39)), ((0, 0), (10, 20), (5, 10), (0, 0)), ((599, 0), (600, 400), (640, 400), (599, 0)),
        ((50, 20), (100, 40), (33, 40), (16, 20)), ((9, 3), (10, 4), (3, 4), (2, 3)), ((299, 10), (300, 100), (160, 100), (149, 10)),
    ],
)  # fmt: skip
def test_corresponding_pixels(place: Any, here: Any, there: Any, found: Any) -> None:
    assert pixel_positions.scaled(place, here, there) == found


def test_values_at_a_place() -> None:
    array = np.arange(2 * 6 * 3 * 4, dtype=np.float32).reshape(2, 6, 3, 4)
    assert pixel_positions.reading("conv", array, (2, 1), (4, 3)) == "conv (2, 1)  6.0 18.0 30.0 42.0 …"
    assert pixel_positions.reading("conv", array[:, :4], (2, 1), (4, 3), 1) == "conv (2, 1)  78 90 102 114"
    assert pixel_positions.reading("conv", array[:, :4], (2, 1), (4, 3), 9).startswith("conv (2, 1)  78")
    assert pixel_positions.reading("conv", array[0], (2, 1), (4, 3)) == ""
    found = pixel_positions.readings([("a", array[0]), ("b", array[:, :1])], (2, 1), (4, 3), 1)
    assert found == ["b (2, 1)  78.0"]
    for empty in ((1, 0, 3, 4), (0, 2, 3, 4), (1, 2, 0, 4)):
        assert pixel_positions.reading("conv", np.zeros(empty, np.float32), (2, 1), (4, 3)) == ""


# --- processes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "by_signal", "errors", "said"),
    [
        (9, True, [], "was killed (signal 9), often because memory ran out"), (11, True, [], "crashed (invalid memory access)"),
        (15, True, [], "was ended by the signal SIGTERM"), (6, True, ["x"], "was ended by the signal SIGABRT"), (200, True, [], "crashed (code 200)"),
        (3, False, [], "ended by itself with code 3"), (3, False, ["first", " last. "], "ended by itself with code 3: last"),
    ],
)  # fmt: skip
def test_how_a_dead_engine_is_described(code: int, by_signal: bool, errors: list[str], said: str) -> None:
    assert client._death(code, by_signal, errors) == f"The engine process {said}"
    assert signal.SIGTERM == 15


@pytest.mark.parametrize(("free", "roomy"), [(1 << 30, True), ((1 << 30) - 1, False)])
def test_tensors_are_in_memory_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, roomy: bool
) -> None:
    monkeypatch.setattr(client.shutil, "disk_usage", lambda folder: SimpleNamespace(total=1 << 40, free=free, used=0))
    assert client._roomy(tmp_path) is roomy
    assert not client._roomy(tmp_path / "absent")


class Line:
    """A process that has printed lines."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.written: list[bytes] = []
        self.running = True
        for name in ("readyReadStandardOutput", "readyReadStandardError", "finished", "errorOccurred"):
            setattr(self, name, SimpleNamespace(connect=lambda slot: None))

    def setParent(self, parent: QObject) -> None: ...

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def canReadLine(self) -> bool:
        return bool(self.lines)

    def readLine(self) -> Any:
        line = self.lines.pop(0)
        return SimpleNamespace(data=lambda: line)

    def state(self) -> QProcess.ProcessState:
        return QProcess.ProcessState.Running if self.running else QProcess.ProcessState.NotRunning

    def exitCode(self) -> int:
        return 3


class Importing:
    """An import whose process and reader are played by the test."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, source: ImportSource, printed: Iterable[bytes] = ()
    ) -> None:
        """`printed`: what is there to be read from the start."""
        self.ended: list[Any] = []
        self.jobs: list[Any] = []
        self.log: list[Any] = []
        monkeypatch.setattr(import_run, "_end", self.ended.append)
        monkeypatch.setattr(import_run, "import_path", lambda stem: folder / f"{stem}.safetensors")
        self.parent = QObject()
        self.run = ImportRun(source, default_registry(), self.parent)
        monkeypatch.setattr(self.run._reader, "start", self.jobs.append)
        for name in ("progress", "opened", "weights_written", "compared", "failed", "ended"):
            getattr(self.run, name).connect(lambda *each, name=name: self.log.append((name, *each)))
        self.process = Line()
        self.process.lines += printed
        self.run.start(self.process)  # type: ignore[arg-type]

    def say(self, *events: Any) -> None:
        for event in events:
            self.run._take(event)


REPORT = ImportReport("net.onnx", nodes=4)
COMPARED = ImportReport("net.onnx", nodes=4, max_rel_difference=0.0)


@pytest.fixture
def importing(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    made = Importing(monkeypatch, tmp_path, ImportSource("net.onnx", tmp_path))
    yield made
    made.run.abandon()
    made.parent.deleteLater()


def test_every_event_of_an_import(importing: Any, tmp_path: Path) -> None:
    import json

    run, log = importing.run, importing.log
    (line,) = importing.process.written
    sent = json.loads(line)
    assert (sent["source"], sent["folder"], sent["early"], sent["weights"]) == (
        "net.onnx", str(tmp_path), True, str(tmp_path / "net.safetensors")
    )  # fmt: skip
    assert (sent["output"], sent.get("state", ""), run._limit.isActive()) == (str(run._document), "", False)
    importing.say(Progress(1, 3, "x"), DocumentWritten(REPORT, "torch"))
    assert (run.step, len(importing.jobs), run.is_opened) == ((1, 3, "x"), 1, False)
    importing.say(WeightsWritten(True), Finished(COMPARED))
    assert log == [("progress", 1, 3, "x")]  # the others wait until the document is read
    run._on_read("document")
    weights = tmp_path / "net.safetensors"
    assert log[1:] == [("opened", "document"), ("weights_written", weights), ("compared", COMPARED), ("ended",)]
    assert (run.weights, run.has_weights, run.is_opened, run.is_over) == (weights, True, True, True)
    assert (importing.ended, run._limit.isActive()) == ([importing.process], False)
    assert not run._document.parent.exists()
    run.cancel()
    run._end()
    assert log[-1] == ("ended",)
    assert len(log) == 5


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("how", ["cancel", "fail", "exit", "limit", "abandon"])
def test_an_import_that_ends_early(importing: Any, tmp_path: Path, opened: bool, how: str) -> None:
    run, log = importing.run, importing.log
    weights = tmp_path / "net.safetensors"
    weights.write_bytes(b"half")
    if opened:
        importing.say(DocumentWritten(REPORT))
        run._on_read("document")
        assert run._limit.isActive()
    log.clear()
    finding = Diagnostic("x", "it fails")
    run._errors.extend(("first", " last words "))
    match how:
        case "cancel":
            run.cancel()
        case "fail":
            importing.say(Failed((finding, finding)))
        case "exit":
            run._on_exit(3)
        case "limit":
            run._on_limit()
        case "abandon":
            run.abandon()
    assert log[-1] == ("ended",)
    assert (run.is_over, weights.exists(), importing.ended) == (True, False, [importing.process])
    if opened and how != "abandon":
        ((_, report),) = log[:-1]
        reasons = {
            "cancel": "it was stopped", "fail": "it fails", "limit": "it took longer than 600 s",
            "exit": "its process ended with status 3: last words",
        }  # fmt: skip
        assert report.not_compared_because.endswith(reasons[how])
        assert report.nodes == 4
    elif how in ("fail", "exit", "limit"):
        ((name, found),) = log[:-1]
        assert name == "failed"
        assert (found == (finding, finding)) is (how == "fail")
    else:
        assert len(log) == 1


def test_an_import_whose_process_ends_while_its_document_is_read(importing: Any) -> None:
    run, log = importing.run, importing.log
    importing.say(DocumentWritten(REPORT))
    importing.process.running = False
    run._on_exit(3)
    assert log == []
    run._on_read("document")
    assert [each[0] for each in log] == ["opened", "compared", "ended"]


def test_an_import_whose_document_cannot_be_read_fails_with_the_reason(importing: Any) -> None:
    run, log = importing.run, importing.log
    importing.say(DocumentWritten(REPORT))
    run._document.write_text("<NetworkModel")
    (job,) = importing.jobs
    with pytest.raises(DiagnosticError) as caught:
        job()
    assert [found.severity for found in caught.value.diagnostics] == [Severity.ERROR]
    run._reader.failed.emit(caught.value.diagnostics)
    assert log == [("failed", caught.value.diagnostics), ("ended",)]
    run._on_read("document")  # of a thread that was slower
    assert (run.is_opened, len(log)) == (False, 2)


def test_events_that_come_while_others_are_handled_wait_for_them(importing: Any) -> None:
    run, log = importing.run, importing.log
    importing.say(DocumentWritten(REPORT), WeightsWritten(False), Progress(1, 2, "x"))
    run.weights_written.connect(lambda _: importing.say(Finished(COMPARED)))
    run._on_read("document")
    assert [each[0] for each in log] == ["opened", "weights_written", "progress", "compared", "ended"]
    assert log[1] == ("weights_written", None)


def test_what_the_imported_code_prints_between_the_events_is_skipped(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In one piece or line by line, and also what was there before the process was taken."""
    first, second = Progress(1, 3, "x"), Progress(2, 3, "y")
    printed = (b"hello", b"", b'{"broken', b"\xff\xfe", b"[]", b"3", b'{"event": "unknown"}', b"[" * 5000)
    lines = [json_text.encode(first), *printed, json_text.encode(second)]
    for before in (len(lines), 0, 3, 1):
        made = Importing(monkeypatch, tmp_path, ImportSource("net.onnx", tmp_path), [*lines[:before]])
        for line in lines[before:]:
            made.process.lines.append(line)
            made.run._read()
        assert made.log == [("progress", 1, 3, "x"), ("progress", 2, 3, "y")]
        assert made.process.lines == []
        made.process.lines += [json_text.encode(DocumentWritten(REPORT)), b"more", json_text.encode(first)]
        made.run._read()
        assert (len(made.jobs), made.log[2:]) == (1, [])
        made.run.cancel()
        made.process.lines += [json_text.encode(second)]
        made.run._read()  # nothing of a process that was let go
        assert made.log[2:] == [("ended",)]
        made.parent.deleteLater()


class Spare(Line):
    """A process of an import that is not started."""

    made: list[tuple[bool, Any]]

    def deleteLater(self) -> None:
        Spare.made.append((False, self))


def test_imports_go_one_at_a_time_next_to_comparisons(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Spare.made, ended = [], []
    monkeypatch.setattr(import_run, "_end", ended.append)
    monkeypatch.setattr(import_run, "import_path", lambda stem: tmp_path / f"{stem}.safetensors")
    parent = QObject()
    imports = import_run.Imports(default_registry(), parent)

    def process(*, warm: bool) -> Spare:
        made = Spare()
        Spare.made.append((warm, made))
        return made

    monkeypatch.setattr(imports, "_process", process)
    with closing(SimpleNamespace(close=imports.end)):
        play_imports(qtbot, imports, tmp_path, ended)
    parent.deleteLater()


def open_document(run_: ImportRun) -> None:
    """The document of an import was read: what follows is the comparison."""
    run_._report, run_.is_opened = REPORT, True
    run_.opened.emit("document")


def play_imports(qtbot: QtBot, imports: import_run.Imports, tmp_path: Path, ended: list[Any]) -> None:
    """The course of the imports of a window."""
    imports.prepare()
    imports.prepare()
    assert ([warm for warm, _ in Spare.made], imports._drop.isActive()) == ([True], True)
    started: list[Any] = []
    imports.started.connect(started.append)
    names = ("a.onnx", "b.PT", "c.ONNX", "d.onnx", "e.onnx")
    runs = [imports.start(ImportSource(name, tmp_path)) for name in names]
    assert (started, imports.runs) == (runs, tuple(runs))
    qtbot.waitUntil(lambda: runs[0]._process is not None)

    def running() -> list[str]:
        return [run.source.name for run in runs if run._process is not None]

    assert (running(), runs[0]._process, imports._drop.isActive()) == (["a.onnx"], Spare.made[0][1], False)
    open_document(runs[0])
    assert running() == ["a.onnx", "b.PT"]
    open_document(runs[1])
    open_document(runs[2])
    assert running() == ["a.onnx", "b.PT", "c.ONNX"]  # three at most
    assert [warm for warm, _ in Spare.made] == [True, False, True]
    assert imports.runs == tuple(runs)
    imports.prepare()
    dead = imports._spare
    assert dead is not None
    dead.running = False  # type: ignore[attr-defined]  # it ended while it waited
    runs[1].abandon()
    qtbot.waitUntil(lambda: runs[3]._process is not None)
    assert runs[3]._process is not dead
    assert (False, dead) in Spare.made
    assert imports.runs == (runs[0], runs[2], runs[3], runs[4])
    runs[4].cancel()
    assert imports.runs == (runs[0], runs[2], runs[3])
    imports.prepare()
    spare = imports._spare
    imports._drop_spare()
    assert (imports._spare, ended[-1]) == (None, spare)
    waiting = imports.start(ImportSource("f.onnx", tmp_path))
    imports.end()
    assert all(run.is_over for run in (*runs, waiting))
    assert imports.runs == ()
    imports.prepare()
    assert imports._spare is None


def test_a_network_is_read_with_the_report_and_engine_of_its_import(tmp_path: Path) -> None:
    path = tmp_path / "n.xml"
    path.write_bytes(write_document(kit.small_network()))
    found = import_run._read_network(path, default_registry(), DocumentWritten(REPORT, "torch"))
    assert (found.report, found.engine, set(found.graph.layers)) == (REPORT, "torch", set(kit.small_network().layers))
    assert found.inference.states["output_0"].outputs is not None


def test_code_is_imported_with_its_state_and_a_limit_of_time(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import json

    from app.import_process import InputShape

    source = ImportSource("net.py:make", tmp_path, (InputShape((1, 3)),), tmp_path / "s.pt", runs_code=True)
    made = Importing(monkeypatch, tmp_path, source)
    sent = json.loads(made.process.written[0])
    assert (sent["source"], sent["state"], sent["inputs"]) == (
        "net.py:make",
        str(tmp_path / "s.pt"),
        [{"shape": [1, 3], "dtype": "float32"}],
    )
    assert made.run._limit.isActive()
    assert source.file is None
    assert ImportSource("a:b.onnx", tmp_path).file == tmp_path / "a:b.onnx"
    assert ImportSource("p.pt2", tmp_path, runs_code=True).file == tmp_path / "p.pt2"
    made.run.abandon()
    made.parent.deleteLater()


# --- names in the engine -------------------------------------------------------------------------------------------


def test_a_finding_is_shown_in_its_scope(qtbot: QtBot) -> None:
    made = Context(default_registry())
    made.set_document(Document(kit.small_network(), made.registry, parent=made))
    seen: list[tuple[str, str]] = []
    revealed: list[str] = []
    made.message.connect(lambda *each: seen.append(each))
    made.reveal_requested.connect(revealed.append)
    made.tell_result(True, "good")
    made.tell_result(False, "bad")
    assert seen == [("info", "good"), ("error", "bad")]
    assert made.show_finding(Diagnostic("x", "y", layer="conv_0"))
    assert not made.show_finding(Diagnostic("x", "y", layer="absent"))
    assert not made.show_finding(Diagnostic("x", "y", Severity.ERROR))
    assert revealed == ["conv_0"]
    selections: list[tuple[str, ...]] = []
    made.selection_changed.connect(selections.append)
    for names in (("a", "b"), ("a", "b"), ("b", "a"), ()):
        made.select(names)
    assert selections == [("a", "b"), ("b", "a"), ()]
    assert (made.path_of("conv_0"), made.paths(("a", "b")), made.in_sight("conv_0"), made.in_sight("absent")) == (
        "conv_0",
        ("a", "b"),
        "conv_0",
        "",
    )
    assert not made.enter("conv_0")
    assert parse_document(write_document(made.root.graph)).graph is not None
    assert isinstance(ScriptedEngine(), QObject)
