"""Help > About."""

from __future__ import annotations

from html import escape
from importlib import metadata

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import QMessageBox, QWidget

from designer.texts import tr


def show_about(parent: QWidget) -> None:
    """Name, version and licence, without blocking."""
    try:
        version = metadata.version("layerwright")
    except metadata.PackageNotFoundError:
        version = tr("not installed, run from source")
    box = QMessageBox(parent)
    box.setObjectName("about")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(tr("About Layerwright"))
    box.setTextFormat(Qt.TextFormat.RichText)
    box.setText(
        tr(
            "<b>Layerwright</b> {version}<p>Design neural networks for images, train them in PyTorch, and see "
            "what every hidden layer does to your own pictures.</p>",
            version=escape(version),
        )
    )
    box.setInformativeText(
        tr("MIT licence. Qt {version} under the LGPL, NodeGraphQt under the MIT licence.", version=qVersion())
    )
    box.open()
