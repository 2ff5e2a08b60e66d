"""Loading weights from a folder or a file, and saving them."""

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
    """What a file of many tensors offers, by key, and a note about what else is in it."""

    tensors: Mapping[str, Found]
    note: str = ""


class Found(NamedTuple):
    """A tensor that a source offers: its shape (`flat`: only the number of elements is known) and how to read it."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[], NDArray[np.float32]]
    flat: bool = False


def load_weights(
    path: str | os.PathLike[str], needed: Mapping[WeightKey, Weight], keys: Mapping[str, WeightKey] | None = None
) -> Weights:
    """Weights from a file of one of the formats in `WEIGHTS`, or from a folder with a file of `WEIGHT_ARRAYS` for each tensor.

    Every tensor is reported: bound, missing, unexpected or of the wrong shape; only those that fit are read. `keys` are
    those of the state dict, where they are known (`torch_program.Program.weights`). Raises DiagnosticError when the source cannot be
    read, is damaged, or would run code.
    """
    path, note = Path(path), ""
    if path.is_dir():
        found = _folder(path, needed)
    elif not path.exists():
        raise _refused(
            "cannot-read", path, tr("does not exist"), tr("choose the folder or file that holds the weights")
        )
    else:
        tensors, note = WEIGHTS.reader(path)(path)
        found = _by_key(needed, keys, tensors)
    return replace(_bind(found, needed, str(path)), note=note, sha256=_sha256(path))


def _sha256(path: Path) -> str:
    """SHA-256 of a file; of a folder that of a list of its tensor files in the form of `sha256sum`."""
    try:
        if path.is_dir():
            listing = "".join(f"{_sha256(file)}  {file.name}\n" for file in sorted(_weight_files(path)))
            return hashlib.sha256(listing.encode()).hexdigest()
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise _refused(
            "cannot-read",
            path,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check your rights"),
        ) from None


def save_weights(path: str | os.PathLike[str], weights: Mapping[WeightKey, NDArray[np.float32]]) -> None:
    """Write tensors to a file of one of the formats in `WEIGHTS`. A name without a suffix, or of a folder that is there, is a
    folder, which gets an `.npy` file for each tensor.

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
    """The name of each tensor's file without suffix: `<layer>_<tensor>`, the layer by its identifier unless it is letters,
    digits and `_`. Where two tensors would share a name, more `_` divide the parts."""
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


def _bind(found: dict[WeightKey, Found], needed: Mapping[WeightKey, Weight], source: str) -> Weights:
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


def _folder(folder: Path, needed: Mapping[WeightKey, Weight]) -> dict[WeightKey, Found]:
    try:
        files = sorted(_weight_files(folder))
    except OSError as error:
        raise _refused(
            "cannot-read",
            folder,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check your rights"),
        ) from None
    stems = _stems(needed)
    found: dict[WeightKey, Found] = {}
    wrong: list[Diagnostic] = []
    for file in files:
        key = stems.get(file.stem) or _guess(file.stem)
        if key in found:
            continue  # the layer's name and its identifier both have a file: the first wins
        try:
            found[key] = WEIGHT_ARRAYS.reader(file)(file)
        except DiagnosticError as error:
            if key in needed:
                wrong.extend(error.diagnostics)
    if wrong:
        raise DiagnosticError(wrong)
    return found


def _weight_files(folder: Path) -> Iterator[Path]:
    """The files of a folder that hold a tensor; of those that differ in the suffix only, the first in the table's order."""
    ranks = {suffix: rank for rank, suffix in enumerate(WEIGHT_ARRAYS.read_suffixes)}
    ranked: dict[str, tuple[int, Path]] = {}
    with os.scandir(folder) as listing:
        for count, entry in enumerate(listing):
            if count >= limits.MAX_WEIGHT_FILES:
                raise OSError(0, f"it holds more than {limits.MAX_WEIGHT_FILES} files")
            stem, ending = os.path.splitext(entry.name)
            if ending in ranks and entry.is_file() and (stem not in ranked or ranks[ending] < ranked[stem][0]):
                ranked[stem] = (ranks[ending], Path(entry.path))
    return (path for _, path in ranked.values())


def _offer_npy(file: Path) -> Found:
    header = read_header(file)
    return Found(str(file), header.shape, lambda: read_array(file, header))


def _write_npy(file: Path, array: NDArray[np.float32]) -> None:
    write_atomic(file, npy_bytes(array))


def _offer_raw(file: Path) -> Found:
    size = file.stat().st_size
    if size % 4:
        raise _refused(
            "weight-size",
            file,
            tr("has {size} bytes, which is no multiple of 4 (float32)", size=size),
            tr("write it again"),
        )
    count = size // 4
    return Found(str(file), (count,), lambda: read_raw(file, (count,)), flat=True)


def _stems(needed: Mapping[WeightKey, Weight]) -> dict[str, WeightKey]:
    """File name without ending -> tensor: by the layer's name, and by its identifier where that is free."""
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
    def offer(name: str) -> Found:
        entry = entries[name]
        return Found(str(path), entry.shape, lambda: read_entry(path, name, entry))

    entries = read_entries(path)
    return Container({name: offer(name) for name in entries})


def _torch(path: Path) -> Container:
    def offer(name: str) -> Found:
        tensor = state.tensors[name]
        return Found(str(path), tuple(tensor.shape), lambda: read_tensor(path, name, tensor))

    state = read_state_dict(path)
    others = ", ".join(map(repr, state.others))
    note = f"weights of '{state.key}' in {path.name}, which also has {others}" if others else ""
    return Container({name: offer(name) for name in state.tensors}, note)


WEIGHT_ARRAYS: FormatTable[Callable[[Path], Found], Callable[[Path, NDArray[np.float32]], None]] = FormatTable(
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
    needed: Mapping[WeightKey, Weight], keys: Mapping[str, WeightKey] | None, offers: Mapping[str, Found]
) -> dict[WeightKey, Found]:
    """Offers by tensor. A key is `<layer>.<tensor>`, or `<attribute>.<torch name>` as in a state dict."""
    known = {f"{key.layer}.{key.tensor}": key for key in needed}
    for text, key in {**torch_keys(needed), **(keys or {})}.items():
        known.setdefault(text, key)
    found: dict[WeightKey, Found] = {}
    for text, offer in offers.items():
        layer, _, tensor = text.rpartition(".")
        found.setdefault(known.get(text) or WeightKey(layer, tensor), offer)
    return found


def _refused(code: str, path: Path, what: str, remedy: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic(code, f"{path} {what}", file=str(path), remedy=remedy))
