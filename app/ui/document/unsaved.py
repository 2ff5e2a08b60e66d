"""Questions before work is lost: unsaved changes, and files changed by another program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFrame,
    QLabel,
    QMessageBox,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.ui.widgets.findings import without_icons
from app.ui.widgets.growing_dialog import GrowingDialog
from designer.texts import tr

Answer = Literal["save", "discard", "cancel"]


def _warning(name: str, title: str, text: str, more: str, parent: QWidget) -> QMessageBox:
    """Create a warning box without buttons."""
    box = QMessageBox(parent)
    box.setTextFormat(Qt.TextFormat.PlainText)  # a file name can contain markup
    box.setObjectName(name)
    box.setWindowTitle(title)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setText(text)
    box.setInformativeText(more)
    return box


def ask_unsaved(name: str, parent: QWidget) -> Answer:
    """Ask whether to save a modified document before it is closed."""
    box = _warning(
        "unsaved",
        tr("Unsaved Changes"),
        tr("“{name}” has unsaved changes.", name=name),
        tr("Your changes will be lost if you don't save them."),
        parent,
    )
    box.setStandardButtons(
        QMessageBox.StandardButton.Save | QMessageBox.StandardButton.Discard | QMessageBox.StandardButton.Cancel
    )
    box.setDefaultButton(QMessageBox.StandardButton.Save)
    answer = box.exec()
    box.deleteLater()
    if answer == QMessageBox.StandardButton.Save:
        return "save"
    return "discard" if answer == QMessageBox.StandardButton.Discard else "cancel"


class UnsavedDialog(GrowingDialog):
    """A list of documents with unsaved changes, with a check box each to save it."""

    def __init__(self, names: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("unsaved_many")
        self.setWindowTitle(tr("Unsaved Changes"))
        self.setAccessibleName(tr("Unsaved Changes"))
        head = QLabel(tr("{count} documents have unsaved changes. Save the checked ones?", count=len(names)))
        head.setObjectName("unsaved_many.sentence")
        head.setWordWrap(True)
        self.boxes = []
        inside = QWidget()
        rows = QVBoxLayout(inside)
        for number, name in enumerate(names):
            check = QCheckBox(name.replace("&", "&&"))
            check.setObjectName(f"unsaved_many.document_{number}")
            check.setAccessibleName(tr("Save {name}", name=name))
            check.setChecked(True)
            check.toggled.connect(self._refresh)
            rows.addWidget(check)
            self.boxes.append(check)
        rows.addStretch(1)
        area = QScrollArea()
        area.setObjectName("unsaved_many.list")
        area.setAccessibleName(tr("Documents to save"))
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inside)
        note = QLabel(tr("Changes in the other documents will be lost."))
        note.setObjectName("unsaved_many.note")
        buttons = QDialogButtonBox()
        self.save = buttons.addButton(tr("&Save"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.save.setObjectName("unsaved_many.save")
        self.discard = buttons.addButton(tr("&Discard All"), QDialogButtonBox.ButtonRole.DestructiveRole)
        self.discard.setObjectName("unsaved_many.discard")
        self.cancel = buttons.addButton(tr("&Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.cancel.setObjectName("unsaved_many.cancel")
        self.save.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self.discard.clicked.connect(self._discard)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addWidget(head)
        box.addWidget(area, 1)
        box.addWidget(note)
        box.addWidget(buttons)
        self.resize(440, 260)

    def chosen(self) -> list[int]:
        """The indices of the checked documents."""
        return [number for number, check in enumerate(self.boxes) if check.isChecked()]

    def _refresh(self) -> None:
        self.save.setEnabled(bool(self.chosen()))
        self.save.setToolTip("" if self.chosen() else tr("No document is checked. Choose Discard All to save none"))

    def _discard(self) -> None:
        for check in self.boxes:
            check.setChecked(False)
        self.accept()


def ask_unsaved_many(names: Sequence[str], parent: QWidget) -> list[int] | None:
    """Ask which of several modified documents to save before they are closed. None: cancelled."""
    dialog = UnsavedDialog(names, parent)
    stays = not dialog.exec()
    chosen = dialog.chosen()
    dialog.deleteLater()
    return None if stays else chosen


def ask_changed(name: str, parent: QWidget) -> Literal["overwrite", "elsewhere", "cancel"]:
    """Ask what to do if saving would overwrite changes of another program."""
    box = _warning(
        "changed_on_disk",
        tr("Changed by Another Program"),
        tr("“{name}” was changed by another program after it was opened.", name=name),
        tr("Saving overwrites those changes."),
        parent,
    )
    overwrite = box.addButton(tr("&Overwrite"), QMessageBox.ButtonRole.DestructiveRole)
    overwrite.setObjectName("changed_on_disk.overwrite")
    elsewhere = box.addButton(tr("Save &As..."), QMessageBox.ButtonRole.ActionRole)
    elsewhere.setObjectName("changed_on_disk.elsewhere")
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.exec()
    pressed = box.clickedButton()
    box.deleteLater()
    if pressed is overwrite:
        return "overwrite"
    return "elsewhere" if pressed is elsewhere else "cancel"


def ask_discard(title: str, parent: QWidget) -> bool:
    """Ask for confirmation before unsaved changes are discarded."""
    box = _warning(
        "discard",
        tr("Discard Unsaved Changes"),
        tr("Discard the unsaved changes of “{name}”?", name=title),
        tr("This cannot be undone. The file on disk is not changed."),
        parent,
    )
    box.setStandardButtons(QMessageBox.StandardButton.Discard | QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    answer = box.exec()
    box.deleteLater()
    return answer == QMessageBox.StandardButton.Discard
