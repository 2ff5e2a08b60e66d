"""What a launch of the profiler asks the engine for, and what it makes of failures, without an engine that answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from weakref import ref

import msgspec
import numpy as np
import pytest

pytest.importorskip("PySide6")
from analysis_kit import picture, silent_engine
from engine_kit import ScriptedEngine
from pytestqt.qtbot import QtBot
from runtime_networks import chain

from app.engine.protocol import (
    OpenReply,
    OpenRequest,
    PredictReply,
    PredictRequest,
    ProfileReply,
    ProfileRequest,
    RemeasureRequest,
    SetInputRequest,
    TensorStatus,
)
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController, State, profiling_of
from app.ui.engine.requests import open_request, open_variant
from designer.files.document import write_document
from designer.files.variants import Variant
from designer.files.weights import WeightStatus
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import INSTANCE, Template
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.profile_files import load_profile, save_profile
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

pytestmark = pytest.mark.gui
__all__ = ["silent_engine"]


@pytest.fixture
def context(qtbot: QtBot, tmp_path: Path) -> Context:
    """An open network with an image."""
    made = Context(default_registry())
    network = chain(("conv", "convolution", {"features": 4}), size="16x8x3")
    made.set_document(Document(network, made.registry, parent=made))
    made.root.change_settings(input_files={"image": str(picture(tmp_path))}, random_seed=1)
    return made


@pytest.fixture
def profiling(context: Context, silent_engine: EngineClient) -> ProfilingController:
    return profiling_of(context)


def profile_of(*batches: int) -> Profile:
    runs = (ProfileRun("torch", "fp32", "nchw", "cpu", batch, "16x8", 5.0, 0.0, ()) for batch in batches)
    return Profile(Machine("Test CPU", 2), "net", tuple(runs))


def measured(opening: OpenRequest) -> OpenRequest:
    """How the network of a run is opened: in the configuration of the run."""
    return msgspec.structs.replace(opening, engine="torch", precision="fp32", layout="nchw")


def test_everything_that_is_chosen_is_in_the_request_of_a_launch(
    context: Context, profiling: ProfilingController, tmp_path: Path
) -> None:
    profiling.grid = {
        "engines": "torch,onnxruntime", "precisions": "fp16", "layouts": "nhwc", "batches": "1,4", "sizes": "32x24,16x8"
    }  # fmt: skip
    profiling.training = True
    variant = Variant("half", "fp16", passes=("fold_constants",))
    context.root.change_settings(iterations=7, threads=3, variants=(variant,), variant="half")
    profiling.launch()
    opening, feeding, asked = (call.request for call in profiling._calls)
    assert opening == open_variant(context.root)
    assert feeding == SetInputRequest("image", str(tmp_path / "picture.png"))
    assert asked == ProfileRequest(
        7, (1, 4), ((32, 24), (16, 8)), ("torch", "onnxruntime"), ("fp16",), ("nhwc",), partial=str(profiling.partial_file),
        training=True,
    )  # fmt: skip
    assert profiling.state is State.RUNNING
    calls = list(profiling._calls)
    profiling.launch()
    assert profiling._calls == calls  # one at a time
    calls[-1].finish(ProfileReply(profile_of(1, 4)))
    assert profiling.state is State.IDLE
    assert [(entry.run.batch, entry.opening, entry.may_be_of(context.root)) for entry in profiling.entries] == [
        (1, measured(opening), True), (4, measured(opening), True)
    ]  # fmt: skip
    profiling.grid = {"batches": "none"}
    profiling.launch()
    assert profiling.state is State.FAILED
    assert "'none' cannot be read" in profiling.message


def test_two_runs_are_measured_again_as_they_were(context: Context, profiling: ProfilingController) -> None:
    profiling.launch()
    first = profiling._calls[0].request
    profiling._calls[-1].finish(ProfileReply(profile_of(1, 4)))
    context.root.change_settings(engine="torch", threads=5, iterations=9)
    profiling.launch()
    second = profiling._calls[0].request
    assert second.engine == "torch"
    profiling._calls[-1].finish(ProfileReply(profile_of(2)))
    profiling.add(profile_of(8))  # of a file
    pair = (profiling.entries[1], profiling.entries[2])
    profiling.remeasure(pair)
    (call,) = profiling._calls
    assert isinstance(call.request, RemeasureRequest)
    assert [(each.opening, each.batch, each.size) for each in call.request.networks] == [
        (measured(first), 4, (16, 8)),
        (second, 2, (16, 8)),
    ]
    assert (call.request.iterations, call.request.partial) == (9, str(profiling.partial_file))
    assert "#2 and #3" in profiling.message
    call.finish(ProfileReply(profile_of(4, 2)))
    assert profiling.compared == (profiling.entries[-2], profiling.entries[-1])
    assert [entry.opening for entry in profiling.entries[-2:]] == [measured(first), second]
    assert [entry.document for entry in profiling.entries[-2:]] == [ref(context.root)] * 2
    file = profiling.entries[3]
    assert profiling.why_not_in_turns((pair[0], file)) == "#4 was not measured in this session."
    assert not profiling.why_not_in_turns(pair)
    profiling.remeasure((pair[0], file))
    assert profiling.state is State.IDLE


@pytest.mark.parametrize(
    ("code", "state", "message"),
    [
        ("cancelled", State.IDLE, "Stopped."),
        ("weights-missing", State.WEIGHTS, "It failed."),
        ("out-of-memory", State.FAILED, "It failed."),
    ],
)
def test_a_launch_that_fails_keeps_what_was_measured(
    profiling: ProfilingController, code: str, state: State, message: str
) -> None:
    profiling.launch()
    save_profile(profiling.partial_file, profile_of(3))
    profiling._calls[-1].fail((Diagnostic(code, "it failed"),))
    assert (profiling.state, profiling.message) == (state, message)
    assert [entry.run.batch for entry in profiling.entries] == [3]
    assert not profiling.partial_file.exists()
    profiling.launch()
    save_profile(profiling.partial_file, profile_of(5))
    profiling.stop()
    assert (profiling.state, profiling.message) == (State.IDLE, "Stopped.")
    assert [entry.run.batch for entry in profiling.entries] == [3, 5]
    root = profiling.context.root
    for entry in profiling.entries:
        assert (entry.opening, entry.document, entry.path) == (measured(open_variant(root)), ref(root), None)
    assert profiling.why_not_in_turns((profiling.entries[0], profiling.entries[1])) == ""
    profiling.partial_file.write_text("of an earlier launch")
    profiling.launch()
    assert not profiling.partial_file.exists()


@pytest.mark.parametrize("ends", ["stopped", "out-of-memory", "weights-missing", "not-agreed"])
def test_two_networks_that_were_measured_in_part_can_be_measured_again(
    context: Context, profiling: ProfilingController, ends: str
) -> None:
    """Of two runs in turns the first one was measured, or both in part; each stays that of its network."""
    first = context.root
    profiling.launch()
    profiling._calls[-1].finish(ProfileReply(profile_of(1)))
    second = Document(chain(("conv", "convolution", {"features": 2}), size="16x8x3"), context.registry, parent=context)
    second.change_settings(random_seed=1)
    context.set_document(second)
    profiling.launch()
    profiling._calls[-1].finish(ProfileReply(profile_of(2)))
    pair = (profiling.entries[0], profiling.entries[1])
    asked: list[object] = []
    context.agreement_wanted.connect(asked.append)
    for batches in ((1,), (1, 2)):
        context.set_document(first if len(batches) == 1 else second)
        profiling.remeasure(pair)
        (call,) = profiling._calls
        assert profiling.state is State.RUNNING
        profiling.remeasure((pair[1], pair[0]))
        assert profiling._calls == [call]  # one at a time
        save_profile(profiling.partial_file, profile_of(*batches))
        if ends == "stopped":
            profiling.stop()
            assert call.cancelled
        else:
            call.fail((Diagnostic(ends, "it failed"),))  # of no single document: nobody is asked for weights or consent
            assert (profiling.state, profiling.message, asked) == (State.FAILED, "It failed.", [])
        made = profiling.entries[-len(batches) :]
        documents = (first, second)
        assert [(entry.run.batch, entry.opening, entry.document) for entry in made] == [
            (batch, measured(open_variant(document)), ref(document))
            for batch, document in zip(batches, documents, strict=False)
        ]
        assert [entry.may_be_of(second) for entry in made] == [False, True][: len(batches)]
    assert profiling.compared is None
    assert [entry.number for entry in profiling.entries] == [1, 2, 3, 4, 5]


ENDS = {
    "cancelled": (State.IDLE, "Stopped.", 0), "weights-missing": (State.WEIGHTS, "It failed.", 0),
    "not-agreed": (State.FAILED, "It failed.", 1), "out-of-memory": (State.FAILED, "It failed.", 0),
}  # fmt: skip


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("code", ENDS)
def test_only_the_document_of_a_launch_is_asked_for_weights_and_consent(
    context: Context, profiling: ProfilingController, code: str, left: bool
) -> None:
    asked: list[object] = []
    said: list[tuple[str, str]] = []
    context.agreement_wanted.connect(asked.append)
    context.message.connect(lambda level, text: said.append((level, text)))
    context.root.path = Path("/nets/first.xml")
    profiling.launch()
    call = profiling._calls[-1]
    if left:
        context.set_document(Document(chain(), context.registry, parent=context))
        assert profiling.running
    call.fail((Diagnostic("note", "a note", Severity.INFO), Diagnostic(code, "it failed")))
    state, message, count = ENDS[code]
    if left and code != "cancelled":
        state, message = State.FAILED, "first.xml: It failed."
    assert (profiling.state, profiling.message, len(asked)) == (state, message, 0 if left else count)
    assert said == ([("error", message)] if state is State.FAILED else [])


@pytest.mark.parametrize("left", [True, False])
def test_a_network_that_lacks_weights_is_said_of_its_document(
    context: Context, profiling: ProfilingController, left: bool
) -> None:
    profiling.launch()
    opening = profiling._calls[0]
    title = context.root.title
    if left:
        context.set_document(Document(chain(), context.registry, parent=context))
    opening.finish(OpenReply((TensorStatus("conv", "kernel", WeightStatus.MISSING, (4, 3, 3, 3)),)))
    assert profiling.state is (State.FAILED if left else State.WEIGHTS)
    assert profiling.message.startswith(f"{title}: " if left else "")
    assert all(call.cancelled for call in profiling._calls[1:])


def test_a_network_that_has_errors_is_not_asked_for_weights(profiling: ProfilingController) -> None:
    """The launch says what is wrong first."""
    missing = (TensorStatus("conv", "kernel", WeightStatus.MISSING, (4, 3, 3, 3)),)
    wrong, note = (Diagnostic("x", "it is so", severity) for severity in (Severity.ERROR, Severity.WARNING))
    for report, found, state in (
        (missing, (note,), State.WEIGHTS),
        (missing, (note, wrong), State.RUNNING),
        ((), (), State.RUNNING),
    ):
        profiling.stop()
        profiling.launch()
        profiling._calls[0].finish(OpenReply(report, "", found))
        assert profiling.state is state
        assert all(call.cancelled for call in profiling._calls[1:]) is (state is State.WEIGHTS)


def test_runs_without_an_image_size_are_measured_again_at_their_own(profiling: ProfilingController) -> None:
    profiling.launch()
    runs = tuple(replace(run, size=size) for run, size in zip(profile_of(2, 3).runs, ("", "24x8"), strict=True))
    profiling._calls[-1].finish(ProfileReply(replace(profile_of(1), runs=runs)))
    first, second = profiling.entries
    profiling.remeasure((second, first))
    (call,) = profiling._calls
    assert [(each.batch, each.size) for each in call.request.networks] == [(3, (24, 8)), (2, None)]


def test_weights_that_are_chosen_after_a_refusal_are_settings(
    context: Context, profiling: ProfilingController, tmp_path: Path
) -> None:
    np.save(tmp_path / "conv_kernel.npy", np.ones(1, np.float32))
    profiling.choose_weights(tmp_path)
    assert (context.root.settings.weights, context.root.settings.random_seed) == (str(tmp_path), None)
    assert profiling._calls[0].request.weights == str(tmp_path)
    profiling.stop()
    profiling.launch_random(5)
    assert context.root.settings.random_seed == 5
    assert profiling._calls[0].request.seed == 5


# --- the list of runs -------------------------------------------------------------------------------------------------


def with_template() -> Graph:
    """A convolution, and an instance of a template with another one."""
    conv = {"features": "4"}
    inner = (
        Layer("x", "template_input"),
        Layer("inside", "convolution", (320, 0), (Source("x"),), conv),
        Layer("y", "template_output", (640, 0), (Source("inside"),)),
    )
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("conv", "convolution", (320, 0), (Source("image"),), conv),
        Layer("block", INSTANCE, (640, 0), (Source("conv"),), {"template": "pair"}),
        Layer("result", "output", (960, 0), (Source("block"),)),
    ]
    return Graph(layers, templates=[Template("pair", inner)])


def run_of(*steps: str, **more: object) -> ProfileRun:
    """A run with a row for each step: layers with a plus between them, or nothing."""
    rows = (
        OperatorProfile(tuple(filter(None, step.split("+"))), "convolution", 1.0 + n) for n, step in enumerate(steps)
    )
    made = {
        "engine": "torch",
        "precision": "fp32",
        "layout": "nchw",
        "device": "cpu",
        "batch": 1,
        "size": "16x8",
    } | more
    return ProfileRun(**made, time_ms=5.0, spread_ms=0.0, operators=tuple(rows))  # type: ignore[arg-type]


class Listed:
    """The controller with what it says; `state` is everything that it shows, `said` what it said since."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.engine = ScriptedEngine()
        context.engine = self.engine  # type: ignore[assignment]
        self.profiling = profiling = profiling_of(context)
        self.said: list[str] = []
        profiling.entries_changed.connect(lambda: self.said.append("entries"))
        profiling.current_changed.connect(lambda entry: self.said.append(f"current {entry and entry.number}"))
        profiling.rows_changed.connect(lambda: self.said.append("rows"))
        profiling.compared_changed.connect(lambda: self.said.append("compared"))
        profiling.state_changed.connect(lambda state, text: self.said.append(f"{state} {text}".strip()))
        context.message.connect(lambda level, text: self.said.append(f"{level}: {text}"))

    def heard(self) -> list[str]:
        found, self.said = self.said, []
        return found

    def shows(self) -> tuple[list[int], int | None, tuple[int, ...] | None, list[str], str]:
        """Runs, the shown one, the compared ones, the chosen rows of the shown one, and the selection."""
        profiling = self.profiling
        current, pair = profiling.current, profiling.compared
        own = [id(row) for row in current.run.operators] if current is not None else []
        assert all(id(row) in own for row in profiling.chosen_rows), "a row of another run is chosen"
        return (
            [entry.number for entry in profiling.entries],
            current.number if current is not None else None,
            tuple(entry.number for entry in pair) if pair is not None else None,
            [row.name for row in profiling.chosen_rows],
            " ".join(self.context.selection),
        )


@pytest.fixture
def listed(qtbot: QtBot) -> Listed:
    context = Context(default_registry())
    context.set_document(Document(with_template(), context.registry, parent=context))
    return Listed(context)


def test_the_chosen_rows_are_those_of_the_selected_layers_in_the_shown_run(listed: Listed) -> None:
    """And the selected layers those of chosen rows, in every order of steps."""
    context, profiling = listed.context, listed.profiling
    context.select(("conv",))
    assert listed.heard() == ["rows"]
    assert listed.shows() == ([], None, None, [], "conv")
    profile = Profile(
        Machine("Test CPU", 2), "net", (run_of("conv+block.inside", "block.inside", ""), run_of("", "conv"))
    )
    profiling.add(profile)
    assert listed.heard() == ["entries", "current 2"]
    assert listed.shows() == ([1, 2], 2, None, ["conv"], "conv")
    first, second = profiling.entries
    profiling.show(second)
    assert listed.heard() == []
    profiling.show(first)
    assert listed.heard() == ["current 1"]
    assert listed.shows() == ([1, 2], 1, None, ["conv + block.inside"], "conv")
    context.select(("block",))
    assert listed.heard() == ["rows"]
    assert listed.shows()[3:] == (["conv + block.inside", "block.inside"], "block")
    assert context.enter("block")
    assert listed.shows()[3:] == ([], "")
    context.select(("inside",))
    assert listed.shows()[3:] == (["conv + block.inside", "block.inside"], "inside")
    context.leave()
    assert listed.shows()[3:] == (["conv + block.inside", "block.inside"], "block")
    listed.heard()
    rows = first.run.operators
    profiling.choose_rows((rows[1], rows[2]))
    assert listed.heard() == ["rows"]
    assert listed.shows()[3:] == (["block.inside", ""], "block")
    profiling.choose_rows(rows)
    assert listed.shows()[3:] == (["conv + block.inside", "block.inside", ""], "conv block")
    context.select(("conv",))
    assert listed.shows()[3:] == (["conv + block.inside"], "conv")
    profiling.choose_rows((rows[2],))
    assert listed.shows()[3:] == ([""], "")
    context.select(("block",))
    profiling.show(second)
    assert listed.shows() == ([1, 2], 2, None, [], "block")
    listed.heard()
    profiling.show(None)
    assert listed.heard() == ["current None"]
    assert listed.shows() == ([1, 2], None, None, [], "block")
    context.select(("conv",))
    assert listed.shows() == ([1, 2], None, None, [], "conv")
    profiling.show(first)
    assert listed.shows() == ([1, 2], 1, None, ["conv + block.inside"], "conv")
    other = Document(Graph([Layer("image", "input")]), context.registry, parent=context)
    context.set_document(other)
    assert listed.shows() == ([1, 2], 1, None, [], "")
    profiling.choose_rows((rows[0],))
    assert listed.shows()[3:] == (["conv + block.inside"], "")


def test_removed_runs_leave_the_list_the_comparison_and_what_is_shown(listed: Listed) -> None:
    profiling = listed.profiling
    profiling.add(Profile(Machine("Test CPU", 2), "net", tuple(run_of("conv", batch=batch) for batch in range(1, 7))))
    entries = list(profiling.entries)
    listed.heard()

    def remove(number: int) -> list[str]:
        profiling.remove(entries[number - 1])
        return listed.heard()

    profiling.show(entries[2])
    profiling.compare((entries[1], entries[2]))
    assert listed.heard() == ["current 3", "compared"]
    profiling.compare((entries[1], entries[2]))
    assert listed.heard() == []
    assert remove(5) == ["entries"]
    assert listed.shows()[:3] == ([1, 2, 3, 4, 6], 3, (2, 3))
    assert remove(3) == ["compared", "entries", "current 6"]
    assert listed.shows()[:3] == ([1, 2, 4, 6], 6, None)
    profiling.compare((entries[3], entries[0]))
    assert listed.heard() == ["compared"]
    assert remove(4) == ["compared", "entries"]
    assert listed.shows()[:3] == ([1, 2, 6], 6, None)
    assert remove(6) == ["entries", "current 2"]
    profiling.show(entries[0])
    listed.heard()
    assert remove(1) == ["entries", "current 2"]
    profiling.add(Profile(Machine("Test CPU", 2), "net", (run_of("conv"),)))
    assert listed.heard() == ["entries", "current 7"], "numbers are not given twice"
    assert remove(2) == ["entries"]
    profiling.remove(profiling.entries[0])
    assert listed.heard() == ["entries", "current None"]
    assert listed.shows()[:3] == ([], None, None)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (("conv", "block.inside", ""), ""),
        (("conv", "gone"), "1 step of this profile is not in the open network: gone"),
        (("a", "b", "c"), "3 steps of this profile are not in the open network: a, b, c"),
        (("a", "conv", "b", "c", "d"), "4 steps of this profile are not in the open network: a, b, c ..."),
    ],
)
def test_a_file_of_another_network_says_what_is_not_in_the_open_one(
    listed: Listed, tmp_path: Path, steps: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "profile.json"
    save_profile(path, Profile(Machine("Test CPU", 2), "net", (run_of("unknown"), run_of(*steps))))
    assert listed.profiling.open_file(path)
    assert listed.heard() == ["entries", "current 2", *([f"warning: {said}"] if said else [])]
    for entry in listed.profiling.entries:
        assert entry.path == path
        assert entry.opening is None
        assert entry.may_be_of(listed.context.root)


def test_one_run_is_saved_and_what_cannot_be_read_or_written_says_why(listed: Listed, tmp_path: Path) -> None:
    profiling = listed.profiling
    profiling.add(Profile(Machine("Test CPU", 2), "net", tuple(run_of("conv", batch=batch) for batch in (1, 4, 8))))
    listed.heard()
    for entry in profiling.entries:
        path = tmp_path / f"{entry.number}.json"
        assert profiling.save_file(path, entry)
        assert listed.heard() == [f"info: Saved {path.name}"]
        assert [run.batch for run in load_profile(path).runs] == [entry.run.batch]
    (tmp_path / "bad.json").write_text("{")
    for running in (False, True):
        if running:
            profiling._set_state(State.RUNNING, "Timing the network ...")
            listed.heard()
        for act in (
            lambda: profiling.open_file(tmp_path / "bad.json"),
            lambda: profiling.save_file(tmp_path / "missing" / "a.json", profiling.entries[0]),
        ):
            assert act() is False
            heard = listed.heard()
            (error,) = (text.removeprefix("error: ") for text in heard if text.startswith("error: "))
            assert heard == ([f"failed {error}"] if not running else []) + [f"error: {error}"]
            if running:
                assert (profiling.state, profiling.message) == (State.RUNNING, "Timing the network ...")
            else:
                assert (profiling.state, profiling.message) == (State.FAILED, error)
    assert [entry.number for entry in profiling.entries] == [1, 2, 3]


def test_a_run_is_opened_again_in_the_configuration_that_was_measured(listed: Listed) -> None:
    """A launch measures several engines, precisions and layouts; its request names one of each."""
    profiling, engine = listed.profiling, listed.engine
    listed.context.root.change_settings(random_seed=1)
    profiling.launch()
    opening = engine.requests(OpenRequest)[0]
    runs = (
        run_of("conv"),
        run_of("conv", engine="openvino"),
        run_of("conv", precision="fp16"),
        run_of("conv", layout="nhwc"),
    )
    engine.next(ProfileRequest).finish(ProfileReply(Profile(Machine("Test CPU", 2), "net", runs)))
    for entry in profiling.entries:
        made = (entry.run.engine, entry.run.precision, entry.run.layout)
        assert entry.opening is not None
        assert (entry.opening.engine, entry.opening.precision, entry.opening.layout) == made
        assert entry.opening == msgspec.structs.replace(opening, engine=made[0], precision=made[1], layout=made[2])
    file = Profile(Machine("Test CPU", 2), "net", (run_of("conv"),))
    profiling.add(file)
    one, other = profiling.entries[0], profiling.entries[-1]
    for pair in ((one, other), (other, one)):
        assert profiling.why_not_in_turns(pair) == "#5 was not measured in this session."
    assert profiling.why_not_in_turns((one, profiling.entries[1])) == ""


def test_each_run_has_its_opening_and_document_or_the_last_ones(listed: Listed) -> None:
    """A variant that runs as it is deployed is opened so again, whatever its run says."""
    profiling, context = listed.profiling, listed.context
    others = [Document(Graph(), context.registry, parent=context) for _ in "ab"]
    plain, deployed = open_variant(context.root), OpenRequest("text", deployed=Variant("calibrated", "int8"))
    runs = tuple(run_of("conv", engine=name, precision="bf16", layout="nhwc") for name in ("torch", "openvino", "x"))
    profile = Profile(Machine("Test CPU", 2), "net", runs)

    def added(openings: tuple[OpenRequest, ...], documents: tuple[ref[Document] | None, ...]) -> list[object]:
        before = len(profiling.entries)
        profiling.add(profile, None, openings, documents)
        assert profiling.current is profiling.entries[-1]
        return [(entry.run, entry.opening, entry.document) for entry in profiling.entries[before:]]

    def replaced(number: int) -> OpenRequest:
        run = runs[number]
        return msgspec.structs.replace(plain, engine=run.engine, precision="bf16", layout="nhwc")

    first, second = (ref(document) for document in others)
    assert added((), ()) == [(run, None, None) for run in runs]
    assert added((plain,), (first,)) == [(run, replaced(number), first) for number, run in enumerate(runs)]
    assert added((plain, deployed), (first, second)) == [
        (runs[0], replaced(0), first), (runs[1], deployed, second), (runs[2], deployed, second)
    ]  # fmt: skip
    assert added((deployed, plain), (None, second)) == [
        (runs[0], deployed, None), (runs[1], replaced(1), second), (runs[2], replaced(2), second)
    ]  # fmt: skip


@pytest.mark.parametrize("leave", [False, True])
@pytest.mark.parametrize("end", ["answer", "refuse", "stop"])
def test_a_prediction_ends_once_and_is_not_heard_of_in_another_document(listed: Listed, leave: bool, end: str) -> None:
    context, profiling, engine = listed.context, listed.profiling, listed.engine
    said: list[str] = []
    request = PredictRequest("", "fp32", 1, None, "adam")
    expected = open_request(context.root.settings, write_document(context.root.graph).decode())
    profiling.predict(request, lambda reply: said.append("done"), said.append)
    assert engine.requests() == [expected, request]
    if leave:
        context.set_document(Document(Graph(), context.registry, parent=context))
    opening, asked = list(engine.calls)
    note, problem = Diagnostic("note", "a note", Severity.INFO), Diagnostic("no-weights", "it has no weights")
    if end == "answer":
        opening.finish(OpenReply())
        asked.finish(PredictReply(Profile(Machine("Test CPU", 2), "net", (run_of("conv"),)), ()))
        wanted = ["done"]
    elif end == "refuse":
        opening.fail((note, problem))
        asked.fail((problem,))
        wanted = ["It has no weights."]
    else:
        profiling.stop_prediction()
        wanted = ["The work was cancelled. Launch it again."]
    assert [text.rstrip(".") for text in said] == ([] if leave else [text.rstrip(".") for text in wanted])


def test_what_was_said_of_a_document_is_over_in_another_one(listed: Listed) -> None:
    profiling, context = listed.profiling, listed.context
    for state in State:
        profiling._set_state(state, "a sentence")
        context.set_document(Document(Graph(), context.registry, parent=context))
        running = state is State.RUNNING
        assert (profiling.state, profiling.message) == ((state, "a sentence") if running else (State.IDLE, ""))


def test_a_launch_that_is_stopped_forgets_what_an_earlier_one_measured(listed: Listed) -> None:
    profiling = listed.profiling
    listed.context.root.change_settings(random_seed=1)
    profiling.launch()
    save_profile(profiling.partial_file, profile_of(3))
    profiling.stop()
    assert [entry.run.batch for entry in profiling.entries] == [3]
    profiling.partial_file.write_text("not a profile")
    profiling.launch()
    profiling.stop()
    assert [entry.run.batch for entry in profiling.entries] == [3]
    assert not any(text.startswith("warning") for text in listed.heard())
    profiling.launch()
    profiling.partial_file.write_text("not a profile")
    profiling.stop()
    assert [text for text in listed.heard() if text.startswith("warning")]
    assert not profiling.partial_file.exists()
    profiling.stop()
    assert listed.heard() == [], "nothing runs"


def test_without_a_document_profiles_can_be_read_but_nothing_is_measured(qtbot: QtBot, tmp_path: Path) -> None:
    context = Context(default_registry())
    listed, profiling = Listed(context), profiling_of(context)
    save_profile(tmp_path / "profile.json", Profile(Machine("Test CPU", 2), "net", (run_of("conv"),)))
    assert profiling.open_file(tmp_path / "profile.json")
    assert listed.heard() == ["entries", "current 1"]
    profiling.set_iterations(7)
    assert profiling.iterations() == 10
    profiling.launch()
    profiling.choose_rows(profiling.entries[0].run.operators)
    assert listed.heard() == ["rows"]
    assert [row.name for row in profiling.chosen_rows] == ["conv"]
    assert (listed.engine.calls, profiling.state) == ([], State.IDLE)
    context.set_document(Document(with_template(), context.registry, parent=context))
    profiling.set_iterations(7)
    assert (context.root.settings.iterations, profiling.iterations()) == (7, 7)
