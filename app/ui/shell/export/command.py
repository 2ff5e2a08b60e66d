"""The base of export dialogs that run a command of the command line, because the window loads neither torch nor onnx."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QByteArray, QProcess
from PySide6.QtWidgets import QCheckBox, QComboBox, QFileDialog, QPushButton, QWidget

from app.process import module_command
from app.ui.document.weights_dialog import ask_weights_file, ask_weights_folder
from app.ui.engine.context import Context
from app.ui.shell.export.dialog import ExportDialog
from app.ui.widgets.file_dialogs import save_filter
from app.ui.widgets.typed_path import typed_path
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import Variant
from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr
from exporters.onnx import ONNX_MODELS


class CommandExportDialog(ExportDialog):
    """Runs `command()` on the open network with its weights in a child process, which is killed to stop the export.

    A subclass implements `command` and `succeeded`, and `interrupt` if a killed process leaves files.
    """

    def __init__(
        self, context: Context, name: str, title: str, proposed: str, parent: QWidget | None, *, action: str = ""
    ) -> None:
        super().__init__(context, name, title, proposed, parent, action=action)
        self._process: QProcess | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.weights = self.line(context.root.settings.weights)
        self.weights.setPlaceholderText(tr("Folder of .npy or .bin files, or a .safetensors or .pt file"))
        self.random = QCheckBox(tr("Fill missing weights with random values (seed 0)"))
        self.random.setObjectName(f"{name}.random")
        self.variant = QComboBox()
        self.variant.addItem(tr("None: the network in FP32"), "")
        for each in context.root.settings.variants:
            self.variant.addItem(each.name, each.name)
        self.variant.setCurrentIndex(max(self.variant.findData(context.root.settings.variant), 0))
        self.variant.currentIndexChanged.connect(self._on_variant)
        self.model = self.line("")
        self.model.textChanged.connect(self.check)
        self.model.setPlaceholderText(tr("FP32; or an ONNX file of this network in another precision"))

    def add_weights(self) -> None:
        """Add the rows of the weights."""
        folder, file = (
            self._choice("weights", tr("Folder..."), tr("Choose a folder with the weights"), ask_weights_folder),
            self._choice("weights_file", tr("File..."), tr("Choose a file with the weights"), ask_weights_file),
        )
        self.add_row("weights", tr("&Weights"), self.weights, folder, file)
        self.form.addRow("", self.random)

    def _choice(self, name: str, text: str, title: str, ask: Callable[..., None]) -> QPushButton:
        button = self.browse_button(name, title)
        button.setText(text)
        button.clicked.connect(lambda: ask(self, self.context.root, lambda path: self.weights.setText(str(path))))
        return button

    def add_variant(self) -> None:
        """Add the row of the variants in the settings of the document."""
        self.add_row("variant", tr("&Variant"), self.variant)
        self._on_variant()

    def _on_variant(self) -> None:
        """Propose the weights of the variant."""
        settings, chosen = self.context.root.settings, self._chosen_variant()
        self.weights.setText(chosen.weights if chosen is not None and chosen.weights else settings.weights)
        self.check()

    def _chosen_variant(self) -> Variant | None:
        name = self.variant.currentData()
        return next((each for each in self.context.root.settings.variants if each.name == name), None)

    def problem(self) -> str:
        if self._chosen_variant() is not None and self.model.text().strip():
            return tr("The variant and the ONNX file both choose the model. Use only one of them.")
        return super().problem()

    def add_model(self) -> None:
        """Add the row of a model in another precision."""
        browse = self.browse_button("model", tr("Choose the ONNX model"))
        browse.clicked.connect(self._browse_model)
        self.add_row("model", tr("M&odel"), self.model, browse)

    def _browse_model(self) -> None:
        begin = self.model.text().strip() or str(self.path.parent)
        path, _ = QFileDialog.getOpenFileName(self, tr("ONNX Model"), begin, save_filter(ONNX_MODELS))
        if path:
            self.model.setText(path)

    # --- for subclasses ----------------------------------------------------------------------------------------

    def command(self, document: Path, path: Path) -> Sequence[str]:
        """The arguments of the command that writes `document` to `path`, without those of the weights."""
        raise NotImplementedError

    def succeeded(self, printed: str) -> None:
        """Report the export from the output of the command, with `written`."""
        raise NotImplementedError

    # --- the process -------------------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Save the open network to a temporary folder and run the command on it."""
        from designer.files.document import save_document

        self._folder = tempfile.TemporaryDirectory(prefix="layerwright-export-")
        source = Path(self._folder.name) / "network.xml"
        variant = self._chosen_variant()
        try:
            save_document(self.context.root.graph, source)
            variants = () if variant is None else (variant,)
            settings = Settings(variants=variants, input_files=self.context.root.settings.input_files)
            save_settings(settings, settings_path(source))
        except DiagnosticError as error:
            self._clean_up()
            self.failed(error.diagnostics)
            return
        program, *arguments = module_command("app.cli.main", *self.command(source, path))
        if self.weights.text().strip():
            arguments += ["--weights", str(typed_path(self.weights.text()).resolve())]
        if variant is not None:
            arguments += ["--variant", variant.name]
        if self.model.text().strip():
            arguments += ["--onnx", str(typed_path(self.model.text()).resolve())]
        if self.random.isChecked():
            arguments += ["--random-weights", "0"]
        self._process = QProcess(self)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)
        self._process.start(program, arguments)

    def interrupt(self) -> None:
        if self._process is not None:
            self._process.finished.disconnect(self._on_finished)
            self._process.errorOccurred.disconnect(self._on_error)
            self._process.kill()
            self._process.waitForFinished(2000)
            self._clean_up()

    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        process = self._process
        if process is None:
            return
        printed, error = _text(process.readAllStandardOutput()), _text(process.readAllStandardError())
        self._clean_up()
        if code == 0 and status is QProcess.ExitStatus.NormalExit:
            self.succeeded(printed)
        elif status is QProcess.ExitStatus.CrashExit:
            self.failed(
                tr(
                    "The export was killed (signal {code}), possibly because memory ran out. Nothing was written. Try "
                    "again with a smaller input.",
                    code=code,
                )
            )
        else:
            self.failed(error or tr("The export exited with status {code} and no message. Try again.", code=code))

    def _on_error(self, error: QProcess.ProcessError) -> None:
        """Report a process that failed to start; a crash is reported by `finished`."""
        if self._process is not None and error is QProcess.ProcessError.FailedToStart:
            reason = self._process.errorString()
            self._clean_up()
            self.failed(tr("The export could not be started: {reason}. Free some memory and try again.", reason=reason))

    def _clean_up(self) -> None:
        if self._process is not None:
            self._process.deleteLater()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _text(output: QByteArray) -> str:
    return bytes(output.data()).decode("utf-8", "replace").strip()
