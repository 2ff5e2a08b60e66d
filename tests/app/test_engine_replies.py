"""Whole replies of the engine process, with stand-ins for what measures, and its queue without a process."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.engine import counted_run, queries, runs, worker
from app.engine.protocol import (
    MAX_LINE,
    VERSION,
    BitsReply,
    BlamedOperator,
    BlameReply,
    BlameRequest,
    CompareTensorRequest,
    DoneEvent,
    EmptyReply,
    FailedEvent,
    GradientReply,
    GradientRequest,
    InterruptRequest,
    LayerBits,
    NonfiniteShare,
    PingReply,
    PingRequest,
    PredictRequest,
    ProgressEvent,
    QuitRequest,
    ReadyEvent,
    ReceptiveFieldReply,
    ReceptiveFieldRequest,
    RunReply,
    RunRequest,
    RunStep,
    SizePoint,
    SupersededEvent,
    TraceReply,
    TrainingMemoryRow,
    asked,
    line_of,
    read_event,
    read_reply,
)
from app.engine.runs import Runs
from app.engine.worker import Server
from designer.files.document import parse_document, write_document
from designer.files.variants import Variant
from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.runtime.api import RunOptions
from designer.runtime.interrupt import InterruptedRunError
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder

QUIET: Any = lambda *each: None  # noqa: E731


def put(arrays: Any) -> dict[str, Any]:
    """Handles that say which array they are of."""
    return {name: ("handle", array) for name, array in arrays.items()}


def calls(monkeypatch: pytest.MonkeyPatch, name: str, result: Any) -> list[tuple[Any, ...]]:
    """The arguments of the calls of a function of `queries`, which returns `result`."""
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(queries, name, lambda *each: found.append(each) or result)
    return found


# --- queries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [None, (1, 2, 3)])
def test_a_gradient(monkeypatch: pytest.MonkeyPatch, at: Any) -> None:
    seen = calls(monkeypatch, "gradient", SimpleNamespace(array="slope", note="only a part"))
    reply = queries.gradient_to_input("session", GradientRequest("conv:1", "image", at), put)  # type: ignore[arg-type]
    assert seen == [("session", Source("conv", "1"), "image", at)]
    assert reply == GradientReply(("handle", "slope"), "only a part")  # type: ignore[arg-type]


def test_a_receptive_field(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = calls(monkeypatch, "receptive", SimpleNamespace(box=(1, 2, 3, 4), source="measured", note="slow"))
    reply = queries.receptive_field("session", ReceptiveFieldRequest("conv:1", 5, 6, "image"))  # type: ignore[arg-type]
    assert seen == [("session", Source("conv", "1"), 5, 6, "image")]
    assert reply == ReceptiveFieldReply((1, 2, 3, 4), "measured", "slow")


def test_what_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(kind="inf", share=0.25, nan=3, inf=5)
    for trace, reply in (
        (SimpleNamespace(layer="log", found=found, checked=("a", "log"), note="n"), TraceReply("log", "inf", 0.25, ("a", "log"), "n")),
        (SimpleNamespace(layer="log", found=None, checked=("a",), note="n"), TraceReply("log", "", 0.0, ("a",), "n")),
    ):  # fmt: skip
        calls(monkeypatch, "trace_nonfinite", trace)
        assert queries.first_nonfinite("session") == reply  # type: ignore[arg-type]


def network() -> Session:
    layers = [
        Layer("image", "input", params={"dims": "8x4x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "2", "kernel": "1x1"}),
        Layer("result", "output", inputs=(Source("conv"),)),
    ]
    session = Session(
        Graph(layers, name="net"), default_registry(), Weights(), RunOptions("torch", "fp32", "nhwc", "cpu", 1)
    )
    session.set_input("image", np.ones((1, 3, 4, 8), np.float32), is_image=False)
    session.options = replace(session.options, formats=(("conv", "int8"),))
    return session


def test_a_prediction_is_of_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    session, seen = network(), []

    def predicted(graph: Any, registry: Any, options: Any, **more: Any) -> Any:
        seen.append((graph.name, registry, options, more))
        raise InterruptedRunError

    def memory(table: Any, optimizer: str) -> Any:
        seen.append((table.total().flops, optimizer))
        return SimpleNamespace(rows=[SimpleNamespace(layer="conv", weights=1, gradients=2, optimizer=3, activations=4)])

    monkeypatch.setattr("designer.profiling.what_if.predicted_run", predicted)
    progress = object()
    for request, size in (
        (PredictRequest("T4", "fp16", 5, (10, 6), "sgd"), SimpleNamespace(width=10, height=6)),
        (PredictRequest(), None),
    ):
        seen.clear()
        with pytest.raises(InterruptedRunError):
            queries.predict(session, request, progress)  # type: ignore[arg-type]
        ((name, registry, options, more),) = seen
        assert (name, registry) == ("net", session.registry)
        assert options == replace(session.options, precision=request.precision)
        assert (more["batch"], more["machine"], more["progress"]) == (request.batch, request.machine, progress)
        assert (more["size"] is None) is (size is None)
        if size is not None:
            assert (more["size"].width, more["size"].height) == (10, 6)
    run = SimpleNamespace(name="a run")
    monkeypatch.setattr("designer.profiling.what_if.predicted_run", lambda *_, **__: run)
    monkeypatch.setattr("designer.profiling.what_if.training_memory", memory)
    monkeypatch.setattr("designer.profiling.measure.machine_of", lambda options: ("machine", options))
    seen.clear()
    reply = queries.predict(session, PredictRequest(batch=5, size=(10, 6), optimizer="sgd"), QUIET)
    assert seen == [(2 * 5 * 60 * 2 * 3, "sgd")]
    assert reply.training == (TrainingMemoryRow("conv", 1, 2, 3, 4),)
    assert (reply.profile.machine, reply.profile.network) == (("machine", session.options), "net")
    assert reply.profile.runs == (run,)
    seen.clear()
    queries.predict(session, PredictRequest(), QUIET)
    assert seen == [(2 * 32 * 2 * 3, "adam")]


def test_computations_are_compared_as_they_were_named(monkeypatch: pytest.MonkeyPatch) -> None:
    session, variants = network(), (Variant("half", "fp16"),)
    blamed = [
        SimpleNamespace(layer="conv", share=0.75, deviation=0.5),
        SimpleNamespace(layer="b", share=0.25, deviation=2.0),
    ]
    seen = calls(monkeypatch, "blame_between", SimpleNamespace(operators=blamed, rms=0.125, first="b"))
    reply = queries.blame(session, BlameRequest("fp32", "half", variants), QUIET)
    assert reply == BlameReply((BlamedOperator("conv", 0.75, 0.5), BlamedOperator("b", 0.25, 2.0)), 0.125, "b")
    compared, *names, progress = seen[0]
    assert (names, progress) == (["fp32", "half"], QUIET)
    assert (compared.graph, compared.registry, compared.weights) == (session.graph, session.registry, session.weights)
    assert compared.options == RunOptions("torch", "fp32", "nchw", "cpu", 1)
    assert (compared.variants, compared.other_weights) == (variants, None)
    session.options = replace(session.options, device="cuda", precision="fp16")
    assert queries._compared(session, ()).options == RunOptions("torch", "fp32", "nchw", "cpu", 1)
    fed: list[Any] = []
    other: Any = SimpleNamespace(graph={"image": 1}, set_input=lambda *each, **more: fed.append((*each, more)))
    compared.feed(other)
    ((layer, array, more),) = fed
    assert (layer, float(array.min()), more) == ("image", 1.0, {"is_image": False})
    tensors = calls(monkeypatch, "tensors_of", ["first", "second"])
    found = queries.compare_tensor(session, CompareTensorRequest("conv:1", "half", "fp32", variants), put)
    assert (found.a, found.b) == (("handle", "first"), ("handle", "second"))
    assert tensors[0][1:] == (("half", "fp32"), Source("conv", "1"))
    assert tensors[0][0].variants == variants


def test_bits_of_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = (SimpleNamespace(layer="conv", weights=20, psnr={"int8": 40.0}, vectors=2),)
    points = (
        SimpleNamespace(bytes=80, psnr=50.0, formats={}),
        SimpleNamespace(bytes=40, psnr=30.0, formats={"conv": "int8"}),
    )
    made: list[Any] = []

    class Measurement:
        def __init__(self, session: Any) -> None:
            made.append(session)

        def layer_bits(self, progress: Any) -> Any:
            made.append(progress)
            return layers

        def points(self, found: Any, progress: Any) -> Any:
            made.append((found, progress))
            return points

    monkeypatch.setattr(queries, "BitsMeasurement", Measurement)
    reply = queries.bits("session", QUIET)  # type: ignore[arg-type]
    assert made == ["session", QUIET, (layers, QUIET)]
    assert reply == BitsReply(
        (LayerBits("conv", 20, {"int8": 40.0}, 2),), (SizePoint(80, 50.0, {}), SizePoint(40, 30.0, {"conv": "int8"}))
    )


# --- runs ----------------------------------------------------------------------------------------------------------


class Result:
    """The result of a run."""

    def __init__(self, outputs: Any, captures: Any, **more: Any) -> None:
        self.outputs, self.captures = outputs, captures
        self.hidden, self.steps, self.milliseconds, self.coarse = {}, (), 12.5, 0
        self.__dict__.update(more)

    def notes(self) -> tuple[str, ...]:
        return ("the weights are random", "some are not kept")


class RunSession:
    """A session that returns results one after the other."""

    structure = 1

    def __init__(self, *results: Any, expected: float | None = None) -> None:
        self.results = list(results)
        self.weights = SimpleNamespace(title="a title", sha256="a digest", note="a note")
        self.options = RunOptions()
        self.asked: list[Any] = []
        self.times = expected

    def expected(self, sources: Any) -> float | None:
        return self.times

    def run(self, sources: Any, progress: Any, interrupt: Any) -> Any:
        self.asked.append((tuple(sources), progress))
        interrupt.check() if hasattr(interrupt, "check") else None
        found = self.results.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def array(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.fixture
def made(tmp_path: Path) -> tuple[Runs, SharedFolder]:
    shared = SharedFolder(tmp_path)
    return Runs(shared), shared


def test_every_field_of_the_reply_to_a_run(made: tuple[Runs, SharedFolder], monkeypatch: pytest.MonkeyPatch) -> None:
    found, shared = made
    out, conv = array(1, np.nan, np.inf, np.nan), array(2, -np.inf)
    steps = (
        SimpleNamespace(layers=("a", "b"), engine="torch", milliseconds=1.5, cached=False, dropped=True),
        SimpleNamespace(layers=("c",), engine="numpy", milliseconds=0.5, cached=True, dropped=False),
    )
    hidden = {"h": SimpleNamespace(nan=1, inf=2, share=0.25), "out": SimpleNamespace(nan=9, inf=9, share=0.9)}
    session: Any = RunSession(
        Result({"out": out}, {Source("conv", "1"): conv}, hidden=hidden, steps=steps),
        Result({"out": out}, {}, coarse=4),
    )
    reply = found.run(lambda: session, RunRequest(("conv:1",)), QUIET)
    arrays = [shared.get(reply.outputs["out"]), shared.get(reply.captures["conv:1"])]
    assert [each.tolist() for each in arrays[1:]] == [[2, -inf]]
    np.testing.assert_array_equal(arrays[0], out)
    assert reply == RunReply(
        reply.outputs, reply.captures, (),
        (RunStep(("a", "b"), "torch", 1.5, False, True), RunStep(("c",), "numpy", 0.5, True, False)), 12.5,
        {"h": NonfiniteShare(1, 2, 0.25), "conv:1": NonfiniteShare(0, 1, 0.5), "out": NonfiniteShare(2, 1, 0.75)},
        0, "the weights are random; some are not kept", "a title", "a digest", False,
    )  # fmt: skip
    assert (set(reply.outputs), set(reply.captures)) == ({"out"}, {"conv:1"})
    assert session.asked == [((Source("conv", "1"),), QUIET)]
    session.options = RunOptions(precision="fp16", engine="emulated")
    monkeypatch.setattr(runs, "is_emulated", lambda options: options is session.options)
    reply = found.run(lambda: session, RunRequest(), QUIET)
    assert (reply.coarse, reply.emulated) == (4, True)
    assert reply.note == "preview at 1/4 of the size; the weights are random; some are not kept"


def test_captures_that_the_window_holds_are_those_of_the_last_run(made: tuple[Runs, SharedFolder]) -> None:
    found, _ = made
    a, b, c = array(1), array(2), array(3)
    captures = [{"x": a, "y": b}, {"x": a}, {"x": a, "y": b}, {"x": c, "y": b}]
    session: Any = RunSession(*(Result({}, {Source(k): v for k, v in each.items()}) for each in captures))
    same = [found.run(lambda: session, RunRequest(tuple(each), ("x", "y")), QUIET).same for each in captures]
    assert same == [(), ("x",), ("x",), ("y",)]  # y was not part of the second run


def test_an_array_is_searched_for_nan_once(made: tuple[Runs, SharedFolder], monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = made
    searched: list[float] = []
    monkeypatch.setattr(runs, "nonfinite", lambda each: searched.append(float(each[0])))
    a, b, c = array(1), array(2), array(3)
    session: Any = RunSession(*(Result({"out": each}, {Source("x"): each}) for each in (a, b, b, c, b)))
    for _ in range(5):
        assert found.run(lambda: session, RunRequest(("x",)), QUIET).nonfinite == {}
    assert searched == [1, 2, 3, 2]


class Reduced:
    """A preview that lists the sessions it was made of."""

    made: list[tuple[Any, int]]

    def __init__(self, session: Any, factor: int) -> None:
        self.full, self.factor = session, factor
        Reduced.made.append((session, factor))

    def run(self, sources: Any, progress: Any) -> Any:
        return Result({}, {}, coarse=self.factor)


def test_a_preview_is_made_again_for_another_network_or_factor(
    made: tuple[Runs, SharedFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = made
    Reduced.made = []
    monkeypatch.setattr(runs, "Preview", Reduced)
    monkeypatch.setattr(runs, "factor_for", lambda expected: 2 if expected < 100 else 4)
    one: Any = RunSession(*(Result({}, {}) for _ in range(3)), expected=50)
    other: Any = RunSession(expected=50)

    def coarse(session: Any, budget: int) -> int:
        return found.run(lambda: session, RunRequest((), (), budget), QUIET).coarse

    assert [coarse(one, 49), coarse(one, 49), coarse(one, 50), coarse(one, 0)] == [2, 2, 0, 0]
    assert coarse(other, 1) == 2
    one.times = 400
    assert coarse(one, 1) == 4
    one.times = None
    assert coarse(one, 1) == 0
    assert Reduced.made == [(one, 2), (other, 2), (one, 4)]
    one.times = 400
    found.forget()
    assert coarse(one, 1) == 4
    assert len(Reduced.made) == 4


# --- the queue -----------------------------------------------------------------------------------------------------


class Pipe(io.BytesIO):
    """What the engine writes, as events."""

    def events(self) -> list[Any]:
        return [read_event(line + b"\n") for line in self.getvalue().splitlines()]


def served(
    lines: list[bytes], answer: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[Any]]:
    """The events of a server that reads all lines before it answers, and the order of interrupts and answers."""
    monkeypatch.setattr(Server, "_wait_for_listener", lambda self: None)
    monkeypatch.setattr(worker.threading, "Thread", lambda target, **_: SimpleNamespace(start=target))
    order: list[Any] = []

    class Working:
        def __init__(self, shared: Any, send: Any) -> None:
            self.send = send

        def answer(self, found: Any) -> Any:
            order.append(found.id)
            return answer(found)

        def interrupt(self) -> None:
            order.append("interrupt")

    monkeypatch.setattr(worker, "Worker", Working)
    replies = Pipe()
    Server(io.BytesIO(b"".join(lines)), replies, None).serve()  # type: ignore[arg-type]
    return replies.events(), order


def test_requests_are_answered_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line_of(asked(number, PingRequest())) for number in (3, 1, 2)]
    lines[1:1] = [b"  \n", b"no request\n", b'{"id": 8, "request": {"method": "fly"}}\n']
    events, order = served(lines, lambda found: PingReply(found.id * 10), monkeypatch)
    assert order == [3, 1, 2]
    assert events[0] == ReadyEvent(worker.os.getpid(), VERSION)
    assert [(type(event), event.id) for event in events[1:]] == [
        (DoneEvent, 3), (FailedEvent, None), (FailedEvent, 8), (DoneEvent, 1), (DoneEvent, 2)
    ]  # fmt: skip
    assert [read_reply(PingRequest(), event) for event in events if isinstance(event, DoneEvent)] == [
        PingReply(30), PingReply(10), PingReply(20)
    ]  # fmt: skip
    (found,) = events[3].error
    assert found.code == "bad-request"
    assert found.message == "the engine got a request that it cannot read: request.method: invalid value 'fly'"


def test_a_run_before_another_run_or_an_interrupt_is_superseded(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [
        RunRequest(),
        PingRequest(),
        RunRequest(),
        InterruptRequest(),
        RunRequest(),
        PingRequest(),
        QuitRequest(),
        PingRequest(),
    ]
    lines = [line_of(asked(number, request)) for number, request in enumerate(requests, 1)]
    events, order = served(lines, lambda found: EmptyReply(), monkeypatch)
    assert order == ["interrupt", 2, 4, 5, 6, 7]  # the interrupt when it is read; nothing after quit
    assert [(type(event), event.id) for event in events[1:]] == [
        (SupersededEvent, 1), (DoneEvent, 2), (SupersededEvent, 3), (DoneEvent, 4), (DoneEvent, 5), (DoneEvent, 6), (DoneEvent, 7)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("later", "runs"),
    [
        ((), True),
        ((PingRequest(),), True),
        ((InterruptRequest(),), False),
        ((PingRequest(), InterruptRequest(), PingRequest()), False),
        ((PingRequest(), RunRequest()), False),
        ((InterruptRequest(), RunRequest()), False),
    ],
)
def test_a_run_that_waits_is_left_out_for_one_later_request(
    monkeypatch: pytest.MonkeyPatch, later: tuple[Any, ...], runs: bool
) -> None:
    lines = [line_of(asked(number, request)) for number, request in enumerate((RunRequest(), *later, QuitRequest()), 1)]
    events, order = served(lines, lambda found: EmptyReply(), monkeypatch)
    assert [number for number in order if number != "interrupt"] == list(range(1 if runs else 2, len(lines) + 1))
    assert [type(event) for event in events[1:]] == [
        DoneEvent if runs else SupersededEvent,
        *[DoneEvent] * (len(lines) - 1),
    ]


def test_what_goes_wrong_in_an_answer(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    findings = (Diagnostic("a", "first"), Diagnostic("b", "second"))
    errors = iter([InterruptedRunError(), DiagnosticError(findings), MemoryError(), ZeroDivisionError("by zero")])

    def fails(found: Any) -> Any:
        raise next(errors)

    lines = [
        line_of(asked(number, request))
        for number, request in ((1, PingRequest()), (2, PingRequest()), (3, PingRequest()), (4, PingRequest()))
    ]
    events, _ = served(lines, fails, monkeypatch)
    assert events[1] == SupersededEvent(1)
    assert events[2] == FailedEvent(2, findings)
    full, fault = events[3].error[0], events[4].error[0]
    assert (full.code, full.message) == ("out-of-memory", "the machine ran out of memory for 'ping'")
    assert (fault.code, fault.message) == (
        "internal-error",
        "'ping' failed inside the engine: ZeroDivisionError: by zero",
    )
    assert "Traceback" in capfd.readouterr().err
    monkeypatch.setattr(worker, "MAX_LINE", 100)
    lines = [b"x" * 250 + b"\n", line_of(asked(7, PingRequest())), b"y" * 99 + b"\n"]
    events, order = served(lines, lambda found: PingReply(1), monkeypatch)
    assert order == [7]
    begin = "the engine got a request that it cannot read: "
    assert [(event.id, event.error[0].message.removeprefix(begin)) for event in events if isinstance(event, FailedEvent)] == [
        (None, f"a line of more than {MAX_LINE >> 20} MiB"), (None, "JSON is malformed: invalid character (byte 0)")
    ]  # fmt: skip


def test_a_reader_that_has_gone_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(found: Any) -> Any:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        served([line_of(asked(1, PingRequest()))], gone, monkeypatch)


def test_progress_names_its_request() -> None:
    moments = itertools.count(0, 1)
    sent: list[Any] = []
    report = runs.Progress.__new__(runs.Progress)
    report._send, report._number, report._next = sent.append, 7, next(moments)
    report(3, 9, "conv")
    assert sent == [ProgressEvent(7, 3, 9, "conv")]


# --- hardware counters ---------------------------------------------------------------------------------------------


def test_a_run_for_counters_is_started_as_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    session, seen = network(), []

    def read(command: list[str], layers: Any, capability: Any) -> str:
        document = Path(command[4])
        seen.append((command, layers, capability, parse_document(document.read_bytes(), validate=False).graph))
        return "counters"

    monkeypatch.setattr(counted_run, "read_counters", read)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (str(device), 9))
    options = RunOptions("torch", "fp16", "nhwc", "cuda:1", agreed=("a" * 64, "b" * 64))
    assert counted_run.count(session.inference, options, 5) == "counters"  # type: ignore[comparison-overlap]
    ((command, layers, capability, graph),) = seen
    assert command[3] == "app.engine.counted_run"
    words = [
        "--precision=fp16",
        "--layout=nhwc",
        "--device=cuda:1",
        "--batch=5",
        f"--agreed={'a' * 64}",
        f"--agreed={'b' * 64}",
    ]
    assert command[5:] == words
    assert (tuple(layers), capability, graph.name) == (("conv",), ("cuda:1", 9), "net")
    for changed, reason in (
        ({"device": "cpu"}, counted_run.ON_CPU),
        ({"engine": "onnxruntime"}, counted_run.ONLY_TORCH),
    ):
        assert counted_run.count(session.inference, replace(options, **changed), 5).reason == reason
    assert len(seen) == 1


def test_the_counted_process_runs_the_network_as_it_was_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    seen: list[Any] = []

    class Timer:
        def __init__(self, engine: Any, part: Any, wanted: Any, feeds: Any) -> None:
            seen.append((engine, part.layers, {str(source): array.shape for source, array in feeds.items()}))

        def counted(self, name: Any) -> None:
            seen.append([name(layer) for layer in seen[0][1]])

    monkeypatch.setattr("designer.runtime.engines.torch_timing.TorchTimer", Timer)
    monkeypatch.setattr("designer.runtime.engines.torch_engine.TorchEngine", lambda *each: each)
    path = tmp_path / "network.xml"
    path.write_bytes(write_document(network().graph))
    words = [
        str(path),
        "--precision=fp16",
        "--layout=nhwc",
        "--device=cuda:1",
        "--batch=5",
        "--agreed",
        "b",
        "--agreed",
        "a",
    ]
    assert counted_run.main(words) == 0
    (inference, weights, options), layers, feeds = seen[0]
    assert options == RunOptions("torch", "fp16", "nhwc", "cuda:1", agreed=("b", "a"))
    assert (inference.graph.name, weights.complete, layers) == ("net", True, ("conv",))
    assert feeds == {"image": (5, 3, 4, 8)}
    assert seen[1] == ["lw0"]
    seen.clear()
    counted_run.main([str(path)])
    assert seen[0][0][2] == RunOptions("torch", "fp32", "nchw", "cuda")
    assert seen[0][2] == {"image": (1, 3, 4, 8)}
