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
    return weights_folder(document.settings.weights, document.file, document.graph.name, document.project)


def weights_folder(weights: str, path: Path | None, name: str, project: Path | None = None) -> str:
    """The same for a document in `path` of this name, with these weights and this generated project."""
    if weights:
        return str(Path(weights).parent)
    home = start_folder(path)
    project = project or home / f"{name}_pytorch"
    return next(str(found) for found in (project / "weights", project, home) if found == home or found.is_dir())
