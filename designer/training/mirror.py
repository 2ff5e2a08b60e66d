"""The local copy of a run that another machine trains. The window and the commands read it like any other run."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from designer.files.atomic import make_folder, write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.training.remote_agent import HERE_ONLY
from designer.training.run_folder import Command, RunFolder

STATUS = "status.json"
COMMANDS: dict[str, Command] = {"pause": "pause", "resume": "resume", "stop": "stop"}


def store(run: RunFolder, parts: Sequence[tuple[str, int, bytes]], pid: int) -> None:
    """Write parts of files, (name, offset, content), that the other machine returned.

    The status gets the id of the local process that follows the run, because process ids of another machine mean nothing here.
    Raises DiagnosticError for names outside of the folder, and if it cannot be written.
    """
    for name, offset, data in parts:
        path = _inside(run.path, name)
        make_folder(path.parent)
        if name == STATUS:
            data = _with_process(data, pid)
        if offset:
            with path.open("r+b") as stream:
                stream.seek(offset)
                stream.write(data)
                stream.truncate()
        else:
            write_atomic(path, data)


def _inside(folder: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    unsafe = not parts or "\\" in name or "\0" in name or name.startswith("/") or ".." in parts
    if unsafe or name in HERE_ONLY:
        raise DiagnosticError.of(
            "bad-answer",
            tr("the other machine returned a file called {name}", name=name[:100]),
            remedy=tr("check which machine that is"),
        )
    return folder.joinpath(*parts)


def _with_process(data: bytes, pid: int) -> bytes:
    with contextlib.suppress(ValueError, TypeError):
        return json.dumps({**json.loads(data), "pid": pid}).encode()
    return data


def command(run: RunFolder) -> Command | None:
    """The command in the local file `control`."""
    with contextlib.suppress(OSError, ValueError):
        return COMMANDS.get((run.path / "control").read_text("ascii"))
    return None
