"""The engine process: JSON lines on stdin and stdout, tensors in a shared folder.

Started as `python -m app.engine.worker --shared DIR`. Everything slow or dangerous (engines, weights, images, code of plugins)
happens here, so that the window survives whatever goes wrong. The process ends when its stdin does.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from msgspec import Struct

from app.engine import queries
from app.engine.frames import Playing, export_video, fed_shape
from app.engine.protocol import (
    MAX_LINE,
    VERSION,
    AnyRequest,
    Asked,
    BitsRequest,
    BlameRequest,
    ChoosePrecisionRequest,
    CompareTensorRequest,
    DescribeInputRequest,
    EmptyReply,
    Event,
    ExportVideoRequest,
    FailedEvent,
    GradientRequest,
    HelloRequest,
    InterruptRequest,
    Malformed,
    MeasureVariantsRequest,
    OpenReply,
    OpenRequest,
    PassesRequest,
    PingReply,
    PingRequest,
    PredictRequest,
    ProfileReply,
    ProfileRequest,
    QuitRequest,
    ReadyEvent,
    ReceptiveFieldRequest,
    ReleaseInputRequest,
    RemeasureRequest,
    RunRequest,
    SetFormatsRequest,
    SetInputReply,
    SetInputRequest,
    SetInputTensorRequest,
    SetParamRequest,
    SetWeightsRequest,
    SupersededEvent,
    SurgeryRequest,
    TensorStatus,
    TraceNonfiniteRequest,
    UpdateRequest,
    WeightsRequest,
    done_line,
    line_of,
    other_protocol,
    read_request,
    too_long,
)
from app.engine.runs import Progress, Runs
from app.engine.surgery import operate
from designer import texts
from designer.files.document import parse_document
from designer.files.weights import WeightReport, Weights, WeightStatus, fill_missing, load_weights, required_weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.registry import Registry, default_registry
from designer.passes.optimized_session import OptimizedSession
from designer.precision.deployed_session import variant_session
from designer.precision.variants import RunnableVariant
from designer.profiling.schema import Profile
from designer.runtime.api import Array, RunOptions
from designer.runtime.engines.custom_module import check_agreed
from designer.runtime.interrupt import InterruptedRunError
from designer.runtime.network import output_layers
from designer.runtime.session import Session
from designer.runtime.shared import Handle, SharedFolder
from designer.surgery.sparsity import PATTERN, sparse_weights
from designer.texts import tr

LACKING = (WeightStatus.MISSING, WeightStatus.WRONG_SHAPE)
BEHIND = 3  # niceness: where cores are few, the window answers before the network goes on


def _check_sources(session: Session) -> None:
    """Check all custom sources at once, before the engine would refuse them one by one."""
    needed = session.inference.graph.upstream(output_layers(session.inference))
    check_agreed(session.inference, sorted(needed), session.options.agreed)


class Worker:
    """What the engine process does for each request. Holds one opened network."""

    def __init__(self, shared: SharedFolder, send: Callable[[Event], None]) -> None:
        self._shared = shared
        self._send = send
        self._session: Session | None = None
        self._optimized: OptimizedSession | None = None
        self._sparse = False
        self._weights_path: Path | None = None
        self._seed: int | None = None
        self._needed: dict[Any, Any] = {}
        self._playing = Playing(shared)
        self._runs = Runs(shared)
        self._handlers: dict[type[AnyRequest], Callable[[Any, Progress], Struct]] = {
            HelloRequest: lambda request, _: self._hello(request),
            PingRequest: lambda request, _: PingReply(os.getpid()),
            OpenRequest: lambda request, _: self._open(request),
            UpdateRequest: lambda request, _: self._update(request),
            SetInputRequest: lambda request, _: self._playing.feed(self.session, request),
            SetInputTensorRequest: lambda request, _: self._set_tensor(request),
            SetParamRequest: lambda request, _: self._set_param(request),
            SetWeightsRequest: lambda request, _: self._set_weights(request),
            RunRequest: lambda request, progress: self._runs.run(
                lambda: self._running(request.capture), request, progress
            ),
            InterruptRequest: lambda request, _: self._interrupted(),
            ProfileRequest: self._profile,
            RemeasureRequest: self._remeasure,
            PredictRequest: lambda request, progress: queries.predict(self.session, request, progress),
            WeightsRequest: lambda request, _: queries.weights(self.session, request, self._put),
            SurgeryRequest: lambda request, _: operate(request),
            GradientRequest: lambda request, _: queries.gradient_to_input(self.session, request, self._put),
            ReceptiveFieldRequest: lambda request, _: queries.receptive_field(self.session, request),
            TraceNonfiniteRequest: lambda request, _: queries.first_nonfinite(self.session),
            SetFormatsRequest: lambda request, _: self._set_formats(request),
            BlameRequest: lambda request, progress: queries.blame(self.session, request, progress),
            CompareTensorRequest: lambda request, _: queries.compare_tensor(self.session, request, self._put),
            BitsRequest: lambda request, progress: queries.bits(self.session, progress),
            ChoosePrecisionRequest: lambda request, progress: queries.choose(self.session, request, progress),
            MeasureVariantsRequest: lambda request, progress: queries.measure(self.session, request, progress),
            PassesRequest: lambda request, progress: queries.passes(self.session, request, progress),
            DescribeInputRequest: lambda request, _: self._playing.describe(request),
            ReleaseInputRequest: lambda request, _: self._playing.release(request),
            ExportVideoRequest: lambda request, progress: export_video(self._running(), request, progress),
            QuitRequest: lambda request, _: EmptyReply(),  # see Server
        }

    @property
    def session(self) -> Session:
        if self._session is None:
            raise DiagnosticError(Diagnostic("nothing-open", tr("no network is open"), remedy=tr("send 'open' first")))
        return self._session

    def _running(self, capture: Sequence[str] = ()) -> Session:
        """The session after the graph passes of the variant; that of the document for tensors of hidden layers."""
        return self.session if self._optimized is None or capture else self._optimized.current()

    def answer(self, asked: Asked) -> Struct:
        """Carry out one request; raises DiagnosticError or InterruptedRunError."""
        return self._handlers[type(asked.request)](asked.request, Progress(self._send, asked.id))

    def interrupt(self) -> None:
        """End the run that goes on, from another thread."""
        self._runs.interrupt()

    def _interrupted(self) -> EmptyReply:
        self._runs.interrupted()  # obeyed when it was read, see Server
        return EmptyReply()

    def _put(self, arrays: Mapping[str, Array]) -> dict[str, Handle]:
        return self._runs.handed_over(arrays)[0]

    def _hello(self, request: HelloRequest) -> EmptyReply:
        if request.protocol != VERSION:
            raise DiagnosticError(other_protocol(request.protocol, VERSION))
        return EmptyReply()

    def _open(self, request: OpenRequest) -> OpenReply:
        self._session = self._optimized = None
        self._runs.forget()
        registry = default_registry()
        graph, found = _parsed(request.document)
        self._weights_path = Path(request.weights) if request.weights is not None else None
        self._seed = request.seed
        options = RunOptions(
            request.engine,
            request.precision,
            request.layout,
            request.device,
            request.threads,
            tuple(sorted(request.agreed)),
            request.tile,
            tuple(request.formats.items()),
        )
        self._sparse = request.sparsity == PATTERN
        weights, inference = self._load(graph, registry)
        ready = RunnableVariant(graph, weights, options)
        session = variant_session(ready, registry, request.deployed, options)
        _check_sources(session)
        self._playing.only(graph.layers)
        self._session = session
        self._optimized = OptimizedSession(session, request.passes) if request.passes else None
        return _open_reply(weights, (*found, *registry.diagnostics, *inference.diagnostics()))

    def _update(self, request: UpdateRequest) -> OpenReply:
        session = self.session
        graph, found = _parsed(request.document)
        before = self._needed
        weights, inference = self._load(graph, session.registry, session.weights)
        session.set_graph(graph)
        if self._needed != before:
            session.set_weights(weights)
        _check_sources(session)
        return _open_reply(session.weights, (*found, *inference.diagnostics()))

    def _load(self, graph: Graph, registry: Registry, known: Weights | None = None) -> tuple[Weights, Inference]:
        """The weights for `graph`: `known` while the network still needs the same tensors, else read again."""
        inference = Inference(graph, registry)
        needed = required_weights(inference)
        if known is not None and needed == self._needed:
            return known, inference
        weights = Weights() if self._weights_path is None else load_weights(self._weights_path, needed)
        if self._seed is not None and any(key not in weights.tensors for key in needed):
            weights = fill_missing(weights, needed, self._seed)
        elif self._weights_path is None:
            weights = load_nothing(needed)
        if self._sparse and needed.keys() <= weights.tensors.keys():
            weights = sparse_weights(graph, registry, weights)
        self._needed = dict(needed)
        return weights, inference

    def _set_tensor(self, request: SetInputTensorRequest) -> SetInputReply:
        array = self._shared.get(request.handle)
        try:
            self.session.set_input(request.layer, array, is_image=request.is_image)
        finally:
            self._shared.free(request.handle)
        return SetInputReply(fed_shape(self.session, request.layer))

    def _set_param(self, request: SetParamRequest) -> EmptyReply:
        self.session.set_param(request.layer, request.param, request.text)
        return EmptyReply()

    def _set_weights(self, request: SetWeightsRequest) -> EmptyReply:
        weights = load_weights(request.path, self._needed)
        lacking = [report.key for report in weights.reports if report.status in LACKING]
        if lacking:
            raise DiagnosticError.of(
                "weights-missing",
                tr("{path} does not have the weights of {layer}", path=request.path, layer=lacking[0].layer),
                layer=lacking[0].layer,
                file=request.path,
                remedy=tr("use weights of this network"),
            )
        if self._sparse:
            weights = sparse_weights(self.session.graph, self.session.registry, weights)
        self.session.set_weights(weights)
        self._weights_path = Path(request.path)  # where an edit that needs other tensors finds them
        return EmptyReply()

    def _set_formats(self, request: SetFormatsRequest) -> EmptyReply:
        self.session.set_formats(request.formats)
        return EmptyReply()

    def _profile(self, request: ProfileRequest, progress: Progress) -> ProfileReply:
        from app.engine.counted_run import count
        from designer.graph.types import Size2D
        from designer.profiling.configurations import Grid
        from designer.profiling.measure import profile_session

        session = self._running()
        found = profile_session(
            session,
            request.iterations,
            Grid(
                request.engines,
                request.precisions,
                request.layouts,
                request.batches,
                [Size2D(*size) for size in request.sizes],
            ),
            progress=progress,
            on_profile=_partial_file(request.partial),
            counters=count if request.counters else None,
        )
        if request.training:
            from app.engine.training_profile import with_training_step

            found = with_training_step(found, session.graph, session.registry, session.options)
        return ProfileReply(found)

    def _remeasure(self, request: RemeasureRequest, progress: Progress) -> ProfileReply:
        from designer.graph.types import Size2D
        from designer.profiling.configurations import Grid
        from designer.profiling.measure import configurations, in_turns, measure

        found = []
        for network in request.networks:
            other = Worker(self._shared, self._send)
            other._open(network.opening)
            grid = Grid(batches=(network.batch,), sizes=(Size2D(*network.size),) if network.size is not None else ())
            found += configurations(other._running(), request.iterations, grid)
        return ProfileReply(measure(in_turns(found), progress=progress, on_profile=_partial_file(request.partial)))


def _partial_file(path: str) -> Callable[[Profile], None] | None:
    """Writes what was measured so far to a file; None without a path."""
    from designer.profiling.profile_files import save_profile

    return (lambda partial: save_profile(Path(path), partial)) if path else None


def load_nothing(needed: Mapping[Any, Any]) -> Weights:
    """Weights for which nobody named a source: every needed tensor is missing."""
    return Weights(reports=tuple(WeightReport(k, WeightStatus.MISSING, w.shape) for k, w in needed.items()))


def _parsed(document: str) -> tuple[Graph, tuple[Diagnostic, ...]]:
    reading = parse_document(document.encode())
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    return reading.graph, tuple(reading.diagnostics)


def _open_reply(weights: Weights, found: Sequence[Diagnostic]) -> OpenReply:
    report = (TensorStatus(r.key.layer, r.key.tensor, r.status, r.needed, r.found, r.source) for r in weights.reports)
    return OpenReply(tuple(report), weights.note, tuple(found))


class Server:
    """Reads requests in a thread, so that a queue of runs can be seen, and answers them in order."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, shared: SharedFolder) -> None:
        self._requests = requests
        self._replies = replies
        self._queue: deque[Asked | Malformed | None] = deque()
        self._arrived = threading.Condition()
        self._worker = Worker(shared, self._send)

    def serve(self) -> None:
        """Answer until `quit` or the end of the requests."""
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        self._send(ReadyEvent(os.getpid(), VERSION))
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: self._queue)
                asked = self._queue.popleft()
                later = any(_ends_runs(other) for other in self._queue)
            if asked is None:
                return
            if isinstance(asked, Malformed):
                self._send(FailedEvent(asked.id, (_unreadable(asked),)))
            elif isinstance(asked.request, RunRequest) and later:
                self._send(SupersededEvent(asked.id))
            else:
                self._answer(asked)
                if isinstance(asked.request, QuitRequest):
                    return

    def _answer(self, asked: Asked) -> None:
        method = asked.request.method
        try:
            line = done_line(asked.id, self._worker.answer(asked))
        except InterruptedRunError:
            line = line_of(SupersededEvent(asked.id))
        except DiagnosticError as error:
            line = line_of(FailedEvent(asked.id, error.diagnostics))
        except MemoryError:
            full = Diagnostic(
                "out-of-memory",
                tr("the machine ran out of memory for '{method}'", method=method),
                remedy=tr("use a smaller image, or close other programs"),
            )
            line = line_of(FailedEvent(asked.id, (full,)))
        except BrokenPipeError:
            raise
        except Exception as error:  # a fault of ours or of a plugin must not end the process
            traceback.print_exc()
            fault = Diagnostic(
                "internal-error",
                tr(
                    "'{method}' failed inside the engine: {name}: {error}",
                    method=method,
                    name=type(error).__name__,
                    error=error,
                ),
                remedy=tr("run again; if the problem remains, report it with the text above"),
            )
            line = line_of(FailedEvent(asked.id, (fault,)))
        self._write(line)

    def _send(self, event: Event) -> None:
        self._write(line_of(event))

    def _write(self, line: bytes) -> None:
        self._replies.write(line)
        self._replies.flush()

    # --- the reading thread ---------------------------------------------------------------------------------------

    def _read(self) -> None:
        while line := self._requests.readline(MAX_LINE):
            if not line.endswith(b"\n") and len(line) == MAX_LINE:
                while (rest := self._requests.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                    pass
                self._put(too_long())
            elif line.strip():
                self._put(read_request(line))
        self._put(None)
        self._wait_for_listener()

    def _put(self, asked: Asked | Malformed | None) -> None:
        with self._arrived:
            self._queue.append(asked)  # an interrupt too, for its reply and for a run that waits
            if isinstance(asked, Asked) and isinstance(asked.request, InterruptRequest):
                self._worker.interrupt()
            self._arrived.notify()

    def _wait_for_listener(self) -> None:
        """After the last request: end the process, whatever it does, as soon as nobody reads the replies."""
        if not hasattr(select, "poll"):
            time.sleep(5)
            os._exit(0)
        poll = select.poll()
        poll.register(self._replies.fileno(), 0)
        while True:
            if any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(500)):
                os._exit(0)


def _ends_runs(asked: Asked | Malformed | None) -> bool:
    """Whether a run before this is not worth its time."""
    return isinstance(asked, Asked) and isinstance(asked.request, RunRequest | InterruptRequest)


def _unreadable(line: Malformed) -> Diagnostic:
    return Diagnostic(
        "bad-request",
        tr("the engine got a request that it cannot read: {problem}", problem=line.problem),
        remedy=tr("run again; if the problem remains, report it with this text"),
    )


def _private_stdout() -> BinaryIO:
    """The real stdout as a stream of ours; from now on, whoever prints (C libraries too) writes to stderr."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return replies


def _limit_memory(number: int) -> None:
    """Allow `number` bytes of addresses in addition to those of the process at its start; beyond, allocations fail."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # only on Linux
        used = 0
    resource.setrlimit(resource.RLIMIT_AS, (used + number, used + number))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry of the process; ends it."""
    parser = argparse.ArgumentParser(prog="python -m app.engine.worker", description="Engine process of Layerwright.")
    parser.add_argument("--shared", required=True, type=Path, help="private folder for tensors")
    parser.add_argument(
        "--memory", type=int, metavar="MIB", help="most memory that the process may take, where POSIX is"
    )
    options = parser.parse_args(arguments)
    texts.use_environment()
    if hasattr(os, "nice"):
        os.nice(BEHIND)
    if options.memory:
        _limit_memory(options.memory << 20)
    server = Server(sys.stdin.buffer, _private_stdout(), SharedFolder(options.shared))
    code = 0
    try:
        server.serve()
    except BrokenPipeError:
        code = 1  # the window has closed: nobody to report to
    except KeyboardInterrupt:
        code = 130
    sys.stderr.flush()
    os._exit(code)  # engines' threads and the blocked reader must not hold the process


if __name__ == "__main__":
    main()
