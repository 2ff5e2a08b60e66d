"""Saving images and other files from the window, with messages about the result."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QBuffer, QIODevice, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from app.ui.widgets.background import Background
from app.ui.widgets.file_dialogs import ask_save_path
from app.ui.widgets.sentences import placed_text
from designer.files.atomic import write_atomic
from designer.files.formats import Format, FormatTable
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

PNG_COMMENT = "Comment"  # the key of a comment in PNG files


def ask_path(parent: QWidget, title: str, name: str, table: FormatTable[Any, Any]) -> Path | None:
    """Ask for a file to save to; `name` is proposed, without characters that file systems reject."""
    return ask_save_path(parent, title, re.sub(r"[^\w.-]+", "_", name), table)


def _write_png(path: Path, image: QImage, comment: str) -> None:
    image = QImage(image)  # shares the pixels, not the texts
    image.setText(PNG_COMMENT, comment)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not image.save(buffer, "PNG"):  # type: ignore[call-overload]
        raise DiagnosticError(
            Diagnostic(
                "cannot-write-picture", tr("the image is too large for a PNG file"), remedy=tr("reduce its size")
            )
        )
    write_atomic(path, bytes(buffer.data().data()))


VIEWS: FormatTable[None, Callable[[Path, QImage, str], None]] = FormatTable(
    "images of views", (Format("PNG image", (".png",), write=_write_png),)
)


def report_result(action: Callable[[], None], say: Callable[[bool, str], object], done: str) -> None:
    """Run `action`. `say` is called with the success and a sentence."""
    try:
        action()
    except DiagnosticError as error:
        say(False, placed_text(error.diagnostics[0]))
    else:
        say(True, done)


def write_in_thread(
    owner: QObject, work: Callable[[], object], say: Callable[[bool, str], object], done: str
) -> Background:
    """Write a file in a thread, since large files take long. `say` is called with the success and a sentence."""

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
    """A screenshot of the widget as PNG bytes."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    widget.grab().save(buffer, "PNG")
    return bytes(buffer.data().data())
