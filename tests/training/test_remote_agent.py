"""What the agent on another machine does with each request, run in this process."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from designer.training import remote_agent

Ask = Callable[..., bytes]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Calls a command of the agent with a request, as JSON or bytes, and returns what it prints."""

    def asked(command: Callable[[Path], None], request: object = None) -> bytes:
        data = request if isinstance(request, bytes) else json.dumps(request).encode()
        out = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            patch.setattr(sys, "stdout", out)
            command(tmp_path)
        return out.buffer.getvalue()  # type: ignore[attr-defined]

    return asked


def archive(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def test_files_are_stored_by_their_content_and_only_missing_ones_are_wanted(tmp_path: Path, ask: Ask) -> None:
    one, two = b"one", b"two" * 1000
    both = [digest(one), digest(two)]
    assert json.loads(ask(remote_agent.wanted, both)) == both
    assert json.loads(ask(remote_agent.put, archive((digest(one), one)))) == "stored"
    assert json.loads(ask(remote_agent.wanted, both)) == [digest(two)]
    with pytest.raises(SystemExit, match=f"error: {'0' * 64} was damaged on the way"):
        ask(remote_agent.put, archive((digest(two), two), ("0" * 64, b"x"), (digest(b"y"), b"y")))
    stored = {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()}
    assert stored == {digest(one): one, digest(two): two}


class Popen:
    """A process that was started."""

    calls: list[tuple[list[str], dict[str, Any]]]

    def __init__(self, words: list[str], **options: Any) -> None:
        self.pid = os.getpid()
        self.calls.append((words, options))
        options["stdout"].write(b"said\n")


def test_a_run_is_started_with_its_files_once(tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Popen, "calls", [], raising=False)
    monkeypatch.setattr(remote_agent.subprocess, "Popen", Popen)
    data = b"print()"
    ask(remote_agent.put, archive((digest(data), data)))
    run = tmp_path / "p" / "runs" / "a"
    request = {
        "files": {"p/train.py": digest(data), "data/deep/x": digest(data)},
        "project": "p",
        "run": "p/runs/a",
        "arguments": ["--lr", "1"],
    }
    run.mkdir(parents=True)
    (run / "control").write_text("stop")
    (run / "output.log").write_text("before\n")
    assert json.loads(ask(remote_agent.start, request)) == "started"
    assert (tmp_path / "p" / "train.py").read_bytes() == data
    assert (tmp_path / "data" / "deep" / "x").read_bytes() == data
    assert not (run / "control").exists()
    assert (run / "output.log").read_text() == "before\nsaid\n"
    [(words, options)] = Popen.calls
    assert words == ["nice", sys.executable, "train.py", "--lr", "1"]
    assert (options["cwd"], options["start_new_session"]) == (tmp_path / "p", True)
    assert options["stdin"] == remote_agent.subprocess.DEVNULL
    assert options["stderr"] is options["stdout"]
    record = json.loads((run / "process.json").read_text())
    assert record == {"pid": os.getpid(), "mark": remote_agent.start_time(os.getpid())}
    assert remote_agent.process(run) == os.getpid()
    (run / "control").write_text("pause")
    (tmp_path / "p" / "train.py").write_text("changed")
    assert json.loads(ask(remote_agent.start, request)) == "running"
    assert len(Popen.calls) == 1
    assert (run / "control").read_text() == "pause"
    assert (tmp_path / "p" / "train.py").read_text() == "changed"
    (run / "process.json").write_text(json.dumps({**record, "mark": "another"}))
    assert json.loads(ask(remote_agent.start, {**request, "files": {}})) == "started"
    assert list(tmp_path.rglob("*.part")) == []


def test_commands_are_written_for_the_trainer(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "r").mkdir()
    assert json.loads(ask(remote_agent.control, {"run": "r", "command": "stop"})) == "sent"
    assert [(path.name, path.read_text()) for path in (tmp_path / "r").iterdir()] == [("control", "stop")]


def fetched(answer: bytes) -> tuple[dict[str, Any], list[tuple[str, bytes]]]:
    with tarfile.open(fileobj=io.BytesIO(answer), mode="r:") as found:
        members = [(member.name, found.extractfile(member).read()) for member in found]  # type: ignore[union-attr]
    assert members[0][0] == "about"
    return json.loads(members[0][1]), members[1:]


def test_what_changed_is_returned_with_its_offsets_and_whether_the_process_exists(tmp_path: Path, ask: Ask) -> None:
    run = tmp_path / "r"
    run.mkdir()
    (run / "metrics.jsonl").write_text("1\n")
    (run / "status.json").write_text("{}")
    (run / "notes.json").write_text("{}")
    about, parts = fetched(ask(remote_agent.fetch, {"run": "r", "seen": {}}))
    assert (about["alive"], about["offsets"]) == (False, [0, 0])
    assert parts == [("metrics.jsonl", b"1\n"), ("status.json", b"{}")]
    assert about["seen"].keys() == {"metrics.jsonl", "status.json"}
    with (run / "metrics.jsonl").open("a") as stream:
        stream.write("2\n")
    remote_agent.replace(
        run / "process.json",
        json.dumps({"pid": os.getpid(), "mark": remote_agent.start_time(os.getpid())}).encode(),
    )
    about, parts = fetched(ask(remote_agent.fetch, {"run": "r", "seen": about["seen"]}))
    assert (about["alive"], about["offsets"], parts) == (True, [2], [("metrics.jsonl", b"2\n")])
    about, parts = fetched(ask(remote_agent.fetch, {"run": "r", "seen": about["seen"]}))
    assert (about["offsets"], parts) == ([], [])


def test_a_growing_file_that_was_replaced_is_returned_whole(tmp_path: Path) -> None:
    seen: dict[str, list[int]] = {}
    log = tmp_path / "a.log"
    log.write_text("one\n")
    assert remote_agent.changes(tmp_path, seen) == [("a.log", 0, b"one\n")]
    other = tmp_path / "b.tmp"
    other.write_text("one\ntwo\n")
    other.replace(log)
    assert remote_agent.changes(tmp_path, seen) == [("a.log", 0, b"one\ntwo\n")]
    with log.open("a") as stream:
        stream.write("three\n")
    assert remote_agent.changes(tmp_path, seen) == [("a.log", 8, b"three\n")]
    (tmp_path / "x.json").write_text("1")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "status.json").write_text("2")
    assert remote_agent.changes(tmp_path, seen) == [("x.json", 0, b"1"), ("deep/status.json", 0, b"2")]
    for name in (*remote_agent.HERE_ONLY, "y.part", "z.tmp"):
        (tmp_path / name).write_text("x")
    assert remote_agent.changes(tmp_path, seen) == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"pid": "x", "mark": ""}', '{"pid": 1e400, "mark": ""}', '{"pid": 4194304, "mark": ""}'],
)
def test_a_damaged_record_names_no_process(tmp_path: Path, text: str) -> None:
    assert remote_agent.process(tmp_path) == 0
    (tmp_path / "process.json").write_text(text)
    assert remote_agent.process(tmp_path) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
def test_the_start_of_a_process_is_in_clock_ticks_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    assert remote_agent.start_time(os.getpid()) == ticks
    fields = " ".join(str(number) for number in range(4, 53))
    for state, expected in (("S", "22"), ("Z", "")):
        with monkeypatch.context() as patch:
            text = f"7 (a ) b) {state} {fields}"
            patch.setattr(Path, "read_text", lambda *_, text=text: text)
            assert remote_agent.start_time(7) == expected


@pytest.mark.parametrize(
    ("printed", "found"), [("Fri Nov 27 02:50:14 2026 Ss\n", "Fri Nov 27 02:50:14 2026"), ("Fri Z+\n", ""), ("", "")]
)
def test_without_proc_the_start_of_a_process_is_that_of_ps(
    monkeypatch: pytest.MonkeyPatch, printed: str, found: str
) -> None:
    def no_file(*_: object) -> str:
        raise FileNotFoundError

    calls = []
    monkeypatch.setattr(Path, "read_text", no_file)
    monkeypatch.setattr(
        remote_agent.subprocess, "run", lambda words, **_: calls.append(words) or SimpleNamespace(stdout=printed)
    )
    assert remote_agent.start_time(7) == found
    assert calls == [["ps", "-o", "lstart=,stat=", "-p", "7"]]


def test_the_check_reports_python_and_what_is_missing(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        remote_agent.importlib.util, "find_spec", lambda name: None if name in ("torch", "PIL") else name
    )
    assert json.loads(ask(remote_agent.check)) == {
        "python": list(sys.version_info[:2]),
        "missing": ["torch", "PIL"],
        "folder": str(tmp_path),
    }


def test_a_file_that_disappears_while_a_folder_is_read_is_left_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).write_text(name)
    opened = Path.open

    def disappearing(path: Path, *options: object) -> object:
        if path.name == "b.json":
            raise FileNotFoundError(path)
        return opened(path, *options)

    seen: dict[str, list[int]] = {}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", disappearing)
        assert remote_agent.changes(tmp_path, seen) == [("a.json", 0, b"a.json"), ("c.json", 0, b"c.json")]
    assert remote_agent.changes(tmp_path, seen) == [("b.json", 0, b"b.json")]
