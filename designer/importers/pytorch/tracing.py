"""Traces of modules, made by `torch.export` without decompositions."""

from __future__ import annotations

import gc
import os
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram

TRACE_LOGS = "TORCH_DTRACE"  # the variable with the folder of torch's logs
TRACED_BATCH = 2  # of an example; torch never generalizes a size of 1


@dataclass(frozen=True)
class Trace:
    """A traced module. With `open_batch` the first axes of its inputs are a batch of any size.

    `doubts` are operations whose result torch could not prove for other inputs.
    """

    program: ExportedProgram
    open_batch: bool
    doubts: tuple[str, ...] = ()


def trace(module: torch.nn.Module, inputs: Sequence[torch.Tensor], *, open_batch: bool) -> Trace | None:
    """Trace a module for inputs of these shapes; None if the batch cannot be left open.

    Raises DiagnosticError with the line of the module's code that cannot be traced.
    """
    if not open_batch:
        return _trace_fixed(module, inputs)
    from torch.export import Dim

    examples = tuple(_repeated(tensor) for tensor in inputs)
    dynamic = tuple({0: Dim.AUTO} if tensor.ndim > 1 else None for tensor in inputs)
    try:
        program = _export(module, examples, dynamic)
    except Exception:  # the module is foreign code; the trace with a fixed batch reports what is wrong
        return None
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        node = placeholders.get(str(name))
        shape: tuple[object, ...] = getattr(node.meta.get("val"), "shape", ()) if node is not None else ()
        if len(shape) > 1 and isinstance(shape[0], int):
            return None
    return Trace(program, True)


def _repeated(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.ndim < 2 or tensor.shape[0] > 1:
        return tensor
    return tensor.repeat(TRACED_BATCH, *(1,) * (tensor.ndim - 1))


def _export(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], dynamic: Any = None, *, strict: bool = False
) -> ExportedProgram:
    import torch

    _keep_lines_of_training(module)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return torch.export.export(module, inputs, dynamic_shapes=dynamic, strict=strict)


def _keep_lines_of_training(module: torch.nn.Module) -> None:
    """Let nodes have the lines of `forward_training`, where exported projects with losses compute; torch keeps those of `forward` only."""
    from torch.fx import proxy

    register = getattr(proxy, "_register_stack_trace_anchor", None)
    for kind in {type(item) for item in module.modules()}:
        if register is not None and hasattr(kind, "forward_training"):
            register(kind.forward_training)


def _trace_fixed(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Trace:
    try:
        return Trace(_export(module, tuple(inputs)), False)
    except Exception as error:  # the module is foreign code
        first = error
    try:
        return Trace(_export(module, tuple(inputs), strict=True), False)
    except Exception:  # the reason of the first attempt is the clearer one
        pass
    program = _draft(module, tuple(inputs))
    if program is None:
        raise _refused(first, module)
    failures = getattr(getattr(program, "_report", None), "failures", ())
    doubts = [str(getattr(item, "failure_type", item)).rpartition(".")[2].lower() for item in failures]
    return Trace(program, False, (f"{reason_of(first)} ({where(first, module)})", *doubts))


def _draft(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> ExportedProgram | None:
    """Trace a module with its branches as they ran; None if that fails too.

    torch writes a log with the code of the module: here into a folder that is removed. The log is closed when its handler is collected.
    """
    from torch.export import draft_export

    before = os.environ.get(TRACE_LOGS)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ[TRACE_LOGS] = folder
        try:
            return draft_export(module, inputs, strict=False)
        except Exception:  # the module is foreign code
            return None
        finally:
            if before is None:
                del os.environ[TRACE_LOGS]
            else:
                os.environ[TRACE_LOGS] = before
            gc.collect()


def _refused(error: Exception, module: torch.nn.Module) -> DiagnosticError:
    place = where(error, module)
    return DiagnosticError.of(
        "torch-trace",
        tr(
            "{kind} cannot be traced: {reason}{place}",
            kind=type(module).__name__,
            reason=reason_of(error),
            place=f" ({place})" if place else "",
        ),
        remedy=tr(
            "change that line so that it does not depend on values of tensors, or import the part that can be traced"
        ),
    )


def reason_of(error: BaseException) -> str:
    """An exception as one line."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def where(error: BaseException, module: Any = None) -> str:
    """The last line outside of torch and Python's own library that the error passed, as `file.py:12: code`; empty if there is none."""
    found = ""
    current: BaseException | None = error
    while current is not None:
        for frame in _foreign(traceback.extract_tb(current.__traceback__)):
            found = f"{Path(frame.filename).name}:{frame.lineno}: {(frame.line or '').strip()[:120]}"
        current = current.__cause__ or current.__context__
    return found


def _foreign(frames: Sequence[traceback.FrameSummary]) -> Iterator[traceback.FrameSummary]:
    """The frames of the user's code."""
    import torch

    own = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<frozen")
    library = Path(sysconfig.get_path("stdlib"))
    for frame in frames:
        inside = Path(frame.filename)
        of_python = inside.is_relative_to(library) and "site-packages" not in inside.parts
        if not of_python and not frame.filename.startswith(own):
            yield frame
