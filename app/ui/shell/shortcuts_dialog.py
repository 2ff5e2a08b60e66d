"""Help > Keyboard Shortcuts: all actions with their editable keys, and the gestures of the canvas."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QKeySequenceEdit,
    QLabel,
    QLineEdit,
    QPushButton,
    QTabWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.ui.shell.menus import full_title, menu_paths
from app.ui.shell.shortcuts import PRESETS, Shortcuts, native
from app.ui.widgets.findings import without_icons
from designer.texts import tr, tr_data

ID = Qt.ItemDataRole.UserRole


def gestures() -> tuple[tuple[str, str], ...]:
    """Mouse gestures of the canvas and what they do."""
    return (
        (tr("Drag from the Layer Palette"), tr("Add an operator; drop it on a link to insert it there")),
        (tr("Double-click the empty canvas"), tr("Search for an operator and add it")),
        (tr("Drag from port to port"), tr("Connect; incompatible ports are crossed out")),
        (tr("Drag a link's end away"), tr("Disconnect, or connect to another port")),
        (tr("Drag an unconnected layer onto a link"), tr("Insert it there")),
        (tr("Alt and double-click a link"), tr("Add a point to its route, or remove the point under the cursor")),
        (tr("Drag to the edge of the canvas"), tr("Scroll")),
        (tr("Drop a link on the empty canvas"), tr("Search for an operator and connect it")),
        (tr("Drag a layer"), tr("Move the selected layers, snapped to the grid")),
        (tr("Drag the empty canvas"), tr("Select with a rubber band (Shift adds to the selection)")),
        (tr("Shift or Ctrl and click"), tr("Add to or remove from the selection")),
        (tr("Double-click a layer"), tr("Inspect its channels")),
        (tr("Double-click an instance of a template"), tr("Open the template")),
        (tr("Wheel"), tr("Zoom around the cursor")),
        (tr("Drag the title of a frame"), tr("Move the frame with its layers; drag an edge to resize it")),
        (tr("Double-click the title of a frame"), tr("Edit the title")),
        (tr("Double-click a collapsed frame"), tr("Expand it")),
        (tr("Middle button, or Alt and drag"), tr("Pan")),
        (tr("Esc while dragging"), tr("Cancel the drag")),
    )


class ShortcutsDialog(QDialog):
    """Two pages: keys and gestures. Changes apply immediately in all windows."""

    def __init__(self, shortcuts: Shortcuts, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setObjectName("shortcuts")
        self.setAccessibleName(tr("Keyboard Shortcuts"))
        self.setWindowTitle(tr("Keyboard Shortcuts"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._shortcuts = shortcuts
        self._paths = menu_paths()
        pages = QTabWidget()
        pages.setObjectName("shortcuts.pages")
        pages.setAccessibleName(tr("Pages"))
        pages.addTab(self._keys_page(), tr("Keys"))
        pages.addTab(_gestures_page(), tr("Gestures"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        without_icons(buttons)
        box = QVBoxLayout(self)
        box.addWidget(pages)
        box.addWidget(buttons)
        self.resize(820, 620)
        self._fill()
        self.select(next(iter(shortcuts.actions)))
        self.search.setFocus()

    # --- building --------------------------------------------------------------------------------------------

    def _keys_page(self) -> QWidget:
        page = QWidget()
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search actions and keys"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.preset = QComboBox()
        self.preset.setToolTip(tr("Keys of another program. Choosing a preset discards your own changes."))
        for preset in PRESETS:
            self.preset.addItem(preset.title, preset.id)
        self.preset.activated.connect(self._choose_preset)
        self.list = QTreeWidget()
        self.list.setColumnCount(3)
        self.list.setHeaderLabels([tr("Action"), tr("Keys"), tr("Description")])
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setAlternatingRowColors(True)
        self.list.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.list.currentItemChanged.connect(self._show)
        self.editor = QKeySequenceEdit()
        self.editor.setMaximumSequenceLength(1)
        self.editor.keySequenceChanged.connect(self._check_key)
        self.add = QPushButton(tr("&Add"))
        self.add.clicked.connect(self._add)
        self.clear = QPushButton(tr("&Remove Keys"))
        self.clear.clicked.connect(lambda: self._set(()))
        self.reset = QPushButton(tr("R&eset"))
        self.reset.setToolTip(tr("Restore the preset's keys of this action"))
        self.reset.clicked.connect(self._reset)
        self.note = QLabel()
        self.note.setWordWrap(True)
        names = {
            "search": (self.search, tr("Search")),
            "preset": (self.preset, tr("Preset")),
            "list": (self.list, tr("Shortcuts")),
            "editor": (self.editor, tr("New key")),
            "add": (self.add, tr("Add key")),
            "clear": (self.clear, tr("Remove all keys of the action")),
            "reset": (self.reset, tr("Reset the action")),
            "note": (self.note, tr("Current use of the key")),
        }
        for name, (widget, title) in names.items():
            widget.setObjectName(f"shortcuts.{name}")
            widget.setAccessibleName(title)
        for field in self.editor.findChildren(QLineEdit):
            field.setObjectName("shortcuts.editor.text")
            field.setAccessibleName(tr("New key"))
        self._lay_out(page)
        return page

    def _lay_out(self, page: QWidget) -> None:
        top = QHBoxLayout()
        top.addWidget(self.search, 1)
        label = QLabel(tr("&Preset"))
        label.setBuddy(self.preset)
        top.addWidget(label)
        top.addWidget(self.preset)
        row = QHBoxLayout()
        self.chosen = QLabel()
        self.chosen.setObjectName("shortcuts.chosen")
        row.addWidget(self.chosen)
        row.addWidget(self.editor, 1)
        for button in (self.add, self.clear, self.reset):
            button.setAutoDefault(False)
            row.addWidget(button)
        box = QVBoxLayout(page)
        box.addLayout(top)
        box.addWidget(self.list, 1)
        box.addLayout(row)
        box.addWidget(self.note)

    def _fill(self) -> None:
        current = self._action()
        self.list.clear()
        for spec in self._shortcuts.actions.values():
            keys = native(self._shortcuts.keys(spec.id))
            item = QTreeWidgetItem(
                [self._title(spec.id), f"{keys} *" if self._shortcuts.is_changed(spec.id) else keys, tr_data(spec.tip)]
            )
            item.setData(0, ID, spec.id)
            if self._shortcuts.is_changed(spec.id):
                item.setToolTip(1, tr("* changed by you"))
            self.list.addTopLevelItem(item)
            if spec.id == current:
                self.list.setCurrentItem(item)
        self.preset.setCurrentIndex(self.preset.findData(self._shortcuts.preset.id))
        self._filter(self.search.text())
        self._show()

    def _title(self, action: str) -> str:
        return full_title(self._shortcuts.actions[action], self._paths)

    # --- selection --------------------------------------------------------------------------------------

    def _action(self) -> str:
        item = self.list.currentItem()
        return str(item.data(0, ID)) if item is not None else ""

    def select(self, action: str) -> None:
        """Select the row of an action."""
        for number in range(self.list.topLevelItemCount()):
            item = self.list.topLevelItem(number)
            if item is not None and item.data(0, ID) == action:
                self.list.setCurrentItem(item)

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        for number in range(self.list.topLevelItemCount()):
            item = self.list.topLevelItem(number)
            if item is not None:
                line = " ".join(item.text(column) for column in range(3)).casefold()
                item.setHidden(not all(word in line for word in words))

    def _show(self, *_items: object) -> None:
        action = self._action()
        spec = self._shortcuts.actions.get(action)
        self.chosen.setText(self._title(action) if spec is not None else "")
        self.editor.clear()
        self.clear.setEnabled(bool(spec) and bool(self._shortcuts.keys(action)))
        self.reset.setEnabled(bool(spec) and self._shortcuts.is_changed(action))
        self._check_key()

    def _key(self) -> str:
        return self.editor.keySequence().toString(QKeySequence.SequenceFormat.PortableText)

    def _check_key(self, *_keys: object) -> None:
        """Show whether the key in the field can be added."""
        key, action = self._key(), self._action()
        refused = self._shortcuts.refused(action, key) if key and action else ""
        if key and key in self._shortcuts.keys(action):
            refused = tr("The action has this key already.")
        self.add.setEnabled(bool(key) and not refused)
        for field in self.editor.findChildren(QLineEdit):
            field.setPlaceholderText(tr("Press a key"))  # Qt puts its own text back with each change
        if not key:
            self.note.setText(tr("Press a key, then click Add. An action can have several keys."))
        elif refused:
            self.note.setText(refused)
        else:
            taken = [self._title(n) for n in self._shortcuts.using(key, action)]
            self.note.setText(
                tr(
                    "{key} is used by {others}. Adding it here removes it there.",
                    key=native((key,)),
                    others=", ".join(taken),
                )
                if taken
                else tr("{key} is free.", key=native((key,)))
            )

    # --- editing --------------------------------------------------------------------------------------------

    def _add(self) -> None:
        self._set((*self._shortcuts.keys(self._action()), self._key()))

    def _set(self, keys: tuple[str, ...]) -> None:
        self._shortcuts.change(self._action(), keys)
        self._fill()

    def _reset(self) -> None:
        self._shortcuts.reset(self._action())
        self._fill()

    def _choose_preset(self) -> None:
        self._shortcuts.choose(str(self.preset.currentData()))
        self._fill()


def _gestures_page() -> QWidget:
    tree = QTreeWidget()
    tree.setObjectName("shortcuts.gestures")
    tree.setAccessibleName(tr("Gestures"))
    tree.setColumnCount(2)
    tree.setHeaderLabels([tr("Gesture"), tr("Description")])
    tree.setRootIsDecorated(False)
    tree.setAlternatingRowColors(True)
    for gesture, effect in gestures():
        tree.addTopLevelItem(QTreeWidgetItem([gesture, effect]))
    tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    return tree
