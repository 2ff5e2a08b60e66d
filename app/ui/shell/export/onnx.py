"""File > Export > ONNX Model: the file, the weights, and what happens where weights are missing.

The window's process loads neither torch nor onnx: the command line does the work in a process of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QProcess, Qt
from PySide6.QtWidgets import (
    QCheckBox,
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

from app.process import module_command
from app.ui.document.locations import start_folder
from app.ui.engine.context import Context
from app.ui.widgets.file_dialogs import ask_save_path
from app.ui.widgets.findings import finding_text, without_icons
from app.ui.widgets.growing import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.texts import tr
from app.ui.widgets.typed_path import taken, typed_path
from designer.files.weights import WEIGHTS
from designer.graph.diagnostics import DiagnosticError
from exporters.onnx import ONNX_MODELS


class OnnxExportDialog(GrowingDialog):
    """Asks, exports in another process (which Cancel stops), and says what came of it."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._process: QProcess | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._target = Path()  # what is written now
        self.setObjectName("export_onnx")
        self.setAccessibleName(tr("Export ONNX model"))
        self.setWindowTitle(tr("Export ONNX Model"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        document = context.root
        home = start_folder(document.path)
        self.file = self._line("file", tr("ONNX file"), str(home / f"{document.graph.name}.onnx"))
        self.weights = self._line("weights", tr("Weights"), document.settings.weights)
        self.weights.setPlaceholderText(tr("{suffixes}, or a folder", suffixes=", ".join(WEIGHTS.read_suffixes)))
        self.random = QCheckBox(tr("Fill missing weights with random numbers (seed 0)"))
        self.random.setObjectName("export_onnx.random")
        form = QFormLayout()
        for title, edit, browse in (
            (tr("ONNX &file"), self.file, self._browse_file),
            (tr("&Weights"), self.weights, self._browse_weights),
        ):
            label = QLabel(title)
            label.setBuddy(edit)
            form.addRow(label, self._row(edit, browse))
        form.addRow("", self.random)
        self.message = Message("export_onnx.message")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.export = buttons.addButton(tr("&Export"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.export.setObjectName("export_onnx.export")
        buttons.accepted.connect(self._start)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addLayout(form)
        box.addWidget(self.message)
        box.addWidget(buttons)
        self.export.setDefault(True)  # once it is in the dialog: before, Qt forgets it
        self.file.textChanged.connect(self._warn)
        self._warn()

    def _line(self, name: str, title: str, text: str) -> QLineEdit:
        edit = QLineEdit(text)
        edit.setObjectName(f"export_onnx.{name}")
        edit.setAccessibleName(title)
        edit.setMinimumWidth(380)
        return edit

    def _row(self, edit: QLineEdit, browse: Callable[[], None]) -> QHBoxLayout:
        button = QPushButton(tr("Browse..."))
        button.setObjectName(f"{edit.objectName()}.browse")
        button.clicked.connect(browse)
        row = QHBoxLayout()
        row.addWidget(edit, 1)
        row.addWidget(button)
        return row

    def _browse_file(self) -> None:
        path = ask_save_path(self, tr("ONNX File"), self.file.text(), ONNX_MODELS)
        if path is not None:
            self.file.setText(str(path))

    def _browse_weights(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Folder of Weights"), self.weights.text())
        if folder:
            self.weights.setText(folder)

    def _warn(self) -> None:
        """Say that a file is there already. What an export that runs says is left."""
        if self._process is None:
            there = taken(typed_path(self.file.text()))
            self.message.tell(tr("The file is there already; it will be replaced.") if there else "", "info")

    def _start(self) -> None:
        """Write the network as it is in the window to a folder of our own and let the command line export it."""
        from designer.files.document import save_document

        self._folder = tempfile.TemporaryDirectory(prefix="layerwright-onnx-")
        source = Path(self._folder.name) / "network.xml"
        try:
            save_document(self._context.root.graph, source)
        except DiagnosticError as error:
            self.message.tell("\n".join(finding_text(d) for d in error.diagnostics))
            self._tidy()
            return
        self._target = typed_path(self.file.text())
        program, *arguments = module_command("app.cli.main", "export", "onnx", str(source))
        arguments += ["--output", str(self._target.resolve())]
        if self.weights.text().strip():
            weights = typed_path(self.weights.text()).resolve()
            arguments += ["--weights", str(weights)]
        if self.random.isChecked():
            arguments += ["--random-weights", "0"]
        self.export.setEnabled(False)
        self.message.tell(tr("Exporting ..."), "info")
        self._process = QProcess(self)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)
        self._process.start(program, arguments)

    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        process = self._process
        if process is None:
            return
        if code == 0 and status is QProcess.ExitStatus.NormalExit:
            self.message.tell(tr("Written to {target}", target=self._target), "positive")
            self._context.message.emit("info", tr("ONNX model written to {target}", target=self._target))
        elif status is QProcess.ExitStatus.CrashExit:
            self.message.tell(
                tr(
                    "The export was killed (signal {code}), often because memory ran out. Nothing was written: try it "
                    "again, perhaps with a smaller input.",
                    code=code,
                )
            )
        else:
            text = bytes(process.readAllStandardError().data()).decode("utf-8", "replace").strip()
            self.message.tell(
                text or tr("The export ended with status {code} and no message. Try it again.", code=code)
            )
        self._tidy()

    def _on_error(self, error: QProcess.ProcessError) -> None:
        """A process that was there and died is told by `finished`."""
        if self._process is not None and error is QProcess.ProcessError.FailedToStart:
            reason = self._process.errorString()
            self.message.tell(
                tr("The export could not be started: {reason}. Free some memory and try it again.", reason=reason)
            )
            self._tidy()

    def _tidy(self) -> None:
        if self._process is not None:
            self._process.deleteLater()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        self.export.setEnabled(True)

    def done(self, result: int) -> None:
        """Closing stops the export; the other process writes its file whole or not at all."""
        if self._process is not None:
            self._process.finished.disconnect(self._on_finished)
            self._process.errorOccurred.disconnect(self._on_error)
            self._process.kill()
            self._process.waitForFinished(2000)
            self._tidy()
        super().done(result)
