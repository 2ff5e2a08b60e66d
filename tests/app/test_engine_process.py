"""The ends of the engine process and of the processes that it starts: their arguments, streams, limits and exits, in this process."""

from __future__ import annotations

import io
import json
import os
import select
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from app.engine import cluster_job, folder_job, training_profile, worker
from app.engine.protocol import (
    VERSION,
    Asked,
    EmptyReply,
    HelloRequest,
    InterruptRequest,
    OpenRequest,
    ProfiledNetwork,
    ProfileReply,
    RemeasureRequest,
)
from app.engine.worker import Server, Worker
from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import Size2D
from designer.profiling import measure
from designer.profiling.configurations import Grid
from designer.runtime.shared import SharedFolder

Log = list[tuple[Any, ...]]


class ExitedError(Exception):
    """The process would have ended."""


@pytest.fixture
def log() -> Log:
    return []


def ends(code: int) -> None:
    raise ExitedError(code)


def answer(tmp_path: Path, request: Any) -> Any:
    return Worker(SharedFolder(tmp_path), lambda event: None).answer(Asked(1, request))


def test_only_the_same_protocol_is_greeted(tmp_path: Path) -> None:
    assert answer(tmp_path, HelloRequest(VERSION)) == EmptyReply()
    for other in (VERSION - 1, VERSION + 1):
        with pytest.raises(DiagnosticError) as found:
            answer(tmp_path, HelloRequest(other))
        assert found.value.diagnostics[0].message == (
            f"the engine process speaks protocol version {VERSION} and this program version {other}"
        )


def test_an_interrupt_is_obeyed_at_once_and_answered_in_its_turn(tmp_path: Path, log: Log) -> None:
    made = Worker(SharedFolder(tmp_path), lambda event: None)
    made._runs = SimpleNamespace(  # type: ignore[assignment]
        interrupt=lambda: log.append(("obeyed",)), interrupted=lambda: log.append(("answered",))
    )
    made.interrupt()
    assert made.answer(Asked(1, InterruptRequest())) == EmptyReply()
    assert log == [("obeyed",), ("answered",)]


@pytest.mark.parametrize("partial", ["", "kept.json"])
def test_networks_are_measured_again_as_each_was_profiled(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch, partial: str
) -> None:
    """Each network in a worker of its own, with its batch and size, and all of them in turns."""
    progress: list[Any] = []
    monkeypatch.setattr(Worker, "_open", lambda self, opening: log.append((opening.document, self)))
    monkeypatch.setattr(Worker, "_running", lambda self: self)

    def configured(session: Any, iterations: int, grid: Grid) -> list[str]:
        log.append((session, iterations, grid))
        return [f"{len(log)} a", f"{len(log)} b"]

    monkeypatch.setattr(measure, "configurations", configured)
    monkeypatch.setattr(measure, "in_turns", lambda found: ("in turns", *found))

    def measured(found: Any, *, progress: Any, on_profile: Any) -> str:
        progress(1, 2, "three")
        log.append((found, on_profile))
        return "profile"

    monkeypatch.setattr(measure, "measure", measured)
    monkeypatch.setattr(worker, "_partial_file", lambda path: ("writes", path))
    networks = (ProfiledNetwork(OpenRequest("one"), 4, (16, 8)), ProfiledNetwork(OpenRequest("two"), 2, None))
    made = Worker(SharedFolder(tmp_path), progress.append)
    monkeypatch.setattr(worker, "Progress", lambda send, number: lambda *told: send((number, *told)))
    assert made.answer(Asked(7, RemeasureRequest(networks, 5, partial=partial))) == ProfileReply("profile")  # type: ignore[arg-type]
    (one, first), (other, five, grid), (two, second), (again, iterations, plain), end = log
    assert (one, two) == ("one", "two")
    assert other is first
    assert again is second
    assert len({id(each) for each in (first, second, made)}) == 3
    assert first._shared is made._shared
    assert (five, iterations) == (5, 5)
    assert grid == Grid(batches=(4,), sizes=(Size2D(16, 8),))
    assert plain == Grid(batches=(2,), sizes=())
    assert end == (("in turns", "2 a", "2 b", "4 a", "4 b"), ("writes", partial))
    assert progress == [(7, 1, 2, "three")]


@pytest.mark.parametrize(
    ("words", "limit", "raised", "code"),
    [
        ([], None, None, 0),
        (["--memory", "3"], 3 << 20, None, 0),
        ([], None, BrokenPipeError, 1),
        ([], None, KeyboardInterrupt, 130),
    ],
)
def test_the_process_serves_its_streams_and_ends_at_once(
    tmp_path: Path,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    limit: int | None,
    raised: type[BaseException] | None,
    code: int,
) -> None:
    class Listed:
        def __init__(self, requests: Any, replies: Any, shared: SharedFolder) -> None:
            log.append(("server", requests, replies, shared.path))

        def serve(self) -> None:
            log.append(("serves",))
            if raised is not None:
                raise raised

    requests = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=requests))
    monkeypatch.setattr(worker, "Server", Listed)
    monkeypatch.setattr(worker, "_private_stdout", lambda: "replies")
    monkeypatch.setattr(worker, "_limit_memory", lambda number: log.append(("memory", number)))
    monkeypatch.setattr(worker.texts, "use_environment", lambda: log.append(("language",)))
    monkeypatch.setattr(os, "nice", lambda step: log.append(("nice", step)), raising=False)
    monkeypatch.setattr(os, "_exit", ends)
    with pytest.raises(ExitedError) as exited:
        worker.main(["--shared", str(tmp_path), *words])
    assert exited.value.args == (code,)
    assert log == [
        ("language",),
        ("nice", 3),
        *([("memory", limit)] if limit is not None else []),
        ("server", requests, "replies", tmp_path),
        ("serves",),
    ]


def test_the_process_does_not_start_without_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        worker.main([])
    assert exited.value.code == 2
    assert capsys.readouterr().err.endswith("the following arguments are required: --shared\n")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report the addresses in use")
@pytest.mark.parametrize("known", [True, False])
def test_memory_is_limited_in_addition_to_what_is_in_use(
    log: Log, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    import resource

    class Statm:
        def __init__(self, path: str) -> None:
            log.append((path,))

        def read_text(self) -> str:
            if not known:
                raise OSError
            return "100 20 3 4 0 5 0\n"

    monkeypatch.setattr(worker, "Path", Statm)
    monkeypatch.setattr(resource, "getpagesize", lambda: 4096)
    monkeypatch.setattr(resource, "setrlimit", lambda *given: log.append(given))
    worker._limit_memory(1000)
    most = 1000 + (409600 if known else 0)
    assert log == [("/proc/self/statm",), (resource.RLIMIT_AS, (most, most))]


def test_what_is_printed_goes_to_stderr_and_replies_to_the_real_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with worker._private_stdout() as replies:
            replies.write(b"a reply\n")
        print("printed", flush=True)
        os.write(out.fileno(), b"printed by a library\n")
    assert (tmp_path / "out").read_text() == "a reply\n"
    assert (tmp_path / "err").read_text() == "printed\nprinted by a library\n"


class Poll:
    """Answers with a list of events after the other."""

    def __init__(self, log: Log, answers: list[list[int]]) -> None:
        self._log, self._answers = log, answers

    def register(self, number: int, events: int) -> None:
        self._log.append(("register", number, events))

    def poll(self, milliseconds: int) -> list[tuple[int, int]]:
        self._log.append(("poll", milliseconds))
        return [(9, event) for event in self._answers.pop(0)]


@pytest.mark.skipif(not hasattr(select, "poll"), reason="not on Windows")
@pytest.mark.parametrize("event", ["POLLERR", "POLLHUP", "POLLNVAL"])
def test_the_process_ends_when_nobody_reads_its_replies(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    last = getattr(select, event)
    monkeypatch.setattr(select, "poll", lambda: Poll(log, [[], [select.POLLOUT], [select.POLLIN, last]]))
    monkeypatch.setattr(os, "_exit", ends)
    replies: Any = SimpleNamespace(fileno=lambda: 9)
    server = Server(io.BytesIO(), replies, SharedFolder(tmp_path))
    with pytest.raises(ExitedError) as exited:
        server._wait_for_listener()
    assert exited.value.args == (0,)
    assert log == [("register", 9, 0), *[("poll", 500)] * 3]


def test_without_poll_the_process_ends_after_a_while(tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "poll", raising=False)
    monkeypatch.setattr(worker.time, "sleep", lambda seconds: log.append((seconds,)))
    monkeypatch.setattr(os, "_exit", ends)
    with pytest.raises(ExitedError) as exited:
        Server(io.BytesIO(), io.BytesIO(), SharedFolder(tmp_path))._wait_for_listener()
    assert exited.value.args == (0,)
    assert log == [(5,)]


@pytest.mark.parametrize(
    "read", [worker._parsed, lambda text: cluster_job.Runner(SimpleNamespace(document=text.encode()))]
)
def test_a_document_that_cannot_be_read_is_refused_with_its_reasons(read: Any) -> None:
    with pytest.raises(DiagnosticError) as found:
        read("<nonsense")
    assert found.value.diagnostics[0].severity == "error"


def test_images_that_wait_are_not_read_when_a_job_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that no thread reads yet are given up; the one that was read last was not begun."""
    begun: list[Path] = []
    free = threading.Event()

    class Blocked:
        def take(self, path: Path, operator: Any) -> str:
            begun.append(path)
            free.wait(5)
            return path.name

    monkeypatch.setattr(folder_job, "Sources", Blocked)
    monkeypatch.setattr(folder_job, "physical_cores", lambda: 1)
    frames = [folder_job.Frame(n, str(n), {"image": Path(str(n))}) for n in range(12)]
    found = folder_job.prefetched(frames, {"image": None})
    first, read = next(found)
    assert first is frames[0]
    assert isinstance(read, Future)
    cancelled: list[bool] = []
    cancel = Future.cancel

    def noted(future: Future[Any]) -> bool:
        free.set()
        cancelled.append(cancel(future))
        return cancelled[-1]

    monkeypatch.setattr(Future, "cancel", noted)
    found.close()  # type: ignore[attr-defined]
    assert len(cancelled) == 8
    assert sum(cancelled) >= 6
    assert len(begun) <= 3
    assert read.result() == {"image": "0"}


# --- the training step in another process ----------------------------------------------------------------------------


class TrainingError(Exception):
    pass


def project_modules(log: Log, monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    """The modules of an exported project, as they are imported."""

    def module(name: str, **content: Any) -> None:
        made = ModuleType(name)
        made.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, made)

    def parsed(options: list[str], text: str) -> Any:
        log.append(("parse", options, text))
        return SimpleNamespace(config=lambda: "settings")

    def records(*, as_json: bool) -> str:
        return f"records {as_json}"

    def opened(settings: str) -> str:
        return f"processes of {settings}"

    def made(*given: Any) -> Any:
        log.append(("run", *given))
        if isinstance(run, Exception):
            raise run
        return run

    module("config", parse=parsed)
    module("processes", open_processes=opened)
    module("train", Run=made, Records=records, TrainingError=TrainingError)
    monkeypatch.setattr(sys, "path", list(sys.path))


WORDS = ["--steps=4", "--batch=2", "--patch=16", "--threads=3", "--device=cuda"]


def test_a_training_step_is_timed_in_the_project(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = SimpleNamespace(
        objective=SimpleNamespace(train=lambda: log.append(("train",))),
        samples=SimpleNamespace(close=lambda: log.append(("close",))),
    )
    project_modules(log, monkeypatch, run)

    def timed(*given: Any) -> dict[str, float]:
        log.append(("timed", given[0], given[1].__name__, given[2]))
        return {"step": 2.5}

    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setattr(training_profile, "_timed", timed)
    assert training_profile.main([str(tmp_path), *WORDS]) == 0
    options = ["--batch=2", "--patch=16", "--device=cuda", "--threads=3", "--steps=7", "--synthetic=2"]
    assert log == [
        ("parse", [*options, "--json-progress", f"--output={tmp_path}"], ""),
        ("run", "settings", "records True", "processes of settings"),
        ("train",),
        ("timed", run, "torch", 4),
        ("close",),
    ]
    assert json.loads(capsys.readouterr().out) == {"step": 2.5}
    assert sys.path[0] == str(tmp_path)


def test_a_project_that_refuses_to_train_is_reported_by_its_message(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project_modules(log, monkeypatch, TrainingError("there is nothing to learn"))
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert training_profile.main([str(tmp_path), *WORDS[:-1]]) == 1
    assert capsys.readouterr() == ("", "there is nothing to learn\n")
    assert "--device=cpu" in log[0][1]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_phases_of_a_step_are_medians_without_the_first_steps(
    log: Log, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """The clock advances by a known time in every phase; a GPU is waited for before and after each."""
    now = [100.0]
    step = [0]

    class Tensor:
        def backward(self, *given: Any) -> str:
            now[0] += 0.002 * step[0]
            return "gradients"

    def spends(seconds: float, result: Any = None) -> Any:
        def work(*given: Any, **named: Any) -> Any:
            now[0] += seconds * step[0]
            return (result, given, named)

        return work

    waits: Log = []
    torch = SimpleNamespace(Tensor=Tensor, cuda=SimpleNamespace(synchronize=lambda which: waits.append((which,))))
    run = SimpleNamespace(
        device=SimpleNamespace(type=device),
        load=spends(0.004, "batch"),
        losses=spends(0.001, "losses"),
        scaler=SimpleNamespace(step=spends(0.003)),
    )

    def train_step() -> None:
        step[0] += 1
        log.append(run.load(1, of=2))
        log.append(run.losses("x"))
        log.append((Tensor().backward(),))
        run.scaler.step()
        now[0] += 0.005 * step[0]

    run.train_step = train_step
    monkeypatch.setattr(training_profile, "perf_counter", lambda: now[0])
    found = training_profile._timed(run, torch, 3)
    assert step == [6]
    assert found == pytest.approx({"data": 20, "forward": 5, "backward": 10, "optimizer": 15, "step": 75})
    assert log[:3] == [("batch", (1,), {"of": 2}), ("losses", ("x",), {}), ("gradients",)]
    assert len(waits) == (6 * 5 * 2 if device == "cuda" else 0)
    assert all(which == (run.device,) for which in waits)
