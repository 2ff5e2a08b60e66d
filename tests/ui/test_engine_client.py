"""The engine process from the window's side, against a tiny stand-in and the real worker."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from app.ui.engine.client import EngineClient, diagnostics_of
from designer.graph.diagnostics import Diagnostic

pytestmark = pytest.mark.gui

STAND_IN = """
import json, os, sys, time
print(json.dumps({"event": "ready", "pid": os.getpid()}), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    if r["method"] == "quit":
        break
    if r["method"] == "hang":
        time.sleep(600)
    if r["method"] == "leave":
        print("the shelf broke", file=sys.stderr, flush=True)
        sys.exit(3)
    if r["method"] == "refuse":
        print(json.dumps({"id": r["id"], "error": [{"code": "no", "message": "not so", "severity": "error"}]}), flush=True)
        continue
    if r["method"] == "noise":
        print("not json", flush=True)
    print(json.dumps({"event": "progress", "id": r["id"], "done": 1, "total": 2, "text": "half"}), flush=True)
    print(json.dumps({"id": r["id"], "result": r["params"]}), flush=True)
"""


class Replies:
    """Collects what came back."""

    def __init__(self) -> None:
        self.results: list[dict[str, object]] = []
        self.errors: list[tuple[Diagnostic, ...]] = []

    def ask(self, client: EngineClient, method: str, **params: object) -> int:
        return client.request(method, params, self.results.append, self.errors.append)

    @property
    def codes(self) -> list[str]:
        return [found[0].code for found in self.errors]


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def stand_in(tmp_path: Path, qtbot: QtBot) -> Iterator[EngineClient]:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    client = EngineClient(command=(sys.executable, str(script)))
    yield client
    client.close()


def test_requests_are_answered_in_order_and_busy_is_told(
    stand_in: EngineClient, replies: Replies, qtbot: QtBot
) -> None:
    busy: list[bool] = []
    told: list[object] = []
    stand_in.busy_changed.connect(busy.append)
    stand_in.progress.connect(told.append)
    with qtbot.waitSignal(stand_in.started):
        replies.ask(stand_in, "echo", n=1)
        replies.ask(stand_in, "noise", n=2)
    qtbot.waitUntil(lambda: len(replies.results) == 2)
    assert [r["n"] for r in replies.results] == [1, 2]
    assert busy == [True, False]
    assert len(told) == 2


def test_a_refusal_arrives_as_diagnostics(stand_in: EngineClient, replies: Replies, qtbot: QtBot) -> None:
    replies.ask(stand_in, "refuse")
    qtbot.waitUntil(lambda: bool(replies.errors))
    assert replies.codes == ["no"]
    assert diagnostics_of("nonsense")[0].code == "engine-error"


def test_a_killed_process_is_explained_and_the_next_request_starts_another(
    stand_in: EngineClient, replies: Replies, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(stand_in.started):
        replies.ask(stand_in, "hang")
    first, session = stand_in.pid, stand_in.session
    with qtbot.waitSignal(stand_in.crashed) as crash:
        os.kill(first, signal.SIGKILL)
    assert "killed (signal 9)" in crash.args[0]
    assert "'hang'" in crash.args[0]
    assert "Launch again" in crash.args[0]
    assert replies.codes == ["engine-crashed"]
    assert not stand_in.busy
    assert stand_in.session > session
    replies.ask(stand_in, "echo", n=7)
    qtbot.waitUntil(lambda: len(replies.results) == 1)
    assert stand_in.pid not in (0, first)


def test_leaving_by_itself_names_the_last_words(stand_in: EngineClient, replies: Replies, qtbot: QtBot) -> None:
    with qtbot.waitSignal(stand_in.crashed) as crash:
        replies.ask(stand_in, "leave")
    assert "code 3" in crash.args[0]
    assert "the shelf broke" in crash.args[0]


def test_cancel_kills_and_starts_afresh(stand_in: EngineClient, replies: Replies, qtbot: QtBot) -> None:
    with qtbot.waitSignal(stand_in.started):
        replies.ask(stand_in, "hang")
    first = stand_in.pid
    stand_in.cancel()
    assert replies.codes == ["cancelled"]
    assert not _is_alive(first)
    replies.ask(stand_in, "echo", n=1)
    qtbot.waitUntil(lambda: len(replies.results) == 1)


def test_a_program_that_is_not_there(qtbot: QtBot, replies: Replies) -> None:
    client = EngineClient(command=("/nonexistent/python",))
    with qtbot.waitSignal(client.crashed) as crash:
        replies.ask(client, "echo")
    assert "could not be started" in crash.args[0]
    assert replies.codes == ["engine-crashed"]
    client.close()


def test_closing_ends_the_process_and_removes_its_folder(
    stand_in: EngineClient, replies: Replies, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(stand_in.started):
        replies.ask(stand_in, "hang")
    pid, folder = stand_in.pid, stand_in._folder
    assert folder is not None
    assert folder.is_dir()
    stand_in.close()
    assert not folder.exists()
    assert not _is_alive(pid)
    assert replies.errors == []
    with pytest.raises(RuntimeError):
        stand_in.request("echo")


def test_folders_of_dead_windows_are_cleared(stand_in: EngineClient, replies: Replies, qtbot: QtBot) -> None:
    with qtbot.waitSignal(stand_in.started):
        replies.ask(stand_in, "echo")
    assert stand_in._folder is not None
    left = stand_in._folder.parent / "layerwright-999999999-left"
    left.mkdir(exist_ok=True)
    stand_in.cancel()
    assert not left.exists()


def test_the_real_worker_answers_and_hands_arrays_over(qtbot: QtBot, replies: Replies) -> None:
    client = EngineClient()
    with qtbot.waitSignal(client.started, timeout=30000):
        replies.ask(client, "ping")
    qtbot.waitUntil(lambda: bool(replies.results))
    assert replies.results[0]["pid"] == client.pid
    replies.ask(client, "run")
    qtbot.waitUntil(lambda: bool(replies.errors))
    assert replies.codes == ["nothing-open"]
    import numpy as np

    data = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    handle = client.put(data)
    assert np.array_equal(client.take(handle), data)
    assert client._folder is not None
    assert list(client._folder.iterdir()) == []
    client.close()


def test_the_worker_is_ours_in_a_project_with_packages_of_the_same_names(
    qtbot: QtBot, replies: Replies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("app", "designer"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('imported another project')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    client = EngineClient()
    with qtbot.waitSignal(client.started, timeout=30000):
        replies.ask(client, "ping")
    qtbot.waitUntil(lambda: bool(replies.results))
    client.close()


def _is_alive(pid: int) -> bool:
    QCoreApplication.processEvents()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
