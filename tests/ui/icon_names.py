"""Names of the icons that a window shows: drawing and color, in place of pixels, which depend on the machine.

Importing this module lets the theme note every icon that it draws.
"""

from __future__ import annotations

import re

from PySide6.QtGui import QIcon
from shown_state import _icon as pixels

from app.ui.widgets import theme

_NAMES: dict[str, str] = {}
_draw = theme._icon
_OF_A_CELL = re.compile(r"(?<=DecorationRole=)[0-9a-f]{12}")


def _noted(name: str, ink: str, faded: str) -> QIcon:
    drawn = _draw(name, ink, faded)
    if f"{name} {ink}" not in _NAMES.values():
        _NAMES[pixels(drawn)] = f"{name} {ink}"
    return drawn


theme._icon = _noted  # type: ignore[assignment]


def icon_name(digest: str) -> str:
    """The drawing and color of an icon by the digest of its pixels; empty for none."""
    return _NAMES.get(digest, "another icon") if digest else ""


def named_cells(text: str) -> str:
    """The facts of a cell with the names of its icons."""
    return _OF_A_CELL.sub(lambda found: icon_name(found[0]), text)
