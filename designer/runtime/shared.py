"""Tensors shared by two processes: raw files in a private folder that both map into memory."""

from __future__ import annotations

import secrets
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from designer.units import binary

DType = Literal["float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool"]


class Handle(Struct, frozen=True):
    """Reference to a tensor. A decoded handle can only name a file in the shared folder itself."""

    file: Annotated[str, Meta(pattern=r"^[0-9a-f]{4,32}\.raw\Z")]
    shape: Annotated[tuple[Annotated[int, Meta(ge=0, lt=1 << 48)], ...], Meta(max_length=16)]
    dtype: DType


class SharedFolder:
    """A folder that two processes share. The reader of a tensor frees it; the creator of the folder removes it at the end.

    The folder must be private to the user (mode 0700) and in memory (/dev/shm) if available.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def put(self, array: NDArray[Any]) -> Handle:
        """Write `array` and return the handle for the other process. Raises DiagnosticError if it cannot be written."""
        name = f"{secrets.token_hex(8)}.raw"
        data = np.ascontiguousarray(array)
        if data.dtype.name not in get_args(DType):
            raise ValueError(f"arrays of {data.dtype} cannot be shared")
        file = self.path / name
        try:
            with file.open("xb") as out:
                out.write(data.reshape(-1).view(np.uint8).data)
        except OSError as error:
            file.unlink(missing_ok=True)
            raise DiagnosticError.of(
                "shared-memory",
                tr(
                    "{binary} could not be written to {path}: {strerror}",
                    binary=binary(data.nbytes),
                    path=self.path,
                    strerror=error.strerror or error,
                ),
                file=str(self.path),
                remedy=tr("use a smaller image, or free space in shared memory"),
            ) from error
        return Handle(name, data.shape, data.dtype.name)  # type: ignore[arg-type]  # one of DType

    def get(self, handle: Handle) -> NDArray[Any]:
        """The tensor as a read-only map of the file, valid also after `free`. Raises DiagnosticError for a bad handle."""
        path, shape, dtype = self.path / handle.file, handle.shape, np.dtype(handle.dtype)
        try:
            if prod(shape) * dtype.itemsize != path.stat().st_size:
                raise _bad(handle, tr("its file has another size"))
            if prod(shape) == 0:
                return np.empty(shape, dtype)
            return np.memmap(path, dtype, "r", shape=shape)
        except OSError as error:
            raise _bad(handle, error.strerror or str(error)) from error

    def free(self, handle: Handle) -> None:
        """Remove the tensor's file if it exists."""
        (self.path / handle.file).unlink(missing_ok=True)


def _bad(handle: Handle, reason: str) -> DiagnosticError:
    return DiagnosticError.of(
        "bad-handle",
        tr("the shared tensor {file} cannot be used: {reason}", file=handle.file, reason=reason),
        remedy=tr("run again"),
    )
