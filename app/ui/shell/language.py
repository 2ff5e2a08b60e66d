"""The language of the window: the chosen one or the system's if a translation exists, otherwise English."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from designer import texts
from designer.texts import FOLDER, VARIABLE


def wanted(chosen: str, system: Sequence[str]) -> list[str]:
    """Language codes to try, in order: `de_AT` before `de`. Languages listed after English are dropped."""
    found: list[str] = []
    for name in [chosen] if chosen else system:
        parts = re.sub(r"[^\w@]", "_", name.split(".")[0]).split("_")
        if parts[0].lower() in ("en", "c", "posix"):
            break
        found += ["_".join(parts), parts[0]]
    return list(dict.fromkeys(name for name in found if name))


def apply(app: QCoreApplication, folder: Path = FOLDER) -> str:
    """Load the first available translation, for Qt's own buttons too. Returns the language code, "" for English."""
    names = wanted(os.environ.get(VARIABLE, ""), QLocale.system().uiLanguages())
    language = next((n for n in names if texts.file(folder, n).is_file()), "")
    if not language or not texts.use(folder, language):
        return ""
    os.environ[VARIABLE] = language  # for child processes
    translator = QTranslator(app)
    path = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if translator.load(QLocale(language), "qtbase", "_", path):  # Qt has translations for many languages, not for all
        app.installTranslator(translator)
    return language
