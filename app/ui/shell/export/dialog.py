"""What all exports share: where to write, options, what is wrong with them, progress, and what came of it."""

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
from app.ui.widgets.findings import finding_text, without_icons
from app.ui.widgets.growing import GrowingDialog
from app.ui.widgets.message import Message
from app.ui.widgets.typed_path import taken, typed_path
from designer.graph.diagnostics import Diagnostic
from designer.texts import tr

SHOWN = 4  # problems in a message
_last_folders: WeakKeyDictionary[Context, dict[str, Path]] = WeakKeyDictionary()  # that a window exported to, by dialog


LONGEST = 60  # characters of a proposed name: 240 bytes at most


def file_name(proposed: str) -> str:
    """A name made from a network's, which is any text, as the name of one file in one folder."""
    suffix = Path(proposed).suffix
    stem = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in proposed.removesuffix(suffix))
    return f"{stem.strip(' .')[:LONGEST] or 'network'}{suffix if suffix[1:].isalnum() else ''}"


class ExportDialog(GrowingDialog):
    """Stays open while an export works; closing it, or its window, stops the work.

    A subclass adds rows of options with `add_row` and calls `check` at the end of its `__init__`. It says what is wrong with
    the choices in `problem`, and writes in `write`, which ends with `written` or `failed`, now or later.
    """

    def __init__(
        self, context: Context, name: str, title: str, proposed: str, parent: QWidget | None, *, action: str = ""
    ) -> None:
        super().__init__(parent)
        self.context = context
        self.working = False
        self._name = name
        self._written_to = Path()  # the target of the export that works, or worked last
        if parent is not None:
            parent.installEventFilter(self)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        folder = _last_folders.get(context, {}).get(name) or start_folder(context.root.path)
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
        self.export.setDefault(True)  # once it is in the dialog: before, Qt forgets it

    # --- building --------------------------------------------------------------------------------------------

    def _button(
        self, buttons: QDialogButtonBox, name: str, text: str, role: QDialogButtonBox.ButtonRole
    ) -> QPushButton:
        button = buttons.addButton(text, role)
        button.setObjectName(f"{self._name}.{name}")
        return button

    def line(self, text: str) -> QLineEdit:
        """A field for a path."""
        line = QLineEdit(text)
        line.setMinimumWidth(380)
        return line

    def add_row(self, name: str, title: str, field: QWidget, *beside: QWidget) -> None:
        """A row of the form: a field under its title, and what is shown next to it."""
        field.setObjectName(f"{self._name}.{name}")
        field.setAccessibleName(title.replace("&", ""))
        label = QLabel(title)
        label.setBuddy(field)
        if not beside:
            self.form.addRow(label, field)
            return
        row = QHBoxLayout()
        row.addWidget(field, 1)
        for widget in beside:
            row.addWidget(widget)
        self.form.addRow(label, row)

    def browse_button(self, name: str, title: str) -> QPushButton:
        """The button next to a path."""
        button = QPushButton(tr("&Browse...") if name == "target" else tr("Browse..."))
        button.setObjectName(f"{self._name}.{name}.browse")
        button.setAccessibleName(title)
        button.setAutoDefault(False)
        return button

    def add_target(self, title: str) -> None:
        """The row of the target; its button calls `browse`."""
        button = self.browse_button("target", tr("Choose where to write"))
        button.clicked.connect(self.browse)
        self.add_row("target", title, self.target, button)

    # --- what a subclass says --------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The target as it is typed now."""
        return typed_path(self.target.text())

    def browse(self) -> None:
        """Ask for the target."""

    def problem(self) -> str:
        """What is wrong with the choices; empty when nothing is."""
        return "" if self.target.text().strip() else tr("Choose where to write.")

    def replaced(self) -> str:
        """What the export would replace; empty for nothing."""
        return tr("The file is there already; it will be replaced.") if taken(self.path) else ""

    def write(self, path: Path) -> None:
        """Write to `path`."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """End the work; nothing half done stays."""

    # --- working ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Show what is wrong, else what will be replaced. The messages of an export that works stay."""
        if not self.working:
            problem = self.problem()
            self.export.setEnabled(not problem)
            self.message.tell(problem or self.replaced(), "warning" if problem else "info")

    def _begin(self) -> None:
        self._written_to = self.path.absolute()
        self.working = True
        self.export.setEnabled(False)
        self.show_folder.hide()
        self.cancel.show()
        self.show_progress(0, 0, tr("Exporting ..."))
        self.write(self._written_to)

    def show_progress(self, done: int, total: int, text: str) -> None:
        """How far the export is; a `total` of 0 is not known."""
        if self.working:
            self.bar.setRange(0, total)
            self.bar.setValue(done)
            self.bar.show()
            self.message.tell(text, "info")

    def written(self, text: str, notes: Sequence[str] = ()) -> None:
        """The export is done; `text` goes to the status bar too."""
        if self.working:
            self._end()
            _last_folders.setdefault(self.context, {})[self._name] = self._written_to.parent
            self.show_folder.show()
            self.message.tell("\n".join((text, *notes)), "positive")
            self.context.message.emit("info", text)

    def failed(self, found: str | Sequence[Diagnostic]) -> None:
        """The export ended without a file."""
        if self.working:
            self._end()
            self.message.tell(found if isinstance(found, str) else "\n".join(finding_text(d) for d in found[:SHOWN]))

    def _cancel(self) -> None:
        self._stop()
        self.message.tell(tr("Cancelled; nothing was written."), "info")

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
        """A window that closes takes its dialogs with it without asking them."""
        if watched is self.parent() and event.type() is QEvent.Type.Hide and not event.spontaneous():
            self._stop()
        return super().eventFilter(watched, event)

    def done(self, result: int) -> None:
        """Closing stops the work."""
        self._stop()
        super().done(result)
