"""How a host is called, and what is refused about it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from refusals import refusal

from designer.training import ssh_host
from designer.training.run_folder import RemoteRun, RunFolder
from designer.training.ssh_host import Host


def test_a_host_is_called_with_these_options_and_its_refusals_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    answer: list[tuple[int, bytes, bytes]] = []

    def ssh(words: list[str], *, input: bytes, **_: object) -> subprocess.CompletedProcess[bytes]:
        calls.append([*words, input.decode()])
        return subprocess.CompletedProcess(words, *answer[-1])

    monkeypatch.setattr(ssh_host.subprocess, "run", ssh)
    host = Host("user@gpu", "my python")
    answer.append((0, b'{"a": 1}', b"a warning"))
    assert host.ask("check", [1]) == {"a": 1}
    options = ["BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"]
    words = [word for option in options for word in ("-o", option)]
    command = "'my python' ~/.layerwright/agent.py check ~/.layerwright"
    assert calls == [["ssh", *words, "--", "user@gpu", command, "[1]"]]
    fit = "install what is missing there, or name a Python that has it with --host-python"
    lost = "check the name in your SSH configuration, and that `ssh user@gpu` works without a password"
    cases = [
        ((255, b"", b"one\nno route\n"), "no-connection", "cannot be reached: no route", lost),
        ((-9, b"", b""), "no-connection", "cannot be reached: ", lost),
        ((127, b"", b"sh: not found"), "host-unfit", "cannot train: it does not have my python", fit),
        ((1, b"", b"one\nlast\n"), "host-unfit", "cannot train: last", fit),
        ((3, b"", b""), "host-unfit", "cannot train: exit status 3", fit),
        *(
            ((0, text, b""), "host-unfit", "cannot train: its shell prints other text before the answer", fit)
            for text in (b"Welcome", b'Welcome\n{"a": 1}', b"", b"\n")
        ),
    ]
    for given, code, said, remedy in cases:
        answer.append(given)
        assert refusal(lambda: host.ask("check")) == (code, f"the host user@gpu {said}", None, remedy)
    for found, said in (
        ({"python": [3, 10], "missing": []}, "my python is version 3.10; 3.11 is needed"),
        ({"python": [3, 11], "missing": ["torch", "PIL"]}, "my python lacks torch, PIL"),
    ):
        answer.append((0, json.dumps(found).encode(), b""))
        assert refusal(host.open)[1] == f"the host user@gpu cannot train: {said}"
    for version in ([3, 11], [3, 12], [4, 0]):
        answer.append((0, json.dumps({"python": version, "missing": []}).encode(), b""))
        host.open()

    def nowhere(*_: object, **__: object) -> None:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(ssh_host.subprocess, "run", nowhere)
    reason = "the program ssh cannot be started: No such file or directory"
    assert refusal(lambda: host.ask("check")) == ("no-ssh", reason, None, "install OpenSSH")
    assert refusal(lambda: Host("a b" * 40)) == (
        "bad-host",
        f"'{('a b' * 40)[:80]}' is not the name of a host",
        None,
        "use a name from your SSH configuration, or user@address",
    )


def test_data_and_runs_of_other_machines_are_refused_with_their_place(run: RunFolder) -> None:
    missing = run.path / "none"
    assert refusal(lambda: ssh_host.start(Host("gpu"), run, {"from_weights": str(missing)}, print)) == (
        "no-data",
        f"{missing} does not exist",
        str(missing),
        "check --from-weights",
    )
    path = str(run.path)
    remote = (f"{path} is not a run on another machine", path, "give the folder that layerwright train --host printed")
    assert refusal(lambda: ssh_host.resume(run, {})) == ("not-remote", *remote)
    (run.path / "remote.json").write_text('{"host": "gpu", "python": "p", "run": "r"}')
    run.record_process(os.getppid())
    found = refusal(lambda: next(ssh_host.follow(run, print)))
    assert found == ("run-trains", "another process follows the run a", path, "end that process first")
    assert run.process() == os.getppid()


class Asked(Host):
    """A host that keeps what it is asked."""

    def __init__(self, name: str = "gpu", python: str = "py") -> None:
        super().__init__(name, python)
        self.requests: list[object] = []

    def open(self) -> None:
        self.requests.append("open")

    def ask(self, command: str, request: object = None) -> object:
        self.requests.append((command, request))
        return "done"

    def send(self, files: object) -> None:
        self.requests.append(("send", files))


def test_a_command_is_passed_on_once(run: RunFolder) -> None:
    host, record = Asked(), RemoteRun("gpu", "py", "p/runs/a")
    assert ssh_host._pass_on(host, run, record, 5) == 5
    run.send("pause")
    os.utime(run.path / "control", ns=(1, 1000))
    assert ssh_host._pass_on(host, run, record, 0) == 1000
    assert ssh_host._pass_on(host, run, record, 1000) == 1000
    assert host.requests == [("control", {"run": "p/runs/a", "command": "pause"})]
    (run.path / "control").write_text("unknown")
    os.utime(run.path / "control", ns=(1, 2000))
    assert ssh_host._pass_on(host, run, record, 1000) == 2000
    assert len(host.requests) == 1
    run.send("pause")
    os.utime(run.path / "control", ns=(1, 3000))
    assert ssh_host._pass_on(host, run, record, 2000) == 3000
    assert len(host.requests) == 2
    for number, command in enumerate(("resume", "stop"), 4):
        run.send(command)
        os.utime(run.path / "control", ns=(1, 1000 * number))
        for sent in (3000, 1000 * number, 1000 * number):
            assert ssh_host._pass_on(host, run, record, sent) == 1000 * number
    assert [request["command"] for _, request in host.requests] == ["pause", "pause", "resume", "stop"]


def test_a_run_is_resumed_there_without_the_command_that_stopped_it(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run.path / "remote.json").write_text('{"host": "gpu", "python": "py", "run": "projects/1/project/runs/first"}')
    run.send("stop")
    made: list[Asked] = []
    monkeypatch.setattr(ssh_host, "Host", lambda *words: made.append(Asked(*words)) or made[-1])
    ssh_host.resume(run, {"lr": "1", "amp": False})
    assert not (run.path / "control").exists()
    [host] = made
    assert (host.name, host.python) == ("gpu", "py")
    arguments = ["--resume", "--lr", "1", "--no-amp", "--run", "runs/first"]
    request = {
        "files": {},
        "project": "projects/1/project",
        "run": "projects/1/project/runs/first",
        "arguments": arguments,
    }
    assert host.requests == ["open", ("start", request)]


def test_a_run_is_started_there_with_its_files_and_options(
    tmp_path_factory: pytest.TempPathFactory, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hashlib import sha256

    monkeypatch.setattr(ssh_host.platform, "node", lambda: "here")
    (run.project / "train.py").write_text("x")
    (run.project / "cache").mkdir()
    (run.project / "cache" / "y").write_text("y")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    data = elsewhere / "photos"
    data.mkdir()
    (data / "a.png").write_bytes(b"photo")
    weights = elsewhere / "best.pt"
    weights.write_bytes(b"weights")
    host = Asked()
    ssh_host.start(host, run, {"data": str(data), "from_weights": str(weights), "lr": "1", "validation": ""}, print)
    home = f"projects/{sha256(f'here:{run.project}'.encode()).hexdigest()[:16]}"

    def name(*parts: tuple[str, bytes]) -> str:
        content = json.dumps([(file, sha256(content).hexdigest()) for file, content in parts])
        return f"data/{sha256(content.encode()).hexdigest()[:16]}"

    photos, best = name(("a.png", b"photo")), name(("best.pt", b"weights"))
    files = {
        f"{home}/project/train.py": run.project / "train.py",
        f"{photos}/a.png": data / "a.png",
        f"{best}/best.pt": weights,
    }
    paths = {f"../../../{photos}": str(data), f"../../../{best}/best.pt": str(weights)}
    opened, (send, sent), (start, request) = host.requests
    assert (opened, send, start) == ("open", "send", "start")
    digests = {file: sha256(path.read_bytes()).hexdigest() for file, path in files.items()}
    assert request["files"] == digests
    assert sent == {digests[file]: path for file, path in files.items()}
    data_there, weights_there = paths
    assert request["project"] == f"{home}/project"
    assert request["run"] == f"{home}/project/runs/a"
    assert request["arguments"] == [
        "--data",
        data_there,
        "--from-weights",
        weights_there,
        "--lr",
        "1",
        "--validation",
        "",
        "--run",
        "runs/a",
    ]
    assert run.remote() == RemoteRun(
        "gpu", "py", f"{home}/project/runs/a", {}, {"data": str(data), "from_weights": str(weights)}
    )
