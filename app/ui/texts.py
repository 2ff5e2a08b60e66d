"""Texts that a person reads go through `tr`, so that a translation can stand in for each of them."""

from __future__ import annotations

import gettext
from pathlib import Path

DOMAIN = "layerwright"
_catalogues: list[gettext.NullTranslations] = [gettext.NullTranslations()]  # the last one counts


def tr(text: str, **values: object) -> str:
    """The text in the person's language; `{name}` in it is filled in from `values` after it was translated."""
    found = _catalogues[-1].gettext(text)
    return found.format(**values) if values else found


def use(folder: Path, languages: list[str]) -> None:
    """Take texts from `folder/<language>/LC_MESSAGES/layerwright.mo`; English where there is none."""
    _catalogues[:] = [gettext.translation(DOMAIN, folder, languages, fallback=True)]
