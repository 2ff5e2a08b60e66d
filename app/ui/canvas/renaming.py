"""The small dialogs that ask for the name of a layer and the title of a comment frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QInputDialog, QLineEdit

from app.ui.widgets.findings import without_icons
from app.ui.widgets.texts import tr
from designer.graph.model import Frame

if TYPE_CHECKING:
    from app.ui.canvas.canvas import Canvas


def ask_name(canvas: Canvas, layer: str) -> None:
    """Ask for another name of a layer."""
    text = tr("Name of the layer. Its weights are found by this name.")
    _ask(canvas, "canvas.rename", tr("Rename Layer"), text, layer, lambda name: canvas.rename(layer, name))


def ask_title(canvas: Canvas, frame: Frame) -> None:
    """Ask for the title of a frame."""
    title, text = tr("Title of the Frame"), tr("What the layers in this frame have in common.")
    _ask(canvas, "canvas.frame_title", title, text, frame.title, lambda name: canvas.retitle(frame.id, name))


def _ask(canvas: Canvas, name: str, title: str, text: str, value: str, given: Callable[[str], None]) -> None:
    dialog = QInputDialog(canvas)
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
