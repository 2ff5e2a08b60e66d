"""Image sources of inputs: files, test patterns, folders, videos and cameras."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from designer.files.formats import FormatTable
from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import Size3D
from designer.operators.api import Operator
from designer.runtime.api import Array
from designer.runtime.camera import Camera, camera_name
from designer.runtime.images import ARRAYS, IMAGES, TENSORS, ArrayFormat, read_image, read_npy, with_channels
from designer.runtime.input_data import as_batch, input_dtype
from designer.runtime.patterns import make_pattern, pattern_name
from designer.runtime.video import VideoReader
from designer.runtime.video_formats import VIDEOS
from designer.texts import tr

INPUTS: FormatTable[Any, Any] = FormatTable("images, tensors and videos", tables=(IMAGES, TENSORS, VIDEOS))
OPEN_VIDEOS = 4  # files held open at a time
MAX_PLAYLIST = 100_000  # files of one folder
_BYTE = np.arange(256, dtype=np.float32) / np.float32(255)  # values of 8-bit images


class SourceData(NamedTuple):
    """The data of a source: N x C x H x W, whether it is an image (otherwise a tensor), and the frame number."""

    array: Array
    is_image: bool
    frame: int | None = None


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Properties of a source before a run. `kind` is image, tensor, pattern, folder, video or camera.

    `names` are the files of a folder; `frames` is 0 for a camera and 1 for a single image; `opacity`: the image
    has an alpha channel.
    """

    kind: str
    frames: int = 1
    fps: float = 0.0
    width: int = 0
    height: int = 0
    seconds: float = 0.0
    codec: str = ""
    variable: bool = False
    times: tuple[float, ...] = ()  # of frames with different durations, in seconds since the first
    names: tuple[str, ...] = ()
    opacity: bool = False


def kind_of(path: Path) -> str:
    """`SourceInfo.kind` of a name; only a folder must exist."""
    if pattern_name(path) is not None:
        return "pattern"
    if camera_name(path) is not None:
        return "camera"
    if TENSORS.reads(path):
        return "tensor"
    if VIDEOS.reads(path):
        return "video"
    return "folder" if path.is_dir() else "image"


def is_deep(path: Path) -> bool:
    """Whether values of the file can be outside 0..1."""
    found = ARRAYS.find(path)
    return isinstance(found, ArrayFormat) and found.deep


def playlist(folder: Path) -> tuple[str, ...]:
    """Names of the images and tensors in a folder in natural order. Raises DiagnosticError if there are none or too many."""
    suffixes = frozenset(ARRAYS.read_suffixes)
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if Path(e.name).suffix.lower() in suffixes and not _hidden(e)]
    except OSError as error:
        raise _wrong(
            folder, "cannot-read", error.strerror or str(error), tr("check the path and your permissions")
        ) from None
    if not names:
        raise _wrong(
            folder,
            "no-pictures",
            tr("the folder has no images"),
            tr("choose a folder with {read_choices} files", read_choices=ARRAYS.read_choices),
        )
    if len(names) > MAX_PLAYLIST:
        raise _wrong(
            folder,
            "too-many-files",
            tr("the folder has {count:,} images", count=len(names)),
            tr("choose a smaller folder"),
        )
    return tuple(sorted(names, key=_natural))


class Sources:
    """Keeps videos and cameras open between frames. Not thread-safe."""

    def __init__(self) -> None:
        self._videos: OrderedDict[tuple[str, int, int], VideoReader] = OrderedDict()
        self._cameras: dict[str, Camera] = {}
        self._taken: dict[str, int] = {}  # number of the last image of each camera

    def info(self, path: Path) -> SourceInfo:
        """The properties of a source. Raises DiagnosticError if it cannot be used."""
        kind = kind_of(path)
        if kind == "folder":
            names = playlist(path)
            return SourceInfo(kind, len(names), names=names)
        if kind == "video":
            reader = self.video(path)
            found = reader.info
            times = tuple(reader.time(i) for i in range(found.frames)) if found.variable else ()
            return SourceInfo(
                kind,
                found.frames,
                found.fps,
                found.width,
                found.height,
                found.seconds,
                found.codec,
                found.variable,
                times,
            )
        if kind == "camera":
            _, pixels = self._camera(path).latest()
            return SourceInfo(kind, 0, self._camera(path).fps, pixels.shape[1], pixels.shape[0])
        return SourceInfo(kind)

    def take(self, path: Path, operator: Operator | None, frame: int | None = None) -> SourceData:
        """The data for an input layer: frame `frame` of a video or folder (from 0), or the latest image of a camera."""
        dims = getattr(operator, "dims", None)
        size = dims if isinstance(dims, Size3D) else Size3D(256, 256, 3)
        kind = kind_of(path)
        if kind == "folder":
            names = playlist(path)
            number = min(max(frame or 0, 0), len(names) - 1)
            return self.take(path / names[number], operator)._replace(frame=number)
        if kind == "pattern":
            name = pattern_name(path)
            assert name is not None
            return SourceData(make_pattern(name, size.channels, size.height, size.width), True)
        if kind == "tensor":
            if operator is not None and not isinstance(dims, Size3D):
                return SourceData(read_npy(path, input_dtype(operator)), False)
            return SourceData(as_batch(read_npy(path), size.channels), False)
        if kind == "video":
            pixels = self.video(path).read(frame or 0)
            return SourceData(with_channels(_BYTE[pixels], size.channels, str(path)), True, frame or 0)
        if kind == "camera":
            number, pixels = self._camera(path).latest(self._taken.get(str(path), 0))
            self._taken[str(path)] = number
            return SourceData(with_channels(_BYTE[pixels], size.channels, str(path)), True, number)
        return SourceData(read_image(path, size.channels), True)

    def video(self, path: Path) -> VideoReader:
        """The open reader of a file; a new one if the file changed."""
        try:
            state = path.stat()
            key = (str(path), state.st_mtime_ns, state.st_size)
        except OSError:
            key = (str(path), 0, 0)
        reader = self._videos.get(key)
        if reader is None:
            reader = self._videos[key] = VIDEOS.reader(path)(path)
        self._videos.move_to_end(key)
        while len(self._videos) > OPEN_VIDEOS:
            self._videos.popitem(last=False)[1].close()
        return reader

    def camera_fps(self, path: Path) -> float:
        """Measured images per second of a camera."""
        return self._camera(path).fps

    def release(self, keep: frozenset[str] = frozenset()) -> None:
        """Close all sources except those in `keep`, so that an unused camera is switched off."""
        for name in [name for name in self._cameras if name not in keep]:
            self._taken.pop(name, None)
            self._cameras.pop(name).close()
        for key in [key for key in self._videos if key[0] not in keep]:
            self._videos.pop(key).close()

    def _camera(self, path: Path) -> Camera:
        camera = self._cameras.get(str(path))
        if camera is None:
            name = camera_name(path)
            assert name is not None
            camera = self._cameras[str(path)] = Camera(name)
        return camera


def small(array: Array, width: int, height: int) -> NDArray[np.uint8]:
    """A thumbnail of an image, H x W x 3, at most `width` x `height`: every n-th pixel, clipped to 0..1."""
    from designer.runtime.images import to_uint8

    step = max(1, -(-array.shape[3] // width), -(-array.shape[2] // height))
    pixels = to_uint8(array[:1, :3, ::step, ::step])
    return pixels if pixels.shape[2] == 3 else np.repeat(pixels[:, :, :1], 3, axis=2)


def _natural(name: str) -> tuple[tuple[int, str | int], ...]:
    """Sort key that orders a2 before a10."""
    parts: list[tuple[int, str | int]] = []
    for digit, group in _runs(name.lower()):
        parts.append((0, int(group)) if digit else (1, group))
    return (*parts, (2, name))


def _runs(text: str) -> list[tuple[bool, str]]:
    import re

    return [(part.isdecimal() and part.isascii(), part) for part in re.split(r"([0-9]{1,18})", text) if part]


def _hidden(entry: os.DirEntry[str]) -> bool:
    return entry.name.startswith(".") or not entry.is_file()


def _wrong(path: Path, code: str, message: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of(code, message, file=str(path), remedy=remedy)
