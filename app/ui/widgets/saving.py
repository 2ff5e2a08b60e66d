"""Pictures and tensors of the window into files and onto the clipboard."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QBuffer, QIODevice, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.widgets.background import Background
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.texts import mark, tr, tr_data
from designer.files.atomic import write_atomic
from designer.graph.diagnostics import Diagnostic, DiagnosticError

PNG, NPY = mark("PNG picture (*.png)"), mark("NumPy tensor (*.npy)")
CSV, ANIMATION = mark("Table (*.csv)"), mark("Animation (*.gif *.webp *.png)")
PAGE = mark("Page (*.html)")


def ask_path(parent: QWidget, title: str, name: str, kind: str) -> Path | None:
    """A file that the person chooses; `name` is proposed, its ending is added where it was left out."""
    safe = re.sub(r"[^\w.-]+", "_", name)
    chosen, _ = QFileDialog.getSaveFileName(parent, title, safe, f"{tr_data(kind)};;{tr('All files (*)')}")
    if not chosen:
        return None
    path = Path(chosen)
    return path if path.suffix else path.with_suffix(Path(name).suffix)


def save_picture(path: Path, image: QImage) -> None:
    """Write a PNG; the file is whole or not there. DiagnosticError says why it could not be written."""
    if path.suffix.lower() != ".png":
        raise DiagnosticError(
            Diagnostic(
                "cannot-write-picture",
                tr("pictures are not written as '{suffix}'", suffix=path.suffix),
                file=str(path),
                remedy=tr("choose a name that ends in .png"),
            )
        )
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not image.save(buffer, "PNG"):  # type: ignore[call-overload]
        raise DiagnosticError(
            Diagnostic(
                "cannot-write-picture", tr("the picture is too large for a PNG file"), remedy=tr("make it smaller")
            )
        )
    write_atomic(path, bytes(buffer.data().data()))


def save_tensor(path: Path, tensor: NDArray[Any]) -> None:
    """Write an `.npy` file; it is whole or not there."""
    buffer = io.BytesIO()
    np.save(buffer, tensor, allow_pickle=False)
    write_atomic(path, buffer.getvalue())


def tell(action: Callable[[], None], say: Callable[[str], None], done: str) -> None:
    """Do it, and say how it went in one sentence."""
    try:
        action()
    except DiagnosticError as error:
        say(placed_text(error.diagnostics[0]))
    else:
        say(done)


def write_in_thread(
    owner: QObject, work: Callable[[], object], say: Callable[[bool, str], object], done: str
) -> Background:
    """Write a file in a thread: large ones take longer than a frame of the window. `say` gets the success and a sentence."""

    def failed(found: Any) -> None:
        say(False, placed_text(found[0]))

    job = Background(owner)
    job.done.connect(lambda _answer: say(True, done))
    job.failed.connect(failed)
    for signal in (job.done, job.failed):
        signal.connect(job.deleteLater)
    job.start(work)
    return job


def png_of(widget: QWidget) -> bytes:
    """What the widget shows now, as the bytes of a PNG file."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    widget.grab().save(buffer, "PNG")
    return bytes(buffer.data().data())
