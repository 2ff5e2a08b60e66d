"""Several images as one animated file."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtGui import QImage

from designer.files.atomic import write_atomic
from designer.files.formats import Format, FormatTable
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.runtime.images import png_texts
from designer.texts import tr

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST = 1 << 28  # pixels of all frames together


def save_animation(path: Path, frames: Sequence[QImage], milliseconds: int, comment: str = "") -> None:
    """Write an endless animation; the file is whole or not there. It may run in a thread. GIF and PNG contain `comment`.

    DiagnosticError: `ANIMATIONS` does not write the suffix, there is no frame, or there are too many pixels.
    """
    from PIL.Image import fromarray

    encode = ANIMATIONS.writer(path)
    if not frames:
        raise DiagnosticError(
            Diagnostic(
                "cannot-write-picture",
                tr("there are no frames to write"),
                file=str(path),
                remedy=tr("run the analysis first"),
            )
        )
    width, height = max(f.width() for f in frames), max(f.height() for f in frames)
    if width * height * len(frames) > LARGEST:
        raise DiagnosticError(
            Diagnostic(
                "cannot-write-picture",
                tr(
                    "{count} images of {width} x {height} are too many for one file",
                    count=len(frames),
                    width=width,
                    height=height,
                ),
                file=str(path),
                remedy=tr("make the channels smaller, or record fewer runs"),
            )
        )
    pictures = [fromarray(_rgb(frame, width, height)) for frame in frames]
    write_atomic(path, encode(pictures, milliseconds, comment))


def _encoded(pictures: Sequence[Image], milliseconds: int, comment: str, kind: str) -> bytes:
    buffer = io.BytesIO()
    options: dict[str, dict[str, Any]] = {
        "GIF": {"comment": comment},
        "PNG": {"pnginfo": png_texts(comment)},
        "WEBP": {"lossless": True},
    }
    pictures[0].save(
        buffer, kind, save_all=True, append_images=pictures[1:], duration=milliseconds, loop=0, **options[kind]
    )
    return buffer.getvalue()


ANIMATIONS: FormatTable[None, Callable[[Sequence[Image], int, str], bytes]] = FormatTable(
    "animations",
    (
        Format("GIF animation", (".gif",), write=partial(_encoded, kind="GIF")),
        Format("WebP animation", (".webp",), write=partial(_encoded, kind="WEBP")),
        Format("PNG animation", (".png",), write=partial(_encoded, kind="PNG")),
    ),
)


def _rgb(frame: QImage, width: int, height: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """H x W x 3; smaller frames are in the upper left corner."""
    image = frame.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    result = np.zeros((height, width, 3), np.uint8)
    result[: image.height(), : image.width()] = rows[:, : image.width() * 3].reshape(image.height(), image.width(), 3)
    return result
