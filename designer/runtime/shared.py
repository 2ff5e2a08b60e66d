"""Tensors between two processes: files of raw numbers in a private folder that both map into memory."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.units import binary

_NAME = re.compile(r"[0-9a-f]{4,32}\.raw\Z")
_DTYPES = ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool")


class Handle(TypedDict):
    """Where a tensor lies; plain data for JSON."""

    file: str
    shape: list[int]
    dtype: str


class SharedFolder:
    """A folder that two processes share. Whoever reads a tensor frees it; who made the folder removes it at the end.

    The folder must be private to the person (mode 0700) and lie in memory (/dev/shm) where the system has that.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def put(self, array: NDArray[Any]) -> Handle:
        """Write `array`; the handle goes to the other process. DiagnosticError when the folder is full or gone."""
        name = f"{secrets.token_hex(8)}.raw"
        data = np.ascontiguousarray(array)
        if data.dtype.name not in _DTYPES:
            raise ValueError(f"arrays of {data.dtype} cannot be shared")
        file = self.path / name
        try:
            with file.open("xb") as out:
                out.write(data.reshape(-1).view(np.uint8).data)
        except OSError as error:
            file.unlink(missing_ok=True)
            raise DiagnosticError(
                Diagnostic(
                    "shared-memory",
                    f"{binary(data.nbytes)} could not be handed over in {self.path}: {error.strerror or error}",
                    file=str(self.path),
                    remedy="use a smaller picture, or free space in shared memory",
                )
            ) from error
        return {"file": name, "shape": list(data.shape), "dtype": data.dtype.name}

    def get(self, handle: Mapping[str, Any]) -> NDArray[Any]:
        """The tensor as a read-only map of the file; it stays valid after `free`. DiagnosticError for a bad handle."""
        path, shape, dtype = self._checked(handle)
        try:
            if prod(shape) * dtype.itemsize != path.stat().st_size:
                raise _bad(handle, "its file has another size")
            if prod(shape) == 0:
                return np.empty(shape, dtype)
            return np.memmap(path, dtype, "r", shape=shape)
        except OSError as error:
            raise _bad(handle, error.strerror or str(error)) from error

    def free(self, handle: Mapping[str, Any]) -> None:
        """Remove the tensor's file; a handle that is gone already is no error."""
        self._checked(handle)[0].unlink(missing_ok=True)

    def _checked(self, handle: Mapping[str, Any]) -> tuple[Path, tuple[int, ...], np.dtype[Any]]:
        name, shape, dtype = handle.get("file"), handle.get("shape"), handle.get("dtype")
        if not isinstance(name, str) or not _NAME.match(name):
            raise _bad(handle, "it names no file of this folder")
        if not isinstance(shape, list) or not all(type(d) is int and d >= 0 for d in shape) or len(shape) > 16:
            raise _bad(handle, "its shape is not a list of whole numbers")
        if dtype not in _DTYPES:
            raise _bad(handle, f"its element type is not one of {', '.join(_DTYPES)}")
        return self.path / name, tuple(shape), np.dtype(dtype)


def _bad(handle: Mapping[str, Any], reason: str) -> DiagnosticError:
    return DiagnosticError(
        Diagnostic(
            "bad-handle",
            f"the shared tensor {str(dict(handle))[:120]} cannot be used: {reason}",
            remedy="run again",
        )
    )
