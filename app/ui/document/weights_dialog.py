"""Dialogs that ask for the weights of a document: a folder, or a file of any known format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.document.document import Document
from app.ui.document.locations import start_folder
from app.ui.widgets.file_dialogs import open_filter
from designer.files.weights import WEIGHTS
from designer.texts import tr


def ask_weights_folder(parent: QWidget, document: Document | None, use: Callable[[Path], None]) -> None:
    """Call `use` with the chosen folder, if one was chosen."""
    chosen = QFileDialog.getExistingDirectory(parent, tr("Weights Folder"), probable_folder(document))
    if chosen:
        use(Path(chosen))


def ask_weights_file(parent: QWidget, document: Document | None, use: Callable[[Path], None]) -> None:
    """Call `use` with the chosen file, if one was chosen."""
    chosen, _ = QFileDialog.getOpenFileName(parent, tr("Weights File"), probable_folder(document), open_filter(WEIGHTS))
    if chosen:
        use(Path(chosen))


def probable_folder(document: Document | None) -> str:
    """The folder in which the weights probably are: that of the current ones, the generated project, or the document's."""
    if document is None:
        return ""
    if document.settings.weights:
        return str(Path(document.settings.weights).parent)
    home = start_folder(document.path)
    project = document.project or home / f"{document.graph.name}_pytorch"
    return next(str(path) for path in (project / "weights", project, home) if path == home or path.is_dir())
