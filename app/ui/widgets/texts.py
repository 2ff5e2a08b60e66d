"""Texts that a person reads go through `tr`, so that a translation can stand in for each of them.

`python -m app.checks.texts_catalogue` collects them: what stands in `tr`, `trn` and `mark` has to be written there as it is.
"""

from __future__ import annotations

import gettext
import struct
from pathlib import Path

DOMAIN = "layerwright"
_catalogues: list[gettext.NullTranslations] = [gettext.NullTranslations()]  # the last one counts


def tr(text: str, /, **values: object) -> str:
    """The text in the person's language; `{name}` in it is filled in from `values` after it was translated."""
    found = _catalogues[-1].gettext(text)
    return _filled(found, text, values) if values else found


def trn(one: str, many: str, count: int, /, **values: object) -> str:
    """`one` or `many`, as the person's language counts; `{count}` is filled in too."""
    source = one if count == 1 else many
    return _filled(_catalogues[-1].ngettext(one, many, count), source, {"count": count, **values})


def _filled(text: str, source: str, values: dict[str, object]) -> str:
    """The translation with its values; a slip of a translator must not stop the window, so then the English text."""
    try:
        return text.format(**values)
    except (LookupError, ValueError, AttributeError):
        return source.format(**values)


def mark(text: str) -> str:
    """The text itself: it stands in a table, is collected for translators, and `tr_data` translates it where it is shown."""
    return text


def tr_data(text: str) -> str:
    """A text of a table (actions, menus, panels, requirements, or one that was marked) in the person's language."""
    return _catalogues[-1].gettext(text) if text else ""


def file(folder: Path, language: str) -> Path:
    """Where the translation into a language stands."""
    return folder / language / "LC_MESSAGES" / f"{DOMAIN}.mo"


def use(folder: Path, language: str) -> bool:
    """Take texts from the language's file; False where it cannot be read, and everything stays as it was."""
    try:
        with file(folder, language).open("rb") as stream:
            take(gettext.GNUTranslations(stream))
    except (OSError, ValueError, struct.error):
        return False
    return True


def take(catalogue: gettext.NullTranslations) -> gettext.NullTranslations:
    """Texts that are made from now on come from this catalogue; returns the one before."""
    before = _catalogues[-1]
    _catalogues[:] = [catalogue]
    return before
