"""Training on another machine over the system's `ssh`: files are sent by content, the run goes on without the connection."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import platform
import shlex
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from designer.files.atomic import make_folder, write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.training import mirror, remote_agent, trainer
from designer.training.run_folder import CONNECTION, REMOTE, RemoteRun, RunFolder

ROOT = "~/.layerwright"  # on the other machine
OPTIONS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3")
NOT_SENT = ("runs", "cache", "__pycache__")  # of a project
LOST = 255  # the exit status of ssh itself
NOT_FOUND = 127  # of a shell
ATTEMPTS = 5  # to send files
LOOK = 1.0  # seconds between two looks at the files of the run
BATCH = 64 << 20  # bytes that are sent in one connection

Say = Callable[[str], None]
File = tuple[str, Path]  # SHA-256, and where it is here


class ConnectionLostError(DiagnosticError):
    """The machine cannot be reached, now or at all."""


class Host:
    """A machine by its name in the user's SSH configuration, and the Python there that has torch."""

    def __init__(self, name: str, python: str = "python3") -> None:
        if not name or name.startswith("-") or any(c.isspace() or not c.isprintable() for c in name):
            raise DiagnosticError.of(
                "bad-host",
                tr("'{name}' is not the name of a host", name=name[:80]),
                remedy=tr("use a name from your SSH configuration, or user@address"),
            )
        self.name, self.python = name, python

    def open(self) -> None:
        """Send the agent, and check what the machine has. Raises DiagnosticError."""
        source = Path(remote_agent.__file__).read_bytes()
        self._ssh(f"mkdir -p {ROOT} && cat > {ROOT}/agent.$$ && mv {ROOT}/agent.$$ {ROOT}/agent.py", source)
        found = self.ask("check")
        if found["python"] < [3, 11]:
            version = ".".join(map(str, found["python"]))
            raise self._unfit(tr("{python} is version {version}; 3.11 is needed", python=self.python, version=version))
        if found["missing"]:
            raise self._unfit(tr("{python} lacks {names}", python=self.python, names=", ".join(found["missing"])))

    def ask(self, command: str, request: object = None) -> Any:
        """The answer of the agent to a request. Raises DiagnosticError."""
        answer = self._agent(command, json.dumps(request).encode())
        try:
            return json.loads(answer)
        except ValueError:
            raise self._unfit(tr("its shell prints other text before the answer")) from None

    def send(self, files: Mapping[str, Path]) -> None:
        """Send the files, by hash, that the machine lacks. Raises ConnectionLostError; what arrived is kept."""
        wanted = self.ask("wanted", sorted(files))
        while wanted:
            stream = io.BytesIO()
            with tarfile.open(fileobj=stream, mode="w") as archive:
                while wanted and stream.tell() < BATCH:
                    digest = wanted.pop()
                    data = files[digest].read_bytes()
                    member = tarfile.TarInfo(digest)
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
            self._agent("put", stream.getvalue())

    def changes(self, record: RemoteRun) -> tuple[bool, dict[str, list[int]], remote_agent.Parts]:
        """Whether the process exists, and what changed in the run since `record.seen`, with the new state."""
        answer = self._agent("fetch", json.dumps({"run": record.run, "seen": record.seen}).encode())
        try:
            with tarfile.open(fileobj=io.BytesIO(answer), mode="r:") as archive:
                content = [(m.name, stream.read()) for m in archive if (stream := archive.extractfile(m)) is not None]
            about = json.loads(content[0][1])
            parts = [
                (name, int(offset), data) for (name, data), offset in zip(content[1:], about["offsets"], strict=True)
            ]
            return bool(about["alive"]), about["seen"], parts
        except (tarfile.TarError, ValueError, KeyError, IndexError, TypeError) as error:
            raise self._lost(tr("its answer was cut off")) from error

    def _agent(self, command: str, data: bytes) -> bytes:
        return self._ssh(f"{shlex.quote(self.python)} {ROOT}/agent.py {command} {ROOT}", data)

    def _ssh(self, command: str, data: bytes) -> bytes:
        words = ["ssh", *(word for option in OPTIONS for word in ("-o", option)), "--", self.name, command]
        try:
            done = subprocess.run(words, input=data, capture_output=True, check=False, start_new_session=True)
        except OSError as error:
            raise DiagnosticError.of(
                "no-ssh",
                tr("the program ssh cannot be started: {strerror}", strerror=error.strerror or error),
                remedy=tr("install OpenSSH"),
            ) from error
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        if done.returncode == LOST or done.returncode < 0:
            raise self._lost(said)
        if done.returncode == NOT_FOUND:
            raise self._unfit(tr("it does not have {python}", python=self.python))
        if done.returncode:
            raise self._unfit(said or tr("exit status {status}", status=done.returncode))
        return done.stdout

    def _lost(self, said: str) -> ConnectionLostError:
        found = DiagnosticError.of(
            "no-connection",
            tr("the host {host} cannot be reached: {said}", host=self.name, said=said[:200]),
            remedy=tr(
                "check the name in your SSH configuration, and that `ssh {host}` works without a password",
                host=self.name,
            ),
        )
        return ConnectionLostError(found.diagnostics)

    def _unfit(self, reason: str) -> DiagnosticError:
        return DiagnosticError.of(
            "host-unfit",
            tr("the host {host} cannot train: {reason}", host=self.name, reason=reason[:300]),
            remedy=tr("install what is missing there, or name a Python that has it with --host-python"),
        )


def configured_hosts(file: Path | None = None) -> list[str]:
    """The names of hosts in the user's SSH configuration and in the files that it includes, without patterns."""
    file = file or Path("~/.ssh/config").expanduser()
    entries = _entries(file)
    for name in [value for keyword, values in entries if keyword == "include" for value in values]:
        for path in sorted(glob.glob(str(file.parent / Path(name).expanduser()))):
            entries += _entries(Path(path))
    names = (name for keyword, values in entries if keyword == "host" for name in values)
    return list(dict.fromkeys(name for name in names if not set(name) & set("*?!")))


def _entries(file: Path) -> list[tuple[str, list[str]]]:
    """The lines of an SSH configuration: the keyword in lower case, and its values."""
    found = []
    with suppress(OSError):
        for line in file.read_text("utf-8", "replace").splitlines():
            with suppress(ValueError):  # a quotation mark without its counterpart
                words = shlex.split(line.replace("=", " ", 1), comments=True)
                found += [(words[0].lower(), words[1:])] if words else []
    return found


def start(host: Host, run: RunFolder, options: trainer.Options, say: Say) -> None:
    """Send project and data, and start the run there. A lost connection is tried again. Raises DiagnosticError."""
    home = f"projects/{hashlib.sha256(f'{platform.node()}:{run.project}'.encode()).hexdigest()[:16]}"
    files, renamed = _files(run.project, f"{home}/project", options)
    here = {name: str(options[name]) for name in renamed}
    record = RemoteRun(host.name, host.python, f"{home}/project/runs/{run.name}", paths=here)
    request = {
        "files": {name: digest for name, (digest, _) in files.items()},
        "project": f"{home}/project",
        "run": record.run,
        "arguments": [*trainer.arguments({**options, **renamed}), "--run", f"runs/{run.name}"],
    }
    host.open()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            host.send(dict(files.values()))
            host.ask("start", request)
            break
        except ConnectionLostError as error:
            if attempt == ATTEMPTS:
                raise
            say(str(error.diagnostics[0].message))
            time.sleep(attempt)
    make_folder(run.path)
    _remember(run, record)


def resume(run: RunFolder, options: trainer.Options) -> None:
    """Continue a run where it was trained, from its last checkpoint there. One that trains is left alone. Raises DiagnosticError."""
    record = _record(run)
    host = Host(record.host, record.python)
    project, _, name = record.run.rpartition("/runs/")
    arguments = ["--resume", *trainer.arguments(options), "--run", f"runs/{name}"]
    (run.path / "control").unlink(missing_ok=True)  # the command that stopped it
    host.open()
    host.ask("start", {"files": {}, "project": project, "run": record.run, "arguments": arguments})


def follow(run: RunFolder, say: Say) -> Iterator[None]:
    """Copy the files of a run that trains elsewhere until it ends, and pass on commands; yields after every look.

    A lost connection is tried again for ever: the run does not need it. Raises DiagnosticError for a run that trains here.
    """
    record = _record(run)
    host = Host(record.host, record.python)
    if run.process() not in (0, os.getpid()):
        raise DiagnosticError.of(
            "run-trains",
            tr("another process follows the run {name}", name=run.name),
            file=str(run.path),
            remedy=tr("end that process first"),
        )
    run.record_process(os.getpid())
    sent, lost, alive = 0, False, True
    try:
        while alive:
            try:
                sent = _pass_on(host, run, record, sent)
                alive, seen, parts = host.changes(record)
                mirror.store(run, parts, os.getpid())
                record = msgspec.structs.replace(record, seen=seen)
                _remember(run, record)
                if lost:
                    say(tr("connected to {host} again", host=host.name))
                    _note(run, "")
                lost = False
            except ConnectionLostError as error:
                if not lost:
                    problem = tr(
                        "{problem}. The run goes on there; trying again.", problem=error.diagnostics[0].message
                    )
                    say(problem)
                    _note(run, problem)
                lost = True
            yield
            if alive:
                time.sleep(LOOK)
    finally:
        _note(run, "")
        with suppress(OSError):
            (run.path / "process.json").unlink()


def _note(run: RunFolder, problem: str) -> None:
    """Say in the folder of the run why the other machine cannot be reached; empty: it can."""
    if problem:
        write_atomic(run.path / CONNECTION, problem.encode())
    else:
        (run.path / CONNECTION).unlink(missing_ok=True)


def _pass_on(host: Host, run: RunFolder, record: RemoteRun, sent: int) -> int:
    """Send a new command of the local file `control`; returns which one was sent last."""
    try:
        written = (run.path / "control").stat().st_mtime_ns
    except OSError:
        return sent
    command = mirror.command(run)
    if command and written != sent:
        host.ask("control", {"run": record.run, "command": command})
    return written


def _files(project: Path, there: str, options: trainer.Options) -> tuple[dict[str, File], dict[str, str]]:
    """The files to send by their names below ROOT, with the project in the folder `there`, and the options that name them. Raises DiagnosticError for missing ones.

    A folder with data is called by its content, so files that were deleted here are not used there.
    """
    found = {f"{there}/{name}": file for name, file in _tree(project) if name.partition("/")[0] not in NOT_SENT}
    renamed = {}
    for option in trainer.PATHS:
        if not isinstance(value := options.get(option), str) or not value:
            continue
        source = Path(value)
        if not source.exists():
            raise DiagnosticError.of(
                "no-data",
                tr("{path} does not exist", path=source),
                file=value,
                remedy=tr("check --{option}", option=option.replace("_", "-")),
            )
        files = _tree(source)
        content = json.dumps([(name, digest) for name, (digest, _) in files])
        folder = f"data/{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        renamed[option] = f"../../../{folder}/{source.name}" if source.is_file() else f"../../../{folder}"
        found |= {f"{folder}/{name}": file for name, file in files}
    return found, renamed


def _tree(folder: Path) -> list[tuple[str, File]]:
    """The files in a folder, or a file."""
    if folder.is_file():
        return [(folder.name, (_digest(folder), folder))]
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path.relative_to(folder).as_posix(), (_digest(path), path)) for path in paths]


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _remember(run: RunFolder, record: RemoteRun) -> None:
    write_atomic(run.path / REMOTE, msgspec.json.encode(record))


def _record(run: RunFolder) -> RemoteRun:
    record = run.remote()
    if record is None:
        raise DiagnosticError.of(
            "not-remote",
            tr("{path} is not a run on another machine", path=run.path),
            file=str(run.path),
            remedy=tr("give the folder that layerwright train --host printed"),
        )
    return record
