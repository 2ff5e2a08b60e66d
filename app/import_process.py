"""Imports in a process of their own, with limits of time and memory: models of the window, and PyTorch code of the user.

The process reads one request from its input and writes events to its output, as lines of JSON. What the user's code prints
goes to the error stream. `import_in_process` starts the process and waits; the window has `app.ui.engine.import_run`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from app.process import module_command
from designer import texts
from designer.files import json_text
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.types import DataType
from designer.importers.formats import IMPORTS, MODELS, ImportOptions
from designer.importers.report import ImportReport
from designer.operators.registry import Registry, default_registry
from designer.texts import tr

if TYPE_CHECKING:
    from designer.importers.imported import Imported

TIMEOUT = 600.0  # seconds
MEMORY_SHARE = 0.8  # of the machine's memory
CONSENT = "not-agreed"
STEP_SECONDS = 0.05  # between two reports of progress
COMPARING = 10  # niceness while the document is compared: the window and other imports go first


class InputShape(msgspec.Struct, frozen=True):
    """An example input: its shape and element type."""

    shape: tuple[int, ...]
    dtype: str = "float32"


class ImportRequest(msgspec.Struct, frozen=True):
    """What to import and where to write it.

    `source` is a file of a format in `MODELS`, `package.module:callable` or `file.py:callable`, relative to `folder`.
    With `early`, document and weights are written before the comparison with the original; otherwise after it, so that
    nothing is written unless everything succeeds.
    """

    source: str
    folder: str
    output: str
    inputs: tuple[InputShape, ...] = ()
    state: str = ""
    weights: str = ""
    report: str = ""
    verify: bool = True
    early: bool = False


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """What the process reports."""


class Ready(Event, frozen=True, tag="ready"):
    """The process waits for its request."""


class Progress(Event, frozen=True, tag="progress"):
    done: int
    total: int  # 0: unknown
    text: str


class DocumentWritten(Event, frozen=True, tag="document"):
    """The document is written; its weights are not yet. `engine` is the one that runs it, if not the default one."""

    report: ImportReport
    engine: str = ""


class WeightsWritten(Event, frozen=True, tag="weights"):
    """The weights are written, if there are `any`."""

    any: bool


class Finished(Event, frozen=True, tag="finished"):
    """Everything is written, and compared as far as possible."""

    report: ImportReport


class Failed(Event, frozen=True, tag="failed"):
    diagnostics: tuple[Diagnostic, ...]


AnyEvent = Ready | Progress | DocumentWritten | WeightsWritten | Finished | Failed
_EVENTS: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_REQUEST = msgspec.json.Decoder(ImportRequest)
Send = Callable[[Event], None]


def read_event(line: bytes) -> AnyEvent | None:
    """The event of a line; None for others, since the user's code may write to any stream."""
    try:
        return json_text.decode(line, _EVENTS)
    except (ValueError, RecursionError):
        return None


def parse_input(text: str) -> InputShape:
    """An example input as text: `1x3x64x64`, or `1x16:int64`. Raises DiagnosticError."""
    shape, _, dtype = text.partition(":")
    if dtype and dtype not in tuple(DataType):
        raise DiagnosticError.of(
            "bad-option",
            tr("'{dtype}' is not an element type", dtype=dtype[:40]),
            remedy=tr("use one of {types}", types=", ".join(DataType)),
        )
    return InputShape(parse_shape(shape), dtype or "float32")


def parse_shape(text: str) -> tuple[int, ...]:
    """A shape as text, such as `1x3x64x64`. Raises DiagnosticError."""
    parts = text.strip().split("x")
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 2**31 for part in parts):
        raise DiagnosticError.of(
            "bad-option",
            tr("'{text}' is not a shape", text=text[:40]),
            remedy=tr("write sizes such as 1x3x64x64, outermost dimension first"),
        )
    return tuple(map(int, parts))


def require_consent(source: str, trusted: bool) -> None:
    """Raise DiagnosticError unless the user agreed to run the code of a module."""
    if not trusted:
        raise DiagnosticError.of(
            CONSENT,
            tr("importing {source} runs its Python code on your machine, with your permissions", source=source),
            remedy=tr("review the code, then give --trust"),
        )


# --- the caller's side --------------------------------------------------------------------------------------------


def import_command(*, warm: bool = False) -> list[str]:
    """The command line of the process. With `warm` it imports what ONNX files need before it has a request."""
    return module_command("app.import_process", *(["warm"] if warm else []))


def import_in_process(request: ImportRequest, timeout: float = TIMEOUT) -> ImportReport:
    """Run an import in a process of its own, and wait for it.

    Raises DiagnosticError if the import fails, takes longer than `timeout` seconds, or ends the process.
    """
    with subprocess.Popen(
        import_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(json_text.encode(request) + b"\n", timeout)
        except subprocess.TimeoutExpired:
            raise stopped(request.source, too_slow(timeout)) from None
        finally:
            if process.poll() is None:
                end_process(process.pid)
    events = [event for line in output.splitlines() if (event := read_event(line)) is not None]
    match events[-1] if events else None:
        case Finished(report=report):
            return report
        case Failed(diagnostics=found):
            raise DiagnosticError(found)
    raise stopped(request.source, tr("its process ended with status {code}", code=process.returncode))


def end_process(pid: int) -> None:
    """End the process and those that the user's code started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)


def too_slow(seconds: float) -> str:
    """The reason why an import was stopped after a time limit."""
    return tr("it took longer than {seconds:g} s", seconds=seconds)


def stopped(source: str, reason: str) -> DiagnosticError:
    """The error of an import whose process was ended, or ended by itself."""
    return DiagnosticError.of(
        "import-stopped",
        tr("the import of {source} was stopped: {reason}", source=source, reason=reason),
        remedy=tr(
            "use a smaller input, check that the module returns, or run layerwright import with a longer --timeout; "
            "nothing was written"
        ),
    )


# --- the process --------------------------------------------------------------------------------------------------


def main(*options: str) -> None:
    """Answer one request and end."""
    if os.name == "posix":
        with contextlib.suppress(PermissionError):  # it leads a session already
            os.setsid()  # `end_process` ends the group: this process and its children
        threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()
    texts.use_environment()
    send = _sender(_private_stdout())
    if options:
        _warm_up()
    send(Ready())
    line = sys.stdin.buffer.readline()
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())  # the user's code reads nothing of ours
    if line:
        request = _REQUEST.decode(line)
        _limit_memory()
        try:
            perform(request, send)
        except DiagnosticError as error:
            send(Failed(error.diagnostics))
        except (Exception, SystemExit) as error:  # the user's code raises anything, also where only ours should run
            send(Failed(_failure(request, error).diagnostics))
    os._exit(0)  # threads of the user's code do not hold the process


def _failure(request: ImportRequest, error: BaseException) -> DiagnosticError:
    """The error for an exception that is not about the request."""
    if not IMPORTS.reads(request.source):
        from designer.importers.pytorch.loading import failed

        return failed(request.source, error)
    if isinstance(error, FileNotFoundError):
        reason, remedy = tr("the file does not exist"), tr("check the name and the folder")
    elif isinstance(error, MemoryError):
        reason, remedy = tr("it needs more memory than there is"), tr("close other programs, or use another machine")
    else:
        reason, remedy = (
            f"{type(error).__name__}: {error}"[:300],
            tr("check the file; if it is valid, report this text"),
        )
    text = tr("{name} cannot be imported: {reason}", name=request.source, reason=reason)
    return DiagnosticError.of("import-failed", text, file=str(Path(request.folder) / request.source), remedy=remedy)


def _warm_up() -> None:
    """Import what ONNX files need, while the user still chooses a file."""
    import onnx_ir  # noqa: F401

    import designer.importers.onnx.importing  # noqa: F401

    default_registry()


def _follow_parent(parent: int) -> None:
    """End this process when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    end_process(os.getpid())


def _private_stdout() -> BinaryIO:
    """The real stdout; from now on, what is printed goes to the error stream."""
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "wb", 0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return stream


def _sender(stream: BinaryIO) -> Send:
    def send(event: Event) -> None:
        stream.write(json_text.encode(event) + b"\n")

    return send


def _limit_memory() -> None:
    """Limit the memory of this process, where the system can."""
    try:
        import resource

        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_DATA, (int(pages * MEMORY_SHARE),) * 2)
    except (ImportError, ValueError, OSError):
        return


def perform(request: ImportRequest, send: Send) -> None:
    """Import, compare and write; the last event is `Finished`. Raises DiagnosticError if the import fails."""
    from designer.files.weights import save_weights

    registry = default_registry()
    found = _imported(request, registry, _progress(send))
    output, weights, report = (
        Path(text) if text else None for text in (request.output, request.weights, request.report)
    )
    assert output is not None
    if request.early:
        found.save(output, None, None)
        send(DocumentWritten(found.report, found.options.engine if found.options is not None else ""))
        if weights is not None and found.weights.tensors:
            weights.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            save_weights(weights, found.weights.tensors)
        send(WeightsWritten(bool(found.weights.tensors)))
        if hasattr(os, "nice"):
            os.nice(COMPARING)
    if request.verify:
        found = found.verified(registry)
    if not request.early:
        found.save(output, weights, report)
    send(Finished(found.report))


def _progress(send: Send) -> Callable[[int, int, str], None]:
    latest = 0.0

    def progress(done: int, total: int, text: str) -> None:
        nonlocal latest
        if time.monotonic() - latest >= STEP_SECONDS:
            latest = time.monotonic()
            send(Progress(done, total, text))

    return progress


def _imported(request: ImportRequest, registry: Registry, progress: Callable[[int, int, str], None]) -> Imported:
    if MODELS.reads(request.source):
        path = Path(request.folder) / request.source
        if path.suffix.lower() != ".onnx":
            _quiet_torch()
        return MODELS.reader(path)(path, registry, ImportOptions(progress=progress))
    _quiet_torch()
    from designer.importers.pytorch.importing import import_module
    from designer.importers.pytorch.loading import load_module, load_state

    progress(0, 0, tr("running its code"))
    module = load_module(request.source, Path(request.folder))
    if request.state:
        load_state(module, Path(request.state))
    progress(0, 0, tr("tracing the module"))
    examples = [_example(shape) for shape in request.inputs]
    return import_module(module, examples, registry, progress=progress)


def _quiet_torch() -> None:
    """Import torch; the report has the reasons that it would log."""
    import torch
    from torch._logging._internal import set_logs

    set_logs(all=logging.CRITICAL)
    torch.manual_seed(0)


def _example(entry: InputShape) -> Any:
    import torch

    dtype = getattr(torch, entry.dtype)
    return torch.rand(entry.shape, dtype=dtype) if dtype.is_floating_point else torch.zeros(entry.shape, dtype=dtype)


if __name__ == "__main__":
    main(*sys.argv[1:])
