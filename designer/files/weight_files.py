"""Loading and saving weights in folders and files."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from designer.files import limits
from designer.files.array_files import npy_bytes, read_array, read_header, read_raw
from designer.files.atomic import make_folder, write_atomic
from designer.files.formats import Format, FormatTable
from designer.files.safetensors_file import read_entries, read_entry, write_safetensors
from designer.files.torch_file import read_state_dict, read_tensor
from designer.files.weight_needs import torch_keys
from designer.files.weight_types import WeightKey, WeightReport, Weights, WeightStatus
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.naming import identifiers
from designer.operators.api import Weight
from designer.texts import tr

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Container(NamedTuple):
    """The tensors in a file by key, and a note about its other content."""

    tensors: Mapping[str, FoundTensor]
    note: str = ""


class FoundTensor(NamedTuple):
    """A tensor available in a source: its shape (`flat`: only the number of elements is known) and its reader."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[], NDArray[np.float32]]
    flat: bool = False


def load_weights(
    path: str | os.PathLike[str], needed: Mapping[WeightKey, Weight], keys: Mapping[str, WeightKey] | None = None
) -> Weights:
    """Load weights from a file in one of the formats of `WEIGHTS`, or from a folder with one file of `WEIGHT_ARRAYS` per tensor.

    Every tensor is reported as bound, missing, unexpected or of the wrong shape; only tensors that fit are read. `keys` are
    those of the state dict, if known (`torch_program.Program.weights`). Raises DiagnosticError if the source cannot be
    read, is damaged, or would run code.
    """
    path, note = Path(path), ""
    if path.is_dir():
        found = _folder(path, needed)
    elif not path.exists():
        raise _refused("cannot-read", path, tr("does not exist"), tr("choose the folder or file of the weights"))
    else:
        tensors, note = WEIGHTS.reader(path)(path)
        found = _by_key(needed, keys, tensors)
    weights = _bind(found, needed, str(path))
    if path.is_dir():
        used = sorted({Path(report.source) for report in weights.reports if report.status is WeightStatus.BOUND})
        listing = "".join(f"{_sha256(file)}  {file.name}\n" for file in used)
        return replace(weights, sha256=hashlib.sha256(listing.encode()).hexdigest())
    return replace(weights, note=note, sha256=_sha256(path))


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _refused(
            "cannot-read",
            path,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check your permissions"),
        ) from None


def save_weights(path: str | os.PathLike[str], weights: Mapping[WeightKey, NDArray[np.float32]]) -> None:
    """Write tensors to a file in one of the formats of `WEIGHTS`. A path without a suffix or of an existing folder gets one
    `.npy` file per tensor.

    Each file is replaced atomically. Raises DiagnosticError ("cannot-save", "unknown-format").
    """
    path = Path(path)
    if path.suffix and not path.is_dir():
        WEIGHTS.writer(path)(path, {f"{key.layer}.{key.tensor}": array for key, array in weights.items()})
        return
    make_folder(path)
    for key, stem in file_stems(weights).items():
        _write_npy(path / f"{stem}.npy", weights[key])


def file_stems(keys: Iterable[WeightKey]) -> dict[WeightKey, str]:
    """The file name of each tensor without suffix: `<layer>_<tensor>`. A layer whose name is not letters, digits and `_` is
    written as its identifier. If two tensors would share a name, more `_` separate the parts."""
    keys = sorted(keys)
    made = identifiers({key.layer for key in keys})
    layers = {key: key.layer if re.fullmatch(r"\w+", key.layer, re.ASCII) else made[key.layer] for key in keys}
    plain = {key: f"{layers[key]}_{key.tensor}" for key in keys}
    counts = Counter(plain.values())
    stems = {key: stem for key, stem in plain.items() if counts[stem] == 1}
    taken = set(plain.values())
    for key in keys:
        divider = "__"
        while key not in stems:
            stem = f"{layers[key]}{divider}{key.tensor}"
            if stem not in taken:
                stems[key] = stem
                taken.add(stem)
            divider += "_"
    return stems


def _bind(found: dict[WeightKey, FoundTensor], needed: Mapping[WeightKey, Weight], source: str) -> Weights:
    tensors: dict[WeightKey, NDArray[np.float32]] = {}
    reports: list[WeightReport] = []
    wrong: list[Diagnostic] = []
    for key, weight in needed.items():
        offer = found.get(key)
        if offer is None:
            reports.append(WeightReport(key, WeightStatus.MISSING, weight.shape, None, source))
            continue
        fits = offer.shape == ((prod(weight.shape),) if offer.flat else weight.shape)
        if not fits:
            reports.append(WeightReport(key, WeightStatus.WRONG_SHAPE, weight.shape, offer.shape, offer.name))
            continue
        try:
            tensors[key] = offer.read().reshape(weight.shape)
        except DiagnosticError as error:
            wrong.extend(error.diagnostics)
        else:
            reports.append(WeightReport(key, WeightStatus.BOUND, weight.shape, weight.shape, offer.name))
    if wrong:
        raise DiagnosticError(wrong)
    for key, offer in found.items():
        if key not in needed:
            reports.append(WeightReport(key, WeightStatus.UNEXPECTED, None, offer.shape, offer.name))
    return Weights(tensors, tuple(reports), source)


# --- folders ------------------------------------------------------------------------------------------------------


def _folder(folder: Path, needed: Mapping[WeightKey, Weight]) -> dict[WeightKey, FoundTensor]:
    try:
        files = sorted(_weight_files(folder))
    except OSError as error:
        raise _refused(
            "cannot-read",
            folder,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check your permissions"),
        ) from None
    stems = _stems(needed)
    found: dict[WeightKey, FoundTensor] = {}
    wrong: list[Diagnostic] = []
    for file in files:
        key = stems.get(file.stem) or _guess(file.stem)
        if key in found:
            continue  # the layer's name and its identifier both have a file: the first is used
        try:
            found[key] = WEIGHT_ARRAYS.reader(file)(file)
        except DiagnosticError as error:
            if key in needed:
                wrong.extend(error.diagnostics)
    if wrong:
        raise DiagnosticError(wrong)
    return found


def _weight_files(folder: Path) -> Iterator[Path]:
    """The tensor files of a folder; of files that differ only in the suffix, the first in the order of the table."""
    ranks = {suffix: rank for rank, suffix in enumerate(WEIGHT_ARRAYS.read_suffixes)}
    ranked: dict[str, tuple[int, Path]] = {}
    with os.scandir(folder) as listing:
        for count, entry in enumerate(listing):
            if count >= limits.MAX_WEIGHT_FILES:
                raise OSError(0, f"it contains more than {limits.MAX_WEIGHT_FILES} files")
            stem, ending = os.path.splitext(entry.name)
            if ending in ranks and entry.is_file() and (stem not in ranked or ranks[ending] < ranked[stem][0]):
                ranked[stem] = (ranks[ending], Path(entry.path))
    return (path for _, path in ranked.values())


def _offer_npy(file: Path) -> FoundTensor:
    header = read_header(file)
    return FoundTensor(str(file), header.shape, lambda: read_array(file, header))


def _write_npy(file: Path, array: NDArray[np.float32]) -> None:
    write_atomic(file, npy_bytes(array))


def _offer_raw(file: Path) -> FoundTensor:
    size = file.stat().st_size
    if size % 4:
        raise _refused(
            "weight-size",
            file,
            tr("has {size} bytes, which is not a multiple of 4 (float32)", size=size),
            tr("write it again"),
        )
    count = size // 4
    return FoundTensor(str(file), (count,), lambda: read_raw(file, (count,)), flat=True)


def _stems(needed: Mapping[WeightKey, Weight]) -> dict[str, WeightKey]:
    """File name without suffix -> tensor, by the layer's name, and by its identifier if that is unused."""
    counts = Counter(f"{key.layer}_{key.tensor}" for key in needed)
    result = {f"{key.layer}_{key.tensor}": key for key in needed if counts[f"{key.layer}_{key.tensor}"] == 1}
    for key, stem in file_stems(needed).items():
        result.setdefault(stem, key)
    return result


def _guess(stem: str) -> WeightKey:
    layer, _, tensor = stem.rpartition("_")
    return WeightKey(layer, tensor)


# --- containers ---------------------------------------------------------------------------------------------------


def _safetensors(path: Path) -> Container:
    def offer(name: str) -> FoundTensor:
        entry = entries[name]
        return FoundTensor(str(path), entry.shape, lambda: read_entry(path, name, entry))

    entries = read_entries(path)
    return Container({name: offer(name) for name in entries})


def _torch(path: Path) -> Container:
    def offer(name: str) -> FoundTensor:
        tensor = state.tensors[name]
        return FoundTensor(str(path), tuple(tensor.shape), lambda: read_tensor(path, name, tensor))

    state = read_state_dict(path)
    others = ", ".join(map(repr, state.others))
    note = f"weights of '{state.key}' in {path.name}, which also has {others}" if others else ""
    return Container({name: offer(name) for name in state.tensors}, note)


WEIGHT_ARRAYS: FormatTable[Callable[[Path], FoundTensor], Callable[[Path, NDArray[np.float32]], None]] = FormatTable(
    "tensors",
    (Format("NumPy array", (".npy",), _offer_npy, _write_npy), Format("Raw float32", (".bin",), _offer_raw)),
)
WEIGHTS: FormatTable[Callable[[Path], Container], Callable[[Path, Mapping[str, NDArray[np.float32]]], None]] = (
    FormatTable(
        "weights",
        (
            Format("Safetensors", (".safetensors",), _safetensors, write_safetensors),
            Format("PyTorch state dict", (".pt", ".pth"), _torch, package="torch"),
        ),
        folder=WEIGHT_ARRAYS,
    )
)


def _by_key(
    needed: Mapping[WeightKey, Weight], keys: Mapping[str, WeightKey] | None, offers: Mapping[str, FoundTensor]
) -> dict[WeightKey, FoundTensor]:
    """The available tensors by weight. A key is `<layer>.<tensor>`, or `<attribute>.<torch name>` as in a state dict."""
    known = {f"{key.layer}.{key.tensor}": key for key in needed}
    for text, key in {**torch_keys(needed), **(keys or {})}.items():
        known.setdefault(text, key)
    found: dict[WeightKey, FoundTensor] = {}
    for text, offer in offers.items():
        layer, _, tensor = text.rpartition(".")
        found.setdefault(known.get(text) or WeightKey(layer, tensor), offer)
    return found


def _refused(code: str, path: Path, what: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of(code, f"{path} {what}", file=str(path), remedy=remedy)
