"""Parts of the window that ask the engine, with an engine that answers when the test says so."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import numpy as np
import pytest

pytest.importorskip("PySide6")
from analysis_kit import silent_engine, small_network
from engine_kit import ScriptedEngine
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot
from training_kit import WAIT, make_run

from app.engine.protocol import (
    BitsReply,
    BitsRequest,
    OpenReply,
    PassesReply,
    PassesRequest,
    ProfileReply,
    ProgressEvent,
    RunStep,
    TensorStatus,
    TraceNonfiniteRequest,
    TraceReply,
)
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.faults import Faults
from app.ui.analysis.layer_infos import LayerInfo
from app.ui.analysis.overview_model import TIME, OverviewModel
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.profiling import State, profiling_of
from app.ui.engine.provenance import provenance_of
from app.ui.engine.result import AnalysisResult, Phase
from app.ui.engine.size_rules import SizeRules
from app.ui.engine.training import StartRequest, training_of
from app.ui.inspector import order as order_module
from app.ui.inspector.order import Order, Sorter
from designer.files.weights import WeightStatus
from designer.graph.commands import set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.schema import Profile, ProfileRun
from designer.runtime.provenance import digest_of
from designer.training.sweep import Axis, Sweep, trials
from designer.training.watched_run import RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot

pytestmark = pytest.mark.gui
__all__ = ["silent_engine"]


@pytest.fixture
def context(qtbot: QtBot) -> Context:
    made = Context(default_registry())
    made.set_document(Document(small_network(), made.registry, parent=made))
    return made


@pytest.fixture
def scripted(context: Context) -> ScriptedEngine:
    context.engine = ScriptedEngine()  # type: ignore[assignment]
    return context.engine  # type: ignore[return-value]


QUESTIONS = {"bits": (BitsRequest, BitsReply((), ())), "passes": (PassesRequest, PassesReply(()))}


@pytest.mark.parametrize("name", QUESTIONS)
def test_progress_of_a_question_gives_way_to_its_answer(context: Context, scripted: ScriptedEngine, name: str) -> None:
    formats, (kind, reply) = number_formats_of(context), QUESTIONS[name]
    said: list[tuple[str, str]] = []
    done: list[object] = []

    def ask() -> None:
        measure = formats.measure_bits if name == "bits" else formats.measure_passes
        measure(done.append, lambda text, role: said.append((text, role)))  # type: ignore[arg-type]

    ask()
    scripted.next(kind).advance(ProgressEvent(1, 2, 5, "conv_0"))
    assert said == [("conv_0 (2 of 5)", "info")]
    formats.stop()
    scripted.calls.clear()
    said.clear()
    ask()
    assert formats.busy
    call = scripted.next(kind)
    call.advance(ProgressEvent(1, 2, 5, "conv_0"))
    call.finish(reply)
    assert said == [("conv_0 (2 of 5)", "info"), ("", "info")]
    assert done == [reply]
    assert not formats.busy
    scripted.calls.clear()
    said.clear()
    ask()
    scripted.next(kind).fail((Diagnostic("no-image", "it cannot be done"),))
    assert said == [("It cannot be done.", "error")]
    assert done == [reply]
    assert not formats.busy


def test_a_notice_offers_to_accept_every_size_only_where_that_is_possible(
    context: Context, scripted: ScriptedEngine, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    possible = False
    monkeypatch.setattr(SizeRules, "refusal", lambda *_: "the image is too wide")
    monkeypatch.setattr(SizeRules, "fixable", property(lambda _: possible))
    panel = AnalysisPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    button = panel.findChild(QPushButton, "analysis.notice.sizes")
    restart = panel.findChild(QPushButton, "analysis.notice.restart")
    text = panel.findChild(QLabel, "analysis.notice.text")
    analysis = analysis_of(context)
    analysis._set_phase(Phase.FAILED, "It cannot be divided.")
    assert (button.isVisible(), restart.isVisible(), text.text()) == (False, True, "Problem: It cannot be divided.")
    possible = True
    analysis._set_phase(Phase.FAILED, "It cannot be divided by 4.")
    assert (button.isVisible(), restart.isVisible()) == (True, False)
    assert "the image is too wide" in text.text()


def test_the_layer_that_made_nan_stays_marked_while_it_is_looked_for_again(
    context: Context, scripted: ScriptedEngine, qtbot: QtBot
) -> None:
    analysis = analysis_of(context)
    faults = Faults(analysis, context)

    def show(nonfinite: dict[str, float], coarse: int = 0) -> None:
        analysis.result = AnalysisResult(nonfinite=nonfinite, coarse=coarse)
        analysis.result_changed.emit()

    def trace(reply: TraceReply) -> None:
        qtbot.waitUntil(lambda: bool(scripted.requests(TraceNonfiniteRequest)))
        scripted.next(TraceNonfiniteRequest).finish(reply)

    show({"output_0": 0.5})
    assert "is being looked for" in faults.text
    assert list(faults.layers) == ["output_0"]
    trace(TraceReply("conv_0", "nan", 0.25, (), "its weights are NaN"))
    told = (faults.culprit, faults.text, dict(faults.layers))
    assert told[0] == "conv_0"
    assert told[1].startswith("NaN is first made by 'conv_0': 25.0 % of its values are NaN or infinite.")
    assert list(faults.layers) == ["output_0", "conv_0"]
    show({"output_0": 0.5})
    assert (faults.culprit, faults.text, faults.layers) == told
    show({"mix_0:0": 0.125}, coarse=2)
    assert faults.layers == told[2]
    show({"mix_0:0": 0.125})
    assert list(faults.layers) == ["mix_0", "conv_0"]
    assert faults.layers["conv_0"] == told[2]["conv_0"]
    trace(TraceReply(None, "", 0.0, ()))
    assert (faults.culprit, faults.layers) == ("", {})
    assert "was not found" in faults.text
    show({})
    assert (faults.culprit, faults.text, faults.layers) == ("", "", {})


def test_a_launch_that_lacks_weights_measures_nothing(context: Context, silent_engine: EngineClient) -> None:
    profiling = profiling_of(context)
    profiling.launch()
    calls = list(profiling._calls)
    missing = TensorStatus("conv_0", "kernel", WeightStatus.MISSING, (1,))
    calls[0].finish(OpenReply((missing,)))
    assert profiling.state is State.WEIGHTS
    assert all(call.cancelled for call in calls)
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "16x8", 5.0, 0.0, ())
    calls[-1].finish(ProfileReply(Profile(Machine("Test CPU", 2), "net", (run,))))
    assert profiling.entries == []
    assert profiling.state is State.WEIGHTS


def test_layers_that_cost_nothing_need_no_time_in_a_profile(qtbot: QtBot) -> None:
    steps = (RunStep(("a", "b", "c"), "torch", 8.0), RunStep(("d", "e"), "torch", 4.0))
    infos = {
        "a": LayerInfo("x", "X", "", weight=1.0, measured=3.0),
        "b": LayerInfo("x", "X", "", weight=0.0),
        "c": LayerInfo("x", "X", "", weight=5.0, measured=1.0),
        "d": LayerInfo("x", "X", "", weight=1.0, measured=3.0),
        "e": LayerInfo("x", "X", "", weight=3.0),
    }
    model = OverviewModel()
    model.show(steps, infos)
    times = {name: float(model.find(name).siblingAtColumn(TIME).data()) for name in infos}
    assert times == {"a": 6.0, "b": 0.0, "c": 2.0, "d": 1.0, "e": 3.0}
    assert model.profiled


def test_an_order_that_is_there_at_once_replaces_those_that_wait(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_module, "INLINE", 0)
    data = np.random.default_rng(0).standard_normal((6, 4, 4)).astype(np.float32)
    sorter, found = Sorter(context), []
    sorter.sorted.connect(found.append)
    sorter.sort(data, Order.ENERGY)
    sorter.sort(data, Order.MEAN)
    sorter.sort(data, Order.INDEX)
    sorter.wait()
    qtbot.waitUntil(lambda: not sorter._background.running)
    assert found == [[0, 1, 2, 3, 4, 5]]
    sorter.sort(data, Order.ENERGY)
    sorter.sort(data, Order.MEAN)
    qtbot.waitUntil(lambda: len(found) == 2)
    assert found[1] == sorted(range(6), key=lambda channel: -data[channel].mean())


def test_a_result_is_not_dimmed_between_two_frames(
    context: Context, scripted: ScriptedEngine, qtbot: QtBot, tmp_path: Path
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").touch()
    analysis = analysis_of(context)
    context.root.change_settings(input_files={"input_0": str(tmp_path)}, random_seed=1)
    analysis.launch()
    analysis.result = AnalysisResult()
    analysis._set_phase(Phase.READY, "")
    analysis._dim.stop()
    analysis.again()
    assert analysis._dim.isActive()
    analysis._dim.stop()
    analysis.playback.tracks["input_0"].playing = True
    analysis.again()
    assert not analysis._dim.isActive()


# --- training ---------------------------------------------------------------------------------------------------------


def test_the_project_of_a_document_is_that_of_its_latest_run_that_is_not_a_trial(
    context: Context, tmp_path: Path
) -> None:
    training = training_of(context)
    context.root.project = tmp_path / "own"
    assert training.project() == tmp_path / "own"
    sweep = Sweep(tmp_path / "sweep", tuple(trials([Axis.parse("lr=0.1,0.2")], 0)), {})
    trial = WatchedRun(make_run(sweep.project(sweep.trials[0]), sweep.trials[0].name, settings={}))
    runs = [WatchedRun(make_run(tmp_path / name, "a", settings={})) for name in ("first", "second")]
    snapshot = SweepSnapshot(sweep, RunState.FINISHED)
    training._set_runs([trial], {sweep.folder: snapshot})
    assert training.project() == tmp_path / "own"
    training._set_runs([*runs, trial], {sweep.folder: snapshot})
    assert training.project() == tmp_path / "second"
    assert training.sweep_of(trial) is snapshot
    assert [training.sweep_of(run) for run in runs] == [None, None]
    assert training.trials_of(snapshot) == [trial]


def test_example_data_that_could_not_be_written_are_written_anew(
    context: Context, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = True

    def write(folder: Path) -> None:
        (folder / "image.png").touch()
        if full:
            raise OSError("no space left on device")

    monkeypatch.setattr("samples.training_data.main", write)
    monkeypatch.setattr("platformdirs.user_data_path", lambda _: tmp_path / "data")
    training = training_of(context)
    with qtbot.waitSignal(training.problem_changed, check_params_cb=bool, timeout=WAIT):
        training.make_example_data()
    qtbot.waitUntil(lambda: not training.busy)
    folder = tmp_path / "data" / "example-data"
    assert not folder.exists()
    full = False
    with qtbot.waitSignal(training.example_data_made, timeout=WAIT) as made:
        training.make_example_data()
    assert made.args == [folder]
    assert [file.name for file in folder.iterdir()] == ["image.png"]


def test_a_run_goes_on_as_long_as_it_is_extended_and_belongs_to_the_document_it_was_resumed_from(
    context: Context, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[tuple[object, ...]] = []
    known: list[tuple[object, ...]] = []
    training, released = training_of(context), Event()

    def start(folder: object, options: object, **how: object) -> None:
        assert released.wait(WAIT / 1000)
        started.append((folder, options, how))

    monkeypatch.setattr("app.ui.engine.training.trainer.start", start)
    monkeypatch.setattr("app.ui.engine.training.run_registry.remember", lambda *args: known.append(args))
    context.root.path = tmp_path / "net.xml"
    run = WatchedRun(make_run(tmp_path / "project", "a", settings={}))
    run.read()
    training.resume(run, {"steps": "40"})
    context.set_document(Document(small_network(), context.registry, parent=context))
    released.set()
    qtbot.waitUntil(lambda: not training.busy, timeout=WAIT)
    assert started == [(run.folder, {"steps": "40"}, {"resume": True})]
    assert known == [(run.folder.path, tmp_path / "net.xml")]


def test_a_run_that_starts_belongs_to_the_document_that_it_was_started_from(
    context: Context, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known: list[tuple[object, ...]] = []
    started: list[tuple[object, ...]] = []
    training, released = training_of(context), Event()
    monkeypatch.setattr("app.ui.engine.training._export", lambda *_: released.wait(WAIT / 1000))
    monkeypatch.setattr("app.ui.engine.training.trainer.start", lambda *args: started.append(args))
    monkeypatch.setattr("app.ui.engine.training.run_registry.remember", lambda *args: known.append(args))
    context.root.path = tmp_path / "net.xml"
    training.start(StartRequest(tmp_path / "project", {"steps": "3"}))
    context.set_document(Document(small_network(), context.registry, parent=context))
    released.set()
    qtbot.waitUntil(lambda: not training.busy, timeout=WAIT)
    ((folder, options),) = started
    assert options == {"steps": "3"}
    assert known == [(folder.path, tmp_path / "net.xml")]


# --- where results come from -------------------------------------------------------------------------------------------


def test_results_come_from_the_whole_network_also_while_a_template_is_shown(context: Context) -> None:
    inside = Template(
        "part",
        (
            Layer("x", "template_input"),
            Layer("hum", "noise", inputs=(Source("x"),), params={"scale": "0.5", "seed": "7"}),
            Layer("y", "template_output", inputs=(Source("hum"),)),
        ),
    )
    layers = [
        Layer("image", "input", params={"dims": "8x8x3"}),
        Layer("rain", "noise", inputs=(Source("image"),), params={"scale": "0.1", "seed": "3"}),
        Layer("use", "template", inputs=(Source("rain"),), params={"template": "part"}),
        Layer("end", "output", inputs=(Source("use"),)),
    ]
    root = Document(Graph(layers, name="whole", templates=[inside]), context.registry, parent=context)
    root.change_settings(precision="bf16", threads=3)
    root.history.mark_clean()
    context.set_document(root)
    analysis = analysis_of(context)

    def found() -> list[str]:
        made = provenance_of(context, analysis)
        return [
            made.document,
            made.document_sha256,
            made.weights,
            made.precision,
            made.threads,
            made.noise,
            made.noise_seed,
        ]

    noise, seeds = "rain: gaussian 0.1; use.hum: gaussian 0.5", "rain: 3; use.hum: 7"
    expected = [root.title, digest_of(root.graph), "", "bf16", "3", noise, seeds]
    assert found() == expected
    assert context.enter("use")
    assert context.document is not root
    assert found() == expected
    context.document.do(lambda graph: set_params(graph, {"hum": {"scale": "0.25"}}))
    after = [f"{root.title} (with unsaved changes)", digest_of(root.graph), *expected[2:]]
    after[5] = noise.replace("0.5", "0.25")
    assert (after[1] != expected[1], found()) == (True, after)
    analysis.result = AnalysisResult(weights="trained.npz", weights_sha256="12ab")
    assert found()[2] == "trained.npz"
    context.leave()
    root.do(Edit("Clash", {"use.hum": (None, Layer("use.hum", "identity", inputs=(Source("image"),)))}))
    assert found()[5] == "rain: gaussian 0.1"  # it cannot run any more
