"""Non-modal file dialogs of the profiling panels."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from app.ui.engine.profiling import Entry, ProfilingController
from app.ui.widgets.file_dialogs import format_filter, open_filter, save_filter
from designer.profiling.profile_files import PROFILES
from designer.texts import tr


def open_profile(parent: QWidget, profiling: ProfilingController) -> QFileDialog:
    """Ask for a profile and add its runs to the Inference Run Logger."""
    dialog = QFileDialog(parent, tr("Open Profile"), "", open_filter(PROFILES))
    dialog.setObjectName("run_logger.open_dialog")
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(lambda path: profiling.open_file(Path(path)))
    dialog.open()
    return dialog


def save_profile_as(parent: QWidget, profiling: ProfilingController, entry: Entry) -> QFileDialog:
    """Ask for a file and format to save a run."""
    suffixes = {format_filter(format): format.suffixes[0] for format in PROFILES.writable}
    dialog = QFileDialog(parent, tr("Save Profile"), "", save_filter(PROFILES))
    dialog.setObjectName("run_logger.save_dialog")
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(PROFILES.write_suffixes[0])
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.filterSelected.connect(lambda chosen: dialog.setDefaultSuffix(suffixes[chosen]))
    dialog.selectFile(file_stem(entry))
    dialog.fileSelected.connect(lambda path: profiling.save_file(Path(path), entry))
    dialog.open()
    return dialog


def file_stem(entry: Entry) -> str:
    """A file name without suffix for a run: network, engine, precision and date. With a dot, Qt would not append the suffix."""
    run = entry.run
    parts = [entry.profile.network, run.engine, run.precision, run.date[:10]]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", "-".join(p for p in parts if p)).strip("_") or "run"
