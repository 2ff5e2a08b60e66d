"""Help > About."""

from __future__ import annotations

from html import escape
from importlib import metadata

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import QMessageBox, QWidget


def show_about(parent: QWidget) -> None:
    """Name, version and licence, without blocking."""
    try:
        version = metadata.version("layerwright")
    except metadata.PackageNotFoundError:
        version = "not installed, run from source"
    box = QMessageBox(parent)
    box.setObjectName("about")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle("About Layerwright")
    box.setText(
        f"<b>Layerwright</b> {escape(version)}<p>Design neural networks for images, train them in PyTorch, and see what "
        "every hidden layer does to your own pictures.</p>"
    )
    box.setInformativeText(f"MIT licence. Qt {qVersion()} under the LGPL, NodeGraphQt under the MIT licence.")
    box.open()
