"""State dicts in `.pt` and `.pth` files. Only tensors are loaded; a file that would call any function is refused."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from designer.files.array_files import as_float32
from designer.files.regular import check_regular
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Keys under which checkpoints store the state dict. Averaged weights (EMA) come first: they are meant for inference.
_NESTED = (
    *("params_ema", "model_ema", "ema", "state_dict_ema"),
    *("network", "state_dict", "model_state_dict", "model", "module", "weights", "params"),
)
_COUNTER = "num_batches_tracked"  # of batch normalization: a counter used only in training
_WRAPPERS = ("module.", "_orig_mod.")  # prefixes that DataParallel and torch.compile add to every key
_CONVERT = (
    "if you trust the file, convert it with the program that wrote it: "
    "torch.save(model.state_dict(), 'weights.pt'), or write one .npy file per tensor"
)


class StateDict(NamedTuple):
    """Tensors by name, and their key in the checkpoint ("" for a file that is the state dict itself)."""

    tensors: dict[str, Any]
    key: str
    others: tuple[str, ...]  # keys of the checkpoint with other weights


def read_state_dict(path: Path) -> StateDict:
    """Tensors by name, on the CPU and memory-mapped if the format allows it.

    In a checkpoint, the state dict is searched under the usual keys. Raises DiagnosticError.
    """
    import torch

    check_regular(path)
    mapped = _check_archive(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about old formats, which it can read
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:  # torch raises various exceptions for damaged files
        raise DiagnosticError(_explain(path, error)) from None
    found = _tensors(loaded)
    if found is None:
        raise DiagnosticError.of(
            "bad-weights",
            tr("{name} does not contain a state dict (names and tensors)", name=path.name),
            file=str(path),
            remedy=tr("save the weights with torch.save(model.state_dict(), path)"),
        )
    return StateDict(_unwrapped(found.tensors), found.key, found.others)


def read_tensor(path: Path, name: str, tensor: Any) -> NDArray[np.float32]:
    """A tensor of `read_state_dict` as float32 in C order. Allocates memory, so check its shape first.

    Types of 8 bits and fewer are refused: their values mean nothing without scales, which are stored elsewhere.
    """
    import torch

    if not tensor.dtype.is_floating_point or tensor.dtype.itemsize < 2 or tensor.layout != torch.strided:
        raise DiagnosticError.of(
            "weight-type",
            tr(
                "'{name}' in {file} contains {dtype} ({layout}) values instead of dense floating-point numbers of 16 bits or more",
                name=name,
                file=path.name,
                dtype=tensor.dtype,
                layout=tensor.layout,
            ),
            file=str(path),
            remedy=tr("save the tensor as float32, multiplied by its scale if it is quantized"),
        )
    return as_float32(tensor.detach().to(torch.float32).contiguous().numpy())


def _check_archive(path: Path) -> bool:
    """Whether the file is an archive that can be memory-mapped. Raises DiagnosticError for a compressed archive."""
    try:
        if not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        stored = all(e.compress_type == zipfile.ZIP_STORED for e in entries)
        fits = sum(e.file_size for e in entries) <= path.stat().st_size
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DiagnosticError(_damaged(path, str(error))) from None
    if not (stored and fits):
        raise DiagnosticError(_damaged(path, "its entries are compressed or larger than the file"))
    return True


def _explain(path: Path, error: Exception) -> Diagnostic:
    import pickle

    text = str(error)
    wanted = _unsafe_globals(path) or re.findall(r"GLOBAL ([\w.]+)", text)
    if wanted:
        what = ", ".join(wanted[:8])
        return Diagnostic(
            "pickled-weights",
            tr(
                "{name} contains more than tensors: loading it would call {what}, so it was not loaded",
                name=path.name,
                what=what,
            ),
            file=str(path),
            remedy=_CONVERT,
        )
    if isinstance(error, pickle.UnpicklingError):  # torch's message advises loading it unprotected
        return _damaged(path, "it is not a state dict that was saved with torch.save")
    first = text.strip().splitlines()
    return _damaged(path, first[0].split(". ")[0][:160] if first else type(error).__name__)


def _unsafe_globals(path: Path) -> list[str]:
    from torch.serialization import get_unsafe_globals_in_checkpoint

    try:
        return sorted(get_unsafe_globals_in_checkpoint(str(path)))
    except Exception:  # an old or damaged file
        return []


def _damaged(path: Path, reason: str) -> Diagnostic:
    return Diagnostic(
        "bad-weights",
        tr("{name} is not a readable PyTorch file: {reason}", name=path.name, reason=reason),
        file=str(path),
        remedy=tr("copy or write it again with torch.save(model.state_dict(), path)"),
    )


def _tensors(loaded: object) -> StateDict | None:
    """The state dict in a loaded object: the object itself, or the value of one of the usual keys."""
    import torch

    if not isinstance(loaded, Mapping):
        return None
    named = ((k, v) for k, v in loaded.items() if isinstance(k, str) and isinstance(v, torch.Tensor))
    direct = {k: v for k, v in named if k.rpartition(".")[2] != _COUNTER}
    found = {key: inside for key in _NESTED if (inside := _tensors(loaded.get(key))) is not None and inside.tensors}
    for key, inside in found.items():
        path = f"{key}.{inside.key}" if inside.key else key
        return StateDict(inside.tensors, path, tuple(other for other in found if other != key))
    return StateDict(direct, "", ()) if direct or not loaded else None


def _unwrapped(tensors: dict[str, Any]) -> dict[str, Any]:
    for prefix in _WRAPPERS:
        if tensors and _all_start(tensors, prefix):
            return _unwrapped({key[len(prefix) :]: value for key, value in tensors.items()})
    return tensors


def _all_start(names: Iterable[str], prefix: str) -> bool:
    return all(name.startswith(prefix) for name in names)
