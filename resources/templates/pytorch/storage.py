"""Weights and checkpoints in files: each is written completely or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from config import PROJECT

TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}  # of .safetensors
INTEGERS = {"I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"}
GROUP = 4  # of 2:4 sparsity: at most 2 of 4 values along the input channels are not 0


class StorageError(Exception):
    """A file cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Adopted:
    """Which tensors of the network were taken from a file."""

    source: str
    taken: tuple[str, ...]
    missing: tuple[str, ...]
    other_shape: tuple[str, ...]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{len(self.taken)} of {len(self.taken) + len(self.missing) + len(self.other_shape)} tensors of {self.source}"
        parts = (("not in the file", self.missing), ("of another shape", self.other_shape), ("not needed", self.unused))
        return "; ".join([text, *(f"{what}: {', '.join(names)}" for what, names in parts if names)])


def save_atomically(path: Path, write: Callable[[BinaryIO], Any], *, durable: bool = True) -> None:
    """Call `write` with a temporary file next to `path`, then rename it to `path`. After an error `path` is unchanged.

    `durable`: wait until the content is on the disk, so that it is complete also after a loss of power.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            write(file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, path)
    except (OSError, RuntimeError) as error:  # torch.save raises RuntimeError for a full disk
        part.unlink(missing_ok=True)
        kept = "; the previous one is unchanged" if path.exists() else ""
        raise OSError(f"{path} cannot be written ({error}){kept}; check the folder and the free space") from error


def save_weights(state: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Write weights/<layer>_<tensor>.npy, and weights.pt with the state dict."""
    save_arrays(state, folder / "weights")
    save_atomically(folder / "weights.pt", lambda file: torch.save(dict(state), file))


def save_arrays(state: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Write <layer>_<tensor>.npy, float32, for the designer."""
    for key, stem in PROJECT["weights"].items():
        array = np.ascontiguousarray(state[key].float().numpy())
        save_atomically(folder / f"{stem}.npy", lambda file, array=array: np.save(file, array))  # type: ignore[misc]


def read_file(path: Path) -> dict[str, Any]:
    """The content of a .pt file. Raises StorageError."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise StorageError(f"there is no file {path}") from error
    except Exception as error:  # torch raises various exceptions for damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StorageError(f"{path} cannot be read ({reason}); use another file") from error
    if not isinstance(content, dict):
        raise StorageError(f"{path} contains {type(content).__name__} instead of weights by name; use another file")
    return content


def read_safetensors(path: Path) -> dict[str, Any]:
    """The tensors of a .safetensors file: a header in JSON and raw numbers. Raises StorageError."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__", None)
        tensors = {}
        for name, entry in header.items():
            if entry["dtype"] in INTEGERS:  # such as the counters of batch normalization
                continue
            start, end = entry["data_offsets"]
            raw = bytearray(data[8 + length + start : 8 + length + end])
            values = torch.frombuffer(raw, dtype=TYPES[entry["dtype"]]) if raw else torch.empty(0)
            tensors[name] = values.reshape(entry["shape"]).float()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise StorageError(f"{path} cannot be read ({error}); use another file") from error
    return tensors


def read_array(path: Path) -> torch.Tensor:
    """The tensor of an .npy file. Raises StorageError."""
    try:
        return torch.from_numpy(np.load(path, allow_pickle=False).astype(np.float32))
    except (OSError, ValueError, EOFError, AttributeError) as error:
        raise StorageError(f"{path} cannot be read ({error}); use another file") from error


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Weights by name from a run, a checkpoint, a state dict or a folder of .npy files. Raises StorageError."""
    if path.is_dir():
        for inside in ("checkpoints/best.pt", "checkpoints/last.pt", "weights.pt"):
            if (path / inside).is_file():
                return read_weights(path / inside)
        folder = path / "weights" if (path / "weights").is_dir() else path
        found = {key: folder / f"{stem}.npy" for key, stem in PROJECT["weights"].items()}
        arrays = {key: read_array(file) for key, file in found.items() if file.is_file()}
        if not arrays:
            raise StorageError(f"{path} contains neither a run nor .npy files of this network; use another folder")
        return arrays
    content = read_safetensors(path) if path.suffix == ".safetensors" else read_file(path)
    for key in ("network", "state_dict", "params_ema", "params", "model"):
        if isinstance(content.get(key), dict):
            content = content[key]
            break
    tensors = {key.removeprefix("module."): value for key, value in content.items() if isinstance(value, torch.Tensor)}
    own = {stem: key for key, stem in PROJECT["weights"].items()}  # the designer calls the tensors <layer>.<tensor>
    return {key if key in own.values() else own.get(re.sub(r"\W", "_", key), key): tensors[key] for key in tensors}


def adopt(network: torch.nn.Module, path: Path) -> Adopted:
    """Take the tensors of a file that have the names and shapes of the network's. Raises StorageError if there are none."""
    found = read_weights(path)
    state = network.state_dict()
    taken = [key for key in state if key in found and found[key].shape == state[key].shape]
    report = Adopted(
        str(path),
        tuple(taken),
        tuple(key for key in state if key not in found),
        tuple(
            f"{k} {tuple(found[k].shape)}, not {tuple(state[k].shape)}" for k in state if k in found and k not in taken
        ),
        tuple(key for key in found if key not in state),
    )
    if not taken:
        raise StorageError(
            f"no tensor of {path} has a name and shape of this network; use weights of a similar network"
        )
    network.load_state_dict({key: found[key] for key in taken}, strict=False)
    return report


def sparse_masks(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Masks of the weights that are 2:4 sparse along their input channels. Raises StorageError if there are none."""
    masks = {}
    for name, parameter in network.named_parameters():
        if parameter.dim() < 2 or parameter.shape[1] < GROUP:
            continue
        mask = parameter.detach() != 0
        whole = mask[:, : mask.shape[1] // GROUP * GROUP]
        groups = whole.reshape(mask.shape[0], -1, GROUP, *mask.shape[2:])
        if int(groups.sum(2).max()) <= GROUP // 2:
            masks[name] = mask
    if not masks:
        raise StorageError("no weight is 2:4 sparse; use --sparse-2-4 with --from-weights and weights that were pruned")
    return masks


def apply_masks(network: torch.nn.Module, masks: Mapping[str, torch.Tensor]) -> None:
    """Set the values outside of the masks to 0."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name in masks:
                parameter.mul_(masks[name])
