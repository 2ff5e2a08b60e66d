"""File > Import > PyTorch Module: which module, its inputs and weights, and the consent to run its code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QSettings, Qt
from PySide6.QtWidgets import (
    QComboBox,
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

from app.import_process import InputShape, parse_input
from app.ui.engine.import_run import ImportSource
from app.ui.widgets.code_consent import CodeConsent
from app.ui.widgets.file_dialogs import open_filter
from app.ui.widgets.findings import without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import finding_text
from app.ui.widgets.typed_path import typed_path
from designer.files.formats import Format, FormatTable
from designer.graph.diagnostics import DiagnosticError
from designer.importers.formats import CHECKPOINTS
from designer.importers.pytorch.source_text import callables, read_source, source_file
from designer.texts import tr

SOURCES: FormatTable[str, None] = FormatTable("Python files", (Format("Python file", (".py",), "source"),))
FIELDS = ("module", "callable", "inputs", "state", "folder")
EXAMPLE = "1x3x64x64"


class ModuleDialog(GrowingDialog):
    """Asks for a module. Import shows its code; `start` is called with the source after the user's consent.

    The values of the last import are proposed again.
    """

    def __init__(
        self, settings: QSettings, folder: Path, start: Callable[[ImportSource], object], parent: QWidget | None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("import_module")
        self.setAccessibleName(tr("Import PyTorch Module"))
        self.setWindowTitle(tr("Import PyTorch Module"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._settings = settings
        self._start = start
        last = {name: str(settings.value(f"import/{name}") or "") for name in FIELDS}
        self._folder = Path(last["folder"]) if last["folder"] else folder
        self.module = QLineEdit(last["module"])
        self.module.setMinimumWidth(380)
        self.module.setPlaceholderText(tr("model.py or package.module"))
        self.module.setToolTip(tr("A Python file, or a module that Python can import"))
        self.callable = QComboBox()
        self.callable.setEditable(True)
        self.callable.setToolTip(tr("A class or function that returns a torch.nn.Module and needs no arguments"))
        self.inputs = QLineEdit(last["inputs"] or EXAMPLE)
        self.inputs.setToolTip(
            tr("The shape of each argument of forward, separated by commas; 1x16:int64 also gives the element type")
        )
        self.state = QLineEdit(last["state"])
        self.state.setPlaceholderText(tr("none: the weights that the module has when it is made"))
        self.state.setToolTip(tr("A state dict that is loaded into the module; code in it is never run"))
        self._form = QFormLayout()
        self._row(
            "module",
            tr("File or &module"),
            self.module,
            self._browse("module", tr("Choose the file"), self._browse_module),
        )
        self._row("callable", tr("&Callable"), self.callable)
        self._row("inputs", tr("&Inputs"), self.inputs)
        self._row(
            "state",
            tr("State &dict"),
            self.state,
            self._browse("state", tr("Choose the state dict"), self._browse_state),
        )
        self.message = Message("import_module.message")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.go = buttons.addButton(tr("Review Code and I&mport..."), QDialogButtonBox.ButtonRole.AcceptRole)
        self.go.setObjectName("import_module.import")
        buttons.accepted.connect(self._review)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addLayout(self._form)
        box.addWidget(self.message)
        box.addWidget(buttons)
        self.go.setDefault(True)
        self.module.textChanged.connect(self._on_module)
        self.callable.editTextChanged.connect(self.check)
        self.inputs.textChanged.connect(self.check)
        self.state.textChanged.connect(self.check)
        self._on_module()
        if last["callable"]:
            self.callable.setEditText(last["callable"])

    def _row(self, name: str, title: str, field: QWidget, *others: QWidget) -> None:
        field.setObjectName(f"import_module.{name}")
        field.setAccessibleName(title.replace("&", ""))
        label = QLabel(title)
        label.setBuddy(field)
        row = QHBoxLayout()
        row.addWidget(field, 1)
        for other in others:
            row.addWidget(other)
        self._form.addRow(label, row)

    def _browse(self, name: str, title: str, command: Callable[[], None]) -> QPushButton:
        button = QPushButton(tr("Browse..."))
        button.setAccessibleName(title)
        button.setObjectName(f"import_module.{name}.browse")
        button.setAutoDefault(False)
        button.clicked.connect(lambda _on=False: command())
        return button

    # --- fields --------------------------------------------------------------------------------------------------

    def _browse_module(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, tr("Python File"), str(self._folder), open_filter(SOURCES))
        if name:
            self._folder = Path(name).parent
            self.module.setText(name)

    def _browse_state(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, tr("State Dict"), str(self._folder), open_filter(CHECKPOINTS))
        if name:
            self.state.setText(name)

    @property
    def file(self) -> Path | None:
        """The file of the module."""
        text = self.module.text().strip()
        if text.endswith(".py"):
            path = self._folder / typed_path(text)
            return path if path.is_file() else None
        return source_file(text, self._folder) if all(part.isidentifier() for part in text.split(".")) else None

    def _on_module(self) -> None:
        """List the callables of the module, without running it."""
        file = self.file
        typed = self.callable.currentText()
        names = callables(read_source(file)) if file is not None else []
        if names != [self.callable.itemText(row) for row in range(self.callable.count())]:
            self.callable.clear()
            self.callable.addItems(names)
            if typed in names or not names:
                self.callable.setEditText(typed)
        self.check()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self._on_module()  # the file may have been written in an editor

    def _shapes(self) -> tuple[InputShape, ...]:
        return tuple(parse_input(part.strip()) for part in self.inputs.text().split(",") if part.strip())

    def problem(self) -> str:
        """Why the module cannot be imported with these values."""
        if not self.module.text().strip():
            return tr("Choose the Python file, or type the name of the module.")
        if self.file is None:
            place = self.module.text().strip()
            if place.endswith(".py"):
                return tr("The file {path} does not exist. Choose another one.", path=place)
            return tr("Python does not find the module “{name}”. Choose its file.", name=place)
        name = self.callable.currentText().strip()
        if not name or not all(part.isidentifier() for part in name.split(".")):
            return tr("Name the class or function that makes the module.")
        try:
            self._shapes()
        except DiagnosticError as error:
            return finding_text(error.diagnostics[0])
        state = self.state.text().strip()
        if state and not typed_path(state).is_file():
            return tr("The file {path} does not exist. Choose another one.", path=state)
        return ""

    def check(self) -> None:
        """Show the problem, once a module is named."""
        problem = self.problem()
        self.go.setEnabled(not problem)
        self.message.show_message(problem if self.module.text().strip() else "", "error")

    # --- importing -----------------------------------------------------------------------------------------------

    def source(self) -> ImportSource:
        """What the fields describe."""
        place, name = self.module.text().strip(), self.callable.currentText().strip()
        folder = self._folder
        if place.endswith(".py"):
            file = (folder / typed_path(place)).absolute()
            folder, place = file.parent, file.name
        state = self.state.text().strip()
        return ImportSource(
            f"{place}:{name}", folder, self._shapes(), typed_path(state).absolute() if state else None, runs_code=True
        )

    def _review(self) -> None:
        """Show the code, and import after the user's consent."""
        self.check()  # a file can be gone since
        file = self.file
        if self.problem() or file is None:
            return
        text = tr(
            "Importing the module executes this code, and the code that it imports, on your machine with your permissions. "
            "Read it first, and agree only if you trust it."
        )
        CodeConsent(
            "agree_import",
            text,
            [(file.name, read_source(file))],
            self._agreed,
            self,
            action=tr("&Agree and Import"),
        ).open()

    def _agreed(self) -> None:
        texts = (
            self.module.text(),
            self.callable.currentText(),
            self.inputs.text(),
            self.state.text(),
            str(self._folder),
        )
        for name, text in zip(FIELDS, texts, strict=True):
            self._settings.setValue(f"import/{name}", text.strip())
        self._start(self.source())
        self.accept()
