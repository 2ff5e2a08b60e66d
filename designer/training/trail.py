"""The trail of a run: the weights after many of its steps, written by the project's `monitor.py`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from designer.files.array_files import npy_bytes
from designer.files.atomic import make_folder, write_atomic
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr

SCALE = "//scale"  # suffix of the factor of a rounded difference
MAX_INDEX_BYTES = 16 << 20


class Frame(Struct, frozen=True):
    """The weights after `step` steps: all values, or differences to those of the key frame at step `key`."""

    step: int
    file: str
    kind: Literal["key", "difference"]
    key: int | None = None


_FRAME = msgspec.json.Decoder(Frame)


class Trail:
    """The frames of a run by step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.frames: tuple[Frame, ...] = ()

    def read(self) -> bool:
        """Read the index again. Returns whether the frames changed; a broken line is skipped."""
        try:
            with (self.folder / "index.jsonl").open("rb") as stream:
                lines = stream.read(MAX_INDEX_BYTES).split(b"\n")
        except OSError:
            lines = []
        found: dict[int, Frame] = {}
        for line in lines[:-1]:
            frame = _frame(line)
            if frame is not None:
                found[frame.step] = frame
        frames = tuple(found[step] for step in sorted(found))
        changed = frames != self.frames
        self.frames = frames
        return changed

    def at(self, step: int) -> Frame | None:
        """The last frame that is not after `step`; the first one if all are."""
        if not self.frames:
            return None
        place = bisect_right([frame.step for frame in self.frames], step)
        return self.frames[max(place - 1, 0)]

    def weights(self, frame: Frame) -> dict[str, NDArray[Any]]:
        """The tensors of a frame by their names in the state dict. Raises DiagnosticError if they cannot be read."""
        arrays = _arrays(self.folder / frame.file, _version(self.folder / frame.file))
        if frame.kind == "key":
            return dict(arrays)
        base = next((f for f in self.frames if f.step == frame.key and f.kind == "key"), None)
        if base is None:
            raise _broken(self.folder / frame.file, tr("its key frame is missing"))
        whole = _arrays(self.folder / base.file, _version(self.folder / base.file))
        made: dict[str, NDArray[Any]] = {}
        for name, array in arrays.items():
            if name.endswith(SCALE):
                continue
            scale = arrays.get(name + SCALE)
            if scale is None:
                made[name] = array
            elif name in whole and whole[name].shape == array.shape:
                made[name] = whole[name] + array.astype(np.float32) * np.float32(scale)
            else:
                raise _broken(self.folder / frame.file, tr("it does not fit its key frame"))
        return made


def float_tensors(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """The tensors that a network computes with, without the counters of batch normalization."""
    return {name: array for name, array in tensors.items() if array.dtype == np.float32}


def write_frame(folder: Path, step: int, target: Path, names: Mapping[str, str]) -> None:
    """Write the weights at a step of a trail as a folder of .npy files. Raises DiagnosticError.

    `names` are the names of the files by those of the tensors, as in the `project.json` of the project.
    """
    trail = Trail(folder)
    trail.read()
    frame = trail.at(step)
    if frame is None:
        raise _broken(folder, tr("the run has no trail of weights"))
    make_folder(target)
    for name, array in trail.weights(frame).items():
        if name in names:
            write_atomic(target / f"{names[name]}.npy", npy_bytes(array))


def _frame(line: bytes) -> Frame | None:
    try:
        frame = _FRAME.decode(line)
    except (ValueError, RecursionError):
        return None
    return frame if "/" not in frame.file and "\\" not in frame.file else None


def _version(path: Path) -> tuple[int, int]:
    """Changes when the file is written again."""
    try:
        info = path.stat()
    except OSError as error:
        raise _broken(path, error.strerror or str(error)) from error
    return info.st_mtime_ns, info.st_size


@lru_cache(maxsize=8)
def _arrays(path: Path, version: tuple[int, int]) -> dict[str, NDArray[Any]]:
    try:
        with ZipFile(path) as archive:
            return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}
    except Exception as error:  # numpy and zipfile raise various exceptions for damaged files
        raise _broken(path, str(error)) from error


def _array(content: bytes) -> NDArray[Any]:
    """The array of an .npy file; `numpy.load` takes half as long again. Raises ValueError, also for pickled objects."""
    values = 10 + int.from_bytes(content[8:10], "little")
    shape, fortran, dtype = _header(content[:values])
    return np.frombuffer(content, dtype, offset=values).reshape(shape, order="F" if fortran else "C")


@lru_cache(maxsize=1024)  # every frame has the same headers
def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    stream = BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("the version of the .npy format is not 1.0")
    return np.lib.format.read_array_header_1_0(stream)


def _broken(path: Path, reason: str) -> DiagnosticError:
    return DiagnosticError.of(
        "bad-frame",
        tr("the weights in {path} cannot be read: {reason}", path=path, reason=reason),
        file=str(path),
        remedy=tr("choose another step"),
    )
