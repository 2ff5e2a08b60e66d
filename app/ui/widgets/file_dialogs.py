"""File dialogs with filters from the format tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from designer.files.formats import Format, FormatTable
from designer.texts import tr, tr_data

Table = FormatTable[Any, Any]
_saved_in = [Path()]  # the folder of the last file that was saved under a chosen name


def open_filter(table: Table) -> str:
    """The filter of an open dialog: the whole table, each table in it, and all files."""
    parts = (part for part in (table, *table.tables) if part.read_suffixes)
    return ";;".join((*(_filter(part.title, part.read_suffixes) for part in parts), tr("All files (*)")))


def save_filter(table: Table) -> str:
    """The filter of a save dialog: each format that can be written."""
    return ";;".join(format_filter(format) for format in table.writable)


def format_filter(format: Format[Any, Any]) -> str:
    """The filter of one format."""
    return _filter(format.title, format.suffixes)


def ask_save_path(parent: QWidget, title: str, proposed: Path | str, table: Table) -> Path | None:
    """Ask for a file to save to; a name without a suffix gets that of the chosen format. None: cancelled.

    A name without a folder is proposed in the folder of the last saved file. `.2` of `net v1.2` is not a suffix. The dialog
    asks before an existing file is replaced, but it does not know the name with the suffix.
    """
    if not Path(proposed).is_absolute():
        proposed = _saved_in[0] / proposed
    formats = {format_filter(format): format for format in table.writable}
    usual = next((text for text, format in formats.items() if Path(proposed).suffix.lower() in format.suffixes), "")
    name, chosen = QFileDialog.getSaveFileName(parent, title, str(proposed), save_filter(table), usual)
    if not name:
        return None
    path = Path(name)
    _saved_in[0] = path.parent
    if path.suffix[1:2].isalpha():
        return path
    path = path.with_name(path.name + formats.get(chosen or usual, table.writable[0]).suffixes[0])
    return path if not os.path.lexists(path) or _replaces(path, parent) else None


def _replaces(path: Path, parent: QWidget) -> bool:
    """Whether the user replaces the file."""
    box = QMessageBox(parent)
    box.setTextFormat(Qt.TextFormat.PlainText)  # a file name can contain markup
    box.setObjectName("replace")
    box.setWindowTitle(tr("Replace File"))
    box.setIcon(QMessageBox.Icon.Warning)
    box.setText(tr("“{name}” already exists.", name=path.name))
    box.setInformativeText(tr("Its contents will be lost if you replace it."))
    replace = box.addButton(tr("&Replace"), QMessageBox.ButtonRole.DestructiveRole)
    replace.setObjectName("replace.replace")
    box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
    box.exec()
    pressed = box.clickedButton()
    box.deleteLater()
    return pressed is replace


def _filter(title: str, suffixes: tuple[str, ...]) -> str:
    return f"{tr_data(title)} ({' '.join(f'*{suffix}' for suffix in suffixes)})"
