"""Files of one tensor, `.npy` or raw `.bin`. The header is checked against the file before memory is allocated."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.files.regular import check_regular
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_RANK = 16


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """The header of an `.npy` file, checked against the file's length."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int  # of the values, in bytes


def read_header(path: Path) -> ArrayHeader:
    """Read and check the header of an `.npy` file. Never unpickles and reads no values. Raises DiagnosticError."""
    check_regular(path)
    try:
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            elif version in ((2, 0), (3, 0)):  # 3.0 differs only in field names, which plain arrays do not have
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
            else:
                raise ValueError(f"format version {version[0]}.{version[1]} is not supported")
            offset = stream.tell()
        length = path.stat().st_size
    except Exception as error:  # numpy raises various exceptions for a damaged header
        first = str(error).strip().splitlines()
        reason = first[0][:160] if first else type(error).__name__
        raise _refused(
            "bad-weights",
            path,
            tr("is not a readable .npy file: {reason}", reason=reason),
            tr("write it again with numpy.save"),
        ) from None
    if dtype.hasobject:
        raise _refused(
            "pickled-weights",
            path,
            tr("contains pickled Python objects, which can run code and are never loaded"),
            tr("write the tensor again as float32: numpy.save(path, array.astype('float32'))"),
        )
    if dtype.kind != "f" or dtype.itemsize not in (2, 4, 8):
        raise _refused(
            "weight-type",
            path,
            tr("contains {dtype} values instead of floating-point numbers", dtype=dtype),
            tr("save the tensor as float32"),
        )
    if len(shape) > MAX_RANK or any(d < 0 for d in shape):
        raise _refused(
            "bad-weights", path, tr("has an invalid shape in its header"), tr("write it again with numpy.save")
        )
    claimed = offset + prod(shape) * dtype.itemsize
    if claimed != length:
        what = dims_text(shape, "a scalar")
        raise _refused(
            "weight-size",
            path,
            tr(
                "declares {what} ({dtype}), which takes {claimed} bytes, but has {length}",
                what=what,
                dtype=dtype,
                claimed=claimed,
                length=length,
            ),
            tr("the file is truncated or was changed; copy or write it again"),
        )
    return ArrayHeader(tuple(shape), dtype, fortran, offset)


def read_array(path: Path, header: ArrayHeader) -> NDArray[np.float32]:
    """The values that `header` describes, as float32 in C order. Raises DiagnosticError."""
    try:
        with path.open("rb") as stream:
            stream.seek(header.offset)
            flat = np.fromfile(stream, header.dtype, prod(header.shape))
    except OSError as error:
        raise _refused(
            "bad-weights",
            path,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check the path and your permissions"),
        ) from None
    if flat.size != prod(header.shape):
        raise _refused("weight-size", path, tr("was truncated while it was read"), tr("copy or write it again"))
    return as_float32(flat.reshape(header.shape, order="F" if header.fortran else "C"))


def read_raw(path: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Read a `.bin` file: little-endian float32 in C order. The caller has checked its length against `shape`."""
    try:
        flat = np.fromfile(path, "<f4", prod(shape))
    except OSError as error:
        raise _refused(
            "bad-weights",
            path,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check the path and your permissions"),
        ) from None
    if flat.size != prod(shape):
        raise _refused("weight-size", path, tr("was truncated while it was read"), tr("copy or write it again"))
    return as_float32(flat.reshape(shape))


def as_float32(array: NDArray[Any]) -> NDArray[np.float32]:
    """`array` as float32 in C order and native byte order; values beyond the range become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, np.float32).reshape(array.shape)


def npy_bytes(array: NDArray[np.float32]) -> bytes:
    """The content of an `.npy` file of a float32 array, little-endian in C order."""
    import io

    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array, "<f4").reshape(array.shape), (1, 0), False)
    return stream.getvalue()


def _refused(code: str, path: Path, what: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of(code, f"{path.name} {what}", file=str(path), remedy=remedy)
