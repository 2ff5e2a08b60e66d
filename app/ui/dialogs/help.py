"""Help > Shortcuts and Help > About."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import metadata

from PySide6.QtCore import Qt, qVersion
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QMessageBox,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.ui.actions import Spec
from app.ui.dialogs.findings import without_icons

GESTURES = (
    ("Drag from the palette", "Add an operator; on a link: insert it there"),
    ("Space, Tab or Shift+A; double-click the empty canvas", "Search an operator and add it"),
    ("Drag from port to port", "Connect; ports that cannot take the link are crossed out"),
    ("Drag a link's end away", "Disconnect, or connect elsewhere"),
    ("Drop a link on the empty canvas", "Search an operator and connect it"),
    ("Drag a layer", "Move the selected layers on the grid"),
    ("Drag the empty canvas", "Select by a rubber band (Shift: add)"),
    ("Shift or Ctrl and click", "Add to the selection, or take away"),
    ("Double-click a layer", "Inspect its channels"),
    ("Wheel", "Zoom at the pointer"),
    ("Drag the title of a frame", "Move it with the layers in it; its edges resize it"),
    ("Double-click the title of a frame", "Change it"),
    ("Middle button, or Alt and drag", "Move the view"),
    ("Esc while dragging", "Leave everything as it was"),
)


class ShortcutsDialog(QDialog):
    """All actions with their keys, then the gestures of the canvas."""

    def __init__(self, specs: Iterable[Spec], parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setObjectName("shortcuts")
        self.setWindowTitle("Shortcuts and Gestures")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        tree = QTreeWidget()
        tree.setObjectName("shortcuts.list")
        tree.setAccessibleName("Shortcuts")
        tree.setColumnCount(2)
        tree.setHeaderLabels(["Keys or gesture", "Does"])
        tree.setRootIsDecorated(False)
        tree.setAlternatingRowColors(True)
        native = QKeySequence.SequenceFormat.NativeText
        for spec in specs:
            keys = ", ".join(QKeySequence(text).toString(native) for text in spec.shortcuts)
            if keys:
                tree.addTopLevelItem(QTreeWidgetItem([keys, spec.tip]))
        for gesture, effect in GESTURES:
            tree.addTopLevelItem(QTreeWidgetItem([gesture, effect]))
        tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addWidget(tree)
        box.addWidget(buttons)
        self.resize(760, 560)


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
