"""Open Image Input: the file of an input layer, chosen from its context menu on the canvas or from its row in Analysis."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.widgets.file_dialogs import open_filter
from designer.files.settings import CAMERA, PATTERN
from designer.runtime.sources import INPUTS
from designer.texts import tr


def ask_input(parent: QWidget, layer: str, present: Path | None) -> Path | None:
    """The file that the user chooses for an input layer; None: cancelled."""
    is_file = present is not None and not str(present).startswith((PATTERN, CAMERA))
    folder = str(present.parent) if present is not None and is_file else ""
    name, _ = QFileDialog.getOpenFileName(parent, tr("Image for {layer}", layer=layer), folder, open_filter(INPUTS))
    return Path(name) if name else None


class ImageInput(QObject):
    """Opens the image of the selected input layer."""

    def __init__(self, context: Context, window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._window = window

    def layer(self) -> str:
        """The input layer that is selected alone; empty where there is none."""
        selected = self._context.selection
        inputs = analysis_of(self._context).inputs.layers()
        return selected[0] if len(selected) == 1 and selected[0] in inputs and not self._context.scope else ""

    def open(self) -> None:
        layer = self.layer()
        if layer:
            inputs = analysis_of(self._context).inputs
            path = ask_input(self._window, layer, inputs.path(layer))
            if path is not None:
                inputs.set_file(layer, path)
