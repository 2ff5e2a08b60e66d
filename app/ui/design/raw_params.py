"""The parameters of a layer of unknown type, as written in the file."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableWidget, QTableWidgetItem, QWidget

from designer.graph.model import Layer
from designer.texts import tr


class RawParams(QTableWidget):
    """A read-only table of parameter names and texts."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(0, 2, parent)
        self.setObjectName(name)
        self.setAccessibleName(tr("Parameters as text"))
        self.setHorizontalHeaderLabels([tr("Parameter"), tr("Text")])
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setMaximumHeight(200)
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.horizontalHeader().setStretchLastSection(True)

    def show_layer(self, layer: Layer) -> None:
        self.setRowCount(len(layer.params))
        for row, (name, text) in enumerate(sorted(layer.params.items())):
            self.setItem(row, 0, QTableWidgetItem(name))
            self.setItem(row, 1, QTableWidgetItem(text))
