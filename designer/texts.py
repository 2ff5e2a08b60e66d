"""Translation of texts. All texts for users go through `tr`; the English text is the key.

`python -m app.checks.texts_catalogue` collects them, so `tr`, `trn` and `mark` require literals. A text is translated when it
is created; the engine process therefore uses the language of the window that started it.
"""

from __future__ import annotations

import gettext
import os
import re
import struct
from pathlib import Path

import resources

DOMAIN = "layerwright"
FOLDER = Path(resources.__file__).parent / "languages"
VARIABLE = "LAYERWRIGHT_LANGUAGE"  # such as `de` or `pt_BR`; overrides the system's language
_catalogues: list[gettext.NullTranslations] = [gettext.NullTranslations()]  # the last one is used


def tr(text: str, /, **values: object) -> str:
    """The translated text, with `{name}` replaced from `values`."""
    found = _catalogues[-1].gettext(text)
    return _filled(found, text, values) if values else found


def trn(one: str, many: str, count: int, /, **values: object) -> str:
    """`one` or `many` by the plural rules of the language, with `{count}` replaced too, in groups of digits."""
    source = one if count == 1 else many
    return _filled(_catalogues[-1].ngettext(one, many, count), source, {"count": f"{count:,}", **values})


def _filled(text: str, source: str, values: dict[str, object]) -> str:
    """The translation with its values; the English text if the translation has wrong placeholders."""
    try:
        return text.format(**values)
    except (LookupError, ValueError, AttributeError):
        return source.format(**values)


def mark(text: str) -> str:
    """The text itself, marked for translators: for tables whose texts are translated by `tr_data` when shown."""
    return text


def tr_data(text: str) -> str:
    """Translate a text of a table (actions, menus, panels, operators, or a marked text)."""
    return _catalogues[-1].gettext(text) if text else ""


def visible(text: str) -> str:
    """The text with every character that could hide or reorder others (direction marks, control codes) as an escape."""
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in text.replace("\r\n", "\n"))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def file(folder: Path, language: str) -> Path:
    """The file with the compiled translation into a language."""
    return folder / language / "LC_MESSAGES" / f"{DOMAIN}.mo"


def use(folder: Path, language: str) -> bool:
    """Use the translation into `language`. Returns False, without a change, if it cannot be read."""
    try:
        with file(folder, language).open("rb") as stream:
            take(gettext.GNUTranslations(stream))
    except (OSError, LookupError, ValueError, struct.error):
        return False
    return True


def use_environment() -> None:
    """Use the language that the parent process set."""
    language = os.environ.get(VARIABLE, "")
    if re.fullmatch(r"[\w@]+", language):
        use(FOLDER, language)


def take(catalogue: gettext.NullTranslations) -> gettext.NullTranslations:
    """Use this catalogue; returns the previous one."""
    before = _catalogues[-1]
    _catalogues[:] = [catalogue]
    return before
