"""Starts the processes that train. They are independent of the process that starts them and survive it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from designer.files.atomic import make_folder
from designer.files.file_lock import lock
from designer.files.file_names import file_name
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.training.run_folder import REMOTE, SCRIPT, RunFolder

SAMPLES_SECONDS = 120
ENDING_SECONDS = 10  # that a process may need to end after its last words
NICENESS = 10  # the window and the engine come first on a machine with few cores
Options = Mapping[str, str | bool]
PATHS = ("data", "inputs", "targets", "validation", "from_weights")  # options of train.py that are files or folders
_children: list[subprocess.Popen[bytes]] = []  # to be reaped when they end


def start(run: RunFolder, options: Options, *, resume: bool = False) -> int:
    """Start or resume the training of a run with the options of `train.py`. Returns the process id.

    Raises DiagnosticError if the run trains already, if its folder cannot be written, or if it has no project.
    """
    reap()
    if not (run.project / SCRIPT).is_file():
        raise DiagnosticError.of(
            "no-project",
            tr("{project} has no {script}", project=run.project, script=SCRIPT),
            file=str(run.project),
            remedy=tr("export the network as a PyTorch project to that folder"),
        )
    make_folder(run.path)
    descriptor = os.open(run.path / "start.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not lock(descriptor) or _trains(run):
            raise DiagnosticError.of(
                "run-trains",
                tr("the run {name} is training already", name=run.name),
                file=str(run.path),
                remedy=tr("stop it first, or start another run"),
            )
        (run.path / "control").unlink(missing_ok=True)
        (run.path / REMOTE).unlink(missing_ok=True)  # from now on it trains here
        words = [*(["--resume"] if resume else []), *arguments(options), "--run", str(run.path)]
        pid = spawn([sys.executable, SCRIPT, *words], run.project, run.log)
        run.record_process(pid)
    finally:
        os.close(descriptor)
    return pid


def arguments(options: Options) -> list[str]:
    """Options as a command line: `batch_size=8` is `--batch-size 8`; a switch that is off is `--no-amp`."""
    made: list[str] = []
    for name, value in options.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            made.append(f"--{option}" if value else f"--no-{option}")
        else:
            made += [f"--{option}", value]
    return made


def parse_options(words: Sequence[str]) -> dict[str, str | bool]:
    """Options of a command line: `--clip 0.5 --compile --no-amp`. Raises DiagnosticError for anything else."""
    made: dict[str, str | bool] = {}
    name = ""
    for word in words:
        if word.startswith("--") and len(word) > 2:
            option, equals, value = word[2:].partition("=")
            name = option.replace("-", "_")
            made[name] = value if equals else True
        elif name and made[name] is True:
            made[name] = word
        else:
            raise _unknown_option(word)
        if name.startswith("no_") and made[name] is not True:  # a switch
            raise _unknown_option(word)
    return {name.removeprefix("no_"): not name.startswith("no_") if v is True else v for name, v in made.items()}


def _unknown_option(word: str) -> DiagnosticError:
    return DiagnosticError.of(
        "bad-options",
        tr("'{text}' is not an option of {script}", text=word[:60], script=SCRIPT),
        remedy=tr("write options as on the command line: --ema 0.999 --compile"),
    )


def with_absolute_paths(options: Options) -> dict[str, str | bool]:
    """The options for a process in another working folder."""
    return {
        name: str(Path(value).absolute()) if name in PATHS and isinstance(value, str) and value else value
        for name, value in options.items()
    }


def options_of(settings: Mapping[str, Any]) -> Options:
    """The options that repeat the settings of a run. Those that have no value on the command line are omitted.

    An empty `stop_on` is one: nothing stops the run.
    """
    known = {
        name: value if isinstance(value, bool) else str(value)
        for name, value in settings.items()
        if isinstance(value, bool | int | float | str) and (value not in ("", -1) or name == "stop_on")
    }
    known.pop("steps" if known.get("steps", "0") == "0" else "epochs", None)  # two ways to give the length
    return known


def reap() -> None:
    """Collect the exit status of processes that were started here and have ended."""
    _children[:] = [child for child in _children if child.poll() is None]


def spawn(words: Sequence[str], folder: Path, log: Path) -> int:
    """Start a process that does not end with this one, in `folder` and with a low priority; returns its id. Raises DiagnosticError."""
    import psutil

    try:
        with log.open("ab") as stream:
            child = subprocess.Popen(
                words,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                **_detached(),
            )
    except OSError as error:
        raise DiagnosticError.of(
            "cannot-start",
            tr("the process cannot be started: {strerror}", strerror=error.strerror or error),
            file=str(log.parent),
            remedy=tr("check the permissions and the free space of the folder"),
        ) from error
    _children.append(child)
    if sys.platform != "win32":
        with contextlib.suppress(psutil.Error):  # it has ended already
            psutil.Process(child.pid).nice(NICENESS)
    return child.pid


def _detached() -> dict[str, Any]:
    """Options of a process that does not end with this one, and of a low priority where it is set at the start."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.BELOW_NORMAL_PRIORITY_CLASS}
    return {"start_new_session": True}


def _trains(run: RunFolder) -> bool:
    """Whether a process trains the run. One that has reported its end is waited for."""
    deadline = time.monotonic() + ENDING_SECONDS
    while run.process():
        if run.trains() or time.monotonic() > deadline:
            return True
        time.sleep(0.05)
    return False


def write_samples(project: Path, options: Options, page: Path) -> None:
    """Let the project write a page of training samples as an image. Raises DiagnosticError."""
    words = [sys.executable, "samples.py", *arguments(options), "--output", str(page)]
    try:
        done = subprocess.run(words, cwd=project, capture_output=True, timeout=SAMPLES_SECONDS, check=False)
        problem = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] if done.returncode else ""
    except subprocess.TimeoutExpired:
        problem = tr("it took longer than {seconds} s", seconds=SAMPLES_SECONDS)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise DiagnosticError.of(
            "no-samples",
            tr("the project cannot make training samples: {problem}", problem=problem.removeprefix("error: ")),
            file=str(project),
            remedy=tr("check the folders and settings of the training"),
        )


def last_output(run: RunFolder, lines: int = 20) -> str:
    """The end of what the process printed."""
    try:
        with run.log.open("rb") as stream:
            stream.seek(max(0, run.log.stat().st_size - 16384))
            return "\n".join(stream.read().decode("utf-8", "replace").splitlines()[-lines:])
    except OSError:
        return ""


def project_folder(document: Path | None, name: str) -> Path:
    """The default folder of a document's project: next to its file; for an unsaved document, in the user's data folder."""
    from platformdirs import user_data_path

    if document is not None:
        return document.with_name(f"{document.stem}_pytorch")
    return user_data_path("layerwright") / "projects" / file_name(name)
