"""What runs on another machine for a training run there: it keeps files by content, starts `train.py`, and returns what changed.

    python3 agent.py COMMAND FOLDER       requests are JSON on the standard input, answers are on the standard output

The file is sent to the machine as it is, so it imports only the standard library.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

Parts = list[tuple[str, int, bytes]]  # name in the folder, offset, content from there on
HERE_ONLY = ("control", "start.lock", "process.json", "notes.json", "remote.json", "connection.txt")
GROWING = (".jsonl", ".log")  # files that are only appended to while they have the same inode
LAST = "status.json"  # a final state is reported after everything that belongs to it


def changes(folder: Path, seen: dict[str, list[int]]) -> Parts:
    """The files of a run that changed since the last call; `seen` is updated."""
    found: Parts = []
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".part", ".tmp")]
    state = [path for path in files if path.name == LAST]
    states = [(path, path.read_bytes()) for path in state]  # before the others: these are at least as new
    for path in sorted(files):
        name = path.relative_to(folder).as_posix()
        if name in HERE_ONLY or path in state:
            continue
        try:
            with path.open("rb") as stream:
                info = os.fstat(stream.fileno())
                inode, size, _ = known = seen.get(name, [0, 0, 0])
                if known == [info.st_ino, info.st_size, info.st_mtime_ns]:
                    continue
                offset = size if name.endswith(GROWING) and inode == info.st_ino and size <= info.st_size else 0
                stream.seek(offset)
                found.append((name, offset, stream.read(info.st_size - offset)))
                seen[name] = [info.st_ino, info.st_size, info.st_mtime_ns]
        except FileNotFoundError:
            continue  # replaced at this moment
    for path, data in states:
        digest = int(hashlib.sha256(data).hexdigest()[:12], 16)
        if seen.get(LAST) != [digest, 0, 0]:
            seen[LAST] = [digest, 0, 0]
            found.append((path.relative_to(folder).as_posix(), 0, data))
    return found


def check(folder: Path) -> None:
    """Report the versions of Python and whether torch is installed."""
    missing = [
        name for name in ("torch", "numpy", "PIL", "matplotlib", "tqdm") if importlib.util.find_spec(name) is None
    ]
    answer({"python": list(sys.version_info[:2]), "missing": missing, "folder": str(folder.expanduser().absolute())})


def wanted(folder: Path) -> None:
    """Which of the hashes in the request are not stored yet."""
    answer([digest for digest in json.load(sys.stdin) if not (store(folder) / digest).is_file()])


def put(folder: Path) -> None:
    """Store files from an archive whose names are the hashes of their contents. A broken archive keeps what was complete."""
    store(folder).mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
        for member in archive:
            stream = archive.extractfile(member)
            data = stream.read() if stream is not None else b""
            if hashlib.sha256(data).hexdigest() != member.name:
                raise SystemExit(f"error: {member.name} was damaged on the way")
            replace(store(folder) / member.name, data)
    answer("stored")


def start(folder: Path) -> None:
    """Make the files of the request, {name: hash}, and start its command; returns at once. One that runs is left alone."""
    request = json.load(sys.stdin)
    run = folder / request["run"]
    if process(run):
        answer("running")
        return
    for name, digest in request["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, (store(folder) / digest).read_bytes())
    run.mkdir(parents=True, exist_ok=True)
    (run / "control").unlink(missing_ok=True)
    with (run / "output.log").open("ab") as log:
        child = subprocess.Popen(
            ["nice", sys.executable, "train.py", *request["arguments"]],
            cwd=folder / request["project"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # the connection may break
        )
    replace(run / "process.json", json.dumps({"pid": child.pid, "mark": start_time(child.pid)}).encode())
    answer("started")


def fetch(folder: Path) -> None:
    """Return what changed in a run since the state in the request, and whether its process exists."""
    request = json.load(sys.stdin)
    run = folder / request["run"]
    alive = process(run) > 0  # before the files, which a process writes before it ends
    seen = request["seen"]
    parts = changes(run, seen)
    about = json.dumps({"alive": alive, "seen": seen, "offsets": [offset for _, offset, _ in parts]}).encode()
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for name, data in (("about", about), *((name, data) for name, _, data in parts)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def control(folder: Path) -> None:
    """Write the command of the request for the trainer."""
    request = json.load(sys.stdin)
    replace(folder / request["run"] / "control", request["command"].encode())
    answer("sent")


def process(run: Path) -> int:
    """The id of the process that trains; 0 if it has ended."""
    try:
        record = json.loads((run / "process.json").read_text())
        pid, mark = int(record["pid"]), record["mark"]
        os.kill(pid, 0)
    except (
        OSError,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        RecursionError,
    ):  # a damaged file counts as absent
        return 0
    return pid if start_time(pid) == mark else 0


def start_time(pid: int) -> str:
    """When a process started; with its id this names it. Empty for one that has ended."""
    with contextlib.suppress(OSError):  # clock ticks since the start of the machine: changes of the clock do not matter
        state, *fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return "" if state == "Z" else fields[18]
    done = subprocess.run(["ps", "-o", "lstart=,stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    started, _, state = done.stdout.strip().rpartition(" ")
    return "" if state.startswith("Z") else started.strip()


def store(folder: Path) -> Path:
    return folder / "store"


def replace(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)


def answer(value: object) -> None:
    sys.stdout.write(json.dumps(value))


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    {f.__name__: f for f in (check, wanted, put, start, fetch, control)}[sys.argv[1]](Path(sys.argv[2]).expanduser())
