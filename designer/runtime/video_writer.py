"""Atomic writing of videos and folders of images."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from designer.graph.diagnostics import DiagnosticError
from designer.runtime.images import ARRAYS, to_uint8, write_array
from designer.runtime.opencv import opencv
from designer.runtime.video import VideoReader
from designer.texts import tr
from designer.units import dims_text


@dataclass(frozen=True, slots=True)
class Codec:
    """A video codec: its code in the file, the file types that can contain it, and those whose default it is."""

    title: str
    code: str
    suffixes: tuple[str, ...]
    default: tuple[str, ...]
    lossless: bool = False


CODECS = {
    "ffv1": Codec("FFV1, lossless", "FFV1", (".mkv", ".avi", ".mp4"), (".mkv",), lossless=True),
    "mpeg4": Codec("MPEG-4 part 2", "mp4v", (".mp4", ".mov", ".mkv", ".avi"), (".mp4", ".mov")),
    "vp9": Codec("VP9", "VP90", (".webm", ".mkv"), (".webm",)),
    "mjpeg": Codec("Motion JPEG", "MJPG", (".avi",), (".avi",)),
}
DEFAULT_CODECS = {suffix: name for name, codec in CODECS.items() for suffix in codec.default}


def codec_for(path: Path, name: str = "", quality: int = 0) -> str:
    """The codec for a file: `name` or the default of the file type. Raises DiagnosticError if they do not match."""
    suffix = path.suffix.lower()
    if suffix not in DEFAULT_CODECS:
        raise _refused(
            path,
            tr("'{suffix}' is not a file type of videos", suffix=suffix),
            tr("use one of {suffixes}", suffixes=", ".join(DEFAULT_CODECS)),
        )
    chosen = name or DEFAULT_CODECS.get(suffix, "")
    if chosen not in CODECS:
        raise _refused(
            path,
            tr("there is no codec '{name}'", name=name),
            tr("choose one of {CODECS}", CODECS=", ".join(CODECS)),
        )
    if suffix not in CODECS[chosen].suffixes:
        fitting = ", ".join(n for n, c in CODECS.items() if suffix in c.suffixes)
        raise _refused(
            path,
            tr("a {suffix} file cannot contain {title}", suffix=suffix, title=CODECS[chosen].title),
            tr("choose one of {fitting}", fitting=fitting),
        )
    if quality and chosen != "mjpeg":
        raise _refused(
            path,
            tr("{title} has no quality setting", title=CODECS[chosen].title),
            tr("omit the quality, or use mjpeg in an .avi file"),
        )
    return chosen


def part_of(path: Path, token: str = "") -> Path:
    """The temporary path of a result, next to its target. After killing the process, find and remove it by the token."""
    kind = path.suffix.lower() if path.suffix.lower() in DEFAULT_CODECS else ""
    return path.with_name(f".lw-{token or secrets.token_hex(8)}.part{kind}")


class VideoWriter:
    """Writes N x C x H x W images one by one (the first of a batch; 1 or 3 channels, clipped to 0..1, 8 bits).

    The file appears at `close`; an error in the `with` block leaves nothing. Codecs need even sizes, so the last row or
    column of an odd size is repeated, and `note` says so.
    """

    def __init__(self, path: Path | str, fps: float, codec: str = "", quality: int = 0, token: str = "") -> None:
        self.path = Path(path)
        self.codec = codec_for(self.path, codec, quality)
        self.note = ""
        self.count = 0
        self._fps, self._quality = fps, quality
        self._writer: Any = None
        self._size = (0, 0)
        self._part = part_of(self.path, token)
        if self.path.is_dir():
            raise _refused(self.path, tr("there is a folder of that name"), tr("choose another name"))
        _check_folder(self.path, self._part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close() if kind is None else self.discard()

    def write(self, array: NDArray[Any], name: str = "") -> None:
        """Add an image; all have the size of the first one. A `name` is for folders."""
        pixels = _color(self.path, array)
        height, width = pixels.shape[:2]
        if self._writer is None:
            self._size = (width, height)
            self._start(width + width % 2, height + height % 2)
        if (width, height) != self._size:
            was = dims_text(self._size)
            raise _refused(
                self.path,
                tr(
                    "image {count} has {width} x {height} pixels, but the previous ones have {was}",
                    count=self.count,
                    width=width,
                    height=height,
                    was=was,
                ),
                tr("write a folder of images instead, which can have different sizes"),
            )
        if width % 2 or height % 2:
            pixels = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            self.note = (
                f"{width} x {height} is odd, but videos need even sizes: the last row or column is repeated; "
                "a folder of images keeps the size"
            )
        self._writer.write(np.ascontiguousarray(pixels[:, :, ::-1]))
        self.count += 1

    def close(self) -> None:
        """Finish the file, count its frames, and move it into place."""
        try:
            if self._writer is None:
                raise _refused(self.path, tr("there are no images to write"), tr("choose a range that has frames"))
            self._writer.release()
            try:
                with VideoReader(self._part) as again:
                    count = again.info.frames
            except DiagnosticError:
                count = 0
            if count != self.count:  # OpenCV does not report a full disk
                raise _refused(
                    self.path,
                    tr(
                        "only {count} of {total} frames were written, so the file was removed",
                        count=count,
                        total=self.count,
                    ),
                    tr("free some space on the disk, or choose another codec"),
                )
            os.replace(self._part, self.path)
        except OSError as error:
            raise _refused(
                self.path, error.strerror or str(error), tr("choose a folder that you can write to")
            ) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Cancel and remove everything from disk."""
        if self._writer is not None:
            self._writer.release()
        self._part.unlink(missing_ok=True)

    def _start(self, width: int, height: int) -> None:
        cv = opencv()
        code = cv.VideoWriter.fourcc(*CODECS[self.codec].code)
        # Only OpenCV's built-in writer of Motion JPEG has a quality setting.
        backend = cv.CAP_OPENCV_MJPEG if self._quality else cv.CAP_FFMPEG
        self._writer = cv.VideoWriter(str(self._part), backend, code, float(self._fps), (width, height))
        if not self._writer.isOpened():
            raise _refused(
                self.path,
                tr(
                    "a video of {width} x {height} pixels with {title} cannot be created there",
                    width=width,
                    height=height,
                    title=CODECS[self.codec].title,
                ),
                tr("choose another codec, or another folder"),
            )
        if self._quality:
            self._writer.set(cv.VIDEOWRITER_PROP_QUALITY, float(self._quality))


class FolderWriter:
    """Writes N x C x H x W images as files of a folder, which appears at `close`.

    `suffix` is one that `ARRAYS` writes: .png has 8 bits and contains `comment`, .npy the exact values. The folder must not
    exist, or be empty.
    """

    def __init__(self, path: Path | str, suffix: str = ".png", token: str = "", comment: str = "") -> None:
        self.path = Path(path)
        ARRAYS.writer(f"name{suffix}")
        self.suffix = suffix
        self._comment = comment
        self.note = ""
        self.count = 0
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise _refused(self.path, tr("it already exists and is not empty"), tr("choose a new folder"))
        self._part = part_of(self.path, token)
        try:
            self._part.mkdir()
        except OSError as error:
            raise _refused(self.path, error.strerror or str(error), tr("choose a folder that exists")) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close() if kind is None else self.discard()

    def write(self, array: NDArray[Any], name: str = "") -> None:
        """Add an image, named by its number or `name` (without suffix)."""
        target = self._part / f"{name or f'frame_{self.count:05d}'}{self.suffix}"
        if target.exists():  # a.png and a.jpg of one folder
            target = target.with_stem(f"{target.stem}_{self.count:05d}")
        try:
            write_array(target, array, self._comment)
        except DiagnosticError as error:  # in the folder that the user knows
            shown = str(self.path / target.name)
            raise DiagnosticError(
                replace(d, file=shown, message=d.message.replace(str(target), shown)) for d in error.diagnostics
            ) from error
        self.count += 1

    def close(self) -> None:
        try:
            if not self.count:
                raise _refused(self.path, tr("there are no images to write"), tr("choose a range that has frames"))
            os.replace(self._part, self.path)  # replaces only an empty folder
        except OSError as error:
            raise _refused(self.path, error.strerror or str(error), tr("choose a new folder")) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Cancel and remove everything from disk."""
        shutil.rmtree(self._part, ignore_errors=True)


def _color(path: Path, array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.ndim not in (3, 4) or array.shape[-3] not in (1, 3):
        shape = dims_text(array.shape)
        raise _refused(
            path,
            tr("a video cannot contain a tensor of {shape}", shape=shape),
            tr("choose an output of 1 or 3 channels, or a folder of .npy"),
        )
    pixels = to_uint8(array)
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def _check_folder(path: Path, part: Path) -> None:
    """Raise DiagnosticError before a long run if the target cannot be written; OpenCV would not say why."""
    try:
        part.open("xb").close()
    except OSError as error:
        raise _refused(
            path, error.strerror or str(error), tr("choose an existing folder that you can write to")
        ) from error
    with contextlib.suppress(OSError):
        part.unlink()


def _refused(path: Path, reason: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of(
        "cannot-write-video",
        tr("{name} cannot be written: {reason}", name=path.name, reason=reason),
        file=str(path),
        remedy=remedy,
    )
