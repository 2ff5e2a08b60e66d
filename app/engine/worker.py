"""The engine process: one JSON object a line on stdin and stdout, tensors in a shared folder.

Started as `python -m app.engine.worker --shared DIR`. Everything slow or dangerous (engines, weights, pictures, code of plugins)
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

from app.engine import queries as asking
from app.engine.frames import Playing, export_video
from app.engine.protocol import (
    MAX_LINE,
    BadRequestError,
    Params,
    digests_of,
    failure,
    line_of,
    request_of,
    text_of,
    whole_of,
)
from app.engine.runs import Progress, Runs
from designer.files.document import parse_document
from designer.files.settings import DEFAULT_ENGINE
from designer.files.weights import Weights, fill_missing, load_weights, required_weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.registry import Registry, default_registry
from designer.runtime.api import AUTO, RunOptions
from designer.runtime.engines.custom_module import check_agreed
from designer.runtime.network import output_layers
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder

BEHIND = 3  # niceness: where cores are few, the window answers before the network goes on


def _check_sources(session: Session) -> None:
    """Refuse early, and all at once, what the engine would refuse later one by one."""
    needed = session.inference.graph.upstream(output_layers(session.inference))
    check_agreed(session.inference, sorted(needed), session.options.agreed)


class Worker:
    """What the methods of the protocol do. Holds one opened network."""

    def __init__(self, shared: SharedFolder, tell: Callable[[dict[str, Any]], None]) -> None:
        self._shared = shared
        self._tell = tell
        self._session: Session | None = None
        self._weights_path: Path | None = None
        self._seed: int | None = None
        self._needed: dict[Any, Any] = {}
        self._playing = Playing(shared)
        self._runs = Runs(shared)

    @property
    def session(self) -> Session:
        if self._session is None:
            raise DiagnosticError(Diagnostic("nothing-open", "no network is open", remedy="send 'open' first"))
        return self._session

    def answer(self, number: Any, method: str, params: Params) -> dict[str, Any]:
        """Carry out one request; raises DiagnosticError or BadRequestError."""
        methods: dict[str, Callable[[Any, Params], dict[str, Any]]] = {
            "ping": self._ping,
            "open": self._open,
            "update": self._update,
            "set_input": self._set_input,
            "set_param": self._set_param,
            "run": lambda number, params: self._runs.run(self.session, params, Progress(self._tell, number)),
            "interrupt": lambda number, params: {},  # heard when it came, see Server
            "profile": self._profile,
            "describe_input": self._playing.describe,
            "release_input": self._playing.release,
            "export_video": lambda number, params: export_video(self.session, params, Progress(self._tell, number)),
        }
        if method in methods:
            return methods[method](number, params)
        if method in asking.METHODS:
            return asking.METHODS[method](self.session, params, lambda arrays: self._runs.handed_over(arrays)[0])
        known = ", ".join([*methods, *asking.METHODS, "quit"])
        raise BadRequestError(f"there is no method '{method[:80]}'; known are {known}")

    def interrupt(self) -> None:
        """End the run that goes on, from another thread."""
        self._runs.interrupt()

    def _ping(self, number: Any, params: Params) -> dict[str, Any]:
        return {"pid": os.getpid()}

    def _open(self, number: Any, params: Params) -> dict[str, Any]:
        self._session = None
        self._runs.forget()
        registry = default_registry()
        graph, found = _parsed(params)
        path, seed = params.get("weights"), params.get("seed")
        if seed is not None and (type(seed) is not int or seed < 0):
            raise BadRequestError("'seed' must be a whole number, 0 or more, or null")
        self._weights_path = Path(text_of(params, "weights")) if path is not None else None
        self._seed = seed
        options = RunOptions(
            text_of(params, "engine", DEFAULT_ENGINE),
            text_of(params, "precision", "fp32"),
            text_of(params, "layout", "nchw"),
            text_of(params, "device", "cpu"),
            whole_of(params, "threads", 0),
            digests_of(params),
            _tile(params),
        )
        weights, inference = self._load(graph, registry)
        session = Session(graph, registry, weights, options)
        _check_sources(session)
        self._playing.only(graph.layers)
        self._session = session
        return _report(weights, (*found, *registry.diagnostics, *inference.diagnostics()))

    def _update(self, number: Any, params: Params) -> dict[str, Any]:
        session = self.session
        graph, found = _parsed(params)
        before = self._needed
        weights, inference = self._load(graph, session.registry, session.weights)
        session.set_graph(graph)
        if self._needed != before:
            session.set_weights(weights)
        _check_sources(session)
        return _report(session.weights, (*found, *inference.diagnostics()))

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
        self._needed = dict(needed)
        return weights, inference

    def _set_input(self, number: Any, params: Params) -> dict[str, Any]:
        layer = text_of(params, "layer")
        told: dict[str, Any] = {}
        handle = params.get("handle")
        if isinstance(handle, Mapping):
            array = self._shared.get(handle)
            try:
                self.session.set_input(layer, array, picture=params.get("picture", True) is not False)
            finally:
                self._shared.free(handle)
        else:
            told = self._playing.feed(self.session, layer, params)
        return {"shape": list(self.session.fed_input(layer)[1].shape), **told}

    def _set_param(self, number: Any, params: Params) -> dict[str, Any]:
        self.session.set_param(text_of(params, "layer"), text_of(params, "param"), text_of(params, "text"))
        return {}

    def _profile(self, number: Any, params: Params) -> dict[str, Any]:
        from designer.profiling.timing import profile

        iterations = max(1, whole_of(params, "iterations", 10))
        return profile(self.session, iterations, progress=Progress(self._tell, number)).as_dict()


def load_nothing(needed: Mapping[Any, Any]) -> Weights:
    """Weights for which nobody named a source: every needed tensor is missing."""
    from designer.files.weights import WeightReport, WeightStatus

    return Weights(reports=tuple(WeightReport(k, WeightStatus.MISSING, w.shape) for k, w in needed.items()))


def _parsed(params: Params) -> tuple[Graph, tuple[Diagnostic, ...]]:
    reading = parse_document(text_of(params, "document").encode())
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    return reading.graph, tuple(reading.diagnostics)


def _tile(params: Params) -> int:
    found = params.get("tile", AUTO)
    if type(found) is not int or found < AUTO:
        raise BadRequestError("'tile' must be a number of pixels, 0 for none or -1 for what memory asks for")
    return found


def _report(weights: Weights, found: Sequence[Diagnostic]) -> dict[str, Any]:
    return {
        "report": [
            {
                "layer": r.key.layer,
                "tensor": r.key.tensor,
                "status": r.status.value,
                "needed": r.needed,
                "found": r.found,
                "source": r.source,
            }
            for r in weights.reports
        ],
        "note": weights.note,
        "diagnostics": [d.as_dict() for d in found],
    }


class Server:
    """Reads requests in a thread, so that a queue of runs can be seen, and answers them in order."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, shared: SharedFolder) -> None:
        self._requests = requests
        self._replies = replies
        self._queue: deque[dict[str, Any] | None] = deque()
        self._arrived = threading.Condition()
        self._worker = Worker(shared, self._send)

    def serve(self) -> None:
        """Answer until `quit` or the end of the requests."""
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        self._send({"event": "ready", "pid": os.getpid()})
        while True:
            with self._arrived:
                self._arrived.wait_for(lambda: self._queue)
                request = self._queue.popleft()
                later = any(r is not None and r.get("method") in ("run", "interrupt") for r in self._queue)
            if request is None:
                return
            if request.get("method") == "quit":
                self._send({"id": request.get("id"), "result": {}})
                return
            if request.get("method") == "run" and later:
                self._send({"id": request.get("id"), "result": {"superseded": True}})
            else:
                self._answer(request)

    def _answer(self, request: dict[str, Any]) -> None:
        number, method, params = request.get("id"), request.get("method"), request.get("params", {})
        try:
            if "malformed" in request:
                raise BadRequestError(str(request["malformed"]))
            if not isinstance(method, str) or not isinstance(params, dict):
                raise BadRequestError("a request needs 'method', a text, and 'params', an object")
            line = line_of({"id": number, "result": self._worker.answer(number, method, params)})
        except DiagnosticError as error:
            line = failure(number, *error.diagnostics)
        except BadRequestError as error:
            wrong = Diagnostic("bad-request", f"the engine got a request that it cannot read: {error}")
            line = failure(number, wrong)
        except MemoryError:
            full = Diagnostic(
                "out-of-memory",
                f"the memory of the machine was not enough for '{method}'",
                remedy="use a smaller picture, or close other programs",
            )
            line = failure(number, full)
        except BrokenPipeError:
            raise
        except Exception as error:  # a fault of ours or of a plugin must not end the process
            traceback.print_exc()
            fault = Diagnostic(
                "internal-error",
                f"'{method}' failed inside the engine: {type(error).__name__}: {error}",
                Severity.ERROR,
                remedy="launch again; if it stays, report it with the text above",
            )
            line = failure(number, fault)
        self._write(line)

    def _send(self, message: dict[str, Any]) -> None:
        self._write(line_of(message))

    def _write(self, line: bytes) -> None:
        self._replies.write(line)
        self._replies.flush()

    # --- the reading thread ---------------------------------------------------------------------------------------

    def _read(self) -> None:
        while True:
            line = self._requests.readline(MAX_LINE)
            if not line:
                break
            if line.strip():
                request = request_of(line)
                self._put(request)
                if request.get("method") == "interrupt":  # queued as well, for its reply and for a run that waits
                    self._worker.interrupt()
        self._put(None)
        self._wait_for_listener()

    def _put(self, request: dict[str, Any] | None) -> None:
        with self._arrived:
            self._queue.append(request)
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


def _private_stdout() -> BinaryIO:
    """The real stdout as a stream of ours; from now on, whoever prints (C libraries too) writes to stderr."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return replies


def _limit_memory(number: int) -> None:
    """Allow `number` bytes of addresses beside those of the process as it starts; beyond, allocations fail."""
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
    if hasattr(os, "nice"):
        os.nice(BEHIND)
    if options.memory:
        _limit_memory(options.memory << 20)
    server = Server(sys.stdin.buffer, _private_stdout(), SharedFolder(options.shared))
    code = 0
    try:
        server.serve()
    except BrokenPipeError:
        code = 1  # the window is gone: there is nobody to tell
    except KeyboardInterrupt:
        code = 130
    sys.stderr.flush()
    os._exit(code)  # engines' threads and the blocked reader must not hold the process


if __name__ == "__main__":
    main()
