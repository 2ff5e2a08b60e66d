"""Several pictures as one animated file: GIF, WebP or PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PySide6.QtGui import QImage

from app.ui.widgets.texts import tr
from designer.files.atomic import write_atomic
from designer.graph.diagnostics import Diagnostic, DiagnosticError

FORMATS = {".gif": "GIF", ".webp": "WEBP", ".png": "PNG"}
LARGEST = 1 << 28  # pixels of all frames together


def save_animation(path: Path, frames: Sequence[QImage], milliseconds: int) -> None:
    """Write an endless animation; the file is whole or not there. It may run in a thread.

    DiagnosticError: the file's ending is not one of FORMATS, there is no frame, or there are too many pixels.
    """
    from PIL import Image

    kind = FORMATS.get(path.suffix.lower())
    if kind is None or not frames:
        what = (
            tr("there is no picture to be written")
            if not frames
            else tr("animations are not written as '{suffix}'", suffix=path.suffix)
        )
        raise DiagnosticError(
            Diagnostic(
                "cannot-write-picture",
                what,
                file=str(path),
                remedy=tr("choose a name that ends in {endings}", endings=", ".join(FORMATS))
                if frames
                else tr("run the analysis first"),
            )
        )
    width, height = max(f.width() for f in frames), max(f.height() for f in frames)
    if width * height * len(frames) > LARGEST:
        raise DiagnosticError(
            Diagnostic(
                "cannot-write-picture",
                tr(
                    "{count} pictures of {width} x {height} are too many for one file",
                    count=len(frames),
                    width=width,
                    height=height,
                ),
                file=str(path),
                remedy=tr("make the channels smaller, or record fewer runs"),
            )
        )
    pictures = [Image.fromarray(_rgb(frame, width, height)) for frame in frames]
    buffer = io.BytesIO()
    options = {"lossless": True} if kind == "WEBP" else {}
    pictures[0].save(buffer, kind, save_all=True, append_images=pictures[1:], duration=milliseconds, loop=0, **options)
    write_atomic(path, buffer.getvalue())


def _rgb(frame: QImage, width: int, height: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """H x W x 3; a smaller frame stands in the upper left corner."""
    image = frame.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    result = np.zeros((height, width, 3), np.uint8)
    result[: image.height(), : image.width()] = rows[:, : image.width() * 3].reshape(image.height(), image.width(), 3)
    return result
