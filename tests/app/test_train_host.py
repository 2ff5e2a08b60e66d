"""`layerwright train --host`: the run on another machine, here `sshd` on the loopback, which is killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from test_sweep_cli import SMALL, network  # noqa: F401

from app.opened_network import open_network
from designer.graph.diagnostics import DiagnosticError
from designer.training import mirror, ssh_host, trainer
from designer.training.run_folder import RunFolder, runs_of
from designer.training.watched_run import RunState, WatchedRun
from exporters.pytorch import export_project

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@dataclass
class Server:
    """`sshd` with its own keys on a free port; the home folder of sessions is `home`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    sessions: list[int] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def start(self) -> None:
        words = [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", str(self.folder / "sshd_config")]
        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
                return

    def kill(self) -> None:
        """End the server and its open connections, as a network that breaks."""
        import psutil

        assert self.process is not None
        server = psutil.Process(self.process.pid)
        connections = [child for child in server.children(recursive=True) if child.name().startswith("sshd")]
        for process in (server, *connections):
            with suppress(psutil.Error):
                process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("sshd is not installed: apt-get install openssh-server")
    folder = tmp_path / "ssh"
    for path in (folder / "home", folder / "bin"):
        path.mkdir(parents=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    Path("/run/sshd").mkdir(exist_ok=True) if os.geteuid() == 0 else None
    (folder / "keys").write_bytes((folder / "user.pub").read_bytes())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/keys\nStrictModes no\n"
        f"PasswordAuthentication no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nSetEnv HOME={folder}/home\n"
    )
    (folder / "config").write_text(
        f"Host elsewhere\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/user\n IdentitiesOnly yes\n"
        f" StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
    )
    real = shutil.which("ssh")
    (folder / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {real} -F {folder}/config "$@"\n')
    (folder / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    made = Server(folder, port)
    made.start()
    yield made
    made.kill()
    for run in made.home.glob(".layerwright/projects/*/project/runs/*"):  # of a test that failed
        pid = RunFolder(run).process()
        if pid:
            os.kill(pid, signal.SIGKILL)


def train(network: Path, *words: object) -> list[str]:  # noqa: F811
    start = [sys.executable, "-m", "app.cli.main", "train", str(network), "--data", str(network.parent / "photos")]
    return [*start, *SMALL, "--host", "elsewhere", "--host-python", sys.executable, *map(str, words)]


def wait(condition: object, seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_elsewhere_survives_the_connection_and_sends_only_what_is_missing(network: Path, server: Server) -> None:  # noqa: F811
    words = train(network)
    words[words.index("--steps") + 1] = "4000"
    words[words.index("--validate-every") + 1] = "1000"
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    project = network.with_name("net_pytorch")
    wait(lambda: runs_of(project) and (status := RunFolder(runs_of(project)[0]).status()) and status.step > 1)
    (folder,) = runs_of(project)
    run = RunFolder(folder)
    assert run.process() == process.pid  # who follows it here
    server.kill()
    there = next(server.home.glob(".layerwright/projects/*/project/runs/*/metrics.jsonl"))
    before = there.stat().st_size
    assert process.stdout is not None
    assert any("The run goes on there" in line for line in process.stdout)  # noticed by the follower
    wait(lambda: there.stat().st_size > before)
    server.start()
    said = process.communicate(timeout=200)[0]
    assert process.returncode == 0, said
    assert "connected to elsewhere again" in said
    assert run.metrics.read_bytes() == there.read_bytes()
    written = [path for path in (there.parent / "checkpoints").rglob("*") if path.is_file()]
    assert len(written) > 2
    for path in written:
        assert (run.path / path.relative_to(there.parent)).read_bytes() == path.read_bytes()
    status = run.status()
    assert status is not None
    assert (status.state, status.step) == ("finished", 4000)
    stored = {path.name: path.stat().st_mtime_ns for path in server.home.glob(".layerwright/store/*")}
    assert subprocess.run(train(network), cwd=ROOT, timeout=200, check=False).returncode == 0
    after = {path.name: path.stat().st_mtime_ns for path in server.home.glob(".layerwright/store/*")}
    assert after.items() >= stored.items()  # nothing was sent again
    assert len(after) - len(stored) <= 1  # project.json, which differs after the second export


def test_a_run_elsewhere_is_followed_again_and_stopped(network: Path, server: Server) -> None:  # noqa: F811
    words = train(network, "--detach")
    words[words.index("--steps") + 1] = "1000000"
    started = subprocess.run(words, cwd=ROOT, timeout=200, check=False, capture_output=True, text=True)
    assert started.returncode == 0, started.stderr
    (folder,) = runs_of(network.with_name("net_pytorch")) or [Path(started.stdout.split(maxsplit=1)[1].strip())]
    run = RunFolder(folder)
    watched = WatchedRun(run)
    watched.read()
    assert watched.snapshot.state is RunState.ENDED
    assert f"layerwright follow {folder}" in watched.snapshot.message
    command = [sys.executable, "-m", "app.cli.main", "follow", str(folder)]
    follower = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    wait(lambda: (status := run.status()) and status.step > 1)
    os.kill(follower.pid, signal.SIGINT)
    assert follower.wait(100) == 130
    status = run.status()
    assert status is not None
    assert status.state == "stopped"
    assert run.checkpoint is not None


def test_a_connection_that_breaks_while_files_are_sent_is_tried_again(network: Path, server: Server) -> None:  # noqa: F811
    class Breaking(ssh_host.Host):
        sent = 0

        def send(self, files: Mapping[str, Path]) -> None:
            self.sent += 1
            if self.sent == 1:
                server.kill()
            super().send(files)

    said: list[str] = []

    def restart(text: str) -> None:
        said.append(text)
        server.start()

    opened, project = open_network(network), network.parent / "project"
    export_project(opened.graph, opened.registry, project, "Tiny")
    run = RunFolder(project / "runs" / "a")
    options = trainer.parse_options([*SMALL, "--data", str(network.parent / "photos")])
    host = Breaking("elsewhere", sys.executable)
    ssh_host.start(host, run, options, restart)
    assert host.sent == 2
    assert len(said) == 1
    follower = ssh_host.follow(run, said.append)
    next(follower)
    with pytest.raises(DiagnosticError, match="is training already"):
        trainer.start(run, options)
    for _ in follower:
        pass
    status = run.status()
    assert status is not None
    assert (status.state, status.step) == ("finished", 4)
    assert run.process() == 0


def test_a_host_that_cannot_train_is_named(network: Path, server: Server) -> None:  # noqa: F811
    with pytest.raises(DiagnosticError, match="it does not have python-that-is-missing"):
        ssh_host.Host("elsewhere", "python-that-is-missing").open()
    bare = server.folder / "bin" / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(DiagnosticError, match=r"bare-python lacks torch, numpy"):
        ssh_host.Host("elsewhere", str(bare)).open()
    missing = train(network)
    missing[missing.index("--data") + 1] = str(network.parent / "nothing")
    done = subprocess.run(missing, cwd=ROOT, timeout=100, check=False, capture_output=True, text=True)
    assert "nothing does not exist" in done.stderr
    assert not list(server.home.glob(".layerwright/store"))
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", "follow", str(network.parent)],
        cwd=ROOT,
        timeout=100,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "is not a run on another machine" in done.stderr
    with pytest.raises(DiagnosticError, match=r"nowhere.invalid cannot be reached: .*resolve"):
        ssh_host.Host("nowhere.invalid").open()
    with pytest.raises(DiagnosticError, match="is not the name of a host"):
        ssh_host.Host("-oProxyCommand=reboot")
    server.kill()
    with pytest.raises(DiagnosticError, match=r"elsewhere cannot be reached: .*refused"):
        ssh_host.Host("elsewhere").open()
    server.start()


def test_names_outside_of_the_run_are_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs" / "a")
    for name in ("../b", "control", "process.json", "/etc/passwd", "a/../../b", "a\\b", ""):
        with pytest.raises(DiagnosticError, match="returned a file called"):
            mirror.store(run, [(name, 0, b"data")], 1)
    assert not list(tmp_path.rglob("*"))
