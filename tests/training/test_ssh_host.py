"""Training on another machine, with a program `ssh` that runs the commands here, in another home folder."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

import resources
from designer.graph.diagnostics import DiagnosticError
from designer.training import mirror, remote_agent, ssh_host
from designer.training.remote_agent import changes
from designer.training.run_folder import RemoteRun, RunFolder
from designer.training.ssh_host import ConnectionLostError, Host, configured_hosts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for ssh is a shell script")

SSH = """#!/bin/sh
printf '%s\\n' "$*" >> "{folder}/calls"
while [ "$1" != -- ]; do shift; done
[ -e "{folder}/down" ] && {{ echo "first line" >&2; echo "no route to $2" >&2; exit 255; }}
HOME="{folder}/home" exec sh -c "$3"
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the other machine; a file `down` in it breaks the connection."""
    folder = tmp_path / "there"
    (folder / "home").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(SSH.format(folder=folder))
    (folder / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(ssh_host, "LOOK", 0.01)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "project"
    for name in ("runs/old", "cache", "package/__pycache__"):
        (folder / name).mkdir(parents=True)
        (folder / name / "left.txt").write_text("x")
    shutil.copy(Path(__file__).with_name("fake_trainer.py"), folder / "train.py")
    yield folder
    for path in tmp_path.glob("there/home/.layerwright/projects/*/project/runs/*"):
        pid = RunFolder(path).process()
        if pid:
            os.kill(pid, 9)


def test_a_host_has_the_name_of_one_word() -> None:
    for name in ("", "-oProxyCommand=x", "a b", "a\tb", "a\n", "a\x00"):
        with pytest.raises(DiagnosticError, match="is not the name of a host"):
            Host(name)
    assert (Host("user@a").name, Host("a").python, Host("a", "py").python) == ("user@a", "python3", "py")


def test_what_is_wrong_with_a_host_is_named(there: Path) -> None:
    host = Host("elsewhere", sys.executable)
    host.open()
    agent = there / "home" / ".layerwright" / "agent.py"
    assert agent.read_bytes() == Path(ssh_host.remote_agent.__file__).read_bytes()
    assert "-o BatchMode=yes" in (there / "calls").read_text()
    assert " -- elsewhere mkdir" in (there / "calls").read_text()
    with pytest.raises(
        DiagnosticError, match="the host elsewhere cannot train: it does not have no-such-python"
    ) as caught:
        Host("elsewhere", "no-such-python").open()
    assert caught.value.diagnostics[0].code == "host-unfit"
    (there / "down").touch()
    with pytest.raises(
        ConnectionLostError, match="the host elsewhere cannot be reached: no route to elsewhere - "
    ) as lost:
        host.open()
    assert lost.value.diagnostics[0].code == "no-connection"
    assert "`ssh elsewhere`" in lost.value.diagnostics[0].remedy


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('echo \'{"python": [3, 10], "missing": []}\'', r"python is version 3\.10; 3\.11 is needed"),
        ('echo \'{"python": [3, 11], "missing": ["torch", "PIL"]}\'', r"python lacks torch, PIL"),
        ("echo 'Welcome!'", r"its shell prints other text before the answer"),
        ("echo 'one' >&2; echo 'last words' >&2; exit 3", r"cannot train: last words - "),
        ("exit 3", r"cannot train: exit status 3 - "),
    ],
)
def test_a_python_that_cannot_train_is_refused(there: Path, script: str, message: str) -> None:
    python = there / "bin" / "python"
    python.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    python.chmod(0o755)
    with pytest.raises(DiagnosticError, match=message) as caught:
        Host("elsewhere", str(python)).open()
    assert caught.value.diagnostics[0].code == "host-unfit"
    assert not isinstance(caught.value, ConnectionLostError)


def test_an_answer_that_was_cut_off_is_a_lost_connection(there: Path) -> None:
    python = there / "bin" / "python"
    python.write_text("#!/bin/sh\ncat > /dev/null\nprintf cut\n")
    python.chmod(0o755)
    with pytest.raises(ConnectionLostError, match="its answer was cut off"):
        Host("elsewhere", str(python)).changes(RemoteRun("elsewhere", str(python), "run"))


def test_only_files_that_are_missing_are_sent_in_batches(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {}
    for number in range(4):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(bytes([number]) * 3000)
        files[sha256(path.read_bytes()).hexdigest()] = path
    monkeypatch.setattr(ssh_host, "BATCH", 5000)
    host = Host("elsewhere", sys.executable)
    host.open()
    first = dict(list(files.items())[:1])
    host.send(first)
    (there / "calls").unlink()
    host.send(files)
    assert (there / "calls").read_text().count("agent.py put") == 2
    stored = {path.name: path.read_bytes() for path in (there / "home" / ".layerwright" / "store").iterdir()}
    assert stored == {digest: path.read_bytes() for digest, path in files.items()}
    path.write_bytes(b"changed after it was listed")
    with pytest.raises(DiagnosticError, match="was damaged on the way"):
        host.send({"0" * 64: path})


def test_a_run_elsewhere_from_start_to_end(there: Path, project: Path, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.png").write_bytes(b"photo")
    run = RunFolder(project / "runs" / "new")
    options = {"data": str(photos), "steps": "30"}
    host = Host("elsewhere", sys.executable)
    (there / "calls").write_text("")
    with pytest.raises(DiagnosticError, match=r"nothing does not exist") as caught:
        ssh_host.start(host, run, {**options, "from_weights": str(tmp_path / "nothing")}, print)
    assert "--from-weights" in caught.value.diagnostics[0].remedy
    said: list[str] = []
    ssh_host.start(host, run, options, said.append)
    record = run.remote()
    assert record is not None
    assert (record.host, record.python, record.seen) == ("elsewhere", sys.executable, {})
    home = there / "home" / ".layerwright"
    copied = {path.relative_to(home / record.run).as_posix() for path in (home / record.run).rglob("*")}
    project_there = (home / record.run).parent.parent
    assert (project_there / "train.py").is_file()
    assert not (project_there / "runs" / "old").exists()
    assert not (project_there / "cache").exists()
    assert "process.json" in copied
    for _ in ssh_host.follow(run, said.append):
        assert run.process() == os.getpid()
    status = run.status()
    assert status is not None
    assert (status.state, status.step, status.pid) == ("finished", 30, os.getpid())
    assert run.metrics.read_bytes() == (home / record.run / "metrics.jsonl").read_bytes()
    assert run.process() == 0
    assert said == []
    ssh_host.resume(run, {**options, "steps": "40"})
    for _ in ssh_host.follow(run, said.append):
        pass
    status = run.status()
    assert status is not None
    assert status.step == 40
    assert run.metrics.read_bytes() == (home / record.run / "metrics.jsonl").read_bytes()


def test_a_follower_passes_on_commands_and_waits_for_the_connection(there: Path, project: Path) -> None:
    run = RunFolder(project / "runs" / "new")
    ssh_host.start(Host("elsewhere", sys.executable), run, {"steps": "1000000", "delay": "0.002"}, print)
    said: list[str] = []
    follower = ssh_host.follow(run, said.append)
    next(follower)
    (there / "down").touch()
    for _ in range(2):
        next(follower)
    assert len(said) == 1
    assert said[0].startswith("the host elsewhere cannot be reached: no route to elsewhere")
    assert run.connection_problem() == said[0]
    (there / "down").unlink()
    next(follower)
    next(follower)
    assert said[1:] == ["connected to elsewhere again"], "once"
    assert run.connection_problem() == ""
    (there / "down").touch()
    for _ in range(2):
        next(follower)
    assert said[2:] == said[:1], "a second loss is said like the first"
    assert run.connection_problem() == said[0]
    (there / "down").unlink()
    next(follower)
    assert said[3:] == said[1:2]
    assert run.connection_problem() == ""
    run.send("stop")
    for _ in follower:
        pass
    status = run.status()
    assert status is not None
    assert status.state == "stopped"
    assert (there / "calls").read_text().count("agent.py control") == 1
    with pytest.raises(DiagnosticError, match="is not a run on another machine"):
        next(ssh_host.follow(RunFolder(project / "runs" / "old"), print))


def test_a_connection_lost_while_sending_is_tried_again(
    there: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(ssh_host.time, "sleep", pauses.append)

    class Breaking(Host):
        left = 2

        def send(self, files: dict[str, Path]) -> None:  # type: ignore[override]
            self.left -= 1
            if self.left >= 0:
                raise self._lost("broken")
            super().send(files)

    said: list[str] = []
    run = RunFolder(project / "runs" / "new")
    ssh_host.start(Breaking("elsewhere", sys.executable), run, {"steps": "1"}, said.append)
    assert said == ["the host elsewhere cannot be reached: broken"] * 2
    assert pauses == [1, 2]
    never = Breaking("elsewhere", sys.executable)
    never.left = ssh_host.ATTEMPTS
    with pytest.raises(ConnectionLostError):
        ssh_host.start(never, RunFolder(project / "runs" / "other"), {"steps": "1"}, said.append)
    assert not (project / "runs" / "other").exists()


def test_folders_with_data_are_named_by_their_content(project: Path, tmp_path: Path) -> None:
    first, second, file = tmp_path / "first", tmp_path / "second", tmp_path / "best.pt"
    for folder in (first, second):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "a.png").write_bytes(b"photo")
    file.write_bytes(b"weights")
    options = {"data": str(first), "from_weights": str(file), "amp": True}
    files, renamed = ssh_host._files(project, "home/project", options)
    assert sorted(name for name in files if name.startswith("home/")) == [
        "home/project/package/__pycache__/left.txt",
        "home/project/train.py",
    ]
    assert ssh_host._files(project, "", {"data": str(second)})[1]["data"] == renamed["data"]
    assert renamed["from_weights"].endswith("/best.pt")
    assert renamed.keys() == {"data", "from_weights"}
    folder = renamed["data"].removeprefix("../../../")
    assert files[f"{folder}/deep/a.png"] == (sha256(b"photo").hexdigest(), first / "deep" / "a.png")
    (second / "deep" / "a.png").rename(second / "deep" / "b.png")
    assert ssh_host._files(project, "", {"data": str(second)})[1]["data"] != renamed["data"]


def test_hosts_of_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "# Host comment\nHost one two # three\n  HostName x\nhost=four\nHost *.local !five six?\nHost 'torn\n"
        "HOST one\nInclude more/*.conf\nMatch host seven\n\n",
    )
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.conf").write_text("Host b\n")
    (tmp_path / "more" / "a.conf").write_text('Host "a" \n')
    (tmp_path / "more" / "c.txt").write_text("Host c\n")
    assert configured_hosts(config) == ["one", "two", "four", "a", "b"]
    assert configured_hosts(tmp_path / "none") == []


def test_parts_of_files_are_put_where_they_belong(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / "a")
    mirror.store(
        run, [("deep/metrics.jsonl", 0, b"one\ntwo\n"), ("status.json", 0, b'{"state": "running", "pid": 5}')], 77
    )
    mirror.store(run, [("deep/metrics.jsonl", 4, b"2\n")], 77)
    assert (run.path / "deep" / "metrics.jsonl").read_bytes() == b"one\n2\n"
    assert json.loads((run.path / "status.json").read_text()) == {"state": "running", "pid": 77}
    mirror.store(run, [("status.json", 0, b"torn")], 77)
    assert (run.path / "status.json").read_bytes() == b"torn"


@pytest.mark.parametrize(
    ("text", "command"), [("pause", "pause"), ("resume", "resume"), ("stop", "stop"), ("x", None), ("ä", None)]
)
def test_the_command_of_a_run(tmp_path: Path, text: str, command: str | None) -> None:
    run = RunFolder(tmp_path)
    assert mirror.command(run) is None
    (tmp_path / "control").write_text(text, "utf-8")
    assert mirror.command(run) == command


def test_the_agent_returns_what_is_new(tmp_path: Path) -> None:
    for name in ("metrics.jsonl", "config.json", "status.json", "process.json", "control", "x.part", "deep/y.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    seen: dict[str, list[int]] = {}
    assert [(name, offset) for name, offset, _ in changes(tmp_path, seen)] == [
        ("config.json", 0),
        ("deep/y.log", 0),
        ("metrics.jsonl", 0),
        ("status.json", 0),
    ]
    assert changes(tmp_path, seen) == []
    for name in ("metrics.jsonl", "config.json", "deep/y.log", "status.json"):
        with (tmp_path / name).open("a") as stream:
            stream.write("+more")
    assert changes(tmp_path, seen) == [
        ("config.json", 0, b"config.json+more"),
        ("deep/y.log", 10, b"+more"),
        ("metrics.jsonl", 13, b"+more"),
        ("status.json", 0, b"status.json+more"),
    ]
    (tmp_path / "metrics.jsonl").write_text("short")
    assert changes(tmp_path, seen) == [("metrics.jsonl", 0, b"short")]
    assert changes(tmp_path, {}) != []


def test_every_package_that_the_scripts_import_is_looked_for(tmp_path, monkeypatch, capsys):
    """Packages that are imported at the top of a script, and matplotlib, which plots need at the end of a run."""

    scripts = Path(resources.__file__).parent / "templates" / "pytorch"
    modules = {path.stem for path in scripts.rglob("*.py")} | {"data", "losses", "model"}
    found = {
        name.partition(".")[0]
        for path in scripts.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    needed = {name for name in found - modules if name not in sys.stdlib_module_names and name != "pytest"}
    monkeypatch.setattr(remote_agent.importlib.util, "find_spec", lambda name: None)
    remote_agent.check(tmp_path)
    answer = json.loads(capsys.readouterr().out)
    assert set(answer["missing"]) == needed
    assert answer["python"] == list(sys.version_info[:2])
    assert answer["folder"] == str(tmp_path)
