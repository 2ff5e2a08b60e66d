"""The engine process from the window's side, against a tiny stand-in and the real worker."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QByteArray, QCoreApplication, QObject
from pytestqt.qtbot import QtBot

from app.engine import protocol
from app.engine.protocol import EmptyReply, PingReply, PingRequest, ProgressEvent, Request, RunRequest, SetParamRequest
from app.ui.engine import client as client_module
from app.ui.engine.call import EngineCall
from app.ui.engine.client import EngineClient
from app.ui.engine.latest_call import LatestCall
from designer.graph.diagnostics import Diagnostic, Severity
from designer.runtime.shared import Handle

pytestmark = pytest.mark.gui

STAND_IN = """
import json, os, sys, time
from pathlib import Path

def say(**event):
    print(json.dumps(event), flush=True)

protocol, shared = int(sys.argv[1]), Path(sys.argv[-1])
say(event="ready", pid=os.getpid(), protocol=protocol) if protocol else say(event="ready", pid=os.getpid())
for line in sys.stdin:
    asked = json.loads(line)
    number, request = asked["id"], asked["request"]
    if request["method"] == "hello":
        continue
    if request["method"] == "quit":
        break
    text = request.get("text")
    if text == "hang":
        time.sleep(600)
    elif text == "leave":
        print("the shelf broke", file=sys.stderr, flush=True)
        sys.exit(3)
    elif text == "refuse":
        say(event="failed", id=number, error=[{"code": "no", "message": "not so", "severity": "error"}])
    elif text == "supersede":
        say(event="superseded", id=number)
    elif request["method"] == "gradient":
        (shared / "00000000.raw").write_bytes(bytes(4))
        handle = {"file": "00000000.raw", "shape": [1], "dtype": "float32"}
        say(event="done", id=number, result={"gradient": handle})
    elif text and text.startswith("raw "):
        print(text[4:].replace("NUMBER", str(number)), flush=True)
    elif text and text.startswith("long "):
        print("x" * int(text[5:]), flush=True)
    elif text and text.startswith("break off "):
        print(text[10:], end="", flush=True)
        sys.exit(3)
    else:
        say(event="progress", id=number, done=1, total=2, text="half")
        say(event="done", id=number, result={"pid": number})
"""


class Asker(QObject):
    """Asks, and collects what came back."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[object] = []
        self.failed: list[tuple[Diagnostic, ...]] = []
        self.superseded = 0
        self.progress: list[ProgressEvent] = []

    def ask(self, client: EngineClient, request: Request | str) -> EngineCall:
        """A text is what the stand-in tells it to do."""
        if isinstance(request, str):
            request = SetParamRequest("layer", "param", request)
        return client.ask(
            request, self, self.done.append, self.failed.append, superseded=self.count, progress=self.progress.append
        )

    def count(self) -> None:
        self.superseded += 1

    @property
    def codes(self) -> list[str]:
        return [found[0].code for found in self.failed]


@pytest.fixture
def asker() -> Asker:
    return Asker()


Stand = Callable[..., EngineClient]


@pytest.fixture
def stand(tmp_path: Path, qtbot: QtBot) -> Iterator[Stand]:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    made: list[EngineClient] = []

    def start(version: int = protocol.VERSION) -> EngineClient:
        made.append(EngineClient(command=(sys.executable, str(script), str(version))))
        return made[-1]

    yield start
    for client in made:
        client.close()


@pytest.fixture
def stand_in(stand: Stand) -> EngineClient:
    return stand()


def test_requests_are_answered_in_order_and_busy_is_told(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    busy: list[bool] = []
    stand_in.busy_changed.connect(busy.append)
    with qtbot.waitSignal(stand_in.started):
        asker.ask(stand_in, PingRequest())
        asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: len(asker.done) == 2)
    assert asker.done == [PingReply(1), PingReply(2)]
    assert busy == [True, False]
    assert asker.progress == [ProgressEvent(1, 1, 2, "half"), ProgressEvent(2, 1, 2, "half")]
    busy.clear()
    left = [PingRequest(), PingRequest()]

    def again(reply: object) -> None:
        """Ask when the answer is there: the client is not busy then, and again after that."""
        asker.done.append((stand_in.busy, list(busy)))
        if left:
            stand_in.ask(left.pop(), asker, again)

    stand_in.ask(left.pop(), asker, again)
    qtbot.waitUntil(lambda: len(asker.done) == 4)
    assert asker.done[2:] == [(False, [True, False]), (False, [True, False] * 2)]
    assert busy == [True, False] * 2


def test_a_refusal_arrives_as_diagnostics(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    asker.ask(stand_in, "refuse")
    qtbot.waitUntil(lambda: bool(asker.failed))
    assert asker.failed == [(Diagnostic("no", "not so"),)]


HUGE = "1" + "0" * 400
MANY = 100 << 20


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("raw not json", "malformed"),
        ('raw {"event": "done", "id": NUMBER, "result": {"gra', "truncated"),
        ('raw {"event": "dance", "id": NUMBER}', "invalid value 'dance'"),
        ('raw {"event": "done", "id": "NUMBER", "result": {}}', "id: expected int, got str"),
        ('raw {"event": "done", "id": NUMBER, "result": 3}', "expected object, got int"),
        (f'raw {{"event": "progress", "id": NUMBER, "done": {HUGE}, "total": 1}}', "done"),
        ('raw {"event": "failed", "id": NUMBER, "error": []}', "error"),
        ('raw {"event": "failed", "id": NUMBER, "error": [{"code": 3}]}', "error[0].code: expected str, got int"),
        ("raw " + "[" * 100_000, "object"),
        (f"long {MANY}", "malformed"),
        (f"long {protocol.MAX_LINE + 5}", "256 MiB"),
    ],
)
def test_an_answer_that_does_not_decode_is_named_and_the_window_goes_on(
    stand_in: EngineClient, asker: Asker, qtbot: QtBot, line: str, named: str
) -> None:
    asker.ask(stand_in, line)
    qtbot.waitUntil(lambda: bool(asker.failed), timeout=20_000)
    assert asker.codes == ["bad-reply"]
    assert named in asker.failed[0][0].message
    assert asker.failed[0][0].remedy
    asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: len(asker.done) == 1)
    assert not stand_in.busy


def test_a_line_that_is_too_long_is_named_if_its_end_comes_with_it(
    stand_in: EngineClient, asker: Asker, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is the answer to one request only, however long it is and whatever lines surround it."""
    monkeypatch.setattr(client_module, "MAX_LINE", 1000)
    asker.ask(stand_in, "raw " + "x" * 1005)
    qtbot.waitUntil(lambda: bool(asker.failed))
    assert "256 MiB" in asker.failed[0][0].message
    asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: len(asker.done) == 1)
    asker.failed.clear()
    for count in (999, 1000, 200_000):
        asker.ask(stand_in, f"long {count}")
        asker.ask(stand_in, "raw \n  \n" + '{"event": "done", "id": NUMBER, "result": {}}')
        asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: not stand_in.busy)
    assert len(asker.done) == 7
    assert [("256 MiB" in found[0].message) for found in asker.failed] == [False, True, True]


def test_what_is_asked_for_after_a_failure_is_answered(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    """By whoever hears of the failure, while others have not heard of it yet."""
    busy: list[bool] = []
    stand_in.busy_changed.connect(busy.append)

    def again(found: tuple[Diagnostic, ...]) -> None:
        asker.failed.append(found)
        asker.ask(stand_in, PingRequest())

    asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: len(asker.done) == 1)
    for end in (stand_in.cancel, lambda: os.kill(stand_in.pid, signal.SIGKILL)):
        before = len(asker.done)
        for _ in range(2):
            stand_in.ask(SetParamRequest("layer", "param", "hang"), asker, None, again)
        end()
        qtbot.waitUntil(lambda before=before: len(asker.done) == before + 2)
        assert not stand_in.busy
    assert asker.codes == ["cancelled"] * 2 + ["engine-crashed"] * 2
    assert busy == [True, False] * 5


def test_what_belongs_to_no_request_is_dropped(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    shown: list[ProgressEvent] = []
    stand_in.progress.connect(shown.append)
    for event in (
        '"done", "id": 99, "result": {}',
        '"failed", "id": 99, "error": [{"code": "no", "message": "not so", "severity": "error"}]',
        '"superseded", "id": 99',
        '"progress", "id": 99, "done": 1, "total": 2, "text": "half"',
        '"progress", "id": NUMBER, "done": 1, "total": 3, "text": "mine"',
    ):
        asker.ask(stand_in, f'raw {{"event": {event}}}')
    asker.ask(stand_in, "supersede")
    qtbot.waitUntil(lambda: asker.superseded == 1)
    assert (asker.done, asker.failed) == ([], [])
    assert [event.text for event in asker.progress] == [event.text for event in shown] == ["mine"]


@pytest.mark.parametrize("version", [0, protocol.VERSION + 1])
def test_an_engine_of_another_protocol_is_refused_with_both_versions(
    stand: Stand, asker: Asker, qtbot: QtBot, version: int
) -> None:
    client = stand(version)
    with qtbot.waitSignal(client.crashed) as crash:
        asker.ask(client, PingRequest())
    assert f"version {version} " in crash.args[0]
    assert f"version {protocol.VERSION}." in crash.args[0]
    assert "nstall the same version" in crash.args[0]
    assert asker.codes == ["engine-crashed"]
    assert (client.busy, client.running) == (False, False)


def test_an_answer_that_was_cancelled_is_dropped_with_its_tensors(
    stand_in: EngineClient, asker: Asker, qtbot: QtBot
) -> None:
    asker.ask(stand_in, protocol.GradientRequest("a", "b")).cancel()
    qtbot.waitUntil(lambda: asker.superseded == 1)
    assert (asker.done, asker.failed) == ([], [])
    assert stand_in.folder is not None
    assert list(stand_in.folder.iterdir()) == []
    asker.ask(stand_in, protocol.GradientRequest("a", "b"))
    qtbot.waitUntil(lambda: len(asker.done) == 1)
    assert len(list(stand_in.folder.iterdir())) == 1


def test_nothing_is_called_when_the_owner_is_gone(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    with qtbot.waitSignal(asker.destroyed):
        asker.ask(stand_in, "refuse")
        asker.ask(stand_in, PingRequest())
        asker.ask(stand_in, "supersede")
        asker.deleteLater()
    qtbot.waitUntil(lambda: not stand_in.busy)
    assert (asker.done, asker.failed, asker.superseded, asker.progress) == ([], [], 0, [])


def test_only_the_latest_of_several_requests_counts(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    sent: list[object] = []
    call = LatestCall[EmptyReply](asker)
    for text in ("first", "second", "third"):
        call.ask(stand_in, SetParamRequest("layer", "param", text), lambda _, t=text: sent.append(t), sent.append)
    qtbot.waitUntil(lambda: bool(sent))
    assert sent == ["third"]
    asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: bool(asker.done))
    assert asker.done == [PingReply(3)]  # the second one was never sent
    call.ask(stand_in, SetParamRequest("layer", "param", "fourth"), sent.append, sent.append)
    call.cancel()
    qtbot.waitUntil(lambda: not stand_in.busy)
    assert sent == ["third"]


def test_a_killed_process_is_explained_and_the_next_request_starts_another(
    stand_in: EngineClient, asker: Asker, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(stand_in.started):
        asker.ask(stand_in, "hang")
    first = stand_in.pid
    with qtbot.waitSignal(stand_in.crashed) as crash:
        os.kill(first, signal.SIGKILL)
    assert "killed (signal 9)" in crash.args[0]
    assert "it took over a parameter" in crash.args[0]
    assert "Launch again" in crash.args[0]
    assert asker.codes == ["engine-crashed"]
    assert not stand_in.busy
    asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: len(asker.done) == 1)
    assert stand_in.pid not in (0, first)


def test_the_client_knows_whose_network_is_open(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    assert stand_in.opened is None
    call = asker.ask(stand_in, protocol.OpenRequest(""))
    assert stand_in.opened is call
    other = asker.ask(stand_in, protocol.OpenRequest(""))
    assert stand_in.opened is other
    with qtbot.waitSignal(stand_in.crashed):
        os.kill(stand_in.pid, signal.SIGKILL)
    assert stand_in.opened is None


def test_leaving_by_itself_names_the_last_words(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    with qtbot.waitSignal(stand_in.crashed) as crash:
        asker.ask(stand_in, "leave")
    assert "code 3" in crash.args[0]
    assert "the shelf broke" in crash.args[0]


@pytest.mark.parametrize("size", range(1, 40, 3))
def test_answers_arrive_in_pieces_of_any_size(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    lines = [b"a long line that comes in many pieces", b"b", b"", b"another one", b"c", b"d"]
    text = b"".join(line + b"\n" for line in lines)
    pieces = [QByteArray(text[at : at + size]) for at in range(0, len(text), size)]
    found: list[object] = []
    monkeypatch.setattr(client_module, "read_event", lambda line: line)
    client = EngineClient(command=["nothing"])
    monkeypatch.setattr(client, "_event", found.append)
    monkeypatch.setattr(client, "_process", SimpleNamespace(readAllStandardOutput=lambda: pieces.pop(0)))
    while pieces:
        client._read()
    assert found == [line for line in lines if line]
    monkeypatch.undo()
    client.close()


@pytest.mark.parametrize("half", ['{"event": "done", "id": 1', "x" * 200])
def test_half_a_line_of_a_dead_engine_is_not_part_of_the_next_answer(
    stand_in: EngineClient, asker: Asker, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    monkeypatch.setattr(client_module, "MAX_LINE", 150)
    with qtbot.waitSignal(stand_in.crashed):
        asker.ask(stand_in, f"break off {half}")
    with qtbot.waitSignal(stand_in.started):
        asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: len(asker.done) == 1)


def test_the_last_words_of_a_dead_engine_are_not_those_of_the_next(
    stand_in: EngineClient, asker: Asker, qtbot: QtBot
) -> None:
    said: list[str] = []
    stand_in.crashed.connect(said.append)
    for number, (text, last) in enumerate(
        (("leave", ": the shelf broke"), ("break off x", ""), ("leave", ": the shelf broke")), 1
    ):
        asker.ask(stand_in, text)
        qtbot.waitUntil(lambda number=number: len(said) == number)
        assert said[-1].startswith(
            f"The engine process ended by itself with code 3{last} while it took over a parameter."
        )
        assert asker.failed[-1][0].message == said[-1].partition(" Launch again")[0]
        assert stand_in.opened is None
        assert not stand_in.running
    assert asker.codes == ["engine-crashed"] * 3


def test_cancel_kills_and_starts_afresh(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    with qtbot.waitSignal(stand_in.started):
        asker.ask(stand_in, "hang")
    first = stand_in.pid
    stand_in.cancel()
    assert asker.codes == ["cancelled"]
    (found,) = asker.failed[0]
    assert (found.severity, found.message, found.remedy) == (Severity.INFO, "the work was cancelled", "launch it again")
    assert not _is_alive(first)
    asker.ask(stand_in, PingRequest())
    qtbot.waitUntil(lambda: len(asker.done) == 1)


def test_a_program_that_is_not_there(qtbot: QtBot, asker: Asker) -> None:
    client = EngineClient(command=("/nonexistent/python",))
    with qtbot.waitSignal(client.crashed) as crash:
        asker.ask(client, PingRequest())
    assert "could not be started" in crash.args[0]
    assert asker.codes == ["engine-crashed"]
    client.close()


def test_closing_ends_the_process_and_removes_its_folder(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    with qtbot.waitSignal(stand_in.started):
        asker.ask(stand_in, "hang")
    pid, folder = stand_in.pid, stand_in.folder
    assert folder is not None
    assert folder.is_dir()
    stand_in.close()
    assert not folder.exists()
    assert not _is_alive(pid)
    asker.ask(stand_in, PingRequest())
    assert (asker.done, asker.failed, stand_in.running) == ([], [], False)


def test_a_client_leaves_when_the_program_ends(qtbot: QtBot, qapp: QCoreApplication) -> None:
    ends = {name: f"2{name}()" for name in ("aboutToQuit", "lastWindowClosed")}
    before = {name: qapp.receivers(signal) for name, signal in ends.items()}
    clients = [EngineClient(command=("nothing",)) for _ in range(2)]
    listens = {name: qapp.receivers(signal) - before[name] for name, signal in ends.items()}
    assert listens == {"aboutToQuit": 2, "lastWindowClosed": 0}
    for client in clients:
        client.close()


def test_folders_of_dead_windows_are_cleared(stand_in: EngineClient, asker: Asker, qtbot: QtBot) -> None:
    with qtbot.waitSignal(stand_in.started):
        asker.ask(stand_in, PingRequest())
    assert stand_in.folder is not None
    left = stand_in.folder.parent / "layerwright-999999999-left"
    left.mkdir(exist_ok=True)
    stand_in.cancel()
    assert not left.exists()


def test_the_real_worker_answers_and_hands_arrays_over(qtbot: QtBot, asker: Asker) -> None:
    client = EngineClient()
    with qtbot.waitSignal(client.started, timeout=30000):
        asker.ask(client, PingRequest())
    qtbot.waitUntil(lambda: bool(asker.done))
    assert asker.done == [PingReply(client.pid)]
    asker.ask(client, RunRequest())
    qtbot.waitUntil(lambda: bool(asker.failed))
    assert asker.codes == ["nothing-open"]
    data = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    assert np.array_equal(client.take(client.put(data)), data)
    assert client.folder is not None
    assert list(client.folder.iterdir()) == []
    client.close()


def _is_alive(pid: int) -> bool:
    QCoreApplication.processEvents()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_folders_with_names_that_somebody_made_up_are_left_alone(
    stand_in: EngineClient, asker: Asker, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MEMORY_FOLDER", 1 << 62)  # bytes that no memory folder has
    monkeypatch.setattr(client_module.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(client_module.tempfile, "tempdir", str(tmp_path))
    for number in ("9" * 12, "9" * 400 if os.pathconf(tmp_path, "PC_NAME_MAX") > 420 else "9" * 200):
        (tmp_path / f"{client_module.PREFIX}{number}-x").mkdir()
    with qtbot.waitSignal(stand_in.started):
        asker.ask(stand_in, PingRequest())
    assert stand_in.folder is not None
    assert stand_in.folder.parent == tmp_path
    assert len(list(tmp_path.glob(f"{client_module.PREFIX}*"))) == 3


@pytest.mark.parametrize(
    ("refusal", "left"),
    [
        (None, True),
        (PermissionError(), True),
        (OverflowError(), True),
        (OSError(5, "?"), True),
        (ProcessLookupError(), False),
    ],
)
def test_only_the_folder_of_a_process_that_is_gone_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception | None, left: bool
) -> None:
    monkeypatch.setattr(client_module, "MEMORY_FOLDER", 1 << 62)
    monkeypatch.setattr(client_module.tempfile, "gettempdir", lambda: str(tmp_path))
    asked: list[tuple[int, int]] = []

    def answer(pid: int, signal: int) -> None:
        asked.append((pid, signal))
        if refusal is not None:
            raise refusal

    monkeypatch.setattr(client_module.os, "kill", answer)
    folders = [
        tmp_path / f"{client_module.PREFIX}{name}" for name in ("123-x", f"{os.getpid()}-x", "x-1", "-5-x", "123")
    ]
    for folder in folders:
        folder.mkdir()
        (folder / "0.raw").write_bytes(b"")
    made = client_module._make_folder()
    assert asked == [(123, 0)]
    assert {folder: folder.exists() for folder in folders} == {
        folder: left or folder != folders[0] for folder in folders
    }
    assert made.parent == tmp_path
    assert made.name.startswith(f"{client_module.PREFIX}{os.getpid()}-")


DOING = [
    (protocol.OpenRequest(""), "it prepared the network"),
    (protocol.UpdateRequest(""), "it took over an edit of the network"),
    (SetParamRequest("a", "b", "c"), "it took over a parameter"),
    (protocol.SetInputRequest("a", "b"), "it read an input"),
    (RunRequest(), "it ran the network"),
    (protocol.ProfileRequest(1), "it measured times"),
    (PingRequest(), "it was busy with 'ping'"),
    (None, ""),
]


@pytest.mark.parametrize(("request_", "doing"), DOING)
def test_what_a_dead_engine_was_busy_with(qtbot: QtBot, asker: Asker, request_: Request | None, doing: str) -> None:
    """The sentence is about the oldest request; every one fails with it."""
    client = EngineClient(command=("absent",))
    waiting = [request_, PingRequest()] if request_ else []
    calls = [EngineCall(each, asker, None, asker.failed.append, None, None) for each in waiting]
    client._calls = dict(enumerate(calls, 4))
    said: list[object] = []
    client.crashed.connect(said.append)
    client.busy_changed.connect(said.append)
    client._died("The engine stopped.")
    message = f"The engine stopped{doing and ' while '}{doing}. Your document is unchanged."
    remedy = "Launch again to start a fresh engine; a smaller image needs less memory."
    assert said == [f"{message} {remedy}", *([False] if calls else [])]
    found = [Diagnostic("engine-crashed", message, remedy=remedy)]
    assert asker.failed == [tuple(found)] * len(calls)
    assert (client.busy, client.running, client.waits_for) == (False, False, ())


def test_a_client_without_a_process_lends_and_takes_nothing(qtbot: QtBot, asker: Asker) -> None:
    client = EngineClient(command=("absent",))
    assert (client.pid, client.running, client.busy, client.closed, client.folder) == (0, False, False, False, None)
    with pytest.raises(RuntimeError, match="the engine has not been started"):
        client.take(Handle("a", (1,), "float32"))
    client.cancel()
    assert not client.running, "there is nothing to cancel"
    client.close()
    client.close()
    assert client.closed
    said: list[bool] = []
    client.busy_changed.connect(said.append)
    call = asker.ask(client, PingRequest())
    assert (call.request, said, client.running, asker.failed) == (PingRequest(), [], False, [])
