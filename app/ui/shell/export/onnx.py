"""File > Export > Export ONNX: target file, weights, and whether to fill missing weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.ui.engine.context import Context
from app.ui.shell.export.command import CommandExportDialog
from app.ui.widgets.file_dialogs import ask_save_path
from designer.texts import tr
from exporters.onnx import ONNX_MODELS


class OnnxExportDialog(CommandExportDialog):
    """Exports an ONNX file, which the command writes atomically."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, "export_onnx", tr("Export ONNX"), f"{context.root.graph.name}.onnx", parent)
        self.add_target(tr("ONNX &file"))
        self.add_weights()
        self.add_variant()
        self.check()

    def browse(self) -> None:
        path = ask_save_path(self, tr("ONNX File"), self.target.text(), ONNX_MODELS)
        if path is not None:
            self.target.setText(str(path))

    def command(self, document: Path, path: Path) -> Sequence[str]:
        return "export", "onnx", str(document), "--output", str(path)

    def succeeded(self, printed: str) -> None:
        sizes = printed.splitlines()[-1:]  # the heights and widths that the model accepts
        self.written(tr("ONNX model written to {target}", target=self._written_to), sizes)
