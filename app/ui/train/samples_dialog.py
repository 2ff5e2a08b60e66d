"""A page of training samples: the inputs that the network sees, each with its target below."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QDialog, QLabel, QVBoxLayout, QWidget

from app.ui.widgets.image_view import ImageView
from designer.texts import tr


class SamplesDialog(QDialog):
    """Shows the image that the project wrote."""

    def __init__(self, page: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("training_samples")
        self.setWindowTitle(tr("Training Samples"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.view = ImageView("training_samples.page", tr("Training samples"), "")
        self.view.show_image(QImage(str(page)))
        note = QLabel(tr("Inputs after cropping, flips and noise; each target is below its input."))
        note.setWordWrap(True)
        column = QVBoxLayout(self)
        column.addWidget(self.view, 1)
        column.addWidget(note)
        self.resize(840, 600)
