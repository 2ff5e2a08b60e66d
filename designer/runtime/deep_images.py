"""Floating-point images: EXR, and TIFF files that Pillow does not support. Values are as stored, also outside 0..1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.graph.diagnostics import DiagnosticError
from designer.runtime.opencv import MAX_PIXELS, opencv
from designer.texts import tr

EXR = b"\x76\x2f\x31\x01"
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
MAX_VALUES = 4 * MAX_PIXELS  # of all channels of an EXR file
_REMEDY = "save it as a flat image with the channels R, G, B (and A) or Y"


def read_exr(path: Path) -> NDArray[np.float32]:
    """H x W x (1..4): Y, RGB or RGBA of the first part, from half, float or integer values. Raises DiagnosticError."""
    try:
        import OpenEXR
    except ImportError as error:
        raise _wrong(
            path,
            "no-openexr",
            tr("EXR files need the package OpenEXR: {error}", error=error),
            tr("install it: pip install OpenEXR"),
        ) from error
    count = 0
    try:
        with OpenEXR.File(str(path), header_only=True) as head:
            count = _check_parts(path, [part.header for part in head.parts])
        with OpenEXR.File(str(path), separate_channels=True) as whole:
            planes = {name: channel.pixels for name, channel in whole.channels().items()}
    except DiagnosticError:
        raise
    except MemoryError:
        raise out_of_memory(path) from None
    except Exception as error:  # the library raises RuntimeError, ValueError and more for damaged files
        if not _has_memory(8 * count):  # for values and result; without it the library returns no parts
            raise out_of_memory(path) from None
        raise _wrong(
            path,
            "cannot-read",
            tr("the EXR file is damaged or not supported: {error}", error=error),
            tr("open and save it with another program"),
        ) from error
    names = next((n for n in ("RGBA", "RGB", "YA", "Y") if all(c in planes for c in n)), "")
    if not names:  # a single plane of any name: depth, a mask
        if len(planes) != 1:
            raise _wrong(
                path, "picture-channels", tr("it has the channels {planes}", planes=", ".join(planes)[:120]), _REMEDY
            )
        names = "Y"
        planes = {"Y": next(iter(planes.values()))}
    if len({planes[n].shape for n in names}) > 1 or planes[names[0]].ndim != 2:
        raise _wrong(path, "picture-kind", tr("its channels have different sizes"), _REMEDY)
    values = np.empty((len(names), *planes[names[0]].shape), np.float32)
    for plane, name in zip(values, names, strict=True):
        plane[:] = planes.pop(name)
    return values.transpose(1, 2, 0)


def _has_memory(count: int) -> bool:
    """Whether so many bytes can be allocated."""
    try:
        np.empty(count, np.uint8)
    except MemoryError:
        return False
    return True


def _check_parts(path: Path, headers: Sequence[Mapping[str, Any]]) -> int:
    """The number of values. Raises DiagnosticError for too many, because the library unpacks all channels of all parts."""
    values = 0
    for header in headers:
        low, high = header["dataWindow"]
        width, height = (int(h) - int(a) + 1 for a, h in zip(low, high, strict=True))
        check_pixels(path, width, height)
        values += width * height * len(header["channels"])
        if "deep" in str(header.get("type", "")):
            raise _wrong(path, "picture-kind", tr("it is a deep EXR file, with several values per pixel"), _REMEDY)
    if values > MAX_VALUES:
        raise _wrong(
            path,
            "picture-too-large",
            tr(
                "it has {values:,} values in {count} parts, the limit is {MAX_VALUES} million",
                values=values,
                count=len(headers),
                MAX_VALUES=MAX_VALUES // 1_000_000,
            ),
            _REMEDY,
        )
    return values


def read_tiff(path: Path) -> NDArray[np.float32]:
    """H x W or H x W x (1..4) of a TIFF file: floats as stored, integers divided by the maximum of their type."""
    cv = opencv()
    try:
        pixels: Any = cv.imread(str(path), cv.IMREAD_UNCHANGED)
    except cv.error as error:
        if "pixels" in str(error).lower():
            raise _wrong(
                path,
                "picture-too-large",
                tr("the image has more than {MAX_PIXELS:,} pixels", MAX_PIXELS=MAX_PIXELS),
                tr("resize or crop it"),
            ) from error
        pixels = None
    if pixels is None or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4)):
        raise _wrong(path, "not-a-picture", tr("the TIFF file is damaged or not supported"), _REMEDY)
    check_pixels(path, pixels.shape[1], pixels.shape[0])
    if pixels.ndim == 3 and pixels.shape[2] >= 3:
        pixels = pixels[:, :, [2, 1, 0, 3][: pixels.shape[2]]]
    if pixels.dtype.kind == "f":
        return np.ascontiguousarray(pixels, np.float32)
    if pixels.dtype.kind != "u":
        raise _wrong(
            path,
            "picture-kind",
            tr("its values are {dtype}", dtype=pixels.dtype),
            tr("save it with 8 or 16 bits, or as float"),
        )
    values: NDArray[np.float32] = pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    return values


def out_of_memory(path: Path) -> DiagnosticError:
    """The error for an image, possibly intact, that does not fit into memory."""
    return _wrong(
        path,
        "out-of-memory",
        tr("there is not enough memory for it"),
        tr("use a smaller image, or close other programs"),
    )


def check_pixels(path: Path, width: int, height: int) -> None:
    """Raise DiagnosticError for an image of more than `MAX_PIXELS` pixels."""
    if width * height > MAX_PIXELS:
        raise _wrong(
            path,
            "picture-too-large",
            tr(
                "the image has {width} x {height} pixels, the limit is {MAX_PIXELS:.0f} million",
                width=width,
                height=height,
                MAX_PIXELS=MAX_PIXELS / 1e6,
            ),
            tr("resize or crop it"),
        )


def _wrong(path: Path, code: str, message: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of(code, message, file=str(path), remedy=remedy)
