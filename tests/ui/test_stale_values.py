"""Values of another run, variant or document are not shown as those of the present one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from threading import Event

import numpy as np
import pytest
import shiboken6
from analysis_kit import silent_engine

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from pytestqt.qtbot import QtBot
from training_kit import WAIT, make_run

from app.engine.protocol import (
    BitsReply,
    BitsRequest,
    BlamedOperator,
    BlameReply,
    LayerBits,
    MeasureVariantsReply,
    PassesReply,
    PassRow,
    PredictRequest,
    SurgeryReply,
    VariantRow,
)
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.number_formats import number_formats_of
from app.ui.engine.profiling import State, profiling_of
from app.ui.engine.question import EngineQuestion
from app.ui.engine.time_machine import time_machine_of
from app.ui.engine.training import TrainingController, training_of
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.precision.blame_panel import BlamePanel
from app.ui.precision.number_formats_panel import MEASURED, NumberFormatsPanel
from app.ui.precision.passes_panel import PassesPanel
from app.ui.precision.variants_panel import STATUS, VariantsPanel
from app.ui.profile.charts import sweep_of
from app.ui.train.health_panel import HealthPanel
from app.ui.train.run_progress import RunProgress
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.train.training_panel import TrainingPanel
from designer.files.variants import Variant
from designer.files.weight_versions import weight_versions
from designer.files.weights import Weights, fill_missing, required_weights, save_weights
from designer.graph.commands import set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.training.sweep import Axis, Sweep, trials
from designer.training.trail import Frame, Trail
from designer.training.watched_run import RunState, WatchedRun
from designer.training.watched_sweep import SweepSnapshot

__all__ = ["silent_engine"]


@pytest.fixture
def context(qtbot: QtBot) -> Context:
    """An open network, which no engine runs."""
    made = Context(default_registry())
    made.set_document(Document(network(), made.registry, parent=made))
    return made


def network() -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "16x8x3"}),
            Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "4"}),
            Layer("output", "output", inputs=(Source("conv"),)),
        ]
    )


def test_the_rows_of_a_selected_layer_are_those_of_the_shown_run(context: Context) -> None:
    def run(time: float) -> ProfileRun:
        rows = (OperatorProfile(("conv",), "convolution", time_ms=time),)
        return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "16x8", time, 0.0, rows)

    profiling = profiling_of(context)
    context.select(("conv",))
    profiling.add(Profile(Machine("Test CPU", 2), "net", (run(1.0), run(2.0))))
    for entry in (profiling.entries[0], profiling.entries[1]):
        profiling.show(entry)
        assert [row.time_ms for row in profiling.chosen_rows] == [entry.run.time_ms]


def test_shapes_that_were_fed_to_another_document_are_forgotten(context: Context) -> None:
    inputs = analysis_of(context).inputs
    inputs.was_fed("image", (1, 3, 9, 9))
    assert inputs.shapes
    context.set_document(Document(network(), context.registry, parent=context))
    assert not inputs.shapes


def test_numbers_of_other_passes_are_forgotten_while_the_panel_is_hidden(context: Context, qtbot: QtBot) -> None:
    panel = PassesPanel(context)
    qtbot.addWidget(panel)
    names = [panel.table.topLevelItem(row).data(0, 256) for row in range(panel.table.topLevelItemCount())]
    panel._on_found(PassesReply(tuple(PassRow(name, False, 3, (9, 6), (90, 60), 0.0) for name in names)))
    assert panel.table.topLevelItem(0).text(1) == "3"
    number_formats_of(context).set_pass(names[0], True)
    assert panel.table.topLevelItem(0).text(1) == "-"


def test_a_variant_that_was_changed_is_not_measured(context: Context, qtbot: QtBot) -> None:
    panel = VariantsPanel(context)
    qtbot.addWidget(panel)
    panel.add_variant(Variant("FP16", "fp16"))
    panel._judged["FP16"] = panel.variants[0]
    panel._done(MeasureVariantsReply((VariantRow("FP16", 100),)))
    assert panel.table.topLevelItem(1).text(STATUS) == "measured"
    context.root.change_settings(variants=(Variant("FP16", "bf16"),))
    assert panel.table.topLevelItem(1).text(STATUS) == "not measured"


# --- what was measured before an edit ----------------------------------------------------------------------------

EDITS = {
    "parameter": lambda document: document.do(lambda graph: set_params(graph, {"conv": {"features": "5"}})),
    "weights": lambda document: document.change_settings(weights="/other"),
    "input": lambda document: document.change_settings(input_files={"image": "pattern:edges"}),
}
edited = pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)


@edited
def test_measured_variants_are_forgotten_with_an_edit(context: Context, qtbot: QtBot, edit) -> None:
    panel = VariantsPanel(context)
    qtbot.addWidget(panel)
    panel._done(MeasureVariantsReply((VariantRow("", 100),)))
    context.root.change_settings(iterations=7)
    assert panel.table.topLevelItem(0).text(STATUS) == "current, measured"
    edit(context.root)
    assert panel.table.topLevelItem(0).text(STATUS) == "current, not measured"


@edited
def test_tried_passes_are_forgotten_with_an_edit(context: Context, qtbot: QtBot, edit) -> None:
    panel = PassesPanel(context)
    qtbot.addWidget(panel)
    panel._on_found(PassesReply((PassRow("fold_constants", False, 3, (9, 6), (90, 60), 0.0),)))
    texts = [panel.table.topLevelItem(row).text(1) for row in range(panel.table.topLevelItemCount())]
    assert "3" in texts
    edit(context.root)
    assert {panel.table.topLevelItem(row).text(1) for row in range(panel.table.topLevelItemCount())} == {"-"}


@edited
def test_measured_bits_are_forgotten_with_an_edit(context: Context, qtbot: QtBot, edit) -> None:
    panel = NumberFormatsPanel(context)
    qtbot.addWidget(panel)
    heat: list[object] = []
    context.heat_requested.connect(heat.append)
    panel._on_found(BitsReply((LayerBits("conv", 100, dict.fromkeys(MEASURED, 33.25)),), ()))
    number_formats_of(context).set_format("int8", ["conv"])  # what was measured does not depend on the present formats
    assert panel.table.topLevelItem(0).text(2) == "33.2"
    assert heat[-1] is not None
    edit(context.root)
    assert panel.table.topLevelItem(0).text(2) == ""
    assert (panel.size_text.text(), panel.plot.isHidden(), heat[-1]) == ("", True, None)


@edited
def test_blame_is_forgotten_with_an_edit(context: Context, qtbot: QtBot, edit) -> None:
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    heat: list[object] = []
    context.heat_requested.connect(heat.append)
    panel._titles = ("FP32", "INT8")
    panel._on_found(BlameReply((BlamedOperator("conv", 1.0, 0.1),), 0.02, "conv"))
    assert panel.status.text() == "FP32 and INT8 differ by 0.02 RMS."
    edit(context.root)
    assert (panel.table.topLevelItemCount(), panel.status.text(), heat[-1]) == (0, "", None)


def test_blame_of_a_variant_is_forgotten_when_it_changes(context: Context, qtbot: QtBot) -> None:
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    context.root.change_settings(variants=(Variant("mine", "fp16"), Variant("other", "fp16")))
    panel._names, panel._variants = ("fp32", "mine"), (Variant("mine", "fp16"),)
    reply = BlameReply((BlamedOperator("conv", 1.0, 0.1),), 0.02, "conv")
    panel._on_found(reply)
    context.root.change_settings(variants=(Variant("mine", "fp16"),))
    assert panel.table.topLevelItemCount() == 1
    context.root.change_settings(variants=(Variant("mine", "bf16"),))
    assert panel.table.topLevelItemCount() == 0
    panel._on_found(reply)  # asked for before the change
    assert panel.table.topLevelItemCount() == 0
    assert "Repeat the measurement" in panel.status.text()


def test_a_variant_called_fp32_is_offered_besides_the_network_itself(context: Context, qtbot: QtBot) -> None:
    panel = BlamePanel(context)
    qtbot.addWidget(panel)
    context.root.change_settings(variants=(Variant("fp32", "fp16"),))
    texts = [panel.a.itemText(row) for row in range(panel.a.count())]
    assert (panel.a.currentText(), texts[-1]) == ("FP32", "fp32 (variant)")
    panel.b.setCurrentIndex(panel.b.count() - 1)
    panel._names, panel._titles = (panel.a.currentData(), panel.b.currentData()), ("FP32", "fp32 (variant)")
    panel._variants = panel._compared_variants()
    assert panel._variants == (Variant("fp32", "fp16"),)
    panel._on_found(BlameReply((BlamedOperator("conv", 1.0, 0.1),), 0.02, "conv"))
    assert panel.status.text() == "FP32 and fp32 (variant) differ by 0.02 RMS."
    context.root.change_settings(variants=(Variant("fp32", "bf16"),))
    assert panel.table.topLevelItemCount() == 0


def test_an_answer_about_passes_that_were_changed_since_is_not_shown(context: Context, qtbot: QtBot) -> None:
    panel = PassesPanel(context)
    qtbot.addWidget(panel)
    number_formats_of(context).set_pass("fold_constants", True)
    panel._on_found(PassesReply((PassRow("fold_constants", False, 3, (9, 6), (90, 60), 0.0),)))
    assert {panel.table.topLevelItem(row).text(1) for row in range(panel.table.topLevelItemCount())} == {"-"}


@edited
def test_an_answer_about_a_network_that_was_edited_since_is_dropped(
    context: Context, silent_engine: EngineClient, edit
) -> None:
    question = EngineQuestion(context, context)
    told: list[object] = []
    for change, kind in ((lambda document: None, BitsReply), (edit, str)):
        question.ask(BitsRequest(), told.append, told.append, lambda event: None)
        change(context.root)
        assert question.busy
        question._calls[-1].finish(BitsReply((), ()))
        assert not question.busy
        assert isinstance(told.pop(), kind)
    assert not told


PANELS = {"variants": VariantsPanel, "passes": PassesPanel, "number formats": NumberFormatsPanel, "blame": BlamePanel}
VARIANT = {"variants": (Variant("mine", "bf16", passes=("fold_constants",)),)}
SOLVED = {  # by which of the edits a problem may be solved
    "variant": (lambda document: document.change_settings(**VARIANT), {"variants", "passes", "blame"}),
    **{name: (edit, set(PANELS)) for name, edit in EDITS.items()},
}


@pytest.mark.parametrize("edit", SOLVED)
@pytest.mark.parametrize("name", PANELS)
def test_a_problem_is_shown_until_an_edit_that_may_solve_it(
    context: Context, qtbot: QtBot, silent_engine: EngineClient, name: str, edit: str
) -> None:
    context.root.change_settings(variants=(Variant("mine", "fp16"),), variant="mine")
    panel = PANELS[name](context)
    qtbot.addWidget(panel)
    buttons = {"variants": "measure", "passes": "compare", "number formats": "measure", "blame": "causes"}
    change, those = SOLVED[edit]
    if name == "blame":
        panel.b.setCurrentIndex(panel.b.findData("mine"))
    getattr(panel, buttons[name]).click()
    question = panel._question if name == "variants" else number_formats_of(context)._question
    question._calls[-1].fail((Diagnostic("refused", "FP16 is not supported"),))
    assert not question.busy
    assert panel.status.text() == "FP16 is not supported."
    context.root.change_settings(iterations=7)
    assert (panel.status.text() == "") is (name == "variants")
    if name != "variants":
        change(context.root)
        assert (panel.status.text() == "") is (name in those)
    getattr(panel, buttons[name]).click()
    panel.status.show_message("Running", "info")
    change(context.root)
    assert panel.status.text() == "Running"  # what runs is not finished by an edit
    number_formats_of(context).stop()


# --- runs of the profiler --------------------------------------------------------------------------------------


def test_an_earlier_run_that_was_repeated_has_its_sweep_too(context: Context) -> None:
    def run(batch: int, time: float) -> ProfileRun:
        return ProfileRun("torch", "fp32", "nchw", "cpu", batch, "16x8", time, 0.0, ())

    profiling = profiling_of(context)
    profiling.add(Profile(Machine("Test CPU", 2), "net", (run(1, 10.0), run(2, 12.0), run(1, 11.0))))
    first, _, repeated = profiling.entries
    for entry in (first, repeated):
        sweep = sweep_of(entry, profiling.entries, "batch")
        assert [found.time_ms for found in sweep.runs] == [entry.run.time_ms, 12.0]


@pytest.mark.parametrize("axis", ["batch", "size"])
def test_runs_of_a_network_before_and_after_an_edit_are_no_sweep(context: Context, axis: str) -> None:
    def profile(value: int, digest: str, *layers: tuple[str, str], learned: int = 9) -> Profile:
        rows = tuple(
            OperatorProfile((name,), "convolution", 1.0, parameters={name: {"dilation": text}}) for name, text in layers
        )
        batch, size = (value, "16x8") if axis == "batch" else (1, f"{8 * value}x8")
        origin = {"document_sha256": digest} if digest else {}
        run = ProfileRun(
            "torch", "fp32", "nchw", "cpu", batch, size, 10.0, 0.0, rows, learned=learned, provenance=origin
        )
        return Profile(Machine("Test CPU", 2), "net", (run,))

    profiling, two = profiling_of(context), (("a", "1"), ("b", "1"))
    both = OperatorProfile(("a", "b"), "convolution", 2.0, parameters={name: {"dilation": "1"} for name in "ab"})
    fused = replace(profile(3, "").runs[0], operators=(both,))
    for run in (
        profile(1, "before", *two),
        profile(2, "layers were moved", *two),
        replace(profile(3, ""), runs=(fused,)),  # of a file that does not say of which document it is
        profile(4, "before"),  # the document is equal, whatever its operators are
        profile(5, "after", ("a", "1"), ("b", "2")),
        profile(6, "after", ("a", "1"), ("b", "2")),
        profile(7, "shorter", ("a", "1")),
        profile(8, "wider", *two, learned=10),
    ):
        profiling.add(run)
    found = [sweep_of(entry, profiling.entries, axis) for entry in profiling.entries]
    joined = [
        sorted(entry.number for entry in profiling.entries if sweep and entry.run in sweep.runs) for sweep in found
    ]
    assert joined == [[1, 2, 3, 4], [1, 2, 3], [1, 2, 3], [1, 4], [5, 6], [5, 6], [], []]


@pytest.mark.parametrize("other_is_shown", [False, True])
def test_weights_that_a_launch_lacks_are_not_asked_for_another_document(
    context: Context, silent_engine: EngineClient, other_is_shown: bool
) -> None:
    profiling, title = profiling_of(context), context.root.title
    profiling.launch()
    opening = profiling._calls[0]
    if other_is_shown:
        context.set_document(Document(network(), context.registry, parent=context))
    opening.fail((Diagnostic("missing-weights", "the weight of conv is missing"),))
    assert profiling.state is (State.FAILED if other_is_shown else State.WEIGHTS)
    assert profiling.message.startswith(title) is other_is_shown


def test_a_network_that_cannot_be_opened_has_its_reason_in_the_prediction(
    context: Context, silent_engine: EngineClient
) -> None:
    told: list[str] = []
    profiling_of(context).predict(PredictRequest("", "fp32", 1, None, "adam"), told.append, told.append)
    opening, prediction = profiling_of(context)._prediction
    opening.fail((Diagnostic("cannot-read", "the file of weights cannot be read"),))
    prediction.fail((Diagnostic("nothing-open", "no network is open"),))
    assert [text.rstrip(".") for text in told] == ["The file of weights cannot be read"]


# --- training runs ---------------------------------------------------------------------------------------------


@pytest.fixture
def training(context: Context, tmp_path: Path) -> TrainingController:
    """The controller of a document whose project has no runs yet."""
    context.root.project = tmp_path / "project"
    return training_of(context)


def shown_run(training: TrainingController, project: Path) -> WatchedRun:
    run = WatchedRun(make_run(project, "a", settings={}))
    run.read()
    training._set_runs([run])
    training.choose((run,))
    return run


def test_a_step_whose_weights_cannot_be_read_is_not_said_to_be_shown(
    context: Context, training: TrainingController, silent_engine: EngineClient, qtbot: QtBot, tmp_path: Path
) -> None:
    run = shown_run(training, tmp_path / "project")
    trail = run.folder.trail
    trail.mkdir()
    frames = ({"step": step, "file": f"{step}.npz", "kind": "key"} for step in (0, 10))
    (trail / "index.jsonl").write_text("".join(json.dumps(frame) + "\n" for frame in frames))
    run.read()
    panel, machine = HealthPanel(context), time_machine_of(context)
    qtbot.addWidget(panel)
    with qtbot.waitSignal(machine.failed, timeout=WAIT):
        machine.go(run, 7)
    assert (machine.step, panel.step.value) == (None, 10)
    np.savez(trail / "0.npz", weight=np.zeros(3, np.float32))
    machine.go(run, 7)
    qtbot.waitUntil(lambda: not machine._job.running, timeout=WAIT)
    assert panel.step.value == 7
    assert "step 0 of the run" in panel.where.text()  # the last one that was recorded
    with qtbot.waitSignal(machine.failed, timeout=WAIT):
        machine.go(run, 12)
    assert (machine.step, panel.step.value) == (0, 0)


def test_weights_that_arrive_late_are_not_those_of_another_run(
    context: Context, training: TrainingController, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, released = time_machine_of(context), Event()
    elsewhere = tmp_path / "elsewhere"  # not the project of the document, whose runs are chosen when they are found
    runs = [WatchedRun(make_run(elsewhere, name, settings={})) for name in "ab"]
    for run in runs:
        run.folder.trail.mkdir()
        (run.folder.trail / "index.jsonl").write_text(json.dumps({"step": 0, "file": "0.npz", "kind": "key"}) + "\n")
        np.savez(run.folder.trail / "0.npz", weight=np.zeros(3, np.float32))
    real, shown = Trail.weights, []

    def weights(self: Trail, frame: Frame) -> dict[str, np.ndarray]:
        assert released.wait(WAIT / 1000)
        return real(self, frame)

    monkeypatch.setattr(Trail, "weights", weights)
    monkeypatch.setattr(analysis_of(context), "show_weights", lambda path: shown.append(machine._frame))
    machine.go(runs[0], 0)
    machine.leave()
    machine.go(runs[1], 0)
    released.set()
    qtbot.waitUntil(lambda: shown[-1] is not None, timeout=WAIT)
    assert [frame[0] for frame in shown if frame is not None] == [runs[1].folder.trail]


def test_weights_for_a_document_that_was_closed_are_given_up(
    context: Context, training: TrainingController, qtbot: QtBot, tmp_path: Path
) -> None:
    run, document = shown_run(training, tmp_path / "project"), context.root
    tensors = fill_missing(Weights(), required_weights(document.inference), 3).tensors
    save_weights(run.folder.path / "checkpoints" / "best", tensors)
    before = set(weight_versions().glob("*"))
    training.use_weights(run)
    context.set_document(Document(network(), context.registry, parent=context))
    shiboken6.delete(document)
    qtbot.waitUntil(lambda: not training.busy, timeout=WAIT)
    assert set(weight_versions().glob("*")) == before


def test_weights_are_those_of_the_document_that_they_were_asked_for(
    context: Context, training: TrainingController, qtbot: QtBot, tmp_path: Path
) -> None:
    run, document = shown_run(training, tmp_path / "project"), context.root
    save_weights(
        run.folder.path / "checkpoints" / "best",
        fill_missing(Weights(), required_weights(document.inference), 3).tensors,
    )
    document.change_settings(random_seed=5)
    training.use_weights(run)
    other = Document(network(), context.registry, parent=context)
    other.change_settings(random_seed=7)
    context.set_document(other)
    qtbot.waitUntil(lambda: not training.busy, timeout=WAIT)
    assert (other.settings.weights, other.settings.random_seed) == ("", 7)
    assert Path(document.settings.weights).parent == weight_versions()
    assert document.settings.random_seed is None


def test_edited_weights_for_a_document_that_was_closed_are_given_up(
    context: Context, silent_engine: EngineClient, tmp_path: Path
) -> None:
    document, edited = context.root, tmp_path / "edited.pt"
    document.change_settings(weights=str(tmp_path))
    edited.touch()
    surgery = weight_surgery_of(context)
    surgery.operate("identity", "conv")
    call = surgery._call
    context.set_document(Document(network(), context.registry, parent=context))
    shiboken6.delete(document)
    call.finish(SurgeryReply(call.request.document, "Insert", str(edited), "function kept", True))
    assert not edited.exists()


def test_a_run_that_is_deleted_while_the_folders_are_read_does_not_come_back(
    context: Context, training: TrainingController, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qtbot.waitUntil(lambda: not training._reading.running, timeout=WAIT)
    run, real, entered, released = shown_run(training, tmp_path / "project"), WatchedRun.read, Event(), Event()

    def read(self: WatchedRun) -> bool:
        entered.set()
        assert released.wait(WAIT / 1000)
        return real(self)

    monkeypatch.setattr(WatchedRun, "read", read)
    training.look()
    qtbot.waitUntil(entered.is_set, timeout=WAIT)
    training.delete(run)
    released.set()
    qtbot.waitUntil(lambda: not training._reading.running, timeout=WAIT)
    assert training.runs == []


def test_nothing_of_a_sweep_that_trains_is_deleted(
    context: Context, training: TrainingController, qtbot: QtBot, tmp_path: Path
) -> None:
    sweep = Sweep(tmp_path / "sweep", tuple(trials([Axis.parse("lr=0.1,0.2")], 0)), {})
    folder = make_run(sweep.project(sweep.trials[0]), sweep.trials[0].name, settings={})
    run, snapshot = WatchedRun(folder), SweepSnapshot(sweep, RunState.RUNNING)
    run.read()
    training._set_runs([run], {sweep.folder: snapshot})
    panel = TrainingRunsPanel(context)
    qtbot.addWidget(panel)
    panel.table.setCurrentIndex(panel.model.index_of(panel.model.items[0]))
    assert run.snapshot.state is RunState.FINISHED
    assert not panel._buttons["delete"].isEnabled()
    with Popen((sys.executable, "-c", "input()"), stdin=-1) as process:
        sweep.job.record_process(process.pid)
        training.delete_sweep(snapshot)
        process.kill()
    assert "Stop it first" in training.problem
    assert folder.path.exists()


def test_the_project_of_the_latest_run_is_offered_when_the_runs_are_known(
    context: Context, training: TrainingController, qtbot: QtBot, tmp_path: Path
) -> None:
    panel = TrainingPanel(context)
    qtbot.addWidget(panel)
    assert panel.project.text() == str(tmp_path / "project")
    shown_run(training, tmp_path / "elsewhere")
    assert panel.project.text() == str(tmp_path / "elsewhere")
    panel.project.setText("mine")
    shown_run(training, tmp_path / "another")
    assert panel.project.text() == "mine"


def test_commands_that_wait_for_a_run_that_is_being_started_are_disabled(
    context: Context, training: TrainingController, qtbot: QtBot, tmp_path: Path
) -> None:
    run, released = shown_run(training, tmp_path / "project"), Event()
    for name in ("best", "last"):
        save_weights(run.folder.path / "checkpoints" / name, {})
    progress, panel = RunProgress(training), TrainingRunsPanel(context)
    for widget in (progress, panel):
        qtbot.addWidget(widget)
    enabled = progress.use.isEnabled(), panel._buttons["extend"].isEnabled()
    training._work(lambda: released.wait(WAIT / 1000), lambda _: None)
    assert not any(button.isEnabled() for button in (progress.use, progress.resume, panel._buttons["extend"]))
    released.set()
    qtbot.waitUntil(lambda: not training.busy, timeout=WAIT)
    assert (progress.use.isEnabled(), panel._buttons["extend"].isEnabled()) == enabled
    assert enabled[0]


@pytest.mark.parametrize("axis", ["batch", "size"])
def test_a_sweep_is_of_one_network_on_one_machine_in_whatever_file(context: Context, tmp_path: Path, axis: str) -> None:
    profiling = profiling_of(context)
    for number, (network, machine, file) in enumerate(
        (
            ("net", "one", ""),
            ("net", "one", "a.json"),
            ("net", "two", "a.json"),
            ("other", "one", "a.json"),
            ("net", "one", "b.json"),
            ("net", "two", ""),
            ("other", "two", ""),
        ),
        1,
    ):
        batch, size = (number, "16x8") if axis == "batch" else (1, f"{8 * number}x8")
        run = ProfileRun("torch", "fp32", "nchw", "cpu", batch, size, 10.0, 0.0, ())
        profiling.add(Profile(Machine(machine, 2), network, (run,)), tmp_path / file if file else None)
    found = [sweep_of(entry, profiling.entries, axis) for entry in profiling.entries]
    joined = [[entry.number for entry in profiling.entries if sweep and entry.run in sweep.runs] for sweep in found]
    assert joined == [[1, 2, 5], [1, 2, 5], [3, 6], [], [1, 2, 5], [3, 6], []]
