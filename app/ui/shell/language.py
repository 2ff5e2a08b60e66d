"""The language of the window: the one chosen or the system's, where there is a translation; else English."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from designer import texts
from designer.texts import FOLDER, VARIABLE


def wanted(chosen: str, system: Sequence[str]) -> list[str]:
    """Languages to look for, the first before the others: `de_AT` before `de`. What comes after English is not needed."""
    found: list[str] = []
    for name in [chosen] if chosen else system:
        parts = re.sub(r"[^\w@]", "_", name.split(".")[0]).split("_")
        if parts[0].lower() in ("en", "c", "posix"):
            break
        found += ["_".join(parts), parts[0]]
    return list(dict.fromkeys(name for name in found if name))


def apply(app: QCoreApplication, folder: Path = FOLDER) -> str:
    """Take the texts of the first wanted language that there is, for Qt's own buttons too; the language, empty for English."""
    names = wanted(os.environ.get(VARIABLE, ""), QLocale.system().uiLanguages())
    language = next((n for n in names if texts.file(folder, n).is_file()), "")
    if not language or not texts.use(folder, language):
        return ""
    os.environ[VARIABLE] = language  # for the processes that the window starts
    translator = QTranslator(app)
    path = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if translator.load(QLocale(language), "qtbase", "_", path):  # Qt brings it for many languages, not for all
        app.installTranslator(translator)
    return language
