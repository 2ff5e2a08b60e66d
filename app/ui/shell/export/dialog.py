"""The base of the export dialogs: target, options, validation, progress and result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from PySide6.QtCore import QEvent, QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.locations import start_folder
from app.ui.engine.context import Context
from app.ui.widgets.findings import located_finding, without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.typed_path import taken, typed_path
from designer.files.file_names import file_name
from designer.graph.diagnostics import Diagnostic
from designer.texts import tr

SHOWN = 4  # most problems listed in a message
_last_folders: WeakKeyDictionary[Context, dict[str, Path]] = (
    WeakKeyDictionary()
)  # last export folder of a window, by dialog


class ExportDialog(GrowingDialog):
    """Remains open while an export runs; closing the dialog or its window stops the export.

    A subclass adds rows of options with `add_row` and calls `check` at the end of `__init__`. `problem` validates the
    options, and `write` exports and then calls `written` or `failed`, possibly later.
    """

    def __init__(
        self, context: Context, name: str, title: str, proposed: str, parent: QWidget | None, *, action: str = ""
    ) -> None:
        super().__init__(parent)
        self.context = context
        self.working = False
        self._name = name
        self._written_to = Path()  # the target of the current or last export
        if parent is not None:
            parent.installEventFilter(self)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        folder = _last_folders.get(context, {}).get(name) or start_folder(context.root.file)
        self.target = self.line(str(folder / file_name(proposed)))
        self.target.textChanged.connect(self.check)
        self.form = QFormLayout()
        self.message = Message(f"{name}.message")
        self.bar = QProgressBar()
        self.bar.setObjectName(f"{name}.progress")
        self.bar.setAccessibleName(tr("Progress"))
        self.bar.hide()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.export = self._button(buttons, "export", action or tr("&Export"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.cancel = self._button(buttons, "cancel", tr("&Cancel"), QDialogButtonBox.ButtonRole.ActionRole)
        self.cancel.clicked.connect(self._cancel)
        self.show_folder = self._button(buttons, "show", tr("&Show Folder"), QDialogButtonBox.ButtonRole.ActionRole)
        self.show_folder.clicked.connect(self._show_folder)
        for button in (self.cancel, self.show_folder):
            button.hide()
        buttons.accepted.connect(self._begin)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addLayout(self.form)
        box.addWidget(self.bar)
        box.addWidget(self.message)
        box.addWidget(buttons)
        self.export.setDefault(True)  # only effective once the button is in the dialog

    # --- building --------------------------------------------------------------------------------------------

    def _button(
        self, buttons: QDialogButtonBox, name: str, text: str, role: QDialogButtonBox.ButtonRole
    ) -> QPushButton:
        button = buttons.addButton(text, role)
        button.setObjectName(f"{self._name}.{name}")
        return button

    def line(self, text: str) -> QLineEdit:
        """Create a field for a path."""
        line = QLineEdit(text)
        line.setMinimumWidth(380)
        return line

    def add_row(self, name: str, title: str, field: QWidget, *others: QWidget) -> None:
        """Add a row to the form: a labeled field, and the widgets next to it."""
        field.setObjectName(f"{self._name}.{name}")
        field.setAccessibleName(title.replace("&", ""))
        label = QLabel(title)
        label.setBuddy(field)
        if not others:
            self.form.addRow(label, field)
            return
        row = QHBoxLayout()
        row.addWidget(field, 1)
        for widget in others:
            row.addWidget(widget)
        self.form.addRow(label, row)

    def browse_button(self, name: str, title: str) -> QPushButton:
        """Create the Browse button next to a path."""
        button = QPushButton(tr("&Browse...") if name == "target" else tr("Browse..."))
        button.setObjectName(f"{self._name}.{name}.browse")
        button.setAccessibleName(title)
        button.setAutoDefault(False)
        return button

    def add_target(self, title: str) -> None:
        """Add the row of the target, whose button calls `browse`."""
        button = self.browse_button("target", tr("Choose the target"))
        button.clicked.connect(self.browse)
        self.add_row("target", title, self.target, button)

    # --- for subclasses --------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The current target."""
        return typed_path(self.target.text())

    def browse(self) -> None:
        """Ask for the target."""

    def problem(self) -> str:
        """A message about invalid options; empty if they are valid."""
        return "" if self.target.text().strip() else tr("Choose a target file or folder.")

    def replaced(self) -> str:
        """A message about what the export would overwrite; empty for nothing."""
        return tr("The file exists and will be overwritten.") if taken(self.path) else ""

    def write(self, path: Path) -> None:
        """Write to `path`."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Stop the export and remove partial output."""

    # --- exporting ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Show problems, or else what will be overwritten. While an export runs its messages are kept."""
        if not self.working:
            problem = self.problem()
            self.export.setEnabled(not problem)
            self.message.show_message(problem or self.replaced(), "warning" if problem else "info")

    def _begin(self) -> None:
        self._written_to = self.path.absolute()
        self.working = True
        self.export.setEnabled(False)
        self.show_folder.hide()
        self.cancel.show()
        self.show_progress(0, 0, tr("Exporting ..."))
        self.write(self._written_to)

    def show_progress(self, done: int, total: int, text: str) -> None:
        """Show the progress; a `total` of 0 is unknown."""
        if self.working:
            self.bar.setRange(0, total)
            self.bar.setValue(done)
            self.bar.show()
            self.message.show_message(text, "info")

    def written(self, text: str, notes: Sequence[str] = ()) -> None:
        """Finish the export; `text` is shown in the status bar too."""
        if self.working:
            self._end()
            _last_folders.setdefault(self.context, {})[self._name] = self._written_to.parent
            self.show_folder.show()
            self.message.show_message("\n".join((text, *notes)), "positive")
            self.context.message.emit("info", text)

    def failed(self, found: str | Sequence[Diagnostic]) -> None:
        """Report that the export failed."""
        if self.working:
            self._end()
            self.message.show_message(
                found if isinstance(found, str) else "\n".join(located_finding(d) for d in found[:SHOWN])
            )

    def _cancel(self) -> None:
        self._stop()
        self.message.show_message(tr("Cancelled. Nothing was written."), "info")

    def _stop(self) -> None:
        if self.working:
            self.interrupt()
            self._end()

    def _end(self) -> None:
        self.working = False
        self.bar.hide()
        self.cancel.hide()
        self.export.setEnabled(not self.problem())

    def _show_folder(self) -> None:
        folder = self._written_to if self._written_to.is_dir() else self._written_to.parent
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stop when the window closes: it closes its dialogs without calling `done`."""
        if watched is self.parent() and event.type() is QEvent.Type.Hide and not event.spontaneous():
            self._stop()
        return super().eventFilter(watched, event)

    def done(self, result: int) -> None:
        """Stop the export when the dialog closes."""
        self._stop()
        super().done(result)
