"""One tensor in one file, `.npy` or raw `.bin`: the header is checked against the file before memory is taken."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from designer.files.regular import check_regular
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_RANK = 16


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What an `.npy` file says about itself, found true to the file's length."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int  # where the numbers begin


def read_header(path: Path) -> ArrayHeader:
    """The checked header of an `.npy` file. Raises DiagnosticError; never unpickles and reads no numbers."""
    check_regular(path)
    try:
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            elif version in ((2, 0), (3, 0)):  # 3.0 differs in the names of fields, and these files have none
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
            else:
                raise ValueError(f"version {version[0]}.{version[1]} of the format is not read")
            offset = stream.tell()
        length = path.stat().st_size
    except Exception as error:  # a damaged header makes numpy raise almost anything
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
            tr("holds pickled Python objects, which could run code and are never loaded"),
            tr("write the tensor again as float32: numpy.save(path, array.astype('float32'))"),
        )
    if dtype.kind != "f" or dtype.itemsize not in (2, 4, 8):
        raise _refused(
            "weight-type",
            path,
            tr("holds {dtype}, not floating-point numbers", dtype=dtype),
            tr("save the tensor as float32"),
        )
    if len(shape) > MAX_RANK or any(d < 0 for d in shape):
        raise _refused(
            "bad-weights", path, tr("has an impossible shape in its header"), tr("write it again with numpy.save")
        )
    claimed = offset + prod(shape) * dtype.itemsize
    if claimed != length:
        what = dims_text(shape, "a single number")
        raise _refused(
            "weight-size",
            path,
            tr(
                "says that it holds {what} ({dtype}), that is {claimed} bytes, but has {length}",
                what=what,
                dtype=dtype,
                claimed=claimed,
                length=length,
            ),
            tr("the file was cut off or changed; copy or write it again"),
        )
    return ArrayHeader(tuple(shape), dtype, fortran, offset)


def read_array(path: Path, header: ArrayHeader) -> NDArray[np.float32]:
    """The numbers that `header` describes, as float32 in C order."""
    try:
        with path.open("rb") as stream:
            stream.seek(header.offset)
            flat = np.fromfile(stream, header.dtype, prod(header.shape))
    except OSError as error:
        raise _refused(
            "bad-weights",
            path,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check the file"),
        ) from None
    if flat.size != prod(header.shape):
        raise _refused("weight-size", path, tr("became shorter while it was read"), tr("copy or write it again"))
    return as_float32(flat.reshape(header.shape, order="F" if header.fortran else "C"))


def read_raw(path: Path, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A `.bin` file: little-endian float32 in C order, whose length fits `shape` (the caller has checked that)."""
    try:
        flat = np.fromfile(path, "<f4", prod(shape))
    except OSError as error:
        raise _refused(
            "bad-weights",
            path,
            tr("cannot be read: {strerror}", strerror=error.strerror or error),
            tr("check the file"),
        ) from None
    if flat.size != prod(shape):
        raise _refused("weight-size", path, tr("became shorter while it was read"), tr("copy or write it again"))
    return as_float32(flat.reshape(shape))


def as_float32(array: NDArray[Any]) -> NDArray[np.float32]:
    """`array` in float32, C order, native bytes; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, np.float32).reshape(array.shape)


def npy_bytes(array: NDArray[np.float32]) -> bytes:
    """The `.npy` file of a float32 array, little-endian, C order."""
    import io

    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array, "<f4").reshape(array.shape), (1, 0), False)
    return stream.getvalue()


def _refused(code: str, path: Path, what: str, remedy: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic(code, f"{path.name} {what}", file=str(path), remedy=remedy))
