"""File > Export > Generate PyTorch Files: the model's name and the folder of the project."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QWidget

from app.ui.engine.context import Context
from app.ui.shell.export.dialog import ExportDialog
from app.ui.widgets.background import Background
from app.ui.widgets.typed_path import taken
from designer.graph.diagnostics import Diagnostic
from designer.texts import tr, trn


class PyTorchExportDialog(ExportDialog):
    """Writes in a thread. The files are moved into the folder together, so there is nothing to cancel."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        from exporters.pytorch import class_name

        network = context.root.graph.name
        super().__init__(
            context,
            "export_pytorch",
            tr("Generate PyTorch Files"),
            f"{network}_pytorch",
            parent,
            action=tr("&Generate"),
        )
        self._job = Background(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(lambda found: self.failed(cast(tuple[Diagnostic, ...], found)))
        self.name = QLineEdit(class_name(network))
        self.name.setToolTip(tr("Name of the class in model.py"))
        self.name.textChanged.connect(self.check)
        self.add_row("name", tr("Model &name"), self.name)
        self.add_target(tr("Output &folder"))
        what = QLabel(
            tr(
                "Writes model.py, train.py, data.py, infer.py, plots.py, requirements.txt, README.md and project.json. "
                "Analysis layers such as Noise and Mix are omitted."
            )
        )
        what.setWordWrap(True)
        self.form.addRow(what)
        self.check()

    def browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Output Folder"), str(self.path.parent))
        if folder:
            self.target.setText(folder)

    def problem(self) -> str:
        if not self.name.text().strip().isidentifier():
            return tr(
                "The model name must be a Python identifier: letters, digits and underscores, not starting with a digit."
            )
        return super().problem()

    def replaced(self) -> str:
        from exporters.pytorch.project import MARKER

        if not taken(self.path / MARKER):
            return ""
        return tr(
            "The folder contains a project whose files will be overwritten. If one of them was edited, "
            "nothing is written."
        )

    def write(self, path: Path) -> None:
        from exporters.pytorch import export_project

        graph, registry, name = self.context.root.graph.copy(), self.context.registry, self.name.text().strip()
        self.cancel.hide()
        self._job.start(lambda: export_project(graph, registry, path, name))

    def interrupt(self) -> None:
        self._job.wait()  # brief; never leaves a half-written folder

    def _on_done(self, files: object) -> None:
        count = len(cast(tuple[Path, ...], files))
        self.context.root.project = self._written_to
        self.written(
            trn(
                "PyTorch project of {count} file written to {folder}",
                "PyTorch project of {count} files written to {folder}",
                count,
                folder=self._written_to,
            )
        )
