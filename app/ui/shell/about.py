"""Help > About."""

from __future__ import annotations

from html import escape
from importlib import metadata

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import QMessageBox, QWidget

from designer.texts import tr


def show_about(parent: QWidget) -> None:
    """Show the name, version and license in a dialog that does not block."""
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
            "what every hidden layer does to your own photos.</p>",
            version=escape(version),
        )
    )
    box.setInformativeText(
        tr("MIT license. Qt {version} under the LGPL, NodeGraphQt under the MIT license.", version=qVersion())
    )
    box.open()
