"""What the objects between panels and engine do when something happens in between: stops, edits, refusals, other documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import shiboken6

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import analysis_kit as kit
from analysis_kit import silent_engine, small_network
from engine_kit import ScriptedEngine
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot
from runtime_networks import chain, layer
from test_analysis_requests import Bench
from test_coarse_to_fine import Slow
from training_kit import WAIT, make_run

from app.engine.protocol import (
    EmptyReply,
    GradientReply,
    GradientRequest,
    OpenReply,
    OpenRequest,
    ProfileRequest,
    ProgressEvent,
    ReceptiveFieldReply,
    ReceptiveFieldRequest,
    Request,
    RunRequest,
    SetInputReply,
    SetInputRequest,
    SetParamRequest,
    SurgeryReply,
    SurgeryRequest,
)
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient, _death
from app.ui.engine.context import Context
from app.ui.engine.inputs import image_of
from app.ui.engine.profiling import profiling_of
from app.ui.engine.question import EngineQuestion
from app.ui.engine.receptive_field import ReceptiveField
from app.ui.engine.requests import open_request
from app.ui.engine.result import Phase
from app.ui.engine.size_rules import size_rules_of
from app.ui.engine.training import training_of
from app.ui.engine.weight_surgery import WeightSurgery, weight_surgery_of
from designer.files.document import parse_document, write_document
from designer.files.settings import Settings
from designer.graph.commands import add_layer, move_layers, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import INSTANCE, Template
from designer.operators.registry import default_registry
from designer.operators.size_contract import SizeContract, size_contract
from designer.training.run_folder import Notes, RunFolder
from designer.training.sweep import Sweep
from designer.training.trainer import options_of
from designer.training.watched_run import RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot

__all__ = ["silent_engine"]
engine_is_let_go = kit.engine_is_let_go


@pytest.fixture
def context(qtbot: QtBot) -> Context:
    made = Context(default_registry())
    made.set_document(Document(small_network(), made.registry, parent=made))
    return made


# --- stopping an analysis ---------------------------------------------------------------------------------------------


STOPPED = "Stopped. Launch Analysis runs it again."


def first_opening(bench: Bench) -> None:
    bench.analysis.launch()


def first_run(bench: Bench) -> None:
    bench.analysis.launch()
    bench.engine.next(OpenRequest).finish(OpenReply())


def opening_anew(bench: Bench) -> None:
    bench.ready()
    bench.document.change_settings(threads=2)
    bench.analysis.launch()


def run_with_progress(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    next(c for c in bench.engine.calls if isinstance(c.request, RunRequest)).advance(ProgressEvent(1, 1, 3, "conv_0"))


def values_that_wait(bench: Bench) -> None:
    bench.ready()
    bench.set("noise_0", scale="0.3")
    bench.set("noise_0", scale="0.4")


def an_edit_that_rests(bench: Bench) -> None:
    bench.ready()
    bench.set("conv_h", features="4")


@pytest.mark.parametrize(
    "state", [first_opening, first_run, opening_anew, run_with_progress, values_that_wait, an_edit_that_rests]
)
def test_stop_ends_everything_in_every_state_and_a_launch_begins_anew(
    bench: Bench, state: Callable[[Bench], None]
) -> None:
    state(bench)
    shown = bench.shows()
    bench.analysis.stop()
    assert bench.engine.calls == []
    assert (bench.analysis.phase, bench.analysis.message) == (Phase.STOPPED, STOPPED)
    assert (bench.shows(), bench.analysis.stale) == (shown, shown is not None)
    assert bench.follow() == []
    bench.set("noise_0", scale="0.6")
    assert bench.follow() == []
    bench.analysis.launch()
    first, *others = bench.answer()
    assert isinstance(first, OpenRequest)
    assert first.document == bench.text
    assert [type(each) for each in others] == [SetInputRequest, RunRequest]
    assert (bench.analysis.phase, bench.analysis.stale) == (Phase.READY, False)


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    return Bench(qtbot, tmp_path)


@pytest.mark.parametrize("runs", [True, False])
def test_stop_behind_a_preview_leaves_it_dimmed_and_the_next_launch_is_a_full_run(qtbot: QtBot, runs: bool) -> None:
    slow = Slow(qtbot)
    slow.move(0.2)
    slow.slow.next(SetParamRequest).finish(EmptyReply())
    slow.slow.ran(1.0, coarse=2)
    assert slow.analysis.phase is Phase.RUNNING
    if runs:  # the full run is in flight
        qtbot.waitUntil(lambda: bool(slow.runs()))
    slow.analysis.stop()
    assert slow.runs() == []
    assert not slow.refining()
    assert (slow.analysis.phase, slow.analysis.stale) == (Phase.STOPPED, True)
    slow.move(0.3)
    assert slow.runs() == []
    slow.analysis.launch()
    slow.slow.next(OpenRequest).finish(OpenReply())
    assert [run.budget for run in slow.runs()] == [0]
    slow.slow.ran(2.0)
    assert slow.seen[1:] == [(1.0, 2), (2.0, 0)]
    assert (slow.analysis.phase, slow.analysis.stale) == (Phase.READY, False)
    assert not slow.refining()


# --- inputs and receptive fields --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [4, 5, 6, 7])
def test_an_image_has_its_pixels_also_when_its_rows_are_not_aligned(width: int) -> None:
    pixels = np.arange(3 * width * 3, dtype=np.uint8).reshape(3, width, 3)
    image = image_of(pixels[:, ::-1])
    assert image is not None
    found = [[image.pixelColor(x, y).getRgb()[:3] for x in range(width)] for y in range(3)]
    assert np.array_equal(found, pixels[:, ::-1])
    assert image_of(None) is None


def test_inputs_remember_what_they_were_fed_with_and_why_they_were_refused(bench: Bench, tmp_path: Path) -> None:
    inputs, changes = bench.ready().analysis.inputs, []
    inputs.changed.connect(lambda: changes.append(dict(inputs.errors)))
    assert (inputs.shapes, inputs.errors) == ({"input_0": (1, 3, 16, 24)}, {})
    other = kit.picture(tmp_path, "other.png", (8, 6))
    inputs.set_file("input_0", other)
    refused = bench.engine.next(SetInputRequest)
    refused.fail((Diagnostic("wrong-size", "it is too small", remedy="choose another"),))
    bench.answer()
    assert bench.analysis.phase is Phase.BLOCKED
    assert inputs.errors == {"input_0": "It is too small. Choose another."}
    assert changes[-1] == inputs.errors
    inputs.set_file("input_0", other)  # the file was mended
    assert inputs.errors == {}
    bench.engine.next(OpenRequest).finish(OpenReply())
    bench.engine.next(SetInputRequest).finish(SetInputReply((1, 3, 6, 8)))
    bench.answer()
    assert (inputs.shapes, inputs.errors) == ({"input_0": (1, 3, 6, 8)}, {})
    for code in ("cancelled", "engine-crashed"):
        inputs.was_refused("input_0", (Diagnostic(code, "it ended"),))
        assert inputs.errors == {}
        assert inputs.take() == [("input_0", other)]  # once more, before the next run
    inputs.was_refused("input_0", (Diagnostic("wrong", "it is wrong"),))
    inputs.was_fed("input_0", (1, 3, 6, 8))
    assert changes[-1] == {}
    bench.document.do(lambda g: rename_layer(g, "input_0", "photo"))
    assert (inputs.shapes, inputs.layers(), inputs.path("input_0")) == ({}, ("photo",), None)
    assert inputs.path("photo") == other


def test_a_receptive_field_follows_the_pixel_and_full_results(bench: Bench) -> None:
    field = ReceptiveField(bench.analysis, bench.analysis)
    said: list[tuple[object, str]] = []
    field.changed.connect(lambda: said.append((field.box, field.text)))

    def asked() -> list[Any]:
        rests = [timer for timer in field.findChildren(QTimer) if timer.isActive()]
        for timer in rests:
            timer.timeout.emit()
            timer.stop()
        return bench.engine.requests(ReceptiveFieldRequest)

    field.ask("conv_h", 3, 5, "input_0")
    assert asked() == []  # there is no result
    bench.ready()
    request = ReceptiveFieldRequest("conv_h", 5, 3, "input_0")
    assert asked() == [request]
    field.ask("conv_h", 3, 5, "input_0")
    assert asked() == [request]
    bench.engine.next(ReceptiveFieldRequest).finish(ReceptiveFieldReply((1, 3, 6, 8), "computed"))
    field.ask("conv_h", 4, 5, "input_0")
    assert asked() == [ReceptiveFieldRequest("conv_h", 5, 4, "input_0")]
    bench.engine.next(ReceptiveFieldRequest).finish(ReceptiveFieldReply((1, 3, 1, 8), "measured", "it is empty"))
    field.ask("conv_h", 0, 0, "input_0")
    asked()
    bench.engine.next(ReceptiveFieldRequest).fail((Diagnostic("unknown", "it is unknown", remedy="choose another"),))
    assert said == [
        ((1, 3, 6, 8), "field 5 x 5, computed"),
        (None, "field 0 x 5, measured, it is empty"),
        (None, "It is unknown. Choose another."),
    ]
    for coarse, again in ((4, []), (0, [ReceptiveFieldRequest("conv_h", 0, 0, "input_0")])):
        bench.analysis.result = replace(bench.analysis.result, coarse=coarse)
        bench.analysis.result_changed.emit()
        assert asked() == again
    field.clear()
    assert said[3:] == [(None, "")]
    bench.engine.next(ReceptiveFieldRequest).finish(ReceptiveFieldReply((1, 3, 6, 8), "computed"))
    assert asked() == []
    assert len(said) == 4
    bench.engine.calls.clear()


# --- size rules -------------------------------------------------------------------------------------------------------


def blocks(size: int) -> Graph:
    return chain(
        ("blocks", "space_to_depth", {"block_size": size}),
        ("back", "depth_to_space", {"block_size": size}),
        size="32x32x3",
    )


def test_sizes_that_are_computed_while_the_network_changes_are_not_shown(
    context: Context, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[str] = []
    released = Event()

    def slowly(graph: Graph, registry: Any) -> SizeContract:
        computed.append(graph["blocks"].params["block_size"])
        assert released.wait(WAIT / 1000)
        return size_contract(graph, registry)

    monkeypatch.setattr("app.ui.engine.size_rules.size_contract", slowly)
    context.set_document(Document(blocks(4), context.registry, parent=context))
    rules, shown = size_rules_of(context), []
    rules.changed.connect(lambda: shown.append(None if rules.contract is None else str(rules.contract.inputs[0].width)))
    rules.request()
    rules.request()
    qtbot.waitUntil(lambda: computed == ["4"])
    context.root.do(lambda g: set_params(g, {name: {"block_size": "2"} for name in ("blocks", "back")}))
    assert shown == [None]
    rules.request()
    released.set()
    qtbot.waitUntil(lambda: rules.contract is not None)
    assert (computed, shown) == (["4", "2"], [None, "multiples of 2"])
    rules.request()
    before = context.root
    context.set_document(Document(blocks(8), context.registry, parent=context))
    assert rules.contract is None
    rules.request()
    qtbot.waitUntil(lambda: rules.contract is not None)
    assert (computed, shown[2:]) == (["4", "2", "8"], [None, "multiples of 8"])
    before.do(lambda g: set_params(g, {"blocks": {"block_size": "1"}}))  # it is not shown
    assert rules.contract is not None
    assert rules.refusal({"image": (12, 16)}) == (
        "'image' is 16 x 12; width: multiples of 8, height: multiples of 8 (because of blocks)"
    )
    assert rules.refusal({"image": (16, 16)}) == rules.refusal({"another": (12, 16)}) == ""


def test_sizes_of_a_large_network_are_computed_when_the_user_asks(
    context: Context, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ui.engine.size_rules.AUTOMATIC", 3)
    context.set_document(Document(blocks(4), context.registry, parent=context))
    rules = size_rules_of(context)
    assert rules.large
    rules.request()
    assert not rules._later.isActive()
    rules.request(asked=True)
    qtbot.waitUntil(lambda: rules.contract is not None)
    assert rules.fixable
    assert rules.fix()
    assert rules.contract is None


def test_a_failure_of_the_sizes_is_said_until_the_network_changes(
    context: Context, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> SizeContract:
        raise DiagnosticError.of("no-size", "the sizes are unknown", remedy="connect the output")

    monkeypatch.setattr("app.ui.engine.size_rules.size_contract", fail)
    rules = size_rules_of(context)
    rules.request()
    qtbot.waitUntil(lambda: rules.error == "the sizes are unknown")
    rules.request()
    assert not rules._later.isActive()
    assert (rules.contract, rules.fixable, rules.fix(), rules.refusal({"input_0": (1, 1)})) == (None, False, False, "")
    context.root.do(lambda g: set_params(g, {"noise_0": {"scale": "0.2"}}))
    context.root.do(lambda g: set_params(g, {"conv_0": {"features": "4"}}))
    assert rules.error == ""


# --- profiles ---------------------------------------------------------------------------------------------------------


def test_every_input_with_a_file_is_sent_before_a_profile(
    context: Context, silent_engine: EngineClient, tmp_path: Path
) -> None:
    names = ("first", "second", "third", "fourth")
    graph = Graph(
        [
            *(layer(name, "input", dims="24x16x3") for name in names),
            layer("sum", "concatenation", ",".join(names), axis="1"),
            layer("result", "output", "sum"),
        ]
    )
    context.set_document(Document(graph, context.registry, parent=context))
    files = {name: kit.picture(tmp_path, f"{name}.png") for name in names if name != "second"}
    absent = tmp_path / "absent.png"
    context.root.change_settings(
        input_files={"second": str(absent), **{n: str(p) for n, p in files.items()}}, random_seed=1
    )
    profiling = profiling_of(context)
    profiling.launch()
    opening, *feeds, profile = (call.request for call in profiling._calls)
    assert isinstance(opening, OpenRequest)
    assert isinstance(profile, ProfileRequest)
    assert feeds == [SetInputRequest(name, str(path)) for name, path in sorted(files.items())]


# --- edits of weights -------------------------------------------------------------------------------------------------


class Surgery:
    """The edits of weights of an open network, with an engine that answers when the test says so."""

    def __init__(self, context: Context, folder: Path) -> None:
        self.context, self.folder = context, folder
        self.engine = context.engine = ScriptedEngine()  # type: ignore[assignment]
        self.edits: WeightSurgery = weight_surgery_of(context)
        self.said: list[str] = []
        context.message.connect(lambda level, text: self.said.append(f"{level}: {text}"))
        self.edits.done.connect(lambda title: self.said.append(f"done: {title}"))
        context.root.change_settings(weights=str(folder / "trained.pt"))

    def waiting(self) -> list[tuple[str, str, int]]:
        return [(r.operation, r.layer, r.features) for r in self.engine.requests(SurgeryRequest)]

    def reply(self, features: int = 5) -> Path:
        """The engine has set a number of channels; returns the file of the weights."""
        call = self.engine.next(Request)
        made = self.context.root.graph.copy()
        made.apply(set_params(made, {"conv_0": {"features": str(features)}}))
        weights = self.folder / f"{features}.pt"
        weights.write_bytes(b"weights")
        call.finish(
            SurgeryReply(write_document(made).decode(), f"Set {features} Channels", str(weights), "equal results", True)
        )
        return weights

    @property
    def features(self) -> str:
        return self.context.root.graph["conv_0"].params["features"]


@pytest.fixture
def surgery(context: Context, tmp_path: Path) -> Surgery:
    return Surgery(context, tmp_path)


def test_an_edit_of_weights_is_one_step_with_its_effect(surgery: Surgery) -> None:
    done: list[str] = []
    surgery.edits.operate("features", "conv_0", features=5, done=done.append)
    weights = surgery.reply()
    title = "Set 5 Channels: equal results"
    assert surgery.said == ["info: Editing the weights of conv_0 ...", f"info: {title}", f"done: {title}"]
    root = surgery.context.root
    assert (done, surgery.features, root.settings.weights, root.history.undo_title) == (
        [title],
        "5",
        str(weights),
        title,
    )
    surgery.context.undo()
    assert (surgery.features, root.settings.weights) == ("3", str(surgery.folder / "trained.pt"))
    surgery.edits.operate("prune", "")
    assert surgery.said[-1] == "info: Editing the weights ..."
    assert surgery.waiting() == [("prune", "", 0)]


def test_the_request_of_an_edit_has_the_network_its_inputs_and_the_code_that_was_agreed_to(
    surgery: Surgery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ui.engine.weight_surgery.agreed", lambda: frozenset(("b" * 64, "a" * 64)))
    monkeypatch.setattr("app.ui.engine.weight_surgery.weight_versions", lambda: tmp_path / "versions")
    graph = Graph(
        [
            *(layer(name, "input", dims="24x16x3") for name in ("one", "two", "three")),
            layer("both", "concatenation", "one,two,three", axis="1"),
            layer("conv", "convolution", "both", features=3),
            layer("result", "output", "conv"),
        ]
    )
    root = Document(graph, surgery.context.registry, parent=surgery.context)
    surgery.context.set_document(root)
    files = {name: str(kit.picture(tmp_path, f"{name}.png")) for name in ("one", "three")}
    root.change_settings(weights="/trained.pt", input_files={**files, "two": "pattern:edges"})
    surgery.edits.operate("remove", "conv", channels=(2, 0))
    (request,) = surgery.engine.requests(SurgeryRequest)
    assert request == SurgeryRequest(
        write_document(graph).decode(), "remove", "conv", "/trained.pt", str(tmp_path / "versions"), {**files, "two": "pattern:edges"},
        0, (2, 0), ("a" * 64, "b" * 64),
    )  # fmt: skip


def test_edits_of_weights_that_cannot_begin_say_why(surgery: Surgery) -> None:
    reasons: list[Diagnostic] = []
    surgery.edits.operate("fold", "")
    surgery.edits.operate("fold", "conv_0")
    surgery.edits.operate("fold", "conv_0")  # the same again
    surgery.edits.operate("split", "conv_0")
    surgery.edits.operate("split", "conv_0", failed=reasons.append)
    assert surgery.waiting() == [("fold", "conv_0", 0)]
    other = "Another edit of the weights is being carried out. Repeat it when the other one is done."
    assert surgery.said == [
        "error: No instance of this template is open. Open the template through one of its instances.",
        "info: Editing the weights of conv_0 ...",
        f"error: {other}",
    ]
    assert [each.message for each in reasons] == ["another edit of the weights is being carried out"]
    surgery.engine.next(Request).fail((Diagnostic("no-surgery", "it cannot be folded", remedy="remove a layer"),))
    assert surgery.said[3:] == ["error: It cannot be folded. Remove a layer."]
    surgery.context.root.change_settings(weights="")
    surgery.edits.operate("fold", "conv_0")
    assert surgery.said[4:] == ["error: The network has no trained weights. Choose them in Network Settings."]


@pytest.mark.parametrize("code", ["engine-crashed", "cancelled", "no-surgery"])
@pytest.mark.parametrize("asked", [True, False])
def test_a_failed_edit_of_weights_is_said_once_and_the_next_one_begins(
    surgery: Surgery, code: str, asked: bool
) -> None:
    reasons: list[Diagnostic] = []
    surgery.edits.operate("features", "conv_0", features=5, failed=reasons.append if asked else None)
    found = Diagnostic(code, "it failed", Severity.ERROR, remedy="repeat it")
    surgery.engine.next(Request).fail((found,))
    assert reasons == ([found] if asked else [])
    assert surgery.said[1:] == (["error: It failed. Repeat it."] if code == "no-surgery" and not asked else [])
    surgery.edits.operate("features", "conv_0", features=5)
    surgery.reply()
    assert surgery.features == "5"


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root.do(lambda g: set_params(g, {"noise_0": {"scale": "0.3"}})),
        lambda root: root.change_settings(weights="/other.pt"),
    ],
)
def test_weights_of_a_network_that_changed_meanwhile_are_not_used(
    surgery: Surgery, change: Callable[[Document], Any]
) -> None:
    surgery.edits.operate("features", "conv_0", features=5)
    change(surgery.context.root)
    weights = surgery.context.root.settings.weights
    made = surgery.reply()
    assert surgery.said[1:] == ["error: The network was changed in the meantime. Repeat the edit."]
    assert (surgery.features, surgery.context.root.settings.weights, made.exists()) == ("3", weights, False)


def test_the_latest_number_of_channels_follows_the_edit_of_its_document_only(surgery: Surgery, qtbot: QtBot) -> None:
    edits = surgery.edits
    edits.operate("features", "conv_0", features=5)
    edits.operate("features", "conv_0", features=6)
    edits.operate("features", "conv_0", features=7)
    assert surgery.waiting() == [("features", "conv_0", 5)]
    surgery.reply(5)
    qtbot.waitUntil(lambda: surgery.waiting() == [("features", "conv_0", 7)])
    edits.operate("features", "conv_0", features=8)
    root = surgery.context.root
    surgery.context.set_document(Document(small_network(), root.registry, parent=surgery.context))
    surgery.engine.next(SurgeryRequest).supersede()
    qtbot.wait(0)
    assert surgery.waiting() == []
    assert root.graph["conv_0"].params["features"] == "5"


@pytest.fixture
def inside(surgery: Surgery) -> Surgery:
    """The edits of weights of a network with an instance of a template, which is shown."""
    block = Template(
        "block",
        (layer("x", "template_input"), layer("inner", "convolution", "x"), layer("y", "template_output", "inner")),
    )
    first = [layer("input_0", "input", dims="24x16x3"), layer("conv_0", "convolution", "input_0", features=3)]
    graph = Graph(
        [*first, layer("part", INSTANCE, "conv_0", template="block"), layer("result", "output", "part")],
        templates=[block],
    )
    root = Document(graph, surgery.context.registry, parent=surgery.context)
    surgery.context.set_document(root)
    root.change_settings(weights=str(surgery.folder / "trained.pt"))
    assert surgery.context.enter("part")
    return surgery


def test_edits_of_weights_are_of_the_whole_network_when_a_template_is_shown(inside: Surgery, qtbot: QtBot) -> None:
    context, edits = inside.context, inside.edits
    before = write_document(context.root.graph).decode()
    done: list[str] = []
    edits.operate("features", "conv_0", features=5)
    edits.operate("features", "conv_0", features=6)
    edits.operate("features", "conv_0", features=7, done=done.append)
    (request,) = inside.engine.requests(SurgeryRequest)
    assert (request.document, request.layer, request.weights) == (before, "conv_0", context.root.settings.weights)
    inside.reply(5)
    assert (context.root.graph["conv_0"].params["features"], done) == ("5", [])
    qtbot.waitUntil(lambda: inside.waiting() == [("features", "conv_0", 7)])
    weights = inside.reply(7)
    assert context.root.graph["conv_0"].params["features"] == "7"
    assert (context.root.settings.weights, done) == (str(weights), ["Set 7 Channels: equal results"])
    context.undo()
    context.undo()
    assert write_document(context.root.graph).decode() == before


def test_an_edit_of_weights_can_change_a_template(inside: Surgery) -> None:
    context = inside.context
    before = write_document(context.root.graph).decode()
    inside.edits.operate("features", "part/inner", features=9)
    made = parse_document(before.encode()).graph
    assert made is not None
    changed = made.templates["block"]
    inner = replace(changed.layers[1], params={"features": "9"})
    made = Graph(made, templates=[replace(changed, layers=(changed.layers[0], inner, changed.layers[2]))])
    weights = inside.folder / "9.pt"
    weights.write_bytes(b"weights")
    text = write_document(made).decode()
    inside.engine.next(SurgeryRequest).finish(SurgeryReply(text, "Set 9 Channels", str(weights), "equal results", True))
    assert write_document(context.root.graph).decode() == text
    context.undo()
    assert write_document(context.root.graph).decode() == before


def test_the_answer_for_a_closed_document_leaves_no_file(surgery: Surgery) -> None:
    """And changes nothing of the document that is shown then."""
    surgery.edits.operate("features", "conv_0", features=5)
    call = surgery.engine.next(SurgeryRequest)
    closed, context = surgery.context.root, surgery.context
    context.set_document(Document(small_network(), context.registry, parent=context))
    text = write_document(context.root.graph).decode()
    shiboken6.delete(closed)
    said = list(surgery.said)
    weights = surgery.folder / "made.pt"
    weights.write_bytes(b"weights")
    call.finish(SurgeryReply(text, "Set 5 Channels", str(weights), "equal results", True))
    assert (weights.exists(), surgery.said, write_document(context.root.graph).decode()) == (False, said, text)
    context.root.change_settings(weights=str(surgery.folder / "other.pt"))
    surgery.edits.operate("fold", "conv_0")
    assert surgery.waiting() == [("fold", "conv_0", 0)]


# --- questions --------------------------------------------------------------------------------------------------------


QUESTION = GradientRequest("conv_0", "input_0")


def answer(engine: ScriptedEngine) -> GradientReply:
    return GradientReply(engine.give("gradient", np.zeros(3, np.float32)), "it is zero")


class Asking:
    """A question about the open document, and all that is said of it."""

    def __init__(self, context: Context, folder: Path) -> None:
        self.context = context
        self.engine = context.engine = ScriptedEngine()  # type: ignore[assignment]
        context.root.change_settings(input_files={"input_0": str(kit.picture(folder))}, random_seed=3)
        self.question = EngineQuestion(context, context)
        self.said: list[str] = []
        self.question.busy_changed.connect(lambda busy: self.said.append("busy" if busy else "idle"))

    def ask(self, settings: Settings | None = None) -> list[Any]:
        before = len(self.engine.calls)
        self.question.ask(
            QUESTION,
            lambda reply: self.said.append(f"done {reply.note}"),
            lambda text: self.said.append(f"failed {text}"),
            lambda event: self.said.append(f"progress {event.done} of {event.total}"),
            settings,
        )
        return [call.request for call in self.engine.calls[before:]]


@pytest.fixture
def asking(context: Context, tmp_path: Path) -> Asking:
    return Asking(context, tmp_path)


def test_a_question_opens_the_document_feeds_it_and_asks_once(asking: Asking, tmp_path: Path) -> None:
    root = asking.context.root
    text = write_document(root.graph).decode()
    feeding = SetInputRequest("input_0", str(tmp_path / "picture.png"))
    assert asking.ask() == [open_request(root.settings, text), feeding, QUESTION]
    assert asking.ask() == []  # one at a time
    asking.engine.calls[-1].advance(ProgressEvent(1, 2, 5, "a layer"))
    asking.engine.calls[-1].finish(answer(asking.engine))
    assert asking.said == ["busy", "progress 2 of 5", "idle", "done it is zero"]
    others = replace(root.settings, precision="fp16", threads=7)
    opening, *_ = asking.ask(others)
    assert opening == open_request(others, text)
    asking.engine.calls[-1].supersede()
    assert asking.said[4:] == ["busy", "idle"]
    assert not asking.question.busy


def test_a_question_feeds_the_inputs_that_have_a_file(asking: Asking, tmp_path: Path) -> None:
    context = asking.context
    five = Layer("five", "input", params={"dims": "24x16x5"})
    context.root.do(lambda graph: add_layer(graph, five))
    context.root.do(lambda graph: add_layer(graph, Layer("shown", "output", inputs=(Source("five"),))))
    fed = [request.layer for request in asking.ask() if isinstance(request, SetInputRequest)]
    assert fed == ["input_0"]
    empty = Asking.__new__(Asking)
    empty.context, empty.engine, empty.said = Context(context.registry), asking.engine, []
    empty.question = EngineQuestion(empty.context, empty.context)
    assert empty.ask() == []
    assert (empty.question.busy, empty.said) == (False, [])


CHANGED = "failed The network, its weights or its inputs were changed in the meantime. Repeat the measurement."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda root: root.do(lambda g: set_params(g, {"noise_0": {"scale": "0.3"}})), CHANGED),
        (lambda root: root.change_settings(threads=3), CHANGED),
        (lambda root: root.change_settings(iterations=3), "done it is zero"),
        (lambda root: root.do(lambda g: move_layers(g, {"noise_0": (3, 4)})), "done it is zero"),
    ],
)
def test_an_answer_about_a_network_that_was_changed_is_dropped_with_its_tensors(
    asking: Asking, change: Callable[[Document], Any], said: str
) -> None:
    asking.ask()
    change(asking.context.root)
    asking.engine.calls[-1].finish(answer(asking.engine))
    assert asking.said == ["busy", "idle", said]
    assert list(asking.engine.arrays) == (["gradient"] if said == "done it is zero" else [])
    asking.engine.arrays.clear()
    asking.ask()  # again: what was changed before counts no more
    asking.engine.calls[-1].finish(answer(asking.engine))
    assert asking.said[3:] == ["busy", "idle", "done it is zero"]


@pytest.mark.parametrize("code", ["wrong", "engine-crashed"])
@pytest.mark.parametrize("refused", range(3))
def test_a_question_that_is_refused_or_stopped_says_it_once(asking: Asking, refused: int, code: str) -> None:
    asking.ask()
    calls = list(asking.engine.calls)
    calls[refused].fail((Diagnostic(code, "it is wrong", remedy="mend it"),))
    for call in calls[refused + 1 :]:
        call.fail((Diagnostic("closed", "nothing is open"),))
    assert asking.said == ["busy", "idle", "failed It is wrong. Mend it."]
    asking.ask()
    asking.question.stop()
    assert asking.said[3:] == ["busy", "idle", "failed "]
    asking.question.stop()
    assert len(asking.said) == 6


def test_a_question_that_was_stopped_hears_nothing_of_its_answers(asking: Asking) -> None:
    """Also where the engine could not be stopped in time; and the next question hears its own."""
    asking.ask()
    late, asking.engine.calls = asking.engine.calls, []
    asking.question.stop()
    assert asking.said == ["busy", "idle"]
    late[-1].advance(ProgressEvent(1, 3, 5, "a layer"))
    late[-1].finish(answer(asking.engine))
    late[0].fail((Diagnostic("wrong", "it is wrong"),))
    assert asking.said == ["busy", "idle"]
    asking.ask()
    late[-1].advance(ProgressEvent(1, 4, 5, "a layer"))
    asking.engine.calls[-1].advance(ProgressEvent(2, 1, 5, "a layer"))
    assert asking.said[2:] == ["busy", "progress 1 of 5"]


DEATHS = {
    (9, True, ()): "The engine process was killed (signal 9), often because memory ran out",
    (11, True, ("last words",)): "The engine process crashed (invalid memory access)",
    (6, True, ()): "The engine process was ended by the signal SIGABRT",
    (999, True, ()): "The engine process crashed (code 999)",
    (3, False, ("first", " last words. ")): "The engine process ended by itself with code 3: last words",
    (3, False, ("",)): "The engine process ended by itself with code 3",
    (1, False, ()): "The engine process ended by itself with code 1",
}


def test_how_the_engine_process_ended_is_explained() -> None:
    assert {key: _death(*key) for key in DEATHS} == DEATHS


# --- training ---------------------------------------------------------------------------------------------------------


def test_the_reason_of_a_refused_command_goes_with_the_next_one_that_works(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = training_of(context)
    run = WatchedRun(make_run(tmp_path / "project", "a", settings={}))
    run.read()
    said: list[str] = []
    training.problem_changed.connect(said.append)
    errors: list[Exception | None] = [
        OSError(28, "No space left on device", "/runs/a"),
        DiagnosticError.of("trains", "the run trains", remedy="stop it first"),
        None,
    ]

    def write(folder: object, notes: Notes) -> None:
        error = errors.pop(0)
        if error is not None:
            raise error

    monkeypatch.setattr("designer.training.run_folder.RunFolder.write_notes", write)
    for _ in range(3):
        training.write_notes(run, Notes("name"))
    assert said == [
        "/runs/a: No space left on device. Check the folder and the free space.", "The run trains. Stop it first.", ""
    ]  # fmt: skip
    assert training.problem == ""


def test_a_fork_begins_with_the_weights_of_its_step_and_says_so(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = training_of(context)
    context.root.path = tmp_path / "net.xml"
    run = WatchedRun(make_run(tmp_path / "project", "a", settings={"lr": 0.5, "steps": 40}))
    run.read()
    did: list[tuple[object, ...]] = []
    for name, target in (
        ("write_frame", "write_frame"),
        ("start", "trainer.start"),
        ("remember", "run_registry.remember"),
    ):
        monkeypatch.setattr(f"app.ui.engine.training.{target}", lambda *given, name=name: did.append((name, *given)))
    monkeypatch.setattr(RunFolder, "write_notes", lambda folder, notes: did.append(("notes", folder, notes)))
    monkeypatch.setattr(training, "_work", lambda work, done: did.append(("made", work())))
    training.fork(run, 7)
    written, started, known, noted, (_, folder) = did
    assert folder.project == run.folder.project
    assert folder != run.folder
    source = folder.path / "from_weights"
    assert written == ("write_frame", run.folder.trail, 7, source, folder.weight_names())
    assert started == ("start", folder, {**options_of(run.snapshot.settings), "from_weights": str(source)})
    assert known == ("remember", folder.path, tmp_path / "net.xml")
    assert noted == ("notes", folder, Notes("", f"From step 7 of {run.snapshot.title}"))


@pytest.mark.parametrize("other", [True, False])
def test_a_sweep_is_listed_in_the_document_that_it_was_started_from(
    context: Context, tmp_path: Path, other: bool
) -> None:
    training = training_of(context)
    training._origin = context.root
    if other:
        context.set_document(Document(small_network(), context.registry, parent=context))
    sweep = Sweep(tmp_path / "sweep", ())
    training._on_sweep_started(SweepSnapshot(sweep, RunState.RUNNING))
    assert list(training.sweeps) == ([] if other else [sweep.folder])
