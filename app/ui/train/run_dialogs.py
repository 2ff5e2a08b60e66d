"""Questions about a run: its name and notes, and how far it trains."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QInputDialog, QLineEdit, QPlainTextEdit, QWidget

from app.ui.widgets.findings import without_icons
from designer.texts import tr
from designer.training.run_folder import Notes
from designer.training.watched_run import RunSnapshot

MAX_STEPS = 1_000_000_000


class NotesDialog(QDialog):
    """A line for the name, and a text."""

    def __init__(self, shot: RunSnapshot, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("run_notes")
        self.setWindowTitle(tr("Name and Notes"))
        self.name = QLineEdit(shot.notes.title)
        self.name.setObjectName("run_notes.name")
        self.name.setPlaceholderText(shot.folder.name)
        self.text = QPlainTextEdit(shot.notes.text)
        self.text.setObjectName("run_notes.text")
        self.text.setTabChangesFocus(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        form = QFormLayout(self)
        form.addRow(tr("&Name"), self.name)
        form.addRow(tr("No&tes"), self.text)
        form.addRow(buttons)

    def notes(self) -> Notes:
        return Notes(self.name.text().strip(), self.text.toPlainText())


def ask_notes(parent: QWidget, shot: RunSnapshot) -> Notes | None:
    """Ask for the name and notes of a run; None: cancelled."""
    dialog = NotesDialog(shot, parent)
    accepted = dialog.exec() == QDialog.DialogCode.Accepted
    notes = dialog.notes()
    dialog.deleteLater()
    return notes if accepted else None


def ask_steps(parent: QWidget, shot: RunSnapshot) -> int:
    """Ask for the number of steps of the extended run; 0: cancelled."""
    least = shot.step + 1
    text = tr("Steps in total; {step} are done", step=shot.step)
    steps, accepted = QInputDialog.getInt(
        parent, tr("Extend Run"), text, max(2 * shot.total_steps, least), least, MAX_STEPS
    )
    return steps if accepted else 0
