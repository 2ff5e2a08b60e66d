"""Dialogs for the name of a layer and the title of a comment frame."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QInputDialog, QLineEdit, QWidget

from app.ui.widgets.findings import without_icons
from designer.graph.model import Frame
from designer.texts import tr


def ask_name(parent: QWidget, layer: str, given: Callable[[str], None]) -> None:
    """Ask for a new name of a layer."""
    text = tr("Name of the layer. Weights are stored under this name.")
    _ask(parent, "canvas.rename", tr("Rename Layer"), text, layer, given)


def ask_title(parent: QWidget, frame: Frame, given: Callable[[str], None]) -> None:
    """Ask for the title of a frame."""
    title, text = tr("Edit Frame Title"), tr("Title of the frame.")
    _ask(parent, "canvas.frame_title", title, text, frame.title, given)


def _ask(parent: QWidget, name: str, title: str, text: str, value: str, given: Callable[[str], None]) -> None:
    dialog = QInputDialog(parent)
    dialog.setObjectName(name)
    dialog.setWindowTitle(title)
    dialog.setLabelText(text)
    dialog.setTextValue(value)
    dialog.textValueSelected.connect(lambda typed: given(typed.strip()))
    dialog.setOkButtonText(tr("Rename"))
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    for field in dialog.findChildren(QLineEdit):
        field.setObjectName(f"{name}.text")
        field.setAccessibleName(title)
    for buttons in dialog.findChildren(QDialogButtonBox):
        without_icons(buttons)
    dialog.open()
