"""Runs scripts of exported projects in processes that have already imported PyTorch.

Importing it takes several seconds, most runs of the tests less than one. This file, run as a program, imports it once and forks a
process for each run.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn

LIMIT = 100  # s that a run may take
IMPORTED = (
    "torch",
    "torch._dynamo",  # by every optimizer
    "torch.utils.data",
    "torch.utils.tensorboard",
    "numpy",
    "PIL.Image",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
)


def run_python(
    folder: Path, *arguments: str, plots: bool = False, on_warning: str = "error"
) -> subprocess.CompletedProcess[str]:
    """Run `python -W ON_WARNING ARGUMENTS` in a folder: a script, or `-c` and code. Without `plots` a training run draws none."""
    with tempfile.TemporaryDirectory() as made:
        output, errors, script = (Path(made) / name for name in ("output", "errors", "script.py"))
        if arguments[0] == "-c":
            script.write_text(arguments[1], "utf-8")
            arguments = (str(script), *arguments[2:])
        request = {
            "folder": str(folder),
            "arguments": arguments,
            "environment": dict(os.environ),
            "output": str(output),
            "errors": str(errors),
            "plots": plots,
            "on_warning": on_warning,
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(arguments, code, output.read_text("utf-8"), errors.read_text("utf-8"))


@lru_cache(maxsize=1)
def _server() -> subprocess.Popen[str]:
    """One for the tests of this process; it ends with it."""
    server = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
    )
    atexit.register(server.communicate)  # closes its input
    return server


def main() -> None:
    """Answer requests, each in a forked process."""
    for name in IMPORTED:
        with suppress(ModuleNotFoundError):  # without a package that a project can do without
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # the processes share the memory of what was imported as long as they do not touch it
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            end(exit_code(request))
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def exit_code(request: dict[str, object]) -> int:
    """Become the requested process; the exit code that Python would have."""
    try:
        play(**request)  # type: ignore[arg-type]
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def end(code: int) -> NoReturn:
    """Exit as Python does, but leave what was imported to the system: to delete it takes more than a second."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    gc.collect()  # shows files that were left open
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def play(
    folder: str,
    arguments: list[str],
    environment: dict[str, str],
    output: str,
    errors: str,
    plots: bool,
    on_warning: str,
) -> None:
    """Become the requested process."""
    signal.alarm(LIMIT)
    os.chdir(folder)
    writing = os.O_WRONLY | os.O_CREAT
    for descriptor, name, flags in ((0, os.devnull, os.O_RDONLY), (1, output, writing), (2, errors, writing)):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(arguments)
    sys.path[0] = folder
    if not plots:
        blank = ModuleType("plots")
        vars(blank).update(curves=draw_nothing, before_after=draw_nothing)
        sys.modules["plots"] = blank
    warnings.simplefilter(on_warning)
    runpy.run_path(arguments[0], run_name="__main__")


def draw_nothing(*_: object) -> None:
    """Take the place of a function that writes a plot."""


if __name__ == "__main__":
    main()
