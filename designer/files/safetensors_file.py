"""The `.safetensors` container: a JSON header, then the tensors' values. All sizes are checked before memory is allocated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.files import limits
from designer.files.array_files import MAX_RANK, as_float32
from designer.files.atomic import atomic_file
from designer.files.regular import check_regular
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}
_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16,
    "U8": 8, "BOOL": 8, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip

_INTEGERS = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """The location of one tensor, checked against the file's length."""

    type: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_entries(path: Path) -> dict[str, TensorEntry]:
    """The tensors in the file's header. Raises DiagnosticError if the header does not match the file."""
    check_regular(path)
    try:
        length = path.stat().st_size
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            if length < 8 or size > length - 8 or size > limits.MAX_WEIGHT_HEADER:
                raise _refused(
                    path,
                    tr(
                        "declares a header of {size} bytes, but the file has {length}",
                        size=size,
                        length=length,
                    ),
                )
            head = json.loads(stream.read(size))
    except OSError as error:
        raise _refused(path, tr("cannot be read: {strerror}", strerror=error.strerror or error)) from None
    except (ValueError, RecursionError):
        raise _refused(path, tr("has a header that is not JSON")) from None
    if not isinstance(head, dict):
        raise _refused(path, tr("has no header"))
    begin = 8 + size
    entries = {name: _entry(path, name, value, begin, length) for name, value in head.items() if name != "__metadata__"}
    end = begin
    for entry in sorted(entries.values(), key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != end:
            raise _refused(path, tr("has tensors that overlap or leave gaps"))
        end = entry.end
    if end != length:
        raise _refused(path, tr("has {length} extra bytes after the last tensor", length=length - end))
    return entries


def read_entry(path: Path, name: str, entry: TensorEntry) -> NDArray[np.float32]:
    """The values of one tensor as float32. Raises DiagnosticError unless its type is floating-point."""
    if entry.type not in _TYPES:
        raise DiagnosticError.of(
            "weight-type",
            tr(
                "'{name}' in {file} has the type {type}; weights are read as {types}",
                name=name,
                file=path.name,
                type=entry.type,
                types=", ".join(_TYPES),
            ),
            file=str(path),
            remedy=tr("save the tensor as float32, multiplied by its scale if it is quantized"),
        )
    flat = _values(path, entry, _TYPES[entry.type])
    if entry.type == "BF16":
        flat = (flat.astype("<u4") << np.uint32(16)).view("<f4")
    return as_float32(flat.reshape(entry.shape))


def read_numbers(path: Path, name: str, entry: TensorEntry) -> NDArray[Any]:
    """The values of one tensor: integers and booleans as they are, others as `read_entry` does."""
    if entry.type not in _INTEGERS:
        return read_entry(path, name, entry)
    return _values(path, entry, _INTEGERS[entry.type]).reshape(entry.shape)


def _values(path: Path, entry: TensorEntry, dtype: str) -> NDArray[Any]:
    try:
        with path.open("rb") as stream:
            stream.seek(entry.begin)
            flat = np.fromfile(stream, dtype, prod(entry.shape))
    except OSError as error:
        raise _refused(path, tr("cannot be read: {strerror}", strerror=error.strerror or error)) from None
    if flat.size != prod(entry.shape):
        raise _refused(path, tr("was truncated while it was read"))
    return flat


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[np.float32]], *, durable: bool = True) -> None:
    """Write float32 tensors, sorted by key, atomically; `durable` as for `atomic_file`. Raises DiagnosticError ("cannot-save")."""
    head: dict[str, Any] = {}
    offset = 0
    for name in sorted(tensors):
        size = 4 * tensors[name].size
        head[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the values start at a multiple of 8
    with atomic_file(path, durable=durable) as stream:
        stream.write(len(text).to_bytes(8, "little"))
        stream.write(text)
        for name in sorted(tensors):
            stream.write(np.ascontiguousarray(tensors[name], "<f4").data)


def _entry(path: Path, name: str, value: object, begin: int, length: int) -> TensorEntry:
    match value:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(first), int(last)]} if all(
            isinstance(d, int) and not isinstance(d, bool) and d >= 0 for d in shape
        ):
            pass
        case _:
            raise _refused(path, tr("has an invalid header entry for the tensor '{name}'", name=name[:80]))
    if len(shape) > MAX_RANK:
        raise _refused(path, tr("gives the tensor '{name}' more than {most} axes", name=name[:80], most=MAX_RANK))
    if kind not in _BITS:
        raise DiagnosticError.of(
            "weight-type",
            tr("'{name}' in {file} has the unknown type {type}", name=name[:80], file=path.name, type=kind[:20]),
            file=str(path),
            remedy=tr("write the file again without this tensor"),
        )
    if first < 0 or 8 * (last - first) != _BITS[kind] * prod(shape) or begin + last > length:
        raise _refused(
            path,
            tr(
                "gives the tensor '{name}' an offset that does not match its shape or the file's length", name=name[:80]
            ),
        )
    return TensorEntry(kind, tuple(shape), begin + first, begin + last)


def _refused(path: Path, what: str) -> DiagnosticError:
    return DiagnosticError.of(
        "bad-weights",
        f"{path.name} {what}",
        file=str(path),
        remedy=tr("the file is damaged; copy or write it again"),
    )
