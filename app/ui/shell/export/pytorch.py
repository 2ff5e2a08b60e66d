"""File > Export > Generate PyTorch Files: the model's name and the folder of the project."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel, QLineEdit, QMessageBox, QWidget

from app.process import module_command
from app.ui.engine.context import Context
from app.ui.shell.export.dialog import ExportDialog
from app.ui.widgets.background import Background
from app.ui.widgets.typed_path import taken
from designer.files.document import save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.texts import tr, tr_data, trn
from exporters.pytorch import EditedFilesError, Training, class_name, export_project
from exporters.pytorch.initial_weights import INITIAL_WEIGHTS
from exporters.pytorch.project import MARKER, Edited
from exporters.pytorch.tasks import TASKS


class PyTorchExportDialog(ExportDialog):
    """Writes in a thread. The files are moved into the folder together, so there is nothing to cancel."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        network = context.root.graph.name
        super().__init__(
            context,
            "export_pytorch",
            tr("Generate PyTorch Files"),
            f"{network}_pytorch",
            parent,
            action=tr("&Generate"),
        )
        self._edited: Edited = "refuse"  # what the next export does with edited files
        self._notes: list[str] = []
        self._job = Background(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(lambda found: self.failed(cast(tuple[Diagnostic, ...], found)))
        self.name = QLineEdit(class_name(network))
        self.name.setToolTip(tr("Name of the class in model.py"))
        self.name.textChanged.connect(self.check)
        self.add_row("name", tr("Model &name"), self.name)
        self.task = QComboBox()
        self.task.setToolTip(tr("What the project trains: its data, its loss and its metrics"))
        self.task.addItem(tr("Suggested by the network"), "")
        for task in TASKS.values():
            self.task.addItem(tr_data(task.title), task.name)
        self.task.setCurrentIndex(max(0, self.task.findData(context.root.settings.task)))
        self.add_row("task", tr("&Task"), self.task)
        self.add_target(tr("Output &folder"))
        if context.root.settings.project:
            self.target.setText(context.root.settings.project)
        text = tr(
            "Writes the network (model.py), its training (train.py, config.py, data.py, losses.py), infer.py and README.md. "
            "Analysis layers such as Noise and Mix are omitted."
        )
        if context.root.settings.weights:
            text += " " + tr("The weights of the network are added ({file}).", file=INITIAL_WEIGHTS)
        what = QLabel(text)
        what.setObjectName("export_pytorch.what")
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
        if not taken(self.path / MARKER):
            return ""
        return tr(
            "The folder contains a project, which will be updated. Files that you edited are kept, or you are asked if the "
            "network changes them."
        )

    def write(self, path: Path) -> None:
        edited, self._edited = self._edited, "refuse"
        document, registry, name = self.context.root, self.context.registry, self.name.text().strip()
        graph, settings, task = document.graph.copy(), document.settings, self.task.currentData()
        training = Training.of(settings, task)
        self.cancel.hide()
        self._notes = []

        def work() -> tuple[Path, ...] | EditedFilesError:
            try:
                files = export_project(graph, registry, path, name, training, edited=edited)
            except EditedFilesError as error:
                return error
            if settings.weights:
                self._notes += _export_weights(graph, settings, path, name, task)
            return files

        self._job.start(work)

    def _ask(self, found: EditedFilesError) -> None:
        """Show the differences of edited files, and ask whether to keep or to replace them."""
        box = QMessageBox(QMessageBox.Icon.Question, tr("Edited Files"), found.diagnostics[0].message, parent=self)
        box.setObjectName("export_pytorch.edited")
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setInformativeText(tr("The details show what would change in them."))
        box.setDetailedText("\n".join(found.diffs.values()))
        keep = box.addButton(tr("&Keep My Files"), QMessageBox.ButtonRole.AcceptRole)
        replace = box.addButton(tr("&Replace Them"), QMessageBox.ButtonRole.DestructiveRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(keep)

        def answered() -> None:
            if box.clickedButton() in (keep, replace):
                self._edited = "keep" if box.clickedButton() is keep else "replace"
                self._begin()

        box.finished.connect(answered)
        box.open()

    def interrupt(self) -> None:
        self._job.wait()  # brief; never leaves a half-written folder

    def _on_done(self, files: object) -> None:
        if isinstance(files, EditedFilesError):
            self.failed(files.diagnostics)
            self._ask(files)
            return
        count = len(cast(tuple[Path, ...], files))
        document = self.context.root
        document.project = self._written_to
        task = self.task.currentData() or document.settings.task
        document.change_settings(project=str(self._written_to), task=task)
        self.written(
            trn(
                "PyTorch project of {count} file written to {folder}",
                "PyTorch project of {count} files written to {folder}",
                count,
                folder=self._written_to,
            ),
            self._notes,
        )


def _export_weights(graph: Graph, settings: Settings, project: Path, name: str, task: str) -> list[str]:
    """Add the weights of the document to its project, in a process that may import torch; what to tell the user of it."""
    with tempfile.TemporaryDirectory(prefix="layerwright-export-") as folder:
        source = Path(folder) / "network.xml"
        save_document(graph, source)
        save_settings(settings, settings_path(source))
        options = ("--output", str(project), "--name", name, "--task", task, "--edited", "keep")
        command = ("export", "pytorch", str(source), *options, "--weights", settings.weights)
        done = subprocess.run(module_command("app.cli.main", *command), capture_output=True, text=True, check=False)
    if not done.returncode:
        return [tr("Its weights to begin with: {file}", file=INITIAL_WEIGHTS)]
    reason = (done.stderr.strip().splitlines() or [""])[-1]
    return [tr("Without {file}: {reason}", file=INITIAL_WEIGHTS, reason=reason)]
