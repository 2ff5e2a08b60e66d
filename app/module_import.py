"""Import of PyTorch modules in a process of its own: the user's code runs there, with limits of time and memory.

`import_in_process` starts it, and waits; the process writes the document only when everything has succeeded.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from app.process import module_command
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

TIMEOUT = 600.0  # seconds
MEMORY_SHARE = 0.8  # of the machine's memory
CONSENT = "not-agreed"


class InputShape(msgspec.Struct, frozen=True):
    """An example input: its shape and element type; `name` only for messages."""

    shape: tuple[int, ...]
    dtype: str = "float32"


class ModuleRequest(msgspec.Struct, frozen=True):
    """What to import and where to write it. `module` is `package.module:callable`, `file.py:callable` or a `.pt2` file."""

    module: str
    folder: str
    output: str
    inputs: tuple[InputShape, ...] = ()
    state: str = ""
    weights: str = ""
    report: str = ""
    verify: bool = True


class ModuleReply(msgspec.Struct, frozen=True):
    """The result: a summary for people, or the diagnostics of what failed."""

    summary: str = ""
    agrees: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()


def require_consent(module: str, trusted: bool) -> None:
    """Raise DiagnosticError unless the user agreed to run the code of a module."""
    if not trusted:
        raise DiagnosticError.of(
            CONSENT,
            tr("importing {module} runs its Python code on your machine, with your permissions", module=module),
            remedy=tr("review the code, then give --trust"),
        )


def import_in_process(request: ModuleRequest, timeout: float = TIMEOUT) -> ModuleReply:
    """Run an import in a process of its own. What the module prints appears on the error stream.

    Raises DiagnosticError if the import fails, takes longer than `timeout` seconds, or ends the process.
    """
    with tempfile.TemporaryDirectory(prefix="layerwright-import-") as folder:
        asked, answer = Path(folder) / "request.json", Path(folder) / "reply.json"
        asked.write_bytes(msgspec.json.encode(request))
        command = module_command("app.module_import", str(asked), str(answer))
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True) as process:
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise _stopped(request, tr("it took longer than {seconds:g} s", seconds=timeout)) from None
            finally:
                _end(process)
        if not answer.is_file():
            raise _stopped(request, tr("its process ended with status {code}", code=code))
        reply = msgspec.json.decode(answer.read_bytes(), type=ModuleReply)
    if reply.diagnostics:
        raise DiagnosticError(reply.diagnostics)
    return reply


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and those that it started."""
    if process.poll() is None:
        import signal

        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _stopped(request: ModuleRequest, reason: str) -> DiagnosticError:
    return DiagnosticError.of(
        "torch-stopped",
        tr("the import of {module} was stopped: {reason}", module=request.module, reason=reason),
        remedy=tr("use a smaller input, check that the module returns, or give --timeout; nothing was written"),
    )


def main(asked: str, answer: str) -> None:
    """Answer one request: the process that runs the user's code."""
    request = msgspec.json.decode(Path(asked).read_bytes(), type=ModuleRequest)
    _limit_memory()
    try:
        reply = perform(request)
    except DiagnosticError as error:
        reply = ModuleReply(diagnostics=error.diagnostics)
    except (Exception, SystemExit) as error:  # the user's code raises anything, also where only we should run
        from designer.importers.pytorch.loading import failed

        reply = ModuleReply(diagnostics=failed(request.module, error).diagnostics)
    Path(answer).write_bytes(msgspec.json.encode(reply))
    sys.stdout.flush()
    os._exit(0)  # threads of the user's code do not hold the process


def _limit_memory() -> None:
    """Limit the memory of this process, where the system can."""
    try:
        import resource

        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_DATA, (int(pages * MEMORY_SHARE),) * 2)
    except (ImportError, ValueError, OSError):
        return


def perform(request: ModuleRequest) -> ModuleReply:
    """Import the module and write the results."""
    import torch
    from torch._logging._internal import set_logs

    from designer.importers.pytorch.importing import import_module
    from designer.importers.pytorch.loading import load_module, load_state
    from designer.operators.registry import default_registry

    registry = default_registry()
    set_logs(all=logging.CRITICAL)  # the report has the reasons
    torch.manual_seed(0)
    if request.module.endswith(".pt2"):
        found = _saved_program(Path(request.folder) / request.module, registry)
    else:
        module = load_module(request.module, Path(request.folder))
        if request.state:
            load_state(module, Path(request.state))
        examples = [_example(shape) for shape in request.inputs]
        found = import_module(module, examples, registry)
    if request.verify:
        found = found.verified(registry)
    weights, report = (Path(text) if text else None for text in (request.weights, request.report))
    found.save(Path(request.output), weights, report)
    return ModuleReply(found.report.summary(), found.report.agrees)


def _example(entry: InputShape) -> Any:
    import torch

    dtype = getattr(torch, entry.dtype)
    return torch.rand(entry.shape, dtype=dtype) if dtype.is_floating_point else torch.zeros(entry.shape, dtype=dtype)


def _saved_program(path: Path, registry: Any) -> Any:
    import torch

    from designer.importers.pytorch.importing import import_program
    from designer.importers.pytorch.tracing import Trace, reason_of

    try:
        program = torch.export.load(path)
    except Exception as error:  # torch raises various exceptions for damaged files
        raise DiagnosticError.of(
            "torch-module",
            tr("{name} is not a readable exported program: {reason}", name=path.name, reason=reason_of(error)),
            file=str(path),
            remedy=tr("write it again with torch.export.save(torch.export.export(module, inputs), path)"),
        ) from None
    return import_program(Trace(program, True), registry, name=path.stem)


if __name__ == "__main__":
    main(*sys.argv[1:])
