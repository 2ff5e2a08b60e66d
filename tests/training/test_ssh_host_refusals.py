"""How a host is called, and what is refused about it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from refusals import refusal

from designer.training import ssh_host
from designer.training.run_folder import RunFolder
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
        ((0, b"Welcome", b""), "host-unfit", "cannot train: its shell prints other text before the answer", fit),
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
