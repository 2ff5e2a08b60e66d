"""File > Export > Export Deployment Folder: the network with code that runs it in Python, C++ and Triton."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QLabel, QWidget

from app.ui.engine.context import Context
from app.ui.shell.export.command import CommandExportDialog
from designer.texts import tr
from exporters.generated_folder import MARKER, stage_of


class DeployExportDialog(CommandExportDialog):
    """Exports a deployment folder, which appears complete or not at all."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        proposed = f"{context.root.graph.name}_deploy"
        super().__init__(context, "export_deploy", tr("Export Deployment Folder"), proposed, parent)
        self.add_target(tr("Output &folder"))
        self.add_weights()
        self.add_variant()
        self.add_model()
        what = QLabel(
            tr(
                "Writes the ONNX model, code that runs it in Python, C++ and Triton, checks of equal results, and a README "
                "with the values measured here. Analysis layers such as Noise and Mix are omitted."
            )
        )
        what.setWordWrap(True)
        self.form.addRow(what)
        self.check()

    def browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Output Folder"), str(self.path.parent))
        if folder:
            self.target.setText(folder)

    def replaced(self) -> str:
        if not (self.path / MARKER).is_file():
            return ""
        return tr("The folder has an earlier export, which will be replaced unless one of its files was edited.")

    def command(self, document: Path, path: Path) -> Sequence[str]:
        return "export", "deploy", str(document), "--output", str(path)

    def succeeded(self, printed: str) -> None:
        notes = [line for line in printed.splitlines() if not line.startswith("wrote")]
        self.written(tr("Deployment folder written to {target}", target=self._written_to), notes)

    def interrupt(self) -> None:
        super().interrupt()
        shutil.rmtree(stage_of(self._written_to), ignore_errors=True)
