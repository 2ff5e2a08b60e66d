"""Questions before work would be lost: documents with changes that are not saved, and files that somebody else changed."""

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
from app.ui.widgets.growing import GrowingDialog
from designer.texts import tr

Answer = Literal["save", "discard", "cancel"]


def _warning(name: str, title: str, text: str, more: str, parent: QWidget) -> QMessageBox:
    """A question that still needs its buttons."""
    box = QMessageBox(parent)
    box.setTextFormat(Qt.TextFormat.PlainText)  # a file may be called <b>
    box.setObjectName(name)
    box.setWindowTitle(title)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setText(text)
    box.setInformativeText(more)
    return box


def ask_unsaved(name: str, parent: QWidget) -> Answer:
    """Whether to save a changed document before it goes away."""
    box = _warning(
        "unsaved",
        tr("Unsaved Changes"),
        tr("“{name}” has changes that are not saved.", name=name),
        tr("Without saving, the changes are lost."),
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
    """Several documents with unsaved changes, each with a mark whether it is to be saved."""

    def __init__(self, names: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("unsaved_many")
        self.setWindowTitle(tr("Unsaved Changes"))
        self.setAccessibleName(tr("Unsaved Changes"))
        head = QLabel(
            tr("{count} documents have changes that are not saved. Save those with a mark?", count=len(names))
        )
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
        note = QLabel(tr("Changes of the others are lost."))
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
        """The numbers of the documents with a mark."""
        return [number for number, check in enumerate(self.boxes) if check.isChecked()]

    def _refresh(self) -> None:
        self.save.setEnabled(bool(self.chosen()))
        self.save.setToolTip("" if self.chosen() else tr("No document has a mark: choose Discard All to save none"))

    def _discard(self) -> None:
        for check in self.boxes:
            check.setChecked(False)
        self.accept()


def ask_unsaved_many(names: Sequence[str], parent: QWidget) -> list[int] | None:
    """Which of several changed documents to save before all of them go away; None: stay."""
    dialog = UnsavedDialog(names, parent)
    stays = not dialog.exec()
    chosen = dialog.chosen()
    dialog.deleteLater()
    return None if stays else chosen


def ask_changed(name: str, parent: QWidget) -> Literal["overwrite", "elsewhere", "cancel"]:
    """What to do where saving would write over what somebody else wrote."""
    box = _warning(
        "changed_on_disk",
        tr("Changed by Another Program"),
        tr("“{name}” was changed by another program since it was opened here.", name=name),
        tr("Saving writes over those changes."),
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
    """Whether changes that are not saved, or that a crash left behind, are really not wanted."""
    box = _warning(
        "discard",
        tr("Discard Unsaved Changes"),
        tr("Discard the unsaved changes of “{name}”?", name=title),
        tr("They cannot be brought back after that. The file on disk stays as it is."),
        parent,
    )
    box.setStandardButtons(QMessageBox.StandardButton.Discard | QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    answer = box.exec()
    box.deleteLater()
    return answer == QMessageBox.StandardButton.Discard
