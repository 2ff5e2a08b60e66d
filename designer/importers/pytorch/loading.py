"""Modules of the user: found by name or file, made, and filled with weights. All of this runs their code."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from designer.graph.diagnostics import DiagnosticError
from designer.importers.pytorch.tracing import reason_of, where
from designer.texts import tr

if TYPE_CHECKING:
    import torch

RULE = (
    "write package.module:callable or file.py:callable; the callable takes no arguments and returns a torch.nn.Module"
)


def load_module(spec: str, folder: Path) -> torch.nn.Module:
    """The module that `spec` names: `package.module:factory` or `file.py:factory`, searched in `folder` and on the path.

    Raises DiagnosticError with the line of the user's code if it fails.
    """
    place, colon, name = spec.rpartition(":")
    if not colon or not place or not all(part.isidentifier() for part in name.split(".")):
        raise DiagnosticError.of("torch-module", tr("'{spec}' does not name a module", spec=spec[:200]), remedy=RULE)
    sys.path.insert(0, str(folder))
    try:
        found: Any = _file(folder / place) if place.endswith(".py") else importlib.import_module(place)
        for part in name.split("."):
            found = getattr(found, part)
        made = found if _is_module(found) else found()
    except DiagnosticError:
        raise
    except (Exception, SystemExit) as error:  # the user's code raises anything
        raise failed(spec, error) from None
    if not _is_module(made):
        raise DiagnosticError.of(
            "torch-module",
            tr("{spec} is of type {kind}, not torch.nn.Module", spec=spec, kind=type(made).__name__),
            remedy=RULE,
        )
    return made  # type: ignore[no-any-return]


def _is_module(item: Any) -> bool:
    import torch

    return isinstance(item, torch.nn.Module) and not inspect.isclass(item)


def _file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise DiagnosticError.of(
            "torch-module", tr("the file {path} does not exist", path=path), file=str(path), remedy=RULE
        )
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def failed(spec: str, error: BaseException) -> DiagnosticError:
    """What went wrong in the user's code: the reason, the line, and what to do."""
    text = str(error)
    place = where(error)
    remedy = tr("run the same call in Python and correct the error, or give other sizes of the inputs")
    if "CUDA" in text or "NVIDIA" in text:
        remedy = tr("make the module and its tensors on the CPU: the import runs without a GPU")
    elif isinstance(error, ModuleNotFoundError):
        remedy = tr("run the command in the folder of the package, or install it in this environment")
    elif isinstance(error, MemoryError) or "allocate memory" in text:
        remedy = tr("use a smaller input, or a machine with more memory")
    elif isinstance(error, TypeError) and "forward()" in text:
        remedy = tr("give the shape of each argument of forward, in their order")
    elif isinstance(error, TypeError) and "argument" in text:
        remedy = tr("write a function without arguments that makes the module, and name that function")
    return DiagnosticError.of(
        "torch-module",
        tr("{spec} failed: {reason}{place}", spec=spec, reason=reason_of(error), place=f" ({place})" if place else ""),
        remedy=remedy,
    )


def load_state(module: torch.nn.Module, path: Path) -> None:
    """Read a state dict into a module, without unpickling code. Raises DiagnosticError for keys that do not match."""
    try:
        module.load_state_dict(read_state(path))
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1:4]]
        raise DiagnosticError.of(
            "bad-weights",
            tr("{name} does not fit the module: {lines}", name=path.name, lines=" ".join(lines)[:400]),
            file=str(path),
            remedy=tr("give the state dict of this module, saved with torch.save(model.state_dict(), path)"),
        ) from None


def read_state(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint by name. Raises DiagnosticError for files that are damaged or contain code."""
    import torch

    from designer.files.safetensors_file import read_entries, read_numbers
    from designer.files.torch_file import read_state_dict

    if path.suffix == ".safetensors":
        return {
            name: torch.from_numpy(read_numbers(path, name, entry).copy()) for name, entry in read_entries(path).items()
        }
    return dict(read_state_dict(path).tensors)
