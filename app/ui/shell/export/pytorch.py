"""File > Export > Generate PyTorch Files: the model's name and the folder of the project."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.locations import start_folder
from app.ui.engine.context import Context
from app.ui.widgets.background import Background
from app.ui.widgets.findings import finding_text, without_icons
from app.ui.widgets.growing import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.texts import tr, trn
from app.ui.widgets.typed_path import taken, typed_path
from designer.graph.diagnostics import Diagnostic


class PyTorchExportDialog(GrowingDialog):
    """Asks, writes in a thread, and says what was written or why nothing was."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._job = Background(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)
        self._target = Path()  # what is written to now
        self._written: Path | None = None
        self.setObjectName("export_pytorch")
        self.setAccessibleName(tr("Generate PyTorch files"))
        self.setWindowTitle(tr("Generate PyTorch Files"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        document = context.root
        from exporters.pytorch import class_name

        name = class_name(document.graph.name)
        home = start_folder(document.path)
        self.name = QLineEdit(name)
        self.name.setObjectName("export_pytorch.name")
        self.name.setAccessibleName(tr("Model name"))
        self.name.setToolTip(tr("The class in model.py gets this name"))
        self.folder = QLineEdit(str(home / f"{document.graph.name}_pytorch"))
        self.folder.setObjectName("export_pytorch.folder")
        self.folder.setAccessibleName(tr("Output folder"))
        self.folder.setMinimumWidth(380)
        browse = QPushButton(tr("&Browse..."))
        browse.setObjectName("export_pytorch.browse")
        browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.addWidget(self.folder, 1)
        row.addWidget(browse)
        form = QFormLayout()
        form.addRow(tr("Model &name"), self.name)
        label = QLabel(tr("Output &folder"))
        label.setBuddy(self.folder)
        form.addRow(label, row)
        what = QLabel(
            tr(
                "Writes model.py, train.py, data.py, infer.py, plots.py, requirements.txt, README.md and project.json. "
                "Layers that only observe, such as Noise and Mix, are left out."
            )
        )
        what.setWordWrap(True)
        self.message = Message("export_pytorch.message")
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.generate = self.buttons.addButton(tr("&Generate"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.generate.setObjectName("export_pytorch.generate")
        self.show_folder = self.buttons.addButton(tr("&Show Folder"), QDialogButtonBox.ButtonRole.ActionRole)
        self.show_folder.setObjectName("export_pytorch.show")
        self.show_folder.hide()
        self.show_folder.clicked.connect(self._show_folder)
        self.buttons.accepted.connect(self._start)
        self.buttons.rejected.connect(self.reject)
        without_icons(self.buttons)
        box = QVBoxLayout(self)
        box.addLayout(form)
        box.addWidget(what)
        box.addWidget(self.message)
        box.addWidget(self.buttons)
        self.generate.setDefault(True)  # once it is in the dialog: before, Qt forgets it
        for edit in (self.name, self.folder):
            edit.textChanged.connect(self._check)
        self._check()

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Output Folder"), str(Path(self.folder.text()).parent))
        if folder:
            self.folder.setText(folder)

    def _rule(self) -> str:
        """What is wrong with what was typed; empty when nothing is."""
        if not self.name.text().strip().isidentifier():
            return tr("A model name is a Python name: letters, digits and underscores, and no digit first.")
        if not self.folder.text().strip():
            return tr("Choose the folder that the project is written to.")
        return ""

    def _check(self) -> None:
        from exporters.pytorch.project import MARKER

        rule = self._rule()
        self.generate.setEnabled(not rule and not self._job.running)
        if not rule and taken(typed_path(self.folder.text()) / MARKER):
            self.message.tell(
                tr(
                    "The folder has a project already: its files will be replaced. Where somebody changed one of them, "
                    "all stay as they are."
                ),
                "info",
            )
        else:
            self.message.tell(rule)

    def _start(self) -> None:
        from exporters.pytorch import export_project

        graph, registry = self._context.root.graph.copy(), self._context.registry
        folder, name = typed_path(self.folder.text()), self.name.text().strip()
        self._target = folder
        self.generate.setEnabled(False)
        self._job.start(lambda: export_project(graph, registry, folder, name))

    def _on_done(self, files: object) -> None:
        paths = cast(tuple[Path, ...], files)
        self._written = self._target
        self.message.tell(
            trn(
                "{count} file was written to {folder}",
                "{count} files were written to {folder}",
                len(paths),
                folder=self._written,
            ),
            "positive",
        )
        self._context.message.emit("info", tr("PyTorch project written to {folder}", folder=self._written))
        self.show_folder.show()
        self.generate.setEnabled(not self._rule())

    def _on_failed(self, found: object) -> None:
        findings = cast(tuple[Diagnostic, ...], found)
        self.message.tell("\n".join(finding_text(f) for f in findings))
        self.generate.setEnabled(not self._rule())

    def _show_folder(self) -> None:
        if self._written is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._written)))

    def done(self, result: int) -> None:
        self._job.wait()  # at most some files: never leave a half-written folder behind
        super().done(result)
