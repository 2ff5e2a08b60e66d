"""What a launch of the profiler asks the engine for, and what it makes of failures, without an engine that answers."""

from __future__ import annotations

from pathlib import Path
from weakref import ref

import msgspec
import numpy as np
import pytest

pytest.importorskip("PySide6")
from analysis_kit import picture, silent_engine
from pytestqt.qtbot import QtBot
from runtime_networks import chain

from app.engine.protocol import (
    OpenReply,
    OpenRequest,
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
from app.ui.engine.requests import open_variant
from designer.files.variants import Variant
from designer.files.weights import WeightStatus
from designer.graph.diagnostics import Diagnostic, Severity
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.profile_files import save_profile
from designer.profiling.schema import Profile, ProfileRun

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
    profiling.partial_file.write_text("of an earlier launch")
    profiling.launch()
    assert not profiling.partial_file.exists()


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
