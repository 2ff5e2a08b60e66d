"""Non-modal file dialogs of the profiling panels."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.engine.profiling import Entry, ProfilingController
from app.ui.widgets.file_dialogs import format_filter, open_filter, save_filter
from designer.profiling.report import RECORDS
from designer.texts import tr


def open_record(parent: QWidget, profiling: ProfilingController) -> QFileDialog:
    """Ask for a record and add it to the Inference Run Logger."""
    dialog = QFileDialog(parent, tr("Open Record"), "", open_filter(RECORDS))
    dialog.setObjectName("run_logger.open_dialog")
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: profiling.open_file(Path(path)))
    dialog.open()
    return dialog


def save_record(parent: QWidget, profiling: ProfilingController, entry: Entry) -> QFileDialog:
    """Ask for a file and format to save a run."""
    suffixes = {format_filter(format): format.suffixes[0] for format in RECORDS.writable}
    dialog = QFileDialog(parent, tr("Save Record"), "", save_filter(RECORDS))
    dialog.setObjectName("run_logger.save_dialog")
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(RECORDS.write_suffixes[0])
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.filterSelected.connect(lambda chosen: dialog.setDefaultSuffix(suffixes[chosen]))
    dialog.selectFile(file_stem(entry))
    dialog.fileSelected.connect(lambda path: profiling.save_file(Path(path), entry))
    dialog.open()
    return dialog


def file_stem(entry: Entry) -> str:
    """A file name for a run: network, engine, precision and date."""
    record = entry.record
    parts = [record.network, record.options.get("engine", ""), record.options.get("precision", ""), record.date[:10]]
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join(p for p in parts if p)).strip("._") or "run"
